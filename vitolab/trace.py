"""Every forward run of a personalisation, and how it ended."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from vitolab.failures import Failure
from vitolab.objects import Value
from vitolab.problem import FloatArray, IntArray


class StopReason(enum.StrEnum):
    """Why a personalisation ended."""

    SOLVED = "solved"
    BUDGET = "budget"
    STALLED = "stalled"
    FAILED = "failed"
    ERROR = "error"
    UNREACHABLE = "unreachable"

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return {
            StopReason.SOLVED: "Every misfit is within its tolerance.",
            StopReason.BUDGET: "The largest number of forward runs was reached.",
            StopReason.STALLED: "The optimiser ended by its own tolerance without a solution.",
            StopReason.FAILED: "The method cannot go on after a failed forward run.",
            StopReason.ERROR: "The method itself failed; the failed runs name the error.",
            StopReason.UNREACHABLE: "No parameters are expected to meet all measurements.",
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


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Value):
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
    failures : tuple of Failure
        One for each run that failed, in their order; after an error of the method that one too.
    """

    x: FloatArray
    y: FloatArray
    misfits: FloatArray
    event: IntArray
    action: IntArray
    state: IntArray
    expected: FloatArray | None = None
    reasons: FloatArray | None = None
    failures: tuple[Failure, ...] = ()
