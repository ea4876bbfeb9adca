"""Shares and differences of methods that personalised the same patients, and how sure they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, norm

from vitolab.files import stream

LEVEL = 0.95  # of all intervals
N_RESAMPLES = 10000


def wilson(share: float, n: int) -> tuple[float, float]:
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
    z = float(norm.ppf(0.5 + LEVEL / 2.0))
    centre = share + z**2 / (2.0 * n)
    half = z * np.sqrt(share * (1.0 - share) / n + z**2 / (4.0 * n**2))
    low, high = ((centre + sign * half) / (1.0 + z**2 / n) for sign in (-1.0, 1.0))
    return max(0.0, float(low)), min(1.0, float(high))


def mcnemar(one: ArrayLike, other: ArrayLike) -> tuple[int, int, float]:
    """Exact two-sided test of McNemar (1947) whether two methods solve equally often.

    Parameters
    ----------
    one, other : array_like, shape (n_patients,)
        Whether, or how often, each patient was solved by each method. With counts it is the sign
        test: repeats of a patient are no further patients.

    Returns
    -------
    better, worse : int
        Patients whom the first solved more often, and less often.
    p : float
        Probability of a difference at least as large if both were equally good.
    """
    first, second = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    better, worse = int((first > second).sum()), int((first < second).sum())
    n = better + worse
    return better, worse, float(binomtest(better, n, 0.5).pvalue) if n else 1.0


def bootstrap(one: ArrayLike, other: ArrayLike, seed: int = 0) -> tuple[float, float, float]:
    """Mean difference of two methods on the same patients, with its percentile interval.

    Parameters
    ----------
    one, other : array_like, shape (n_patients,)
        Such as forward runs of each patient; of repeats their mean.
    seed : int
        Of the `N_RESAMPLES` resamples of the patients.

    Returns
    -------
    mean, low, high : float
        Of the first minus the second, at `LEVEL`.
    """
    difference = np.asarray(one, dtype=float) - np.asarray(other, dtype=float)
    n = len(difference)
    drawn = stream("bootstrap", seed).integers(n, size=(N_RESAMPLES, n))
    tails = (0.5 - LEVEL / 2.0, 0.5 + LEVEL / 2.0)
    low, high = np.quantile(difference[drawn].mean(axis=1), tails)
    return float(difference.mean()), float(low), float(high)
