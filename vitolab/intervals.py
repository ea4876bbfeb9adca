"""How sure shares and means over patients are: the intervals of all tables and figures.

Patients are the independent trials. Repeats of a study and random starts personalise the same
patients, so that all personalisations of a patient are resampled together. Where repeats share
what was explored and patients are few, as in a grid of starts, both are resampled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vitolab.files import stream

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
Ends = tuple[float, float]

LEVEL = 0.95  # of all intervals
N_RESAMPLES = 10_000
NONE: Ends = (float("nan"), float("nan"))
_TAILS = (0.5 - LEVEL / 2.0, 0.5 + LEVEL / 2.0)


def wilson(share: float, n: int) -> Ends:
    """Interval of a share by Wilson's score (Wilson 1927), at `LEVEL`.

    Parameters
    ----------
    share : float
        Successes over trials; of repeats of the same patients their mean.
    n : int
        Independent trials: patients.

    Raises
    ------
    ValueError
        If there are no trials, or the share is none.
    """
    if n < 1 or not 0.0 <= share <= 1.0:
        raise ValueError(f"the share is {share} of {n} trials, expected 0 to 1 of at least one")
    from scipy.stats import norm

    z = float(norm.ppf(0.5 + LEVEL / 2.0))
    centre = share + z**2 / (2.0 * n)
    half = z * np.sqrt(share * (1.0 - share) / n + z**2 / (4.0 * n**2))
    low, high = ((centre + sign * half) / (1.0 + z**2 / n) for sign in (-1.0, 1.0))
    return max(0.0, float(low)), min(1.0, float(high))


@lru_cache(maxsize=4)
def _times(n: int, seed: int, what: str) -> FloatArray:
    """Times that each of n is drawn in each resample, shape (N_RESAMPLES, n)."""
    drawn = stream(what, seed).integers(n, size=(N_RESAMPLES, n))
    drawn += n * np.arange(N_RESAMPLES)[:, np.newaxis]
    times = np.bincount(drawn.ravel(), minlength=n * N_RESAMPLES)
    return times.reshape(N_RESAMPLES, n).astype(np.float64)


def resampled_ratio(total: ArrayLike, count: ArrayLike, seed: int = 0) -> Ends:
    """Percentile interval of a ratio of sums over patients, at `LEVEL` (cluster bootstrap).

    Parameters
    ----------
    total, count : array_like, shape (n_patients,) or (n_patients, n_repeats)
        Sum of a quantity and number of personalisations; the ratio of their sums is the mean.
        With a second axis the repeats are resampled beside the patients (Owen 2007).
    seed : int
        Of the `N_RESAMPLES` resamples.

    Returns
    -------
    low, high : float
        NaN where there is a single patient, and a single repeat.
    """
    sums = np.asarray(total, dtype=np.float64)
    numbers = np.asarray(count, dtype=np.float64)
    if sums.ndim == 1:
        sums, numbers = sums[:, np.newaxis], numbers[:, np.newaxis]
    n, n_repeats = sums.shape
    if n < 2 and n_repeats < 2:
        return NONE
    times = _times(n, seed, "bootstrap")
    above, below = times @ sums, times @ numbers
    if n_repeats > 1:
        again = _times(n_repeats, seed, "bootstrap of repeats")
        above, below = above * again, below * again
    divisor = below.sum(axis=1)
    known = divisor > 0.0  # a resample may hold nobody who was solved
    if not known.any():
        return NONE
    low, high = np.quantile(above.sum(axis=1)[known] / divisor[known], _TAILS)
    return float(low), float(high)


def mean_interval(rows: pd.DataFrame, values: ArrayLike, *, crossed: bool = False) -> Ends:
    """Interval of a mean over personalisations, by a bootstrap over the patients.

    Parameters
    ----------
    rows : DataFrame
        Personalisations, with their ``patient`` and, if `crossed`, ``repeat``.
    values : array_like, shape (n,)
        Such as forward runs; those that are NaN do not count.
    crossed : bool
        Whether repeats are resampled beside the patients.
    """
    return resampled_ratio(*_cells(rows, np.asarray(values, dtype=np.float64), crossed))


def share_interval(rows: pd.DataFrame, hits: ArrayLike, *, crossed: bool = False) -> Ends:
    """Interval of a share of personalisations, in percent.

    Wilson's where every patient was personalised once. Of several repeats or starts of the same
    patients it is that of a bootstrap over the patients; if all of them ended alike, resampling
    shows nothing, and it is Wilson's of as many trials as there are patients (if `crossed`, pairs
    of patient and repeat).

    Parameters
    ----------
    rows : DataFrame
        Personalisations, with their ``patient`` and, if `crossed`, ``repeat``.
    hits : array_like of float, shape (n,)
        1 for a success, 0 for none; those that are NaN do not count.
    crossed : bool
        Whether repeats are resampled beside the patients.
    """
    total, count = _cells(rows, np.asarray(hits, dtype=np.float64), crossed)
    n = int((count > 0).sum())
    if not n:
        return NONE
    share = float(total.sum() / count.sum())
    alike = share in (0.0, 1.0)
    if alike or (count.sum() == n and total.shape[1] == 1):
        low, high = wilson(share, n)
    else:
        low, high = resampled_ratio(total, count)
    return 100.0 * low, 100.0 * high


def _cells(rows: pd.DataFrame, values: FloatArray, crossed: bool) -> tuple[FloatArray, FloatArray]:
    """Sum and number of the values of each patient, and of each repeat of it if crossed."""
    import pandas as pd

    # sorted: resamples do not depend on the order of the rows
    patient, names = pd.factorize(rows["patient"], sort=True)
    repeat, repeats = np.zeros(len(rows), dtype=np.int64), 1
    if crossed:
        repeat, known = pd.factorize(rows["repeat"], sort=True, use_na_sentinel=False)
        repeats = len(known)
    counted = np.isfinite(values)
    shape = (len(names), repeats)
    total, count = np.zeros(shape), np.zeros(shape)
    at = (patient[counted], repeat[counted])
    np.add.at(total, at, values[counted])
    np.add.at(count, at, 1.0)
    return total, count


def worded(ends: Ends, digits: int = 1) -> str:
    """An interval as it stands in a table, such as ``80.4 to 97.9``; empty if there is none."""
    low, high = ends
    return f"{low:.{digits}f} to {high:.{digits}f}" if np.isfinite([low, high]).all() else ""


def heading(column: str) -> str:
    """Name of the column that holds the intervals of another one."""
    return f"{column.partition(' [')[0]}, 95 %"
