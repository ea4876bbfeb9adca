"""Least squares with finite differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from vitolab.fit import Event, Fit, StopReason
from vitolab.problem import FloatArray, Patient
from vitolab.reference.optimiser import Counter, EndedError, Optimiser, unit_of


class FailedRunError(Exception):
    """Leaves an optimiser that cannot take a failed run."""


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquares(Optimiser):
    """Trust-region least squares with finite differences (``scipy.optimize.least_squares``).

    Attributes
    ----------
    problem : Problem
    multistart : bool
        Start again uniformly in Ω, within the same budget, when the solver ends unsolved.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> vl.LeastSquares(problem, multistart=True).personalize(patient, seed=0).solved
    True
    """

    multistart: bool = False

    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run the solver, again and again if it may."""
        counter = Counter(self.problem, patient, max_runs)

        def residuals(shifted: FloatArray) -> FloatArray:
            c = counter.misfit(shifted - 1.0)
            if not np.isfinite(c).all():
                raise FailedRunError
            return c / self.problem.tolerance

        while True:
            reason = StopReason.STALLED
            try:
                # In [1, 2] a relative difference step is an absolute one: 0.1 to 0.2 % of Ω,
                # well above the noise that event location leaves in a simulator's outputs.
                least_squares(
                    residuals,
                    1.0 + unit_of(self.problem, start),
                    bounds=(1.0, 2.0),
                    method="trf",
                    diff_step=1e-3,
                )
            except EndedError as ended:
                return counter.fit(ended.reason)
            except FailedRunError:
                reason = StopReason.FAILED
            if not self.multistart:
                return counter.fit(reason)
            start = self.problem.draw(rng)[0]
            counter.next_event = Event.RESTART
