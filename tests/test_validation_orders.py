"""Cohorts in random orders: each patient learns from those before, and from nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from part_store import Memory

from vitolab.problem import Patient, Problem
from vitolab.store import open_run
from vitolab.store.tables import patient_table
from vitolab.validation import from_nothing
from vitolab.validation.orders import order_of_patients

METHODS = ("vito-continuous", "least-squares-nearest", "least-squares-multistart")


def filled(
    problem: Problem,
    patients: Sequence[Patient],
    methods: Sequence[str] = METHODS,
    run: Memory | None = None,
    n_jobs: int = 1,
    n_orders: int = 2,
    give_up: float = 0.0,
    max_runs: int | None = None,
) -> Memory:
    """A store after the harness."""
    run = Memory() if run is None else run
    with parallel_config(backend="threading"):  # worker processes could not import the model
        from_nothing(
            run,
            {"s": problem},
            patients,
            methods=methods,
            n_orders=n_orders,
            n_jobs=n_jobs,
            give_up=give_up,
            max_runs=max_runs,
        )
    return run


def assert_equal(one: Memory, other: Memory) -> None:
    for a, b in zip(one.tables(), other.tables(), strict=True):
        pd.testing.assert_frame_equal(a, b, check_exact=True)


@pytest.fixture(scope="module")
def finished(linear_problem: Problem, linear_patients: list[Patient]) -> Memory:
    return filled(linear_problem, linear_patients)


def test_every_method_goes_through_the_same_orders(finished: Memory) -> None:
    table, _ = finished.tables()
    orders = {
        key: tuple(own.sort_values("position")["patient"])
        for key, own in table.groupby(["method", "repeat"])
    }
    assert len(orders) == 2 * len(METHODS)
    for repeat in (0, 1):
        assert len({orders[method, repeat] for method in METHODS}) == 1
    assert orders[METHODS[0], 0] != orders[METHODS[0], 1]
    for order in orders.values():
        assert sorted(order) == sorted(set(table["patient"]))


def test_orders_are_those_of_the_seed_alone(linear_patients: list[Patient]) -> None:
    def names(patients: Sequence[Patient], repeat: int, seed: int) -> list[str]:
        return [patient.name for patient in order_of_patients(patients, repeat, seed)]

    assert names(linear_patients, 3, 0) == names(linear_patients[::-1], 3, 0)
    drawn = {tuple(names(linear_patients, repeat, seed)) for repeat in range(5) for seed in (0, 1)}
    assert len(drawn) == 10


def test_each_place_of_an_order_is_equally_likely(linear_patients: list[Patient]) -> None:
    first = [order_of_patients(linear_patients, repeat)[0].name for repeat in range(2000)]
    counts = pd.Series(first).value_counts()
    assert len(counts) == len(linear_patients)
    # 200 expected of each, with a standard deviation of 13.4
    assert counts.sub(200).abs().max() < 5 * 13.4


def test_two_workers_give_the_same_bits(
    finished: Memory, linear_problem: Problem, linear_patients: list[Patient]
) -> None:
    assert_equal(finished, filled(linear_problem, linear_patients[::-1], n_jobs=2))


def test_a_method_does_not_depend_on_those_beside_it(
    finished: Memory, linear_problem: Problem, linear_patients: list[Patient]
) -> None:
    alone = filled(linear_problem, linear_patients, ["least-squares-nearest"]).tables()[0]
    table = finished.tables()[0]
    keys = ["repeat", "position"]
    pd.testing.assert_frame_equal(
        table[table["method"] == "least-squares-nearest"].sort_values(keys, ignore_index=True),
        alone.sort_values(keys, ignore_index=True),
    )


def test_an_interrupted_study_goes_on_by_orders(
    finished: Memory, linear_problem: Problem, linear_patients: list[Patient]
) -> None:
    run = Memory(at_most=4)
    with pytest.raises(KeyboardInterrupt):
        filled(linear_problem, linear_patients, run=run)
    before = list(run.computed)
    run.at_most = None
    filled(linear_problem, linear_patients, run=run)
    assert run.computed[:4] == before
    assert len(run.computed) == len(set(run.computed)) == 2 * len(METHODS)
    assert_equal(finished, run)


@pytest.mark.parametrize("method", METHODS)
def test_a_later_patient_teaches_nobody_before(
    method: str, finished: Memory, linear_problem: Problem, linear_patients: list[Patient]
) -> None:
    """Another last patient changes nothing before it; another first one changes what follows."""
    order = [patient.name for patient in order_of_patients(linear_patients, 0)]

    def runs(changed: str) -> pd.DataFrame:
        patients = [
            replace(p, measurements={k: v + 1.0 for k, v in p.measurements.items()})
            if p.name == changed
            else p
            for p in linear_patients
        ]
        table = filled(linear_problem, patients, [method], n_orders=1).tables()[0]
        return table.set_index("patient").loc[order].filter(regex="^(n_runs|x:|misfit:|position)")

    table = finished.tables()[0]
    kept = table[(table["method"] == method) & (table["repeat"] == 0)]
    kept = kept.set_index("patient").loc[order].filter(regex="^(n_runs|x:|misfit:|position)")
    last, first = runs(order[-1]), runs(order[0])
    pd.testing.assert_frame_equal(last[:-1], kept[:-1], check_exact=True)
    assert not last[-1:].equals(kept[-1:])
    others_differ = not first[1:].equals(kept[1:])
    assert others_differ == (method != "least-squares-multistart"), "it learns nothing"


def test_who_learns_makes_fewer_runs_for_those_who_come_late(finished: Memory) -> None:
    table = finished.tables()[0]
    early = table[table["position"] <= 3].groupby("method")["n_runs"].mean()
    late = table[table["position"] >= 8].groupby("method")["n_runs"].mean()
    assert late["vito-continuous"] < 0.5 * early["vito-continuous"]


def test_the_runs_with_which_a_method_begins_are_counted(finished: Memory) -> None:
    table, traces = finished.tables()
    first = table[(table["method"] == "vito-continuous") & (table["position"] == 1)]
    assert (first["n_runs"] > 1).all()
    assert traces is not None
    assert set(traces["repeat"]) == {0}
    length = traces.groupby(["method", "patient"]).size()
    known = table[table["repeat"] == 0].set_index(["method", "patient"])["n_runs"]
    assert (length.sort_index() == known.sort_index()).all()


def test_no_patient_takes_more_runs_than_are_allowed(
    linear_problem: Problem, linear_patients: list[Patient]
) -> None:
    table = filled(linear_problem, linear_patients, max_runs=4).tables()[0]
    assert table["n_runs"].max() == 4


def test_a_chance_ends_who_cannot_be_met_and_has_parts_of_its_own(linear_problem: Problem) -> None:
    never = Patient("far", {"u": 1e4, "w": -1e4}, {"offset": 0.0})
    run = filled(linear_problem, [never], ["vito-continuous"], n_orders=1)
    filled(linear_problem, [never], ["vito-continuous"], run, n_orders=1, give_up=0.01)
    without, ends = (run.parts[key][0].iloc[0] for key in run.computed)
    assert (without["stop_reason"], ends["stop_reason"]) == ("budget", "unreachable")
    assert ends["n_runs"] < without["n_runs"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"methods": ["vito"]}, "method is 'vito', expected one of vito-continuous, least-"),
        ({"methods": ["bobyqa-cascade"]}, "s: bobyqa-cascade needs v_myo, v_lv, v_rv, .* problem"),
        ({"n_orders": 0}, "n_orders is 0"),
        ({"give_up": 1.0}, "give_up is 1.0, expected from 0 to below 1"),
        ({"give_up": np.nan}, "give_up is nan, expected from 0 to below 1"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    asked: dict[str, object], why: str, linear_problem: Problem, linear_patients: list[Patient]
) -> None:
    run = Memory()
    with pytest.raises(ValueError, match=why):
        filled(linear_problem, linear_patients, run=run, **asked)  # type: ignore[arg-type]
    assert run.parts == {}


def test_a_stored_position_is_a_whole_number(
    linear_problem: Problem, linear_patients: list[Patient], tmp_path
) -> None:
    run = open_run("orders", {}, results=tmp_path, seed=0)
    patients = linear_patients[:3]
    from_nothing(run, {"s": linear_problem}, patients, methods=["least-squares"], n_orders=1)
    stored = run.finish(
        problems={"s": linear_problem}, patients=patient_table({"s": linear_problem}, patients)
    )
    assert sorted(stored.personalizations["position"]) == [1, 2, 3]
    file = stored.path / "personalizations.parquet"
    wrong = pd.read_parquet(file).assign(position=0.5)
    from vitolab.store.columns import check_table

    with pytest.raises(ValueError, match="column 'position' is float64, expected whole numbers"):
        check_table(str(file), "personalizations", wrong, {})
