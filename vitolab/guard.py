"""An error in the personalisation of one patient is that patient's: recorded, and others go on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from vitolab.asked import checked_seed
from vitolab.failures import CannotRun, Failure, Kind, NothingAnswers, described
from vitolab.fit import Event, Fit, Personalizer, StopReason, Trace, check_budget
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.running import Runs

Learned = TypeVar("Learned")
#: Errors that end the work and are no patient's: failed runs of the model never raise here, so
#: that an error of the system is one of the machine.
ENDING = (CannotRun, CancelledError, MemoryError, OSError)


def personalized(
    problem: Problem,
    personalizer: Personalizer,
    patient: Patient,
    *,
    max_runs: int,
    seed: int,
    starts: FloatArray | None = None,
    watch: Callable[[Runs], None] | None = None,
) -> list[Fit]:
    """Personalise one patient, and record an error instead of raising it.

    Parameters
    ----------
    problem : Problem
        With the objectives that were measured.
    personalizer : Personalizer
    patient : Patient
    max_runs, seed : int
    starts : ndarray, shape (n, n_parameters), optional
        Without them the method chooses its start.
    watch : callable, optional
        Is given the runs as they are made, and may end the work by `NothingAnswers`. It sees those
        of a personalizer that is a dataclass with a field ``problem``.

    Returns
    -------
    list of Fit
        One for each start, which does not depend on the others. After an error it is not solved
        and stops for `StopReason.ERROR`, with the runs made before, and its failures end with the
        error. The runs are known of a personalizer that is a dataclass with a field ``problem``.
        After an error at one of several starts each is repeated by itself: the same runs, which
        count once.

    Raises
    ------
    ValueError
        If no run is allowed or a measurement is missing: input that no method can work with.
    CannotRun, CancelledError, MemoryError, OSError
        If the model cannot be run at all, was called off, or the system refuses.
    NothingAnswers
        If `watch` says so.
    """
    max_runs, seed = check_budget(max_runs), checked_seed(seed)
    z = problem.measured(patient)
    acting, made = _recorded(personalizer, watch)
    try:
        if starts is None:
            return [acting.personalize(patient, max_runs=max_runs, seed=seed)]
        return acting.personalize_from(patient, starts, max_runs=max_runs, seed=seed)
    except (*ENDING, NothingAnswers):
        raise
    except Exception as error:  # whatever went wrong with one patient
        if starts is not None and len(starts) > 1:  # each by itself: the error is that of one start
            each = (starts[i : i + 1] for i in range(len(starts)))
            return [
                personalized(
                    *(problem, personalizer, patient),
                    max_runs=max_runs,
                    seed=seed,
                    starts=start,
                    watch=watch,
                )[0]
                for start in each
            ]
        x = np.array([row for x, _ in made for row in x]).reshape(-1, problem.n_parameters)
        y = np.array([row for _, runs in made for row in runs.y]).reshape(-1, problem.n_objectives)
        at = x[-1] if len(x) else np.full(problem.n_parameters, np.nan)
        failures = [failure for _, runs in made for failure in runs.failures]
        failures.append(Failure(patient.name, Kind.METHOD, described(error), tuple(at.tolist()), 0))
        return [_ended(problem, z, x, y, tuple(failures))]


_Made = list[tuple[FloatArray, Runs]]


@dataclass(frozen=True)
class _Recorded(Problem):
    """A problem that keeps the runs made to personalise."""

    made: _Made = field(default_factory=list, compare=False, repr=False)
    watch: Callable[[Runs], None] | None = field(default=None, compare=False, repr=False)

    def run(self, x: FloatArray, patient: Patient, *, confirm: FloatArray | None = None) -> Runs:
        """Run the model, and keep the runs that are confirmed, as those of methods are."""
        runs = super().run(x, patient, confirm=confirm)
        if confirm is not None:
            self.made.append((x.copy(), Runs(runs.y.copy(), runs.failures)))
            if self.watch is not None:
                self.watch(runs)
        return runs


def _recorded(
    personalizer: Personalizer, watch: Callable[[Runs], None] | None
) -> tuple[Personalizer, _Made]:
    """Give the same personalizer with a problem that keeps its runs, where it can be replaced."""
    problem = getattr(personalizer, "problem", None)
    if not (is_dataclass(personalizer) and isinstance(problem, Problem)):
        return personalizer, []
    keeping = _Recorded(**{f.name: getattr(problem, f.name) for f in fields(Problem)}, watch=watch)
    vars(keeping).update({k: v for k, v in vars(problem).items() if k not in vars(keeping)})
    return cast("Personalizer", replace(cast("Any", personalizer), problem=keeping)), keeping.made


class Unlearned:
    """Stands for an agent whose learning raised: raises the same when it is to personalise.

    Parameters
    ----------
    error : Exception
    """

    def __init__(self, error: Exception) -> None:
        self.error = error

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Raise the error of the learning."""
        raise self.error.with_traceback(None)

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Raise the error of the learning."""
        raise self.error.with_traceback(None)


def attempted(learning: Callable[[], Learned]) -> Learned | Unlearned:
    """Learn, or keep the error for the patient for whom it was learned; see `ENDING`.

    Parameters
    ----------
    learning : callable
        Learns when it is called.

    Returns
    -------
    object
        Whatever was learned, or an `Unlearned`.
    """
    try:
        return learning()
    except ENDING:
        raise
    except Exception as error:  # whatever a method raises
        return Unlearned(error)


def _ended(
    problem: Problem, z: FloatArray, x: FloatArray, y: FloatArray, failures: tuple[Failure, ...]
) -> Fit:
    """Outcome of a method that raised after these runs; none of them counts as a solution."""
    n = len(x)
    event = np.full(n, int(Event.STEP))
    event[:1] = Event.START
    nothing = np.full(n, -1)
    trace = Trace(x, y, problem.misfit(y, z), event, nothing, nothing, failures=failures)
    return Fit.from_trace(problem, trace, StopReason.ERROR)
