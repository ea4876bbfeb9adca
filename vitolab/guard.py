"""An error in the personalisation of one patient is that patient's: recorded, and others go on."""

from __future__ import annotations

import numpy as np

from vitolab.failures import CannotRun, Failure, Kind, described, note
from vitolab.problem import FloatArray, Patient, Problem, runs_made
from vitolab.trajectories import Event, Fit, Personalizer, StopReason, Trace, check_budget

#: What ends the work whoever the patient; what ends a run by its time never passes here.
ENDING = (CannotRun, MemoryError)


def personalized(
    problem: Problem,
    personalizer: Personalizer,
    patient: Patient,
    *,
    max_runs: int,
    seed: int,
    starts: FloatArray | None = None,
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

    Returns
    -------
    list of Fit
        One for each start. After an error none is solved: all stop for `StopReason.ERROR`, the
        runs made before it are those of the first, and the error is noted among the failures.

    Raises
    ------
    ValueError
        If no run is allowed or a measurement is missing: input that no method can work with.
    CannotRun, MemoryError
        If the model cannot be run at all, or memory is short.
    """
    check_budget(max_runs)
    z = problem.measured(patient)
    with runs_made() as made:
        try:
            if starts is None:
                return [personalizer.personalize(patient, max_runs=max_runs, seed=seed)]
            return personalizer.personalize_from(patient, starts, max_runs=max_runs, seed=seed)
        except ENDING:
            raise
        except Exception as error:  # whatever went wrong with one patient
            n = 1 if starts is None else len(starts)
            x = np.array([x for x, _ in made]).reshape(-1, problem.n_parameters)
            y = np.array([y for _, y in made]).reshape(-1, problem.n_objectives)
            at = x[-1] if len(x) else np.full(problem.n_parameters, np.nan)
            note(Failure(patient.name, Kind.METHOD, described(error), tuple(at.tolist()), 0))
            return [_ended(problem, z, x, y), *(_ended(problem, z, x[:0], y[:0]),) * (n - 1)]


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
        raise self.error

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Raise the error of the learning."""
        raise self.error


def _ended(problem: Problem, z: FloatArray, x: FloatArray, y: FloatArray) -> Fit:
    """Outcome of a method that raised after these runs; none of them counts as a solution."""
    n = len(x)
    event = np.full(n, int(Event.STEP))
    event[:1] = Event.START
    nothing = np.full(n, -1)
    trace = Trace(x, y, problem.misfit(y, z), event, nothing, nothing)
    return Fit.from_trace(problem, trace, StopReason.ERROR)
