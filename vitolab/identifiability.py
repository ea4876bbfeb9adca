"""Which parameters the objectives determine: singular values of the sensitivity matrix.

With misfits counted in tolerances ψ and parameters in widths of their domain Ω, the sensitivity
matrix is S = diag(1/ψ) (∂y/∂x) diag(upper − lower) = U Σ Vᵀ. To first order a move by the share ε
of the domain along the i-th column of V changes the objectives by ε σᵢ tolerances in all. Where σᵢ
is well below one, even a move across the whole domain stays within tolerance: the objectives say
nothing about that combination of parameters, and many answers are equally right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vitolab.problem import BoolArray, FloatArray, Patient, Problem


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of the objectives to the parameters at one point.

    Attributes
    ----------
    parameters, objectives : tuple of str
        Names, in the order of the columns and rows of the matrix.
    x : ndarray, shape (n_parameters,)
    jacobian : ndarray, shape (n_objectives, n_parameters)
        In tolerances per width of the domain. NaN in the column of a parameter whose runs failed.
    singular_values : ndarray, shape (n_used,)
        Largest first, one for each parameter whose runs succeeded: zeros are added where there
        are fewer objectives.
    directions : ndarray, shape (n_used, n_parameters)
        Orthonormal combinations of parameters, in widths of their domains, one row for each
        singular value, the largest entry positive; zero for a parameter whose runs failed.
    """

    parameters: tuple[str, ...]
    objectives: tuple[str, ...]
    x: FloatArray
    jacobian: FloatArray
    singular_values: FloatArray
    directions: FloatArray

    @property
    def failed(self) -> tuple[str, ...]:
        """Parameters whose runs failed: nothing is said about them."""
        unknown = np.isnan(self.jacobian[0])
        return tuple(self.parameters[i] for i in np.flatnonzero(unknown))

    def combination(self, i: int = -1, smallest: float = 0.1) -> dict[str, float]:
        """Parameters that one direction combines, largest weight first.

        Parameters
        ----------
        i : int
            Which direction; by default the least identifiable one.
        smallest : float
            Weights below are left out.

        Returns
        -------
        dict of str to float
            Weights by parameter, in widths of the domains; their squares sum to at most one.

        Raises
        ------
        ValueError
            If there is no such direction.
        """
        n = len(self.singular_values)
        if not -n <= i < n:
            raise ValueError(f"direction is {i}, expected one of {n}")
        weights = self.directions[i]
        order = np.argsort(-np.abs(weights), kind="stable")
        return {self.parameters[j]: float(weights[j]) for j in order if abs(weights[j]) >= smallest}


def sensitivity(
    problem: Problem, x: ArrayLike, patient: Patient, *, share: float = 0.005
) -> Sensitivity:
    """Sensitivity matrix at one point by central differences, and its singular values.

    Takes two forward runs per parameter, in one call of ``simulate``. At a border of the domain
    the difference is one-sided.

    Parameters
    ----------
    problem : Problem
    x : array_like, shape (n_parameters,)
        Within the domain.
    patient : Patient
        Its data; the measurements play no part.
    share : float
        Half width of the differences, as a share of the domain. The default is the step of the
        paper's circulation parameters, well above the noise that event location leaves.

    Returns
    -------
    Sensitivity

    Raises
    ------
    ValueError
        If x has another shape or lies outside the domain, or the share is not above 0 and at
        most 1.
    """
    x = np.array(x, dtype=np.float64)
    n = problem.n_parameters
    if x.shape != (n,):
        raise ValueError(f"x has shape {x.shape}, expected ({n},)")
    for p, value in zip(problem.parameters, x, strict=True):
        if not p.lower <= value <= p.upper:
            raise ValueError(
                f"{p.name} is {value:g} {p.unit}, expected within [{p.lower:g}, {p.upper:g}]"
            )
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share is {share:g}, expected above 0 and at most 1")
    width = problem.upper - problem.lower
    shift = np.diag(share * width)
    above, below = np.minimum(x + shift, problem.upper), np.maximum(x - shift, problem.lower)
    y = problem.run(np.concatenate([above, below]), patient).y
    moved = (np.diag(above) - np.diag(below)) / width
    change = problem.misfit(y[:n], y[n:]) / problem.tolerance
    jacobian = (change / moved[:, np.newaxis]).T
    good = np.isfinite(jacobian).all(axis=0)
    jacobian[:, ~good] = np.nan
    values, directions = _decompose(jacobian, good)
    return Sensitivity(
        tuple(p.name for p in problem.parameters),
        tuple(o.name for o in problem.objectives),
        x,
        jacobian,
        values,
        directions,
    )


def _decompose(jacobian: FloatArray, good: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Singular values and right singular vectors of the columns that are good."""
    used = int(good.sum())
    values, directions = np.zeros(used), np.zeros((used, len(good)))
    if used:
        _, found, rows = np.linalg.svd(jacobian[:, good])
        values[: len(found)] = found
        largest = np.argmax(np.abs(rows), axis=1)
        directions[:, good] = rows * np.sign(rows[np.arange(used), largest])[:, np.newaxis]
    return values, directions
