"""Work of the page Your own model: read stored orders, estimate what a plan takes, draw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from vitolab.plots.budget import Course, Plan, budget_sentence, budget_table, courses
from vitolab.plots.precedents import Orders, nearest, orders_explored, orders_from_nothing
from vitolab.settings import GIVE_UP, RUNS_PER_PARAMETER
from vitolab.store import Run
from vitolab.studies import ep_convergence, find_study, from_nothing, wbc_convergence

from ...kit.gallery import Picture
from ...kit.source import Entry, Source
from .asked import total_runs

FROM_NOTHING = from_nothing.STUDY.name
#: Studies whose runs hold the paper's agent after explorations of several sizes.
EXPLORED = (wbc_convergence.STUDY.name, ep_convergence.STUDY.name)


@dataclass(frozen=True)
class Estimate:
    """What a job makes ready for the page.

    Attributes
    ----------
    sentence : str
        What the budget buys.
    notes : list of str
        Where the numbers come from, and what they leave out.
    nearest : int or None
        Number of parameters of the stored runs; None if there are none.
    table : DataFrame
    pictures : tuple of Picture
    """

    sentence: str
    notes: list[str]
    nearest: int | None
    table: pd.DataFrame
    pictures: tuple[Picture, ...] = ()


def runs_of(entries: Sequence[Entry]) -> list[Entry]:
    """Complete runs from which the page estimates, newest first."""
    studies = (FROM_NOTHING, *EXPLORED)
    return [e for e in entries if e.id and e.info.status == "complete" and e.info.study in studies]


def estimate(
    source: Source, runs: Sequence[Entry], plan: Plan, run_time: str, dark: bool
) -> Estimate:
    """Estimate what a plan takes, and draw it; for a worker.

    Parameters
    ----------
    source : Source
    runs : sequence of Entry
        See `runs_of`.
    plan : Plan
    run_time : str
        Time of one run in words.
    dark : bool
    """
    from_nothing: list[Orders] = []
    explored: list[Orders] = []
    notes: list[str] = []
    for entry in runs:
        begins = entry.info.study == FROM_NOTHING
        read: Callable[[Run], list[Orders]] = _from_nothing if begins else _explored
        try:
            stored = source.made(entry.id, "orders of patients", read)
        except ValueError as error:
            notes.append(f"A run is left out: {error}.")
            continue
        (from_nothing if begins else explored).extend(stored)
    near = nearest(from_nothing, plan.n_parameters)
    found = courses([*near, *nearest(explored, plan.n_parameters)], plan)
    pictures: tuple[Picture, ...] = ()
    if found:
        from vitolab.plots.budget_curves import budget_curves

        from ...charts.figures import draw

        pictures = draw(budget_curves(found, plan), dark)
        notes = [*_basis(near, plan), *_notes(found, plan), *notes]
    size = near[0].n_parameters if near else None
    sentence = budget_sentence(found, plan, run_time)
    return Estimate(sentence, notes, size, budget_table(found, plan), pictures)


def _sizes(run: Run) -> dict[str, int]:
    """Number of parameters of each setup."""
    return {setup: len(problem.parameters) for setup, problem in run.problems.items()}


def _from_nothing(run: Run) -> list[Orders]:
    """Orders of a run of from-nothing; with giving up as the command line does it."""
    usual = run.parameters.get("give_up") == GIVE_UP
    return orders_from_nothing(run.personalizations, _sizes(run), gives_up=usual)


def _explored(run: Run) -> list[Orders]:
    """Orders of a run with exploration."""
    return orders_explored(run.personalizations, _sizes(run))


def _basis(near: Sequence[Orders], plan: Plan) -> list[str]:
    """Which stored cohorts began with nothing; no sentence if there are none."""
    if not near:
        return []
    n = near[0].n_parameters
    cohorts: dict[tuple[str, int], set[tuple[str, ...]]] = {}
    for each in near:
        cohorts.setdefault((each.setup, each.n_runs.shape[1]), set()).update(each.patients)
    told = [
        f"{setup} ({size} patients in {len(orders)} order{'' if len(orders) == 1 else 's'})"
        for (setup, size), orders in cohorts.items()
    ]
    same = "as yours" if n == plan.n_parameters else f"nearest to your {plan.n_parameters:,}"
    basis = [
        f"Estimated from stored runs of {FROM_NOTHING} with {n:,} parameters, {same}: "
        f"{', '.join(told)}. These patients are synthetic; another model, or other patients, may "
        "take more runs or fewer. Intervals and bands show the lowest and highest of the stored "
        "orders, which repeat the same patients.",
    ]
    known = {each.method for each in near}
    expected = find_study(FROM_NOTHING).profiles["quick"]["methods"]
    lacking = [str(name) for name in expected if name not in known]
    return [*basis, *([f"No stored run of this size: {', '.join(lacking)}."] if lacking else [])]


def _notes(found: Mapping[str, Course], plan: Plan) -> list[str]:
    """What the numbers leave out."""
    stored = [each for course in found.values() for each in course.stored]
    notes = []
    fewest = min(each.n_runs.shape[1] for each in stored)
    if plan.n_patients > fewest:
        notes.append(f"Patients beyond the {fewest:,} stored ones repeat the last of these.")
    if min(plan.n_workers, plan.n_patients) > 1:
        notes.append(
            "A round of patients learns from the rounds before, and waits for its slowest patient: "
            f"{plan.n_runs:,} runs take {plan.hours:g} h only if no worker waits."
        )
    most = total_runs(plan)
    if 0 < most < plan.n_runs:
        notes.append(
            f"These patients may take {most:,} runs at most, {RUNS_PER_PARAMETER} per parameter "
            f"each: fewer than the {plan.n_runs:,} of the budget."
        )
    explored = {each.setup: each.n_runs.shape[1] for each in stored if each.n_samples}
    if explored:
        told = ", ".join(f"{setup} ({size} patients)" for setup, size in explored.items())
        notes.append(
            "The paper's agent explores first, as many runs for each patient as the table says; "
            f"the number of samples with which most are solved in time is shown. Stored: {told}."
        )
    return [*notes, "The time that the methods need beside the model is not counted."]
