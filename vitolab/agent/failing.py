"""Where a model may fail, by where it failed and where it answered.

A point is taken to fail if the nearest run is one that failed. A plan into such a region stops on
its border: on the way from the nearest run that answered, the first step is halved, the next one
there as well.
"""

from __future__ import annotations

import numpy as np

from vitolab.problem import FloatArray

SAME = 1e-3  # share of Ω below which two points are one


def nearest_answer(u: FloatArray, answered: FloatArray, failed: FloatArray) -> FloatArray | None:
    """Nearest run that answered; runs of others do not count where the patient's own failed.

    Parameters
    ----------
    u : ndarray, shape (n_parameters,)
    answered, failed : ndarray, shape (n_runs, n_parameters)

    Returns
    -------
    ndarray, shape (n_parameters,) or None
        None if there is none.
    """
    for i in np.argsort(((answered - u) ** 2).sum(axis=1), kind="stable"):
        if (np.abs(failed - answered[i]).max(axis=1) > SAME).all():
            nearest: FloatArray = answered[i]
            return nearest
    return None


def held(u: FloatArray, base: FloatArray, failed: FloatArray) -> FloatArray:
    """Last point on the way from a run to u that is no nearer to a failed run than to that one.

    Parameters
    ----------
    u, base : ndarray, shape (n_parameters,)
    failed : ndarray, shape (n_failed, n_parameters)
    """
    way, away = u - base, failed - base
    along = away @ way
    facing = along > 0.0
    shares = (away[facing] ** 2).sum(axis=1) / (2.0 * along[facing])
    share = min(1.0, float(shares.min(initial=1.0)))
    return u if share == 1.0 else np.clip(base + share * way, 0.0, 1.0)
