"""What a budget of forward runs buys, estimated from stored runs of other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from vitolab.asked import checked_count, shown
from vitolab.methods import CONTINUOUS_AGENT
from vitolab.plots.orders import N_ENDS
from vitolab.plots.precedents import Flags, Orders, Runs
from vitolab.plots.style import METHOD_COLORS

#: Least and most of each number of a plan; the time of one run in s.
LIMITS: Mapping[str, tuple[float, float]] = {
    "seconds": (1e-3, 1e6),
    "n_patients": (1, 10_000),
    "n_parameters": (1, 1_000),
    "hours": (1e-3, 1e5),
    "n_workers": (1, 4_096),
}


@dataclass(frozen=True)
class Plan:
    """What a user has: patients, a model that takes its time, and hours.

    Attributes
    ----------
    seconds : float
        Time of one forward run.
    n_patients, n_parameters : int
    hours : float
        Wall time.
    n_workers : int
        Forward runs at the same time, each of another patient.

    Raises
    ------
    ValueError
        If a number is not within `LIMITS`.
    """

    seconds: float
    n_patients: int
    n_parameters: int
    hours: float
    n_workers: int = 1

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            least, most = LIMITS[each.name]
            if each.name.startswith("n_"):
                checked_count(each.name, value, int(least), int(most))
            elif not least <= value <= most:  # nor is NaN
                raise ValueError(
                    f"{each.name} is {shown(value)}, expected from {least:g} to {most:g}"
                )

    @property
    def n_serial(self) -> int:
        """Forward runs one after the other for which there is time."""
        # 0.3 h of runs of 0.1 h are three, whatever the quotient is rounded to
        return int(3600.0 * self.hours / self.seconds * (1.0 + 1e-12))

    @property
    def n_runs(self) -> int:
        """Forward runs for which there is time if no worker waits; each has its own patient."""
        return self.n_serial * min(self.n_workers, self.n_patients)


@dataclass(frozen=True)
class Course:
    """How one method would spend a plan, by the orders that were stored.

    Attributes
    ----------
    stored : tuple of Orders
    finished : list of ndarray, each of shape (n_orders, n_patients)
        When each patient is finished, in the time of one run.
    solved : list of ndarray, each of shape (n_orders, n_patients)
    """

    stored: tuple[Orders, ...]
    finished: list[Runs]
    solved: list[Flags]

    def n_solved(self, n_serial: int) -> Runs:
        """Patients solved within so many runs one after the other, shape (n_orders,)."""
        pairs = zip(self.finished, self.solved, strict=True)
        return np.concatenate([(s & (f <= n_serial)).sum(axis=1) for f, s in pairs])

    @property
    def ends(self) -> Runs:
        """When all patients are finished, in the time of one run, shape (n_orders,)."""
        return np.concatenate([finished.max(axis=1) for finished in self.finished])

    def mean_runs(self, first: int, last: int | None = None) -> float:
        """Mean forward runs of the stored patients at some positions, from 0; NaN of none."""
        runs = [each.n_runs[:, first:last].ravel() for each in self.stored]
        known = np.concatenate(runs)
        return float(known.mean()) if known.size else float("nan")


def courses(stored: Sequence[Orders], plan: Plan) -> dict[str, Course]:
    """How each method would spend a plan, by label.

    A round takes a patient for each worker, who know the rounds before alone: they are taken to
    need as many runs as the stored patients did where the round begins, each in another of the
    orders. Patients beyond the stored ones repeat the last of these. Of the sizes of an
    exploration the one remains with which most patients are solved in time.
    """
    groups: dict[str, list[Orders]] = {}
    for each in sorted(stored, key=_place):
        groups.setdefault(each.label, []).append(each)
    found = {label: _course(own, plan) for label, own in groups.items()}
    explored = {label: c for label, c in found.items() if c.stored[0].n_samples}

    def merit(label: str) -> tuple[float, float]:
        course = explored[label]
        return float(course.n_solved(plan.n_serial).mean()), -float(course.ends.mean())

    best = max(explored, key=merit, default="")
    return {label: c for label, c in found.items() if label not in explored or label == best}


def _place(stored: Orders) -> tuple[bool, int, bool]:
    """Place in a table: the agent that begins with nothing, then as in all tables."""
    among = list(METHOD_COLORS).index(stored.method)
    return stored.method != CONTINUOUS_AGENT, among, not stored.gives_up


def _course(stored: Sequence[Orders], plan: Plan) -> Course:
    """Course of one method."""
    finished, solved = [], []
    for each in stored:
        order, place = _sources(each, plan)
        runs = each.n_runs[order, place]
        explored = -(-each.n_explored * plan.n_patients // plan.n_workers)
        finished.append(explored + _finished(runs, plan.n_workers))
        solved.append(each.solved[order, place])
    return Course(tuple(stored), finished, solved)


def _sources(stored: Orders, plan: Plan) -> tuple[Runs, Runs]:
    """Order and position of the stored patient who stands for each of the plan's."""
    n_orders, n_stored = stored.n_runs.shape
    patient = np.arange(plan.n_patients)
    begin = patient // plan.n_workers * plan.n_workers
    n_last = min(N_ENDS, max(1, n_stored // 2))
    last = n_stored - n_last + (patient - n_stored) % n_last
    place = np.where(begin < n_stored, begin, last)
    order = (np.arange(n_orders)[:, None] + patient % plan.n_workers) % n_orders
    return order, np.broadcast_to(place, order.shape)


def _finished(runs: Runs, n_workers: int) -> Runs:
    """When patients are finished whose rounds begin when all of the round before are."""
    n_orders, n_patients = runs.shape
    missing = -n_patients % n_workers
    rounds = np.pad(runs, ((0, 0), (0, missing))).reshape(n_orders, -1, n_workers)
    longest = rounds.max(axis=2, keepdims=True)
    begin = longest.cumsum(axis=1) - longest
    finished: Runs = (begin + rounds).reshape(n_orders, -1)[:, :n_patients]
    return finished


def budget_table(found: Mapping[str, Course], plan: Plan) -> pd.DataFrame:
    """Tabulate what each method would take, and whom it would solve in time.

    Parameters
    ----------
    found : mapping of label to Course
        See `courses`.
    plan : Plan

    Returns
    -------
    DataFrame
        One row per method: mean runs of the stored patients at the first, the next four and all
        later positions; mean hours until all patients of the plan are finished; patients solved in
        time, on average and in the worst and best of the stored orders; how many orders these are;
        forward runs explored beforehand for each patient, if any.
    """
    within = f"solved in {plan.hours:g} h, of {plan.n_patients:,}"
    table = []
    for label, course in found.items():
        n_solved = course.n_solved(plan.n_serial)
        hours = course.ends * plan.seconds / 3600.0
        table.append(
            {
                "method": label,
                "runs, first patient": round(course.mean_runs(0, 1), 1),
                "patients 2 to 5": round(course.mean_runs(1, 5), 1),
                "each later one": round(course.mean_runs(5), 1),
                "hours, all patients": float(f"{hours.mean():.3g}"),
                within: round(float(n_solved.mean()), 1),
                "lowest order": int(n_solved.min()),
                "highest order": int(n_solved.max()),
                "orders stored": len(n_solved),
                "explored before, per patient": course.stored[0].n_explored or None,
            }
        )
    return pd.DataFrame(table)


def budget_sentence(found: Mapping[str, Course], plan: Plan, run_time: str) -> str:
    """Say in one sentence what a budget buys.

    Parameters
    ----------
    found : mapping of label to Course
        See `courses`.
    plan : Plan
    run_time : str
        Time of one run in words.
    """
    n = plan.n_runs
    many = f", {plan.n_workers:,} at a time" if plan.n_workers > 1 else ""
    if not n:
        return f"{plan.hours:g} h buy no forward run: one takes {run_time}."
    bought = f"{plan.hours:g} h buy {n:,} forward run{'s' if n > 1 else ''} of {run_time}{many}"
    label = next((name for name in found if name.startswith(CONTINUOUS_AGENT)), "")
    if not label:
        return f"{bought}."
    n_solved = found[label].n_solved(plan.n_serial)
    low, high = int(n_solved.min()), int(n_solved.max())
    mean = f"{n_solved.mean():,.1f}".removesuffix(".0")
    if len(n_solved) == 1:
        span = "one stored order, hence no interval"
    else:
        span = f"{low:,} to {high:,} in {len(n_solved)} stored orders"
    return (
        f"{bought}; from nothing, {label} is expected to solve {mean} of "
        f"{plan.n_patients:,} patients with them ({span})."
    )
