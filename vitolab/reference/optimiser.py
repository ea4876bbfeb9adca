"""What the reference methods share: the counter of forward runs, and where they start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from vitolab.asked import checked_seed
from vitolab.failures import Failure
from vitolab.files import bits, stream
from vitolab.fit import Event, Fit, StopReason, Trace, budget, check_budget
from vitolab.objects import Value
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.scale import Scale


class EndedError(Exception):
    """Leaves an optimiser: solved, or no forward runs left."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.sentence)
        self.reason = reason


class Counter:
    """Runs the model for an optimiser, records every run and enforces the stop rule."""

    def __init__(
        self, problem: Problem, patient: Patient, max_runs: int, *, by_ratio: bool = False
    ) -> None:
        check_budget(max_runs)
        self._scale = Scale(problem) if by_ratio else None
        self.problem, self.patient, self.max_runs = problem, patient, max_runs
        self.z = problem.measured(patient)
        self.expected: list[FloatArray | None] = []
        self.x: list[FloatArray] = []
        self.y: list[FloatArray] = []
        self.event: list[Event] = []
        self.failures: list[Failure] = []
        self.next_event = Event.START

    def misfit(self, unit: FloatArray) -> FloatArray:
        """Misfit at a point of the unit cube; see `run`."""
        if self._scale is not None:
            return self.run(self._scale.parameters(unit))
        x = self.problem.lower + unit * (self.problem.upper - self.problem.lower)
        return self.run(np.clip(x, self.problem.lower, self.problem.upper))

    def run(self, x: FloatArray, expected: FloatArray | None = None) -> FloatArray:
        """Misfit at parameters within Ω; NaN where the run failed.

        Parameters
        ----------
        x : ndarray, shape (n_parameters,)
        expected : ndarray, shape (n_objectives,), optional
            Misfit that the method expects of the run, for the trace.

        Raises
        ------
        EndedError
            If the run solved the patient, or none was left.
        """
        if len(self.x) == self.max_runs:
            raise EndedError(StopReason.BUDGET)
        runs = self.problem.run(x[np.newaxis], self.patient, confirm=self.z)
        y = runs.y[0]
        self.failures += runs.failures
        self.x.append(x)
        self.y.append(y)
        self.event.append(self.next_event)
        self.expected.append(expected)
        self.next_event = Event.STEP
        c = self.problem.misfit(y, self.z)
        if self.problem.is_solved(c):
            raise EndedError(StopReason.SOLVED)
        return c

    def fit(self, reason: StopReason) -> Fit:
        """Outcome so far."""
        y = np.array(self.y)
        nothing = np.full(len(y), -1)
        expected = None
        if any(each is not None for each in self.expected):
            unknown = np.full(len(self.z), np.nan)
            expected = np.array([unknown if each is None else each for each in self.expected])
        trace = Trace(
            np.array(self.x),
            y,
            self.problem.misfit(y, self.z),
            np.array(self.event, dtype=np.int64),
            nothing,
            nothing,
            expected,
            failures=tuple(self.failures),
        )
        return Fit.from_trace(self.problem, trace, reason)


@dataclass(frozen=True, eq=False, repr=False)
class Optimiser(Value, ABC):
    """What the reference methods share: where they start, and how they move.

    Attributes
    ----------
    problem : Problem
    from_default : bool
        Start at the default values of the parameters, where no start is given.
    by_ratio : bool
        Move parameters with a logarithmic scale by ratio; otherwise by difference.
    """

    problem: Problem
    from_default: bool = field(default=False, kw_only=True)
    by_ratio: bool = field(default=False, kw_only=True)

    def counter(self, patient: Patient, max_runs: int) -> Counter:
        """Counter of the forward runs of one patient."""
        return Counter(self.problem, patient, max_runs, by_ratio=self.by_ratio)

    def unit(self, x: FloatArray) -> FloatArray:
        """Coordinates of x in the unit cube in which it moves."""
        if not self.by_ratio:
            return unit_of(self.problem, x)
        return np.clip(Scale(self.problem).unit(x), 0.0, 1.0)

    def start(self, seed: int) -> FloatArray:
        """Where it starts if no start is given: `random_start`, or the default values."""
        if self.from_default:
            default: FloatArray = self.problem.default
            return default
        return random_start(self.problem, seed)

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient from the start of a seed, see `start`.

        Parameters
        ----------
        patient : Patient
        max_runs : int, optional
            Largest number of forward runs, the first one included; by default 50 per parameter.
        seed : int

        Returns
        -------
        Fit

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        start = self.start(seed)[np.newaxis]
        return self.personalize_from(patient, start, max_runs=max_runs, seed=seed)[0]

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from given starts.

        Parameters
        ----------
        patient : Patient
        starts : ndarray, shape (n, n_parameters)
        max_runs : int, optional
            Largest number of forward runs from each start, the first one included; by default 50
            per parameter.
        seed : int
            The outcome of a start does not depend on the other starts.

        Returns
        -------
        list of Fit

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        allowed, seed = budget(self.problem, max_runs), checked_seed(seed)
        return [
            self._fit(
                patient,
                start,
                allowed,
                stream("optimiser", self.problem.name, seed, patient.name, bits(start)),
            )
            for start in starts
        ]

    @abstractmethod
    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run the optimiser from one start."""


@dataclass(frozen=True, eq=False, repr=False)
class StartOnly(Optimiser):
    """No optimiser: the run at the start alone, to tell what a start is worth."""

    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run the model at the start."""
        counter = Counter(self.problem, patient, 1)
        try:
            counter.misfit(self.unit(start))
        except EndedError as ended:
            return counter.fit(ended.reason)
        return counter.fit(StopReason.BUDGET)


def random_start(problem: Problem, seed: int) -> FloatArray:
    """Start of a seed: uniform in Ω, the same for every reference method and every patient.

    The paper repeats its reference methods with other initial values for all patients together
    (section 3.3.3), so that the best of these repeats is a choice of start, not of luck patient
    by patient.

    Parameters
    ----------
    problem : Problem
    seed : int

    Returns
    -------
    ndarray, shape (n_parameters,)

    Raises
    ------
    ValueError
        If the seed is no whole number from 0 to 2^63 - 1.
    """
    start: FloatArray = problem.draw(stream("start", problem.name, checked_seed(seed)))[0]
    return start


def unit_of(problem: Problem, x: FloatArray) -> FloatArray:
    """Coordinates of x in the unit cube, shape (..., n_parameters), as that of x."""
    unit: FloatArray = (x - problem.lower) / (problem.upper - problem.lower)
    return np.clip(unit, 0.0, 1.0)
