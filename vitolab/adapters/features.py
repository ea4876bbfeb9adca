"""Features of a time series: one number of what a model computes over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from vitolab.problem import FloatArray


def _mean(t: FloatArray, v: FloatArray) -> float:
    """Mean over time, exact where v is linear between its points."""
    return float(np.trapezoid(v, t) / (t[-1] - t[0]))


FEATURES: Mapping[str, Callable[[FloatArray, FloatArray], float]] = MappingProxyType(
    {
        "initial": lambda t, v: float(v[0]),
        "final": lambda t, v: float(v[-1]),
        "minimum": lambda t, v: float(v.min()),
        "maximum": lambda t, v: float(v.max()),
        "mean": _mean,
        "time of maximum": lambda t, v: float(t[v.argmax()]) if np.isfinite(v).all() else np.nan,
    }
)


def feature(name: str, t: FloatArray, v: FloatArray) -> float:
    """One number of a time series.

    Parameters
    ----------
    name : str
        One of `FEATURES`. ``mean`` is over time, whatever the distance of the points;
        ``time of maximum`` is the first point where v is largest.
    t, v : ndarray, shape (n,)
        Increasing times, at least two, and values.

    Returns
    -------
    float
        NaN where a value that it depends on is NaN.

    Raises
    ------
    ValueError
        If there is no such feature.
    """
    if name not in FEATURES:
        raise ValueError(f"feature is {name!r}, expected one of {', '.join(FEATURES)}")
    return FEATURES[name](t, v)
