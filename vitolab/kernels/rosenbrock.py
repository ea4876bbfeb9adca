"""The Rosenbrock function in two terms: T1 = α − x1 and T2 = x2 − x1²."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def terms(x: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Both terms at each row of x, shape (n, 2); the function is ``T1**2 + 100 * T2**2``."""
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i, 0] = alpha - x[i, 0]
        y[i, 1] = x[i, 1] - x[i, 0] * x[i, 0]
    return y
