"""The paper's simplex method."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from vitolab.fit import Fit, StopReason
from vitolab.problem import FloatArray, Patient
from vitolab.reference.optimiser import EndedError, Optimiser
from vitolab.scale import Scale


@dataclass(frozen=True, eq=False, repr=False)
class NelderMead(Optimiser):
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
    by_ratio : bool
        As for all optimisers; the paper's parameters, those of the circulation, have no
        logarithmic scale.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> vl.NelderMead(problem, width=0.1).personalize(patient, seed=0).solved
    True
    """

    weighted: bool = True
    width: float | None = None
    by_ratio: bool = field(default=True, kw_only=True)

    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run one simplex."""
        counter = self.counter(patient, max_runs)
        weight = 1.0 / self.problem.tolerance if self.weighted else 1.0

        def objective(unit: FloatArray) -> float:
            value = float(np.sum(counter.misfit(unit) ** 2 * weight))
            # a failed run is worse than any other
            return value if np.isfinite(value) else np.inf

        try:
            with np.errstate(invalid="ignore"):
                minimize(
                    objective,
                    self.unit(start),
                    method="Nelder-Mead",
                    bounds=[(0.0, 1.0)] * self.problem.n_parameters,
                    options={
                        "maxfev": max_runs + 1,
                        "maxiter": max_runs + 1,
                        "xatol": 1e-6,
                        "initial_simplex": self._simplex(start),
                    },
                )
        except EndedError as ended:
            return counter.fit(ended.reason)
        return counter.fit(StopReason.STALLED)

    def _simplex(self, start: FloatArray) -> FloatArray:
        """Corners of the first simplex in the unit cube, shape (n_parameters + 1, n_parameters).

        An edge that would leave the cube points inwards.
        """
        unit = self.unit(start)
        span = self.problem.upper - self.problem.lower
        edge = 0.05 * start / span
        scale = Scale(self.problem)
        if self.by_ratio and scale.is_by_ratio:
            edge = scale.unit(1.05 * start) - scale.unit(start)
        if self.width is not None:
            edge = np.full(len(unit), self.width)
        edge = np.where(edge == 0.0, 0.00025, edge)
        edge = np.where((unit + edge > 1.0) | (unit + edge < 0.0), -edge, edge)
        corners: FloatArray = np.concatenate([unit[np.newaxis], unit + np.diag(edge)])
        return corners
