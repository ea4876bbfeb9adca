"""Least squares on an emulator, a run of the model, a correction of the emulator, and again.

An emulator of other patients' models is wrong about the next one. After each run its errors so far
are interpolated: by a Gaussian process with a constant, a linear and a smooth part, so that the
corrected emulator passes through all runs made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from scipy.optimize import least_squares

from vitolab.fit import Event, Fit
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient
from vitolab.reference.opponents.opponent import Opponent
from vitolab.reference.optimiser import Counter, EndedError
from vitolab.scale import Scale

N_PLANNED = 4  # stored runs from which the first run is planned
N_EVALUATIONS = 40  # of the emulator, in one plan
GOOD = 0.01  # sum of squares in ψ² below which other plans are not tried
SAME = 1e-3  # share of Ω below which two points are one
LENGTH = 0.5  # share of Ω over which the smooth part of an error changes
NOISE = 1e-6  # share of the variance of an error; keeps the equations solvable

#: Outputs over ψ, shape (n_objectives,), at a point of the unit cube, and their derivatives.
Emulator = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False, repr=False)
class Correcting(Opponent, ABC):
    """A method that plans on an emulator and corrects it by the runs that it makes."""

    @abstractmethod
    def emulator(self, patient: Patient) -> Emulator:
        """Emulate a patient's model, before anything was run."""

    def _fit(
        self, patient: Patient, start: FloatArray | None, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Plan, run and correct; the trace holds the misfit expected of each run."""
        if start is not None:
            start = np.clip(np.asarray(start, float), self.problem.lower, self.problem.upper)
        with one_thread():
            return _Course(self, patient, max_runs, rng).fit(start)


class _Course:
    """One personalisation under way."""

    def __init__(
        self, method: Correcting, patient: Patient, max_runs: int, rng: np.random.Generator
    ) -> None:
        self.stored, self.rng = method.stored, rng
        self.counter = Counter(method.problem, patient, max_runs)
        self.scale, self.psi = Scale(method.problem), method.problem.tolerance
        self.z = self.counter.z / self.psi
        self.emulator = method.emulator(patient)
        self.near = self.stored.near(patient)
        # of runs that did not fail: where, and how far the emulator was off
        self.own: FloatArray = np.empty((0, method.problem.n_parameters))
        self.errors: FloatArray = np.empty((0, method.problem.n_objectives))
        self.weights: FloatArray = self.errors
        self.best: FloatArray = self.own
        self.least = np.inf

    def fit(self, start: FloatArray | None) -> Fit:
        """Personalise from the start given, or from the best that can be planned."""
        first = list(islice(self.near, N_PLANNED))
        restarts = chain(first, self.near, self._anywhere())
        try:
            u = self._plan(first) if start is None else self.scale.unit(start)
            self._run(u, start)
            for n in range(1, self.counter.max_runs + 1):
                u = self._plan([*self.best, u, first[n % len(first)]])
                if not self._is_new(u):
                    self.counter.next_event = Event.RESTART
                    u = next(point for point in restarts if self._is_new(point))
                self._run(u)
        except EndedError as ended:
            return self.counter.fit(ended.reason)
        raise AssertionError("a run beyond the budget ends the personalisation")

    def _anywhere(self) -> Iterator[FloatArray]:
        """Points in Ω, without end."""
        while True:
            yield self.rng.random((1, self.own.shape[1]))[0]

    def _is_new(self, u: FloatArray) -> bool:
        """Whether the model was not run at a point before."""
        made = self.scale.unit(np.array(self.counter.x))
        return bool(np.abs(made - u).max(axis=1).min() > SAME)

    def _run(self, u: FloatArray, x: FloatArray | None = None) -> None:
        """Run the model at u, or exactly at x, and learn from it."""
        x = self.scale.parameters(u) if x is None else x
        c = self.counter.run(x, self._expected(u)[0] * self.psi) / self.psi
        if not np.isfinite(c).all():
            return
        error = c - self.stored.problem.relative_misfit(self.emulator(u)[0], self.z)
        self.own = np.concatenate([self.own, u[np.newaxis]])
        self.errors = np.concatenate([self.errors, error[np.newaxis]])
        covariance: FloatArray = _covariance(self.own, self.own)
        covariance.flat[:: len(covariance) + 1] += NOISE
        self.weights = np.asarray(np.linalg.solve(covariance, self.errors), dtype=np.float64)
        if c @ c < self.least:
            self.best, self.least = u[np.newaxis], float(c @ c)

    def _expected(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Expected misfit at a point over ψ, and its derivatives."""
        y, slopes = self.emulator(u)
        c = (
            self.stored.problem.relative_misfit(y, self.z)
            + _covariance(u[np.newaxis], self.own)[0] @ self.weights
        )
        smooth = _smooth(u[np.newaxis], self.own)[0][:, np.newaxis]
        pull = (self.own - 0.5) + smooth * (self.own - u) / LENGTH**2
        return c, slopes + self.weights.T @ pull

    def _plan(self, starts: Iterable[FloatArray]) -> FloatArray:
        """Best of the least-squares solutions on the corrected emulator, one for each start."""
        best: FloatArray = self.own[:0]
        least = np.inf
        for start in starts:
            u, squares = self._descend(start)
            if squares < least:
                best, least = u, squares
            if least < GOOD:
                break
        return best

    def _descend(self, start: FloatArray) -> tuple[FloatArray, float]:
        """Least squares on the corrected emulator from one start: where, and what is left."""
        known: dict[bytes, tuple[FloatArray, FloatArray]] = {}

        def expected(u: FloatArray) -> tuple[FloatArray, FloatArray]:
            if u.tobytes() not in known:
                known[u.tobytes()] = self._expected(u)
            return known[u.tobytes()]

        found = least_squares(
            lambda u: expected(u)[0],
            np.clip(start, 1e-6, 1.0 - 1e-6),
            jac=lambda u: expected(u)[1],
            bounds=(0.0, 1.0),
            max_nfev=N_EVALUATIONS,
        )
        return found.x, 2.0 * float(found.cost)


def _smooth(a: FloatArray, b: FloatArray) -> FloatArray:
    """Covariance of the smooth part of an error, shape (len(a), len(b))."""
    squared = ((a[:, np.newaxis] - b) ** 2).sum(axis=2)
    smooth: FloatArray = np.exp(-squared / (2.0 * LENGTH**2))
    return smooth


def _covariance(a: FloatArray, b: FloatArray) -> FloatArray:
    """Covariance of the errors at two sets of points; each output has a variance of its own."""
    return 1.0 + (a - 0.5) @ (b - 0.5).T + _smooth(a, b)
