"""Covariances of the processes of an emulator, and how they are learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from vitolab.kernels.covariance import covariances
from vitolab.quantities import BoolArray, FloatArray, IntArray

# Of the normal priors on the logarithms of what is learned. As all numbers here set by judgement,
# and not varied but for the length, as in `vitolab.agent.planning`, and the last one.
LENGTH, LENGTH_SPREAD = 3.0, 1.0  # Ω spans 2, a standard deviation of a feature 1; 1.5: 39.3
AMPLITUDE_SPREAD = 1.5  # of what is shared, about the spread of the outputs
OWN, OWN_SPREAD = 0.5, 1.5  # ψ
NOISE, NOISE_SPREAD = 0.05, 1.0  # ψ
SMALLEST = 1e-4  # of the spread of an output: what OWN and NOISE are at least
JITTER = 1e-8  # of all variance, in what is noise
N_ROUNDS = 30  # of the optimisation; with 200 runs and more most end there
WORST = 1e12  # what covariances count that cannot be inverted
# Spreads of the priors beyond which nothing grows or shrinks; e^60 is squared without overflow.
# The optimisation goes there while it looks for a step; of linear outputs without noise it found
# modes 14 spreads away. Bounds of L-BFGS-B instead change the course of every learning, and end
# some farther from the mode.
FARTHEST = 20.0


@dataclass(frozen=True)
class Covariance:
    """Covariances of all outputs, as learned.

    With E the squared exponential of inputs over `length`, inputs a counted from the middle of Ω,
    and δ = 1 for runs of one patient, else 0, outputs have the covariance
    ``shared E + linear (1 + a·a') + δ (constant + own E)``, and noise of its own in every run.

    Attributes
    ----------
    mean : ndarray, shape (n_objectives,)
    length : ndarray, shape (n_objectives, n_inputs)
        In inputs: Ω spans 2, a standard deviation of a feature 1.
    shared, linear, constant, own, noise : ndarray, shape (n_objectives,)
        Variances, in ψ².
    """

    mean: FloatArray
    length: FloatArray
    shared: FloatArray
    linear: FloatArray
    constant: FloatArray
    own: FloatArray
    noise: FloatArray

    @classmethod
    def learn(cls, a: FloatArray, group: IntArray, y: FloatArray) -> Covariance:
        """Learn from runs, by the mode of the posterior of each output.

        Parameters
        ----------
        a : ndarray, shape (n, n_inputs)
        group : ndarray of int, shape (n,)
        y : ndarray, shape (n, n_objectives)
            Over ψ.
        """
        mean = y.mean(axis=0)
        scale = np.maximum(y.std(axis=0), 1.0)  # of at least one ψ
        normal = (y - mean) / scale
        found = np.array(
            [_learned(a, group, *output) for output in zip(normal.T, 1.0 / scale, strict=True)]
        )
        variances = np.exp(2.0 * found[:, :_N_AMPLITUDES]) * scale[:, np.newaxis] ** 2
        shared, linear, constant, own, noise = variances.T
        length = np.exp(found[:, _N_AMPLITUDES:])
        noise = noise + JITTER * (shared + linear * a.shape[1] + constant + own)
        return cls(mean, length, shared, linear, constant, own, noise)

    def across(self, a: FloatArray, b: FloatArray, same: BoolArray) -> FloatArray:
        """Covariances of a point of a patient with runs, shape (n_objectives, n).

        Parameters
        ----------
        a : ndarray, shape (n_inputs,)
        b : ndarray, shape (n, n_inputs)
        same : ndarray of bool, shape (n,)
            Runs of that patient.
        """
        away = (((a - b) / self.length[:, np.newaxis]) ** 2).sum(axis=2)
        shared, linear, constant, own = (
            each[:, np.newaxis] for each in (self.shared, self.linear, self.constant, self.own)
        )
        smooth = (shared + own * same) * np.exp(-0.5 * away)
        covariance: FloatArray = smooth + linear * (1.0 + b @ a) + constant * same
        return covariance

    def of_runs(self, a: FloatArray, group: IntArray) -> FloatArray:
        """Covariances of runs with each other, noise included, shape (n_objectives, n, n).

        The lower triangles alone.
        """
        parts = (self.length, self.shared, self.linear, self.constant, self.own, self.noise)
        covariance: FloatArray = covariances(a, group, *parts)
        return covariance

    def variance(self, a: FloatArray) -> FloatArray:
        """Variances at a point before anything was run, shape (n_objectives,)."""
        variance: FloatArray = self.shared + self.constant + self.own + self.linear * (1.0 + a @ a)
        return variance


# Order of the logarithms that are learned: shared, linear, constant, own, noise, then lengths.
_N_AMPLITUDES = 5


def _learned(a: FloatArray, group: IntArray, y: FloatArray, unit: float) -> FloatArray:
    """Logarithms of one output's amplitudes and lengths; y is normalised and ψ is `unit` in it."""
    loss, centre = posterior(a, group, y, unit)
    options = {"maxiter": N_ROUNDS}
    found = minimize(loss, centre, jac=True, method="L-BFGS-B", options=options).x
    if not np.isfinite(found).all():
        return centre
    farthest = FARTHEST * _spread(a.shape[1])
    clipped: FloatArray = np.clip(found, centre - farthest, centre + farthest)
    return clipped


def _spread(n_inputs: int) -> FloatArray:
    """Standard deviations of the priors, shape (5 + n_inputs,)."""
    amplitudes = [AMPLITUDE_SPREAD, AMPLITUDE_SPREAD, OWN_SPREAD, OWN_SPREAD, NOISE_SPREAD]
    return np.array(amplitudes + [LENGTH_SPREAD] * n_inputs)


def posterior(
    a: FloatArray, group: IntArray, y: FloatArray, unit: float
) -> tuple[Callable[[FloatArray], tuple[float, FloatArray]], FloatArray]:
    """Negative logarithm of the posterior of what is learned of one output.

    Parameters
    ----------
    a : ndarray, shape (n, n_inputs)
    group : ndarray of int, shape (n,)
    y : ndarray, shape (n,)
        Of mean 0 and standard deviation 1, or less.
    unit : float
        One ψ.

    Returns
    -------
    loss : callable
        Gives the value, but for a constant, and its gradient, at the logarithms of the amplitudes
        (shared, linear, constant, own, noise) and the lengths. More than `FARTHEST` spreads from
        the centre, what the runs tell is that of the border, and the prior alone goes on.
    centre : ndarray, shape (5 + n_inputs,)
        Mode of the prior.
    """
    n_inputs = a.shape[1]
    own, noise = max(OWN * unit, SMALLEST), max(NOISE * unit, SMALLEST)
    centre = np.log(np.array([1.0, 0.5, own, own, noise] + [LENGTH] * n_inputs))
    spread = _spread(n_inputs)
    lower, upper = centre - FARTHEST * spread, centre + FARTHEST * spread
    same = (group[:, np.newaxis] == group).astype(np.float64)
    linear = 1.0 + a @ a.T

    def loss(h: FloatArray) -> tuple[float, FloatArray]:
        away = (h - centre) / spread
        beyond = (h < lower) | (h > upper)
        h = np.clip(h, lower, upper)
        shared, across, constant, alone, error = np.exp(2.0 * h[:_N_AMPLITUDES])
        scaled = a / np.exp(h[_N_AMPLITUDES:])
        size = (scaled**2).sum(axis=1)
        smooth = np.exp(-0.5 * np.maximum(size[:, np.newaxis] + size - 2.0 * scaled @ scaled.T, 0))
        k = (shared + alone * same) * smooth + across * linear + constant * same
        k.flat[:: len(k) + 1] += error + JITTER * shared
        try:
            factor = cho_factor(k, lower=True, check_finite=False)
        except LinAlgError:
            return WORST, np.zeros_like(h)
        weight = cho_solve(factor, y, check_finite=False)
        inverse = cho_solve(factor, np.eye(len(k)), check_finite=False)
        value = 0.5 * y @ weight + np.log(np.diag(factor[0])).sum() + 0.5 * away @ away
        pull = inverse - np.outer(weight, weight)
        bent = pull * smooth
        alike = bent * same
        slope = np.empty_like(h)
        slope[0] = shared * (bent.sum() + JITTER * np.trace(pull))
        slope[1] = across * (pull * linear).sum()
        slope[2] = constant * (pull * same).sum()
        slope[3] = alone * alike.sum()
        slope[4] = error * np.trace(pull)
        bent = shared * bent + alone * alike
        slope[_N_AMPLITUDES:] = bent.sum(axis=1) @ scaled**2 - (scaled * (bent @ scaled)).sum(
            axis=0
        )
        slope[beyond] = 0.0  # there the prior alone pulls
        return float(value), slope + away / spread

    return loss, centre
