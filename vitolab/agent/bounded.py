"""Damped linear least squares within bounds."""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from vitolab.problem import FloatArray

ROUNDS = 20


def bounded_step(
    jacobian: FloatArray,
    c: FloatArray,
    damping: float,
    anchor: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Minimise ‖c + J d‖² + damping ‖d − anchor‖² over lower ≤ d ≤ upper.

    A primal-dual active set (Hintermüller, Ito & Kunisch 2002): few solves of small systems.
    ``scipy.optimize.lsq_linear``, which does not square J, takes over where the set does not
    settle, and where J is so steep that rounding would swallow the damping.

    Parameters
    ----------
    jacobian : ndarray, shape (m, n)
    c : ndarray, shape (m,)
    damping : float
        Above 0, so that there is one solution.
    anchor, lower, upper : ndarray, shape (n,)

    Returns
    -------
    ndarray, shape (n,)
    """
    hessian = jacobian.T @ jacobian
    if damping <= len(anchor) * np.finfo(float).eps * hessian.diagonal().max():
        return _by_roots(jacobian, c, damping, anchor, lower, upper)
    hessian.flat[:: len(anchor) + 1] += damping
    gradient = jacobian.T @ c - damping * anchor
    d = np.asarray(np.linalg.solve(hessian, -gradient), dtype=np.float64)
    low, high = d < lower, d > upper
    if not (low.any() or high.any()):
        return d
    for _ in range(ROUNDS):
        bounded = np.where(low, lower, np.where(high, upper, 0.0))
        free = ~(low | high)
        if free.any():
            right = -(gradient + hessian[:, ~free] @ bounded[~free])[free]
            bounded[free] = np.linalg.solve(hessian[np.ix_(free, free)], right)
        push = -(hessian @ bounded + gradient)  # where the misfit would draw a bounded unknown
        next_low = np.where(low, push < 0, bounded < lower)
        next_high = np.where(high, push > 0, bounded > upper)
        if np.array_equal(next_low, low) and np.array_equal(next_high, high):
            return np.clip(bounded, lower, upper)
        low, high = next_low, next_high
    return _by_roots(jacobian, c, damping, anchor, lower, upper)


def _by_roots(
    jacobian: FloatArray,
    c: FloatArray,
    damping: float,
    anchor: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Minimise as `bounded_step`, by the rows of J above those of the damping."""
    root = np.sqrt(damping)
    stacked = np.concatenate([jacobian, root * np.eye(len(anchor))])
    right = np.concatenate([-c, root * anchor])
    solved: FloatArray = lsq_linear(stacked, right, bounds=(lower, upper), method="bvls").x
    return solved
