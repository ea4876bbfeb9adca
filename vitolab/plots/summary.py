"""Success, runs and restarts of many personalisations: the numbers that figures and tables show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.intervals import Ends, mean_interval, share_interval
from vitolab.methods import METHODS

FloatArray = NDArray[np.float64]

MEASURES = ("success", "runs_all", "runs_solved", "direct", "direct_of_solved")


def charged_runs(personalizations: pd.DataFrame) -> pd.Series[float]:
    """Forward runs by one rule for all methods: not solved counts as the whole budget.

    An optimiser that stalls early, and a method that could not act, would otherwise look cheap.
    One without a limit of its own may have made more: these count.

    Parameters
    ----------
    personalizations : DataFrame
        The budget is the column ``max_runs``. Earlier runs did not store it: there it is the most
        that the method made in the setup before it was stopped, or any other, and the runs that
        were made where none was stopped.

    Returns
    -------
    Series
    """
    made = personalizations["n_runs"].astype(float)
    solved = personalizations["solved"].astype(bool)
    budget = _budgets(personalizations)
    return made.where(solved | (made >= budget) | budget.isna(), budget)


def _budgets(rows: pd.DataFrame) -> pd.Series[float]:
    """Forward runs that each personalisation was allowed; NaN where that is not known."""
    known = pd.Series(np.nan, index=rows.index)
    if "max_runs" in rows:
        known = rows["max_runs"].astype(float)
    if known.notna().all() or "stop_reason" not in rows:
        return known
    unlimited = [name for name, method in METHODS.items() if not method.keeps_to_budget]
    ended = (rows["stop_reason"] == "budget") & ~rows["method"].isin(unlimited)
    most = rows["n_runs"].astype(float).where(ended)
    for keys in (["setup", "method"], ["setup"]):
        known = known.fillna(most.groupby([rows[key] for key in keys]).transform("max"))
    return known


def summarize(
    personalizations: pd.DataFrame,
    by: Sequence[str],
    *,
    intervals: Sequence[str] = (),
    crossed: bool = False,
) -> pd.DataFrame:
    """Sum up personalisations that share some keys.

    Parameters
    ----------
    personalizations : DataFrame
    by : sequence of str
        Columns to group by; an absent value (of a method that has no such key) is a group.
    intervals : sequence of str
        Measures whose 95 % intervals over the patients are added, as ``<measure>_low`` and
        ``<measure>_high``; see `vitolab.intervals`.
    crossed : bool
        Whether these intervals are over the repeats, too.

    Returns
    -------
    DataFrame
        The keys, ``n``; ``success`` [%]; ``runs_all`` and ``runs_solved``, mean forward runs
        over all, see `charged_runs`, and over the solved; ``direct``, share of all [%] that was
        solved without a restart, and ``direct_of_solved``, the same share of the solved.
    """
    solved = personalizations["solved"].astype(bool)
    runs = charged_runs(personalizations)
    direct = (solved & (personalizations["n_restarts"] == 0)).astype(float)
    frame = personalizations[list(by)].assign(
        success=100.0 * solved,
        runs_all=runs,
        runs_solved=runs.where(solved),
        direct=100.0 * direct,
        direct_of_solved=(100.0 * direct).where(solved),
    )
    groups = frame.groupby(list(by), dropna=False, sort=True)
    table = groups.agg(
        n=("success", "size"), **{name: (name, "mean") for name in MEASURES}
    ).reset_index()
    if not intervals:
        return table
    place = groups.ngroup().to_numpy()
    for name in intervals:
        values = frame[name].to_numpy(float)
        ends = [
            _interval(name, personalizations[place == k], values[place == k], crossed)
            for k in range(len(table))
        ]
        table[f"{name}_low"] = [low for low, _ in ends]
        table[f"{name}_high"] = [high for _, high in ends]
    return table


def _interval(measure: str, rows: pd.DataFrame, values: FloatArray, crossed: bool) -> Ends:
    """Interval of one measure over some personalisations."""
    if measure.startswith("runs"):
        return mean_interval(rows, values, crossed=crossed)
    return share_interval(rows, values / 100.0, crossed=crossed)


def ends_of(row: Mapping[Any, Any] | pd.Series[Any], measure: str) -> Ends:
    """Interval of a measure in a row of `summarize`."""
    return float(row[f"{measure}_low"]), float(row[f"{measure}_high"])


def best_start(personalizations: pd.DataFrame) -> pd.DataFrame:
    """Personalisations from the best of the numbered starts: most solved, then fewest runs.

    Success and runs of a best start are those of one and the same start.
    """
    starts = summarize(personalizations, ["start"]).sort_values(
        ["success", "runs_all"], ascending=[False, True], kind="stable"
    )
    first, start = starts["start"].iloc[0], personalizations["start"]
    best: pd.DataFrame = personalizations[start.isna() if pd.isna(first) else start == first]
    return best


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
        The keys, ``mean``, ``deviation`` (NaN for one repeat: it has none) and ``repeats``.
    """
    return (
        summary.groupby(list(by), dropna=False, sort=True)[measure]
        .agg(mean="mean", deviation="std", repeats="size")
        .reset_index()
    )


def curve(personalizations: pd.DataFrame, by: Sequence[str], measure: str) -> pd.DataFrame:
    """A measure of one method against a size, as `vitolab.plots.style.series` draws it.

    Parameters
    ----------
    personalizations : DataFrame
    by : sequence of str
        Keys of the points.
    measure : str
        One of `MEASURES`.

    Returns
    -------
    DataFrame
        As of `over_repeats`, with ``low`` and ``high``: where some point has one repeat only, the
        95 % intervals over the patients; NaN otherwise.
    """
    summary = summarize(personalizations, [*by, "repeat"])
    means = over_repeats(summary, by, measure)
    if (means["repeats"] > 1).all():
        return means.assign(low=np.nan, high=np.nan)
    sums = summarize(personalizations, by, intervals=[measure])
    return means.assign(low=sums[f"{measure}_low"], high=sums[f"{measure}_high"])


def bands(personalizations: pd.DataFrame) -> str:
    """What the bands of `curve` are, for a caption."""
    n = personalizations["repeat"].dropna().nunique()
    if n > 1:
        return f"{n} repeats (bands: 0.5 and 1 standard deviation)"
    return "one repeat (band: 95 % interval over patients)"


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
