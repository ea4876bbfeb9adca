"""The Rosenbrock function in two terms: :math:`T_1 = \\alpha - x_1`, :math:`T_2 = x_2 - x_1^2`."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def terms(x, alpha):
    """Both terms at each row of x, shape (n, 2); the function is ``T1**2 + 100 * T2**2``."""
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i, 0] = alpha - x[i, 0]
        y[i, 1] = x[i, 1] - x[i, 0] * x[i, 0]
    return y
