"""What a budget buys: every number follows from small tables of stored orders."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import pytest

from vitolab.plots import budget_curves, budget_table
from vitolab.plots.budget import Plan, budget_sentence, courses
from vitolab.plots.budget_curves import solved_by
from vitolab.plots.orders import GIVES_UP
from vitolab.plots.precedents import nearest, orders_explored, orders_from_nothing

VITO, COLD = "vito-continuous", "least-squares-multistart"
#: Ten runs of half an hour, for four patients.
PLAN = Plan(seconds=1800.0, n_patients=4, n_parameters=6, hours=5.0)


def rows(
    runs: dict[int, list[int]], method: str = VITO, setup: str = "6p", unsolved: str = ""
) -> pd.DataFrame:
    """Personalisations of patients A, B, ...; of each order their forward runs by position."""
    table = [
        {
            "setup": setup,
            "patient": chr(ord("A") + (position + repeat) % len(own)),
            "method": method,
            "repeat": repeat,
            "position": position + 1,
            "n_runs": n,
        }
        for repeat, own in runs.items()
        for position, n in enumerate(own)
    ]
    frame = pd.DataFrame(table).astype({"repeat": "Int64"})
    return frame.assign(solved=~frame["patient"].isin(list(unsolved)))


def spent(frame: pd.DataFrame, plan: Plan = PLAN) -> dict[str, Any]:
    """Courses of some personalisations."""
    return courses(orders_from_nothing(frame, {"6p": 6, "2p": 2}), plan)


@pytest.mark.parametrize(
    ("seconds", "hours", "n"),
    [(1800.0, 5.0, 10), (360.0, 0.3, 3), (7200.0, 1.9, 0), (1e-3, 1e5, 360_000_000_000)],
)
def test_a_budget_is_a_whole_number_of_runs(seconds: float, hours: float, n: int) -> None:
    assert replace(PLAN, seconds=seconds, hours=hours).n_serial == n


def test_no_more_workers_are_busy_than_there_are_patients() -> None:
    assert [replace(PLAN, n_workers=n).n_runs for n in (1, 3, 9)] == [10, 30, 40]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("seconds", math.nan, "seconds is nan, expected from 0.001 to 1e"),
        ("seconds", 0.0, "seconds is 0.0, expected from 0.001"),
        ("hours", 1e300, r"hours is 1e\+300, expected from 0.001"),
        ("n_patients", 0, "n_patients is 0, expected at least 1"),
        ("n_workers", 4097, "n_workers is 4097, expected at most 4096"),
        ("n_parameters", 1.5, "n_parameters is 1.5, expected a whole number"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(name: str, value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=f"^{says}"):
        replace(PLAN, **{name: value})


def test_patients_are_solved_one_after_the_other() -> None:
    """Of the two orders one is through after 9 runs, the other solves two patients in 10."""
    (course,) = spent(rows({0: [6, 1, 1, 1], 1: [8, 2, 1, 3]})).values()
    (finished,) = course.finished
    assert finished.tolist() == [[6, 7, 8, 9], [8, 10, 11, 14]]
    assert course.n_solved(10).tolist() == [4, 2]
    assert course.n_solved(5).tolist() == [0, 0]


def test_whom_a_method_does_not_solve_takes_time_and_counts_as_nobody() -> None:
    (course,) = spent(rows({0: [6, 1, 1, 1]}, unsolved="A")).values()
    assert course.n_solved(10).tolist() == [3]
    assert course.n_solved(6).tolist() == [0]


def test_a_round_knows_the_rounds_before_and_waits_for_its_slowest_patient() -> None:
    """Two at a time: both of the first round know nothing, both of the second know two."""
    plan = replace(PLAN, n_workers=2)
    (course,) = spent(rows({0: [6, 9, 1, 9], 1: [8, 9, 3, 9]}), plan).values()
    assert course.finished[0].tolist() == [[6, 8, 9, 11], [8, 6, 11, 9]]
    assert course.ends.tolist() == [11, 11]


def test_a_last_round_may_have_workers_to_spare() -> None:
    plan = replace(PLAN, n_workers=3)
    (course,) = spent(rows({0: [6, 9, 9, 2]}), plan).values()
    assert course.finished[0].tolist() == [[6, 6, 6, 8]]


def test_patients_beyond_the_stored_ones_repeat_the_last_of_these() -> None:
    """The last half, at most ten: of four patients two."""
    (course,) = spent(rows({0: [9, 5, 2, 1]}), replace(PLAN, n_patients=8)).values()
    assert np.diff(course.finished[0][0], prepend=0).tolist() == [9, 5, 2, 1, 2, 1, 2, 1]


def test_the_table_holds_what_each_method_takes() -> None:
    """Half an hour a run: 9 and 14 runs are 4.5 and 7 h."""
    vito = rows({0: [6, 1, 1, 1], 1: [8, 2, 1, 3]})
    cold = rows({0: [5, 5, 5, 5], 1: [6, 6, 6, 6]}, COLD)
    table = budget_table(spent(pd.concat([cold, vito])), PLAN)
    assert table["method"].tolist() == [f"{VITO} --give-up 0", COLD]
    assert table["runs, first patient"].tolist() == [7.0, 5.5]
    assert table["patients 2 to 5"].tolist() == [1.5, 5.5]
    assert table["each later one"].isna().all()
    assert table["hours, all patients"].tolist() == [5.75, 11.0]
    assert table["solved in 5 h, of 4"].tolist() == [3.0, 1.5]
    assert table["lowest order"].tolist() == [2, 1]
    assert table["highest order"].tolist() == [4, 2]
    assert table["orders stored"].tolist() == [2, 2]


def test_the_sentence_says_what_the_budget_buys_and_how_sure_that_is() -> None:
    two = spent(rows({0: [6, 1, 1, 1], 1: [8, 2, 1, 3]}, setup=f"6p{GIVES_UP}"))
    said = budget_sentence(two, PLAN, "30 min")
    assert said.startswith("5 h buy 10 forward runs of 30 min; from nothing, vito-continuous is")
    assert said.endswith("to solve 3 of 4 patients with them (2 to 4 in 2 stored orders).")
    more = replace(PLAN, n_patients=9_999, hours=1e4)
    large = spent(rows({0: [6, 1, 1, 1], 1: [8, 2, 1, 1]}, unsolved="A"), more)
    assert "to solve 7,499.5 of 9,999 patients" in budget_sentence(large, more, "30 min")
    one = spent(rows({0: [6, 1, 1, 1]}))
    assert "(one stored order, hence no interval)" in budget_sentence(one, PLAN, "30 min")
    assert budget_sentence({}, PLAN, "30 min") == "5 h buy 10 forward runs of 30 min."
    many = replace(PLAN, n_workers=3)
    assert budget_sentence({}, many, "30 min") == "5 h buy 30 forward runs of 30 min, 3 at a time."
    none = replace(PLAN, hours=0.4)
    assert budget_sentence(two, none, "30 min") == "0.4 h buy no forward run: one takes 30 min."


def test_giving_up_is_the_agent_of_the_command_line() -> None:
    both = pd.concat([rows({0: [6, 50, 1]}), rows({0: [6, 9, 1]}, setup=f"6p{GIVES_UP}")])
    found = spent(both)
    assert list(found) == [VITO, f"{VITO} --give-up 0"]
    assert [int(course.ends[0]) for course in found.values()] == [6 + 9 + 1 + 1, 6 + 50 + 1 + 1]
    (without,) = orders_from_nothing(both, {"6p": 6}, gives_up=False)
    assert without.label == f"{VITO} --give-up 0"


def test_the_nearest_number_of_parameters_is_taken_and_both_of_two() -> None:
    frame = pd.concat([rows({0: [6, 1]}, setup=setup) for setup in ("2p", "6p", "other")])
    stored = orders_from_nothing(frame, {"2p": 2, "6p": 6, "other": 6})
    assert {each.setup for each in nearest(stored, 3)} == {"2p"}
    assert {each.setup for each in nearest(stored, 4)} == {"2p", "6p", "other"}
    assert {each.setup for each in nearest(stored, 900)} == {"6p", "other"}
    assert nearest([], 3) == []


def test_an_order_that_several_runs_hold_counts_once() -> None:
    """A larger run holds the orders of a smaller one with the same seed; the newest counts."""
    new = orders_from_nothing(rows({0: [6, 1], 1: [7, 1]}), {"6p": 6})
    old = orders_from_nothing(rows({0: [9, 1]}), {"6p": 6})
    (kept,) = nearest([*new, *old], 6)
    assert kept.n_runs.tolist() == [[6, 1], [7, 1]]
    first, second = nearest([*old, *new], 6)
    assert (first.n_runs.tolist(), second.n_runs.tolist()) == ([[9, 1]], [[7, 1]])


def test_orders_of_setups_that_are_not_known_and_of_few_patients_are_left_out() -> None:
    frame = rows({0: [6, 1, 1], 1: [7, 1, 1]})
    assert orders_from_nothing(frame, {"2p": 2}) == []
    (kept,) = orders_from_nothing(frame.iloc[:-1], {"6p": 6})
    assert kept.n_runs.tolist() == [[6, 1, 1]]


def test_an_exploration_comes_first_and_that_with_most_solved_remains() -> None:
    """100 samples are 101 runs, for a start of their own: 202 of two patients."""
    table = [
        {"patient": patient, "n_samples": size, "n_runs": n, "solved": solved}
        for size, n, solved in ((10, 50, False), (100, 3, True))
        for patient in "BA"
    ]
    frame = pd.DataFrame(table).assign(setup="6p", method="vito", n_states=20, repeat=0)
    plan = replace(PLAN, n_patients=2, hours=150.0)
    found = courses(orders_explored(frame, {"6p": 6}), plan)
    (label,) = found
    assert label == "vito, 100 samples"
    assert found[label].finished[0].tolist() == [[205, 208]]
    assert budget_table(found, plan)["explored before, per patient"].tolist() == [101]
    shared = courses(orders_explored(frame, {"6p": 6}), replace(plan, n_workers=2))
    assert shared[label].finished[0].tolist() == [[104, 104]]


def test_the_curve_passes_through_the_numbers_of_the_table() -> None:
    found = spent(rows({0: [6, 1, 1, 1], 1: [8, 2, 1, 3]}))
    curve = solved_by(found, PLAN).set_index("hours")
    assert curve.loc[5.0, ["mean", "low", "high"]].tolist() == [3.0, 2, 4]
    assert curve["mean"].is_monotonic_increasing
    assert curve["mean"].iloc[[0, -1]].tolist() == [0.0, 4.0]


def test_the_figure_has_a_curve_for_each_method_and_the_budget() -> None:
    both = [rows({0: [6, 9], 1: [6, 5]}), rows({0: [6, 3], 1: [6, 4]}, setup=f"6p{GIVES_UP}")]
    cold = rows({0: [5, 5], 1: [6, 6]}, COLD)
    figure = budget_curves(spent(pd.concat([*both, cold])), PLAN)
    lines = {curve.label: curve for curve in figure.traverse(lambda c: c, [hv.Curve])}
    shown = {label for label in lines if label}
    assert shown == {VITO, COLD, "budget"}
    assert set(lines["budget"].dimension_values(0)) == {5.0}
