"""Success, runs and restarts of many personalisations: the numbers that figures and tables show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MEASURES = ("success", "runs_all", "runs_solved", "direct", "direct_of_solved")


def summarize(personalizations: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Sum up personalisations that share some keys.

    Parameters
    ----------
    personalizations : DataFrame
    by : sequence of str
        Columns to group by; an absent value (of a method that has no such key) is a group.

    Returns
    -------
    DataFrame
        The keys, ``n``; ``success`` [%]; ``runs_all`` and ``runs_solved``, mean forward runs
        over all and over the solved; ``direct``, share of all [%] that was solved without a
        restart, and ``direct_of_solved``, the same share of the solved.
    """
    solved = personalizations["solved"].astype(bool)
    runs = personalizations["n_runs"].astype(float)
    frame = personalizations[list(by)].assign(
        solved=100.0 * solved,
        runs_all=runs,
        runs_solved=runs.where(solved),
        direct=100.0 * (solved & (personalizations["n_restarts"] == 0)),
    )
    groups = frame.groupby(list(by), dropna=False, sort=True)
    table = groups.agg(
        n=("solved", "size"),
        success=("solved", "mean"),
        runs_all=("runs_all", "mean"),
        runs_solved=("runs_solved", "mean"),
        direct=("direct", "mean"),
    ).reset_index()
    table["direct_of_solved"] = 100.0 * (table["direct"] / table["success"].replace(0.0, np.nan))
    return table


def training_runs(personalizations: pd.DataFrame) -> str:
    """Forward runs that a method learned from, for each patient on average.

    Returns
    -------
    str
        Empty of methods that learn nothing, and where earlier runs did not store it.
    """
    if "n_training_runs" not in personalizations:
        return ""
    known = personalizations["n_training_runs"].dropna()
    return f"{known.astype(float).mean():,.0f}" if len(known) else ""


def over_repeats(summary: pd.DataFrame, by: Sequence[str], measure: str) -> pd.DataFrame:
    """Mean and standard deviation of a measure over the repeats.

    Parameters
    ----------
    summary : DataFrame
        From `summarize`, one row per key and repeat.
    by : sequence of str
        Keys to keep.
    measure : str
        One of `MEASURES`.

    Returns
    -------
    DataFrame
        The keys, ``mean``, ``deviation`` (0 for one repeat) and ``repeats``.
    """
    table = (
        summary.groupby(list(by), dropna=False, sort=True)[measure]
        .agg(mean="mean", deviation="std", repeats="size")
        .reset_index()
    )
    return table.fillna({"deviation": 0.0})


def deciles(values: FloatArray, *, best: str) -> FloatArray:
    """Split sorted results into ten shades of equal share.

    Parameters
    ----------
    values : ndarray, shape (n,)
        One result per start.
    best : {"highest", "lowest"}

    Returns
    -------
    ndarray, shape (10, 2)
        Lower and upper end of each tenth, the best tenth first.
    """
    edges = np.quantile(np.asarray(values, dtype=float), np.linspace(0.0, 1.0, 11))
    bands = np.stack([edges[:-1], edges[1:]], axis=1)
    return bands[::-1] if best == "highest" else bands


def setups_of(names: Iterable[str]) -> list[str]:
    """Setups in the order of the numbers in their names: 2p before 12p, and names alone last."""

    def key(name: str) -> tuple[bool, list[int], str]:
        numbers = [int(digits) for digits in re.findall(r"\d+", name)]
        return not numbers, numbers, name

    return sorted(set(names), key=key)


def order_of(names: Sequence[str]) -> list[str]:
    """Names in the order in which they first occur."""
    return list(dict.fromkeys(names))
