"""Runs of the kernel, exact or looked up in a table over the two ratios of speeds.

All times scale with the inverse of a common factor of the speeds, so that one table of runs at a
myocardial speed of `REFERENCE` answers for every speed of a heart.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.interpolate import RectBivariateSpline

from vitolab.files import digest, source_version
from vitolab.kernels import activation as kernel
from vitolab.models.electrophysiology.cache import cached
from vitolab.models.electrophysiology.description import Description
from vitolab.models.electrophysiology.hearts import Heart, prepared
from vitolab.models.electrophysiology.leadfield import LEADS
from vitolab.problem import FloatArray

REFERENCE = 1000.0  # mm/s
N_RATIOS = 25  # of the table, per axis
RATIOS = (500 / 1000, 5000 / 200)  # lowest and highest ratio of speeds in the domain
LEAD_I, LEAD_AVF = LEADS.index("I"), LEADS.index("aVF")


def arguments(ready: Heart) -> tuple[Any, Any, Any, Any, Any, Any]:
    """What the kernel needs to know of a heart before the speeds."""
    graph, roots = ready.graph, ready.anatomy.roots
    times = np.zeros(len(roots), dtype=np.float32)
    return graph.start, graph.neighbour, graph.length, graph.speed_class, roots, times


def run(x: FloatArray, ready: Heart) -> FloatArray:
    """Run the kernel.

    Parameters
    ----------
    x : ndarray, shape (n, 3)
        Speeds, mm/s.
    ready : Heart

    Returns
    -------
    ndarray, shape (n, len(OUTPUTS))
        See `vitolab.kernels.activation.simulate`.
    """
    leads = ready.weights[LEAD_I], ready.weights[LEAD_AVF]
    found: FloatArray = kernel.simulate(*arguments(ready), ready.volume, *leads, x)
    return found


def looked_up(x: FloatArray, description: Description, lead_field: str) -> FloatArray:
    """Answers of the table in place of the kernel's.

    Parameters
    ----------
    x : ndarray, shape (n, 3)
        Speeds, mm/s; rows whose ratios lie beyond the table are run.
    description : Description
        Of the heart, which is not loaded if its table is in the cache.
    lead_field : {"bem", "infinite"}

    Returns
    -------
    ndarray, shape (n, len(OUTPUTS))
    """
    ratio = np.log(x[:, 1:] / x[:, :1])
    splines = table(description, lead_field)
    found = np.stack([spline.ev(ratio[:, 0], ratio[:, 1]) for spline in splines], axis=1)
    times = [i for i, name in enumerate(kernel.OUTPUTS) if name != "unreached"]
    found[:, times] *= REFERENCE / x[:, :1]
    outside = (ratio < np.log(RATIOS[0]) - 1e-9) | (ratio > np.log(RATIOS[1]) + 1e-9)
    rows = outside.any(axis=1)
    if rows.any():
        found[rows] = run(x[rows], prepared(description, lead_field))
    return found


@lru_cache(maxsize=256)
def table(description: Description, lead_field: str) -> tuple[RectBivariateSpline, ...]:
    """Splines of the kernel's answers over both log ratios, at a myocardial speed of `REFERENCE`.

    Parameters
    ----------
    description : Description
    lead_field : {"bem", "infinite"}

    Returns
    -------
    tuple of RectBivariateSpline, length len(OUTPUTS)
    """
    axis = np.linspace(np.log(RATIOS[0]), np.log(RATIOS[1]), N_RATIOS)
    lv, rv = (np.exp(values).ravel() for values in np.meshgrid(axis, axis, indexing="ij"))
    speeds = REFERENCE * np.stack([np.ones_like(lv), lv, rv], axis=1)
    name = digest(description.key, lead_field, source_version(kernel.__file__), REFERENCE, axis)
    values = cached(name, lambda: {"table": run(speeds, prepared(description, lead_field))})
    grids = values["table"].reshape(N_RATIOS, N_RATIOS, -1)
    return tuple(RectBivariateSpline(axis, axis, grids[..., i]) for i in range(grids.shape[-1]))
