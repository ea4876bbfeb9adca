"""Spread of solutions over perturbed measurements, against closed forms of linear problems."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from part_store import Parts

from vitolab.problem import Objective, Patient, Problem
from vitolab.reference import LeastSquares
from vitolab.settings import Settings
from vitolab.uncertainty import (
    Learning,
    Methods,
    perturbed,
    posteriors,
    stability,
    stability_table,
)
from vitolab.uncertainty import methods as methods_of_studies
from vitolab.uncertainty.summary import spread_of

A = np.array([[1.0, 0.4], [-0.3, 0.8]])  # of the fixture linear_problem
ERROR = {"u": 0.3, "w": 0.2}
SIGMA = np.diag([0.3**2, 0.2**2])


def exact(problem: Problem) -> Problem:
    """The same problem with tolerances so small that only the solution itself is within."""
    objectives = tuple(Objective(o.name, o.label, o.unit, 1e-6) for o in problem.objectives)
    return Problem("exact", "1", problem.parameters, objectives, problem.simulate)


def test_spread_over_perturbed_measurements_is_that_of_the_inverse(linear_problem, linear_patients):
    problem = exact(linear_problem)
    store = Parts()
    stability(
        store,
        {"2p": problem},
        linear_patients[:6],
        deviation=ERROR,
        methods=Methods(("least-squares",)),
        n_perturbations=60,
    )
    found = store.personalizations
    assert found["solved"].all()
    spread = spread_of(found, problem)
    expected = np.sqrt(np.diag(np.linalg.inv(A) @ SIGMA @ np.linalg.inv(A).T)) / 10.0
    # root mean square over 6 x 60 solutions, whose relative error is 1 / sqrt(2 * 6 * 59)
    assert np.sqrt((spread**2).mean()).to_numpy() == pytest.approx(expected, rel=0.12)
    table = stability_table(found, {"2p": problem}, reference="least-squares")
    assert table["success [%]"].tolist() == [100.0]
    assert table["spread of the solved, all parameters"][0] == pytest.approx(
        spread.median(axis=0).mean()
    )


def test_spreads_are_compared_over_what_both_methods_solved(linear_problem):
    """The rare one solved only what lies close together, where the other is as stable."""
    rows = [
        {"setup": "2p", "patient": "P", "method": method, "repeat": repeat, "n_runs": 1}
        | {"solved": method == "often" or repeat < 2, "x:a": x, "x:b": 0.0}
        for method in ("often", "seldom")
        for repeat, x in enumerate((1.0, 1.5, 4.0, -4.0))
    ]
    table = stability_table(pd.DataFrame(rows), {"2p": linear_problem}, reference="often")
    table = table.set_index("method")
    total = "spread of the solved, all parameters"
    assert table.loc["seldom", total] < 0.2 * table.loc["often", total]
    own = table.loc["seldom"]
    assert own["solved by both"] == 2
    assert own["spread there"] == pytest.approx(np.std([1.0, 1.5], ddof=1) / 10.0 / 2)
    assert own["spread of often there"] == own["spread there"]
    with pytest.raises(ValueError, match="reference is 'never', expected one of often, seldom"):
        stability_table(pd.DataFrame(rows), {"2p": linear_problem}, reference="never")


def test_perturbed_patients_are_the_same_but_for_their_measurements(
    linear_problem, linear_patients
):
    patient = Patient("P", {"u": 1.0, "w": 2.0, "other": 3.0}, {"offset": 0.0})
    again = perturbed(linear_problem, patient, ERROR, 500)
    values = np.array([linear_problem.measured(p) for p in again])
    assert values.mean(axis=0) == pytest.approx([1.0, 2.0], abs=0.05)
    assert values.std(axis=0) == pytest.approx([0.3, 0.2], rel=0.12)
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(0.0, abs=0.15)
    assert {(p.name, p.data["offset"], p.measurements["other"]) for p in again} == {("P", 0.0, 3.0)}
    assert dict(perturbed(linear_problem, patient, ERROR, 2)[1].measurements) == dict(
        again[1].measurements
    )


def test_every_method_sees_the_same_errors_and_agents_learn_from_the_others(
    linear_problem, linear_patients, monkeypatch
):
    seen = {}

    def learn(names, problem, walks, seed, settings):
        seen[seed] = walks
        return {name: LeastSquares(problem) for name in names}

    monkeypatch.setattr(methods_of_studies, "learn", learn)
    store = Parts()
    stability(
        store,
        {"2p": linear_problem},
        linear_patients[:3],
        deviation=ERROR,
        methods=Methods(("least-squares",), {"vito": Learning(150)}, linear_patients[:5]),
        n_perturbations=3,
        n_jobs=1,
    )
    assert [len(w.patients) for w in seen.values()] == [4, 4, 4]
    assert all((w.n_samples == 150).all() for w in seen.values())
    assert {p.name for p in linear_patients[:5]} - set(next(iter(seen.values())).patients) == {"P0"}
    found = store.personalizations.drop(columns=["method", "n_samples"])
    own = [found[store.personalizations["method"] == m] for m in ("vito", "least-squares")]
    pd.testing.assert_frame_equal(*(rows.reset_index(drop=True) for rows in own))


def test_same_bits_for_any_number_of_workers_and_after_an_interruption(
    linear_problem, linear_patients
):
    methods = Methods(
        ("least-squares",), {"vito": Learning(100, Settings(n_states=20))}, linear_patients[:4]
    )

    def fill(store: Parts, n_jobs: int, patients=linear_patients[:2]) -> pd.DataFrame:
        stability(
            store,
            {"2p": linear_problem},
            patients,
            deviation=ERROR,
            methods=methods,
            n_perturbations=2,
            n_jobs=n_jobs,
        )
        posteriors(
            store,
            {"2p": linear_problem},
            patients,
            deviation=ERROR,
            methods=methods,
            n_starts=3,
            n_walkers=8,
            n_steps=20,
            n_burn=5,
            n_jobs=n_jobs,
        )
        return store.personalizations

    once = fill(Parts(), 1)
    pd.testing.assert_frame_equal(once, fill(Parts(), 2))
    interrupted = Parts()
    fill(interrupted, 1, linear_patients[1:2])
    pd.testing.assert_frame_equal(once, fill(interrupted, 1))
    assert set(once["method"]) == {"least-squares", "vito", "posterior"}


def test_each_agent_learns_from_walks_as_long_as_it_asks_for(
    linear_problem, linear_patients, monkeypatch
):
    walks = {}

    def learn(names, problem, given, seed, settings):
        walks[given.x.shape[1] - 1] = given
        return {name: LeastSquares(problem) for name in names}

    monkeypatch.setattr(methods_of_studies, "learn", learn)
    learners = {"vito-continuous": Learning(7, n_steps=1), "vito": Learning(30, n_steps=20)}
    stability(
        Parts(),
        {"2p": linear_problem},
        linear_patients[:1],
        deviation=ERROR,
        methods=Methods((), learners, linear_patients[:3]),
        n_perturbations=2,
    )
    assert {n_steps: given.n_samples.tolist() for n_steps, given in walks.items()} == {
        1: [7, 7],
        20: [30, 30],
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "there is none"),
        ({"references": ("simplex",)}, "method is 'simplex', expected one of"),
        ({"learners": {"simplex": Learning(10)}}, "method is 'simplex', expected one of vito"),
        ({"learners": {"vito": Learning(10)}}, "0 training patients, expected"),
    ],
)
def test_methods_that_cannot_run_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Methods(**fields)


def test_one_perturbation_has_no_spread(linear_problem, linear_patients):
    with pytest.raises(ValueError, match="n_perturbations is 1, expected at least 2"):
        stability(
            Parts(),
            {"2p": linear_problem},
            linear_patients,
            deviation=ERROR,
            methods=Methods(("least-squares",)),
            n_perturbations=1,
        )
