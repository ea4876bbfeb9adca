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
        if len(covariance) * np.finfo(float).eps * covariance.diagonal().max() < NOISE:
            covariance.flat[:: len(covariance) + 1] += NOISE
            weight = np.linalg.solve(covariance, found.ravel())
            multiples = terms.T @ weight
        else:
            multiples, weight = _by_roots(terms, _covariance(u, u), found)
        learned = np.tensordot(multiples, variation, axes=1)
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


def _by_roots(
    terms: FloatArray, smooth: FloatArray, found: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Multiples of the learned directions, and weights, where rounding would swallow the noise.

    Patients who differ by 10⁶ tolerances have a covariance of 10¹², in which the noise is lost and
    the matrix singular. Its roots are conditioned by the root of that: the shortest solution of
    [T, L, √noise I] (a, b, e) = found has the multiples a = Tᵀw and the weights w = e / √noise of
    (TTᵀ + LLᵀ + noise I) w = found.
    """
    size, axes = np.linalg.eigh(smooth)
    root = np.kron(axes * np.sqrt(np.maximum(size, 0.0)), np.eye(found.shape[1]))
    noise = np.sqrt(NOISE)
    roots = np.concatenate([terms, root, noise * np.eye(len(terms))], axis=1)
    shortest = np.linalg.lstsq(roots, found.ravel(), rcond=None)[0]
    return shortest[: terms.shape[1]], shortest[-len(terms) :] / noise


def _covariance(a: FloatArray, b: FloatArray) -> FloatArray:
    """Of the constant and the smooth part, in ψ²."""
    squared = ((a[:, np.newaxis] - b) ** 2).sum(axis=2)
    covariance: FloatArray = 1.0 + np.exp(-squared / (2.0 * LENGTH**2))
    return covariance
