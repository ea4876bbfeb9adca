"""Covariances of runs with each other."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
