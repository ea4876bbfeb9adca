"""Least squares with finite differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.optimize import least_squares

from vitolab.fit import Event, Fit, StopReason
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference.optimiser import Counter, EndedError, Optimiser
from vitolab.scale import Scale


class FailedRunError(Exception):
    """Leaves an optimiser that cannot take a failed run."""


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquares(Optimiser):
    """Trust-region least squares with finite differences (``scipy.optimize.least_squares``).

    Parameters with a logarithmic scale are moved by ratio.

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
        more = restarts(self.problem, rng) if self.multistart else ()
        return least_squares_from(self.problem, patient, chain([start], more), max_runs)


def restarts(problem: Problem, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Draw starts without end, uniformly in the unit cube of `Scale`."""
    scale = Scale(problem)
    while True:
        yield scale.parameters(rng.random(problem.n_parameters))


def least_squares_from(
    problem: Problem, patient: Patient, starts: Iterable[FloatArray], max_runs: int
) -> Fit:
    """Run the solver from one start after the other, until it solves or no run is left.

    Parameters
    ----------
    problem : Problem
    patient : Patient
    starts : iterable of ndarray, shape (n_parameters,)
        At least one; those beyond Ω start on its border.
    max_runs : int
        Forward runs from all of them, those of finite differences included.

    Raises
    ------
    ValueError
        If no run is allowed or a measurement is missing.
    """
    counter, scale, psi = Counter(problem, patient, max_runs), Scale(problem), problem.tolerance
    reason = StopReason.STALLED

    def residuals(shifted: FloatArray) -> FloatArray:
        c = counter.run(scale.parameters(shifted - 1.0))
        if not np.isfinite(c).all():
            raise FailedRunError
        return c / psi

    for start in starts:
        try:
            # In [1, 2] a relative difference step is an absolute one: 0.1 to 0.2 % of Ω,
            # well above the noise that event location leaves in a simulator's outputs.
            least_squares(
                residuals,
                1.0 + scale.unit(np.clip(start, problem.lower, problem.upper)),
                bounds=(1.0, 2.0),
                method="trf",
                diff_step=1e-3,
            )
            reason = StopReason.STALLED
        except EndedError as ended:
            return counter.fit(ended.reason)
        except FailedRunError:
            reason = StopReason.FAILED
        counter.next_event = Event.RESTART
    return counter.fit(reason)
