"""How the patient at hand deviates from the common model, from the runs made so far.

A Gaussian process whose covariance is learned: deviations are multiples of the directions in which
the training patients differ (`Experience.variation`), plus a constant and a smooth function of one
ψ each for what those patients do not show. It passes through the runs made, failed steps too,
and far from them goes back to what is common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitolab.agent.experience import basis, basis_slopes
from vitolab.problem import FloatArray

LENGTH = 0.5  # share of Ω over which the smooth part changes
NOISE = 1e-4  # of the outputs, in ψ²; keeps the equations solvable
N_LATEST = 25  # runs that are taken into account


@dataclass(frozen=True)
class Deviation:
    """Expected deviation, in units of ψ.

    Attributes
    ----------
    learned : ndarray, shape (n_basis, n_objectives)
        Coefficients of `basis`.
    own : ndarray, shape (n_runs, n_parameters)
        Runs that it passes through.
    strength : ndarray, shape (n_runs, n_objectives)
        Of the constant and the smooth part of each.
    """

    learned: FloatArray
    own: FloatArray
    strength: FloatArray

    @classmethod
    def expect(cls, variation: FloatArray, u: FloatArray, found: FloatArray) -> Deviation:
        """Expect a deviation after runs at u, shape (n, n_parameters), deviated as found."""
        u, found = u[-N_LATEST:], found[-N_LATEST:]
        n, n_objectives = len(u), found.shape[1]
        if not n:
            return cls(np.zeros(variation.shape[1:]), u, found)
        # value of each learned direction at each run and objective
        terms = np.einsum("nb,dbo->nod", basis(u), variation).reshape(n * n_objectives, -1)
        covariance = terms @ terms.T + np.kron(_covariance(u, u), np.eye(n_objectives))
        covariance.flat[:: len(covariance) + 1] += NOISE
        weight = np.linalg.solve(covariance, found.ravel())
        learned = np.tensordot(terms.T @ weight, variation, axes=1)
        return cls(learned, u, weight.reshape(n, n_objectives))

    def at(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Deviation at a point, shape (n_objectives,), and its derivatives by u."""
        value = basis(u[np.newaxis])[0] @ self.learned
        slopes = self.learned.T @ basis_slopes(u)
        if len(self.own):
            near = _covariance(u[np.newaxis], self.own)[0]
            value = value + near @ self.strength
            pull = (near - 1.0)[:, np.newaxis] * (self.own - u) / LENGTH**2
            slopes = slopes + self.strength.T @ pull
        return value, slopes


def _covariance(a: FloatArray, b: FloatArray) -> FloatArray:
    """Of the constant and the smooth part, in ψ²."""
    squared = ((a[:, np.newaxis] - b) ** 2).sum(axis=2)
    covariance: FloatArray = 1.0 + np.exp(-squared / (2.0 * LENGTH**2))
    return covariance
