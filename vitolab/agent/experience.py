"""What the models of other patients answered, and what that says of the next one.

Two things are learned from stored runs. The **common model** is locally linear: where it is asked,
the runs nearby are fitted by a plane, the nearer ones counting more (locally weighted learning,
Atkeson, Moore & Schaal 1997). **How patients vary** is what remains: for each patient a smooth
function of the parameters, a few coefficients fitted to the patient's own deviations from the
common model. It is taken out of the stored runs before they are fitted, so that a difference
between two patients is not mistaken for a slope; and it tells which deviations to expect of a
patient who was never seen, see `vitolab.agent.deviation`.

All outputs are in units of the tolerances ψ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from vitolab.agent.scale import Scale
from vitolab.agent.walks import ROUNDING, checked_runs
from vitolab.objects import Value
from vitolab.problem import FloatArray, IntArray, Patient, Problem
from vitolab.quantities import BEYOND
from vitolab.saved import check_arrays, check_limits
from vitolab.trajectories import Trajectories

NEIGHBOURS = 16  # stored runs per unknown of a plane
FEATURE_REACH = 0.1  # share of Ω that a standard deviation of a feature counts for
RIDGE = 1e-3  # on slopes over the reach of the neighbours, for directions they do not span
N_FITTED = 40  # runs of a patient from which its deviations are fitted
SHRINKAGE = 1.0  # of those fits towards no deviation, in runs with a misfit of one ψ
CHUNK = 256  # planes fitted at once
SMALLEST = 1e-100  # deviation of a feature, in its unit; the largest is its inverse


@dataclass(frozen=True, eq=False, repr=False)
class Experience(Value):
    """Stored runs of the training patients' models.

    Attributes
    ----------
    problem : Problem
    u : ndarray, shape (n, n_parameters)
        Parameters in the unit cube, see `Scale`.
    y : ndarray, shape (n, n_objectives)
        Outputs over ψ, less their patient's deviation.
    f : ndarray, shape (n, n_features)
        Features of each run's patient, in standard deviations from the mean; 0 where not known.
    variation : ndarray, shape (n_directions, n_basis, n_objectives)
        Principal directions of the patients' deviations, as coefficients of `basis`; scaled such
        that independent standard normal multiples have the spread of the training patients.
    centre, spread : ndarray, shape (n_features,)
        Mean and standard deviation of the features of the training patients.
    """

    problem: Problem
    u: FloatArray
    y: FloatArray
    f: FloatArray
    variation: FloatArray
    centre: FloatArray
    spread: FloatArray

    @classmethod
    def learn(cls, problem: Problem, walks: Trajectories) -> Experience:
        """Learn from all runs that did not fail.

        Raises
        ------
        ValueError
            If there are none.
        """
        counted = checked_runs(problem, walks)
        patient = np.broadcast_to(walks.patient[:, np.newaxis], counted.shape)[counted]
        f, centre, spread = _standardised(problem, walks)
        u = Scale(problem).unit(walks.x[counted])
        nothing = np.empty((0, 2 * problem.n_parameters + 1, problem.n_objectives))
        raw = cls(
            problem,
            u,
            walks.y[counted] / problem.tolerance,
            f[patient],
            nothing,
            centre,
            spread,
        )
        deviations = raw._deviations(patient, len(walks.patients))
        y = raw.y.copy()
        for p, deviation in enumerate(deviations):
            own = patient == p
            y[own] -= basis(u[own]) @ deviation
        # same spread in as few directions as there are
        flat = deviations.reshape(len(deviations), -1) / np.sqrt(len(deviations))
        _, size, directions = np.linalg.svd(flat, full_matrices=False)
        variation = (size[:, np.newaxis] * directions).reshape(-1, *deviations.shape[1:])
        return cls(problem, u, y, raw.f, variation, centre, spread)

    def _deviations(self, patient: IntArray, n_patients: int) -> FloatArray:
        """Fit each patient's deviations from the common model.

        Returns
        -------
        ndarray, shape (n_patients, n_basis, n_objectives)
            Coefficients of `basis`; 0 for a patient without runs.
        """
        fitted = []
        for p in range(n_patients):
            own = np.flatnonzero(patient == p)
            if len(own) > N_FITTED:
                own = own[np.linspace(0, len(own) - 1, N_FITTED).astype(np.int64)]
            fitted.append(own)
        rows = np.concatenate(fitted)
        common, _ = self.model(self.u[rows], self.f[rows])
        away = self.misfit(self.y[rows], common)
        terms = basis(self.u[rows])
        deviations = np.zeros((n_patients, terms.shape[1], away.shape[1]))
        ends = np.cumsum([len(own) for own in fitted])
        for p, (own, end) in enumerate(zip(fitted, ends, strict=True)):
            a, b = terms[end - len(own) : end], away[end - len(own) : end]
            normal = a.T @ a + SHRINKAGE * np.eye(a.shape[1])
            deviations[p] = np.linalg.solve(normal, a.T @ b)
        return deviations

    def misfit(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Misfit y − z where both are in units of ψ."""
        psi = self.problem.tolerance
        return self.problem.misfit(y * psi, z * psi) / psi

    def featured(self, patient: Patient) -> FloatArray:
        """Features of a patient in standard deviations from the mean, shape (n_features,)."""
        away = (self.problem.featured(patient) - self.centre) / self.spread
        return np.where(np.isfinite(away), away, 0.0)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(np.concatenate([self.u, FEATURE_REACH * self.f], axis=1))

    def model(self, u: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Outputs of the common model, and their derivatives by u.

        Parameters
        ----------
        u : ndarray, shape (n, n_parameters)
        f : ndarray, shape (n, n_features)

        Returns
        -------
        y : ndarray, shape (n, n_objectives)
        jacobian : ndarray, shape (n, n_objectives, n_parameters)
        """
        parts = [self._planes(u[i : i + CHUNK], f[i : i + CHUNK]) for i in range(0, len(u), CHUNK)]
        y, jacobian = zip(*parts, strict=True)
        return np.concatenate(y), np.concatenate(jacobian)

    def _planes(self, u: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Fit the planes of `model`."""
        n = u.shape[1]
        k = min(NEIGHBOURS * (n + 2), len(self.u))
        away, near = self._tree.query(np.concatenate([u, FEATURE_REACH * f], axis=1), k)
        away, near = away.reshape(len(u), k), near.reshape(len(u), k)
        reach = away[:, -1:] * 1.01 + 1e-9  # the farthest counts a little, equal points too
        weight = (1.0 - (away / reach) ** 3) ** 3
        plane = np.empty((len(u), k, 1 + n + f.shape[1]))
        plane[..., 0] = 1.0
        plane[..., 1 : n + 1] = (self.u[near] - u[:, np.newaxis]) / reach[..., np.newaxis]
        turned = FEATURE_REACH * (self.f[near] - f[:, np.newaxis])
        plane[..., n + 1 :] = turned / reach[..., np.newaxis]
        centre = self.y[near[:, 0]]
        height = self.misfit(self.y[near], centre[:, np.newaxis])
        weighted = (plane * weight[..., np.newaxis]).transpose(0, 2, 1)
        normal = weighted @ plane
        slopes = np.arange(1, plane.shape[2])
        normal[:, slopes, slopes] += RIDGE * weight.sum(axis=1, keepdims=True)
        found = np.linalg.solve(normal, weighted @ height)
        jacobian = found[:, 1 : n + 1].transpose(0, 2, 1) / reach[..., np.newaxis]
        return centre + found[:, 0], jacobian

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays from which `from_arrays` makes the same experience."""
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def from_arrays(cls, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> Experience:
        """Read what `to_arrays` gave."""
        return cls(problem, **{name: arrays[name] for name in ARRAYS})


ARRAYS = ("u", "y", "f", "variation", "centre", "spread")


def check_experience(path: Path, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays of a file that are no experience with this problem.

    Raises
    ------
    ValueError
        If an array is missing or of another kind or shape, holds a number beyond all measure or
        a point outside the domain, or there are no runs.
    """
    n_f = len(problem.features)
    n = len(arrays["u"]) if "u" in arrays and arrays["u"].ndim else None
    check_arrays(
        path,
        arrays,
        {
            "u": ("f", (n, problem.n_parameters)),
            "y": ("f", (n, problem.n_objectives)),
            "f": ("f", (n, n_f)),
            "variation": ("f", (None, 2 * problem.n_parameters + 1, problem.n_objectives)),
            "centre": ("f", (n_f,)),
            "spread": ("f", (n_f,)),
        },
    )
    if not n:
        raise ValueError(f"{path}: u is empty, expected runs")
    # where walks may leave the domain, runs lie outside it
    beyond = BEYOND if problem.border == "free" else ROUNDING
    check_limits(path, "u", arrays["u"], -beyond, 1.0 + beyond)
    for name in ("y", "f", "variation"):
        check_limits(path, name, arrays[name], -BEYOND, BEYOND)
    check_limits(path, "centre", arrays["centre"], -1.0 / SMALLEST, 1.0 / SMALLEST)
    check_limits(path, "spread", arrays["spread"], SMALLEST, 1.0 / SMALLEST)


def basis(u: FloatArray) -> FloatArray:
    """Functions of the parameters by which patients deviate: 1, u and u² about the centre.

    Parameters
    ----------
    u : ndarray, shape (n, n_parameters)

    Returns
    -------
    ndarray, shape (n, 2 n_parameters + 1)
    """
    v = 2.0 * u - 1.0
    return np.concatenate([np.ones((len(u), 1)), v, v**2], axis=1)


def basis_slopes(u: FloatArray) -> FloatArray:
    """Derivatives of `basis` at one point, shape (2 n_parameters + 1, n_parameters)."""
    n = len(u)
    return np.concatenate([np.zeros((1, n)), 2.0 * np.eye(n), np.diag(4.0 * (2.0 * u - 1.0))])


def _standardised(
    problem: Problem, walks: Trajectories
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features of the training patients in standard deviations, their mean, and the deviation."""
    features = walks.features
    if features is None:
        features = np.full((len(walks.patients), len(problem.features)), np.nan)
    known = np.isfinite(features)
    n = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, features, 0.0).sum(axis=0) / n
    away = np.where(known, features - centre, 0.0)
    spread = np.sqrt((away**2).sum(axis=0) / n)
    spread[spread == 0.0] = 1.0
    return away / spread, centre, spread
