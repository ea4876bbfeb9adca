"""Samples that an agent needs, for a success rate and for the plateau (section 3.3.4)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.intervals import heading, worded
from vitolab.methods import PAPER
from vitolab.plots import paper
from vitolab.plots.summary import ends_of, order_of, summarize

FloatArray = NDArray[np.float64]

TARGET = 80.0
# The plateau begins at the first size whose success is this close to the best (points), or
# one patient away from it where that is more.
PLATEAU_WITHIN = 2.0
# Fewer sizes show a slope at most.
MIN_SIZES = 3


def first_reaching(sizes: FloatArray, success: FloatArray, target: float = TARGET) -> float:
    """Size at which success first reaches a target, interpolated on the logarithm of the size.

    Parameters
    ----------
    sizes : ndarray, shape (n,), rising
    success : ndarray, shape (n,) [%]
    target : float
        In %.

    Returns
    -------
    float
        The first size if it is reached there, NaN if it is never reached.
    """
    reached = np.flatnonzero(success >= target)
    if not reached.size:
        return float("nan")
    i = int(reached[0])
    if i == 0:
        return float(sizes[0])
    share = (target - success[i - 1]) / (success[i] - success[i - 1])
    logs = np.log(sizes[i - 1 : i + 1])
    return float(np.exp(logs[0] + share * (logs[1] - logs[0])))


def plateau(sizes: FloatArray, success: FloatArray, within: float = PLATEAU_WITHIN) -> float:
    """First size whose success is within some points of the best.

    Parameters
    ----------
    sizes : ndarray, shape (n,), rising
    success : ndarray, shape (n,) [%]
    within : float
        Points.

    Returns
    -------
    float
    """
    return float(sizes[np.flatnonzero(success >= success.max() - within)[0]])


def samples_needed(
    personalizations: pd.DataFrame, *, method: str = PAPER, target: float = TARGET
) -> pd.DataFrame:
    """Samples per patient for a success rate and for the plateau, beside the paper's.

    Parameters
    ----------
    personalizations : DataFrame
    method : str
    target : float
        Success rate, %.

    Returns
    -------
    DataFrame
        One row per setup. A target reached at the smallest size is given as ``≤``; a plateau
        that begins at the largest size may begin later and is given as ``≥``; fewer than three
        sizes tell none.
    """
    rows = personalizations[personalizations["method"] == method]
    means = summarize(rows, ["setup", "n_samples"], intervals=["success"])
    table = []
    for setup in order_of(means["setup"].tolist()):
        own = means[means["setup"] == setup]
        sizes, success = own["n_samples"].to_numpy(float), own["success"].to_numpy(float)
        best = own.iloc[int(success.argmax())].to_dict()
        patients = rows.loc[rows["setup"] == setup, "patient"].nunique()
        within = max(PLATEAU_WITHIN, 100.0 / patients + 1e-9)
        needed, begins = first_reaching(sizes, success, target), plateau(sizes, success, within)
        if len(sizes) < MIN_SIZES:
            level = f"not decided by {len(sizes)} sizes"
        else:
            level = f"{'≥ ' if begins == sizes[-1] else ''}{begins:,.0f}"
        if np.isnan(needed):
            words = f"not reached up to {sizes[-1]:,.0f}"
        else:
            words = f"{'≤ ' if needed == sizes[0] else ''}{needed:,.0f}"
        known = paper.PLATEAU.get(setup)
        table.append(
            {
                "setup": setup,
                "best success [%]": round(success.max(), 1),
                heading("best success"): worded(ends_of(best, "success")),
                f"samples for {target:g} %": words,
                f"paper: for {target:g} %": paper.SAMPLES_FOR.get(target, {}).get(setup, ""),
                "plateau from": level,
                "paper: plateau from": f"{known:,}" if known else "",
                "sizes tested": ", ".join(f"{size:,.0f}" for size in sizes),
                "patients": "synthetic",
            }
        )
    return pd.DataFrame(table)
