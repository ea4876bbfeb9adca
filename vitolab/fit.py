"""A personalisation: what found it, what it found, and every forward run on the way."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vitolab.problem import FloatArray, IntArray, Patient, Problem

#: Forward runs allowed for each parameter by default: the paper's (section 3.3.3).
RUNS_PER_PARAMETER = 50


class StopReason(enum.StrEnum):
    """Why a personalisation ended."""

    SOLVED = "solved"
    BUDGET = "budget"
    STALLED = "stalled"
    FAILED = "failed"
    ERROR = "error"

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return {
            StopReason.SOLVED: "Every misfit is within its tolerance.",
            StopReason.BUDGET: "The largest number of forward runs was reached.",
            StopReason.STALLED: "The optimiser ended by its own tolerance without a solution.",
            StopReason.FAILED: "The method cannot go on after a failed forward run.",
            StopReason.ERROR: "The method itself failed; the failed runs name the error.",
        }[self]


class Event(enum.IntEnum):
    """What led to a forward run."""

    START = 0
    STEP = 1
    RESTART = 2


#: What the agent that acted knew of an action in the state it was in: its value, the best value
#: there and the action that has it, the probability with which it is drawn, the number of
#: candidates, and how often it was seen there in training.
REASONS = ("q", "q_best", "best", "chance", "candidates", "seen")


@dataclass(frozen=True)
class Trace:
    """One row per forward run of a personalisation.

    Attributes
    ----------
    x : ndarray, shape (n_runs, n_parameters)
    y : ndarray, shape (n_runs, n_objectives)
        Not finite where the run failed.
    misfits : ndarray, shape (n_runs, n_objectives)
    event : ndarray of Event, shape (n_runs,)
    action : ndarray of int, shape (n_runs,)
        Action that led to the run; -1 at a start, and for methods without actions.
    state : ndarray of int, shape (n_runs,)
        State found by the run; -1 where it failed, and for methods without states.
    expected : ndarray, shape (n_runs, n_objectives), optional
        Misfits that the method expected of a run before it was made; NaN where it expected none.
    reasons : ndarray, shape (n_runs, len(REASONS)), optional
        Why the method took the action that led to the run, see `REASONS`; NaN where it took none.
    """

    x: FloatArray
    y: FloatArray
    misfits: FloatArray
    event: IntArray
    action: IntArray
    state: IntArray
    expected: FloatArray | None = None
    reasons: FloatArray | None = None


@dataclass(frozen=True)
class Fit:
    """Outcome of one personalisation by any method.

    Attributes
    ----------
    solved : bool
    stop_reason : StopReason
    n_runs : int
        Forward runs, every one counted, failed ones too.
    n_restarts : int
    x, y, misfits : ndarray
        Solution, or the run whose worst misfit in tolerances was smallest; NaN outputs if
        every run failed.
    last_x : ndarray, shape (n_parameters,)
        Parameters of the last forward run.
    trace : Trace
    """

    solved: bool
    stop_reason: StopReason
    n_runs: int
    n_restarts: int
    x: FloatArray
    y: FloatArray
    misfits: FloatArray
    last_x: FloatArray
    trace: Trace

    @property
    def n_failed(self) -> int:
        """Forward runs that failed."""
        return int(np.count_nonzero(~np.isfinite(self.trace.y).all(axis=1)))

    @classmethod
    def from_trace(cls, problem: Problem, trace: Trace, stop_reason: StopReason) -> Fit:
        """Sum up a trace."""
        worst = np.max(np.abs(trace.misfits) / problem.tolerance, axis=1)
        solved = stop_reason is StopReason.SOLVED
        best = len(worst) - 1 if solved else int(np.argmin(np.nan_to_num(worst, nan=np.inf)))
        return cls(
            solved=solved,
            stop_reason=stop_reason,
            n_runs=len(trace.x),
            n_restarts=int(np.count_nonzero(trace.event == Event.RESTART)),
            x=trace.x[best],
            y=trace.y[best],
            misfits=trace.misfits[best],
            last_x=trace.x[-1],
            trace=trace,
        )


def check_budget(max_runs: int) -> None:
    """Refuse a personalisation without a forward run.

    Raises
    ------
    ValueError
        If no run is allowed.
    """
    if max_runs < 1:
        raise ValueError(f"max_runs is {max_runs}, expected at least 1")


def budget(problem: Problem, max_runs: int | None = None) -> int:
    """Forward runs allowed per personalisation, by default the paper's 50 per parameter.

    Parameters
    ----------
    problem : Problem
    max_runs : int, optional
        Number asked for.

    Raises
    ------
    ValueError
        If no run is allowed.
    """
    if max_runs is None:
        return RUNS_PER_PARAMETER * problem.n_parameters
    check_budget(max_runs)
    return max_runs


class Personalizer(Protocol):
    """Whatever personalises: an agent or an optimiser."""

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient from a start of the method's own choice; see `budget`."""
        ...

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from each of the given starts, shape (n, n_parameters)."""
        ...
