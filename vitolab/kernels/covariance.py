"""Covariances of runs with each other, and outputs expected of them."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def covariances(
    a: FloatArray,
    group: IntArray,
    length: FloatArray,
    shared: FloatArray,
    linear: FloatArray,
    constant: FloatArray,
    own: FloatArray,
    noise: FloatArray,
) -> FloatArray:
    """Covariances of runs, see `vitolab.agent.covariance.Covariance`.

    Parameters
    ----------
    a : ndarray, shape (n, n_inputs)
    group : ndarray of int, shape (n,)
    length : ndarray, shape (n_outputs, n_inputs)
    shared, linear, constant, own, noise : ndarray, shape (n_outputs,)
        Variances.

    Returns
    -------
    ndarray, shape (n_outputs, n, n)
        The lower triangles; zero above.
    """
    n, d = a.shape
    m = len(shared)
    found = np.zeros((m, n, n))
    squared = np.empty(d)
    for i in range(n):
        for j in range(i + 1):
            across = 1.0
            for q in range(d):
                across += a[i, q] * a[j, q]
                squared[q] = (a[i, q] - a[j, q]) ** 2
            for o in range(m):
                away = 0.0
                for q in range(d):
                    away += squared[q] / length[o, q] ** 2
                smooth = np.exp(-0.5 * away)
                value = shared[o] * smooth + linear[o] * across
                if group[i] == group[j]:
                    value += constant[o] + own[o] * smooth
                if i == j:
                    value += noise[o]
                found[o, i, j] = value
    return found


# sums may be taken in any order: one after the other they would wait for each other
@njit(cache=True, nogil=True, fastmath={"reassoc"})
def expected(
    points: FloatArray,
    n_slopes: int,
    b: FloatArray,
    same: BoolArray,
    length: FloatArray,
    shared: FloatArray,
    linear: FloatArray,
    constant: FloatArray,
    own: FloatArray,
    root: FloatArray,
    weight: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Expect outputs at points of a patient, see `vitolab.agent.emulator.Emulator.at`.

    The inverse of the factor is read once per point, its lower triangle alone: most of the time
    goes into that.

    Parameters
    ----------
    points : ndarray, shape (k, n_inputs)
    n_slopes : int
        Inputs, the first ones, by which derivatives are taken.
    b : ndarray, shape (n_inputs, n)
        Inputs of the runs.
    same : ndarray of bool, shape (n,)
        Runs of that patient.
    length : ndarray, shape (n_outputs, n_inputs)
    shared, linear, constant, own : ndarray, shape (n_outputs,)
        Variances.
    root : ndarray, shape (n_outputs, n, n)
        Inverse of the lower Cholesky factor of the covariances of the runs.
    weight : ndarray, shape (n_outputs, n)
        Of the runs in what is expected.

    Returns
    -------
    mean, variance : ndarray, shape (k, n_outputs)
        The mean without that of the process.
    slopes, variance_slopes : ndarray, shape (k, n_outputs, n_slopes)
    """
    k, d = points.shape
    m, n = weight.shape
    mean, variance = np.empty((k, m)), np.empty((k, m))
    slopes, variance_slopes = np.empty((k, m, n_slopes)), np.empty((k, m, n_slopes))
    across, smooth, covariance, pull = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for p in range(k):
        a = points[p]
        size = 1.0
        across[:] = 1.0
        for q in range(d):
            size += a[q] ** 2
            for j in range(n):
                across[j] += a[q] * b[q, j]
        for o in range(m):
            smooth[:] = 0.0
            for q in range(d):
                steepness = 1.0 / length[o, q] ** 2
                for j in range(n):
                    smooth[j] += steepness * (a[q] - b[q, j]) ** 2
            known, above = 0.0, 0.0
            for j in range(n):
                smooth[j] = (shared[o] + own[o] * same[j]) * np.exp(-0.5 * smooth[j])
                covariance[j] = smooth[j] + linear[o] * across[j] + constant[o] * same[j]
                above += covariance[j] * weight[o, j]
            pull[:] = 0.0
            for i in range(n):
                share = 0.0
                for j in range(i + 1):
                    share += root[o, i, j] * covariance[j]
                known += share**2
                for j in range(i + 1):
                    pull[j] += share * root[o, i, j]
            level = shared[o] + constant[o] + own[o] + linear[o] * size
            mean[p, o] = above
            variance[p, o] = max(level - known, 1e-12 * level)
            for q in range(n_slopes):
                steepness = 1.0 / length[o, q] ** 2
                tilt, lift = 0.0, 0.0
                for j in range(n):
                    rise = smooth[j] * (b[q, j] - a[q]) * steepness + linear[o] * b[q, j]
                    tilt += weight[o, j] * rise
                    lift += pull[j] * rise
                slopes[p, o, q] = tilt
                variance_slopes[p, o, q] = 2.0 * (linear[o] * a[q] - lift)
    return mean, variance, slopes, variance_slopes
