"""Optimisers that a user would take instead, behind one evaluation counter and stop rule.

All methods see the same forward model, domain and tolerances, count every forward run the
same way and stop at the first one that is within all tolerances. Parameters are scaled to
the unit cube of Ω.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares, minimize

from vitolab.files import stream
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.trajectories import Event, Fit, StopReason, Trace


class _EndedError(Exception):
    """Leaves an optimiser: solved, or no forward runs left."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.sentence)
        self.reason = reason


class _FailedRunError(Exception):
    """Leaves an optimiser that cannot take a failed run."""


class _Counter:
    """Runs the model for an optimiser, records every run and enforces the stop rule."""

    def __init__(self, problem: Problem, patient: Patient, max_runs: int) -> None:
        if max_runs < 1:
            raise ValueError(f"max_runs is {max_runs}, expected at least 1")
        self.problem, self.patient, self.max_runs = problem, patient, max_runs
        self.z = problem.measured(patient)
        self.x: list[FloatArray] = []
        self.y: list[FloatArray] = []
        self.event: list[Event] = []
        self.next_event = Event.START

    def misfit(self, unit: FloatArray) -> FloatArray:
        """Misfit at a point of the unit cube; NaN where the run failed."""
        if len(self.x) == self.max_runs:
            raise _EndedError(StopReason.BUDGET)
        x = self.problem.lower + unit * (self.problem.upper - self.problem.lower)
        x = np.clip(x, self.problem.lower, self.problem.upper)
        y = self.problem.simulate(x[np.newaxis].copy(), self.patient)[0]
        self.x.append(x)
        self.y.append(y)
        self.event.append(self.next_event)
        self.next_event = Event.STEP
        c = self.problem.misfit(y, self.z)
        if self.problem.is_solved(c):
            raise _EndedError(StopReason.SOLVED)
        return c

    def fit(self, reason: StopReason) -> Fit:
        """Outcome so far."""
        y = np.array(self.y)
        nothing = np.full(len(y), -1)
        trace = Trace(
            np.array(self.x),
            y,
            self.problem.misfit(y, self.z),
            np.array(self.event, dtype=np.int64),
            nothing,
            nothing,
        )
        return Fit.from_trace(self.problem, trace, reason)


@dataclass(frozen=True)
class _Optimiser(ABC):
    """What the reference methods share: where they start."""

    problem: Problem

    def personalize(self, patient: Patient, *, max_runs: int = 100, seed: int = 0) -> Fit:
        """Personalise one patient from the random start of a seed, see `random_start`.

        Parameters
        ----------
        patient : Patient
        max_runs : int
            Largest number of forward runs, the first one included.
        seed : int

        Returns
        -------
        Fit

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        start = random_start(self.problem, seed)[np.newaxis]
        return self.personalize_from(patient, start, max_runs=max_runs, seed=seed)[0]

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int = 100, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from given starts.

        Parameters
        ----------
        patient : Patient
        starts : ndarray, shape (n, n_parameters)
        max_runs : int
            Largest number of forward runs from each start, the first one included.
        seed : int

        Returns
        -------
        list of Fit

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        return [
            self._fit(
                patient,
                start,
                max_runs,
                stream("optimiser", self.problem.name, seed, patient.name, i),
            )
            for i, start in enumerate(starts)
        ]

    @abstractmethod
    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run the optimiser from one start."""


@dataclass(frozen=True)
class NelderMead(_Optimiser):
    """The paper's simplex method (section 3.3.3; Lagarias et al. 1998).

    Attributes
    ----------
    problem : Problem
    weighted : bool
        Minimise the misfit in the paper's distance, squares divided by ψ; without it the plain
        sum of squares, as the paper compares.
    width : float or None
        Edge of the first simplex as a share of Ω. The paper names none: None is the rule of the
        common implementations, 5 % of each parameter's value.
    """

    weighted: bool = True
    width: float | None = None

    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run one simplex."""
        counter = _Counter(self.problem, patient, max_runs)
        weight = 1.0 / self.problem.tolerance if self.weighted else 1.0

        def objective(unit: FloatArray) -> float:
            value = float(np.sum(counter.misfit(unit) ** 2 * weight))
            # a failed run is worse than any other
            return value if np.isfinite(value) else np.inf

        try:
            with np.errstate(invalid="ignore"):
                minimize(
                    objective,
                    _unit(self.problem, start),
                    method="Nelder-Mead",
                    bounds=[(0.0, 1.0)] * self.problem.n_parameters,
                    options={
                        "maxfev": max_runs + 1,
                        "maxiter": max_runs + 1,
                        "xatol": 1e-6,
                        "initial_simplex": self._simplex(start),
                    },
                )
        except _EndedError as ended:
            return counter.fit(ended.reason)
        return counter.fit(StopReason.STALLED)

    def _simplex(self, start: FloatArray) -> FloatArray:
        """Corners of the first simplex in the unit cube, shape (n_parameters + 1, n_parameters).

        An edge that would leave the cube points inwards.
        """
        unit = _unit(self.problem, start)
        span = self.problem.upper - self.problem.lower
        edge = 0.05 * start / span if self.width is None else np.full(len(unit), self.width)
        edge = np.where(edge == 0.0, 0.00025, edge)
        edge = np.where((unit + edge > 1.0) | (unit + edge < 0.0), -edge, edge)
        corners: FloatArray = np.concatenate([unit[np.newaxis], unit + np.diag(edge)])
        return corners


@dataclass(frozen=True)
class LeastSquares(_Optimiser):
    """Trust-region least squares with finite differences (``scipy.optimize.least_squares``).

    Attributes
    ----------
    problem : Problem
    multistart : bool
        Start again uniformly in Ω, within the same budget, when the solver ends unsolved.
    """

    multistart: bool = False

    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run the solver, again and again if it may."""
        counter = _Counter(self.problem, patient, max_runs)

        def residuals(shifted: FloatArray) -> FloatArray:
            c = counter.misfit(shifted - 1.0)
            if not np.isfinite(c).all():
                raise _FailedRunError
            return c / self.problem.tolerance

        while True:
            reason = StopReason.STALLED
            try:
                # In [1, 2] a relative difference step is an absolute one: 0.1 to 0.2 % of Ω,
                # well above the noise that event location leaves in a simulator's outputs.
                least_squares(
                    residuals,
                    1.0 + _unit(self.problem, start),
                    bounds=(1.0, 2.0),
                    method="trf",
                    diff_step=1e-3,
                )
            except _EndedError as ended:
                return counter.fit(ended.reason)
            except _FailedRunError:
                reason = StopReason.FAILED
            if not self.multistart:
                return counter.fit(reason)
            start = self.problem.draw(rng)[0]
            counter.next_event = Event.RESTART


def random_start(problem: Problem, seed: int) -> FloatArray:
    """Start of a seed: uniform in Ω, the same for every reference method and every patient.

    The paper repeats its reference methods with other initial values for all patients together
    (section 3.3.3), so that the best of these repeats is a choice of start, not of luck patient
    by patient.

    Returns
    -------
    ndarray, shape (n_parameters,)
    """
    start: FloatArray = problem.draw(stream("start", problem.name, seed))[0]
    return start


def _unit(problem: Problem, x: FloatArray) -> FloatArray:
    """Coordinates of x in the unit cube."""
    unit: FloatArray = (x - problem.lower) / (problem.upper - problem.lower)
    return np.clip(unit, 0.0, 1.0)
