"""A model of the model: what all patients share and how each deviates, as Gaussian processes.

Every output is one process over parameters and features (Rasmussen & Williams 2006, chapters 2
and 5). Its covariance has a part that all patients share, linear and smooth, and a part that only
runs of one patient share, constant and smooth (a hierarchical process, Hensman, Lawrence & Rattray
2013). A run of one patient therefore teaches about the next as much as the patients seen so far
were alike, and a patient's own runs correct the model for that patient alone.

Outputs are in units of the tolerances ψ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from vitolab.agent.covariance import Covariance
from vitolab.kernels.covariance import expected
from vitolab.quantities import FloatArray, IntArray


@dataclass(frozen=True)
class Expected:
    """Outputs expected at points, and how they change with the parameters.

    Attributes
    ----------
    mean, variance : ndarray, shape (k, n_objectives)
    slopes, variance_slopes : ndarray, shape (k, n_objectives, n_parameters)
    """

    mean: FloatArray
    variance: FloatArray
    slopes: FloatArray
    variance_slopes: FloatArray


@dataclass(frozen=True)
class Emulator:
    """Processes of all outputs, given runs.

    Attributes
    ----------
    covariance : Covariance
    a : ndarray, shape (n, n_inputs)
        Inputs of the runs.
    group : ndarray of int, shape (n,)
        Patient of each run.
    y : ndarray, shape (n, n_objectives)
    root : ndarray, shape (n_objectives, n, n)
        Inverse of the lower Cholesky factor of the covariances of the runs, noise included.
    """

    covariance: Covariance
    a: FloatArray
    group: IntArray
    y: FloatArray
    root: FloatArray

    @classmethod
    def given(
        cls, covariance: Covariance, a: FloatArray, group: IntArray, y: FloatArray
    ) -> Emulator:
        """Condition on runs."""
        root = covariance.of_runs(a, group)
        for lower in root:  # in place: transposed, a lower triangle is the upper one of LAPACK
            factor = cholesky(lower.T, lower=False, overwrite_a=True, check_finite=False)
            inverse, _ = dtrtri(factor, lower=False, overwrite_c=True)
            lower[:] = inverse.T
        return cls(covariance, a, group, y, root)

    def after(self, a: FloatArray, group: int, y: FloatArray) -> Emulator:
        """Condition on one more run, by bordering the factors."""
        n = len(self.a)
        across = self.covariance.across(a, self.a, self.group == group)
        share = np.matmul(self.root, across[..., np.newaxis])
        left = self.covariance.variance(a) + self.covariance.noise
        # what rounding leaves of it is at least a share of the noise
        left = np.maximum(left - (share[..., 0] ** 2).sum(axis=1), 0.1 * self.covariance.noise)
        last = 1.0 / np.sqrt(left)
        root = np.zeros((len(self.root), n + 1, n + 1))
        root[:, :n, :n] = self.root
        below = np.matmul(share.transpose(0, 2, 1), self.root)[:, 0]
        root[:, n, :n] = -last[:, np.newaxis] * below
        root[:, n, n] = last
        return Emulator(
            self.covariance,
            np.concatenate([self.a, a[np.newaxis]]),
            np.append(self.group, group),
            np.concatenate([self.y, y[np.newaxis]]),
            root,
        )

    @cached_property
    def transposed(self) -> FloatArray:
        """Inputs of the runs, shape (n_inputs, n)."""
        return np.ascontiguousarray(self.a.T)

    @cached_property
    def weight(self) -> FloatArray:
        """Weights of the runs in what is expected, shape (n_objectives, n)."""
        away = (self.y - self.covariance.mean).T[..., np.newaxis]
        share = np.matmul(self.root, away)
        weight: FloatArray = np.matmul(self.root.transpose(0, 2, 1), share)[..., 0]
        return weight

    def at(self, a: FloatArray, group: int, n_parameters: int) -> Expected:
        """Expect outputs of a patient.

        Parameters
        ----------
        a : ndarray, shape (k, n_inputs)
        group : int
            The patient, as in the runs; a number of its own if there are none of it.
        n_parameters : int
            Inputs, the first ones, by which derivatives are taken.
        """
        c = self.covariance
        parts = (c.length, c.shared, c.linear, c.constant, c.own, self.root, self.weight)
        same = self.group == group
        mean, *rest = expected(a, n_parameters, self.transposed, same, *parts)
        return Expected(c.mean + mean, *rest)
