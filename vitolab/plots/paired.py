"""Two methods on the same patients: who solves more, who makes fewer runs, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from vitolab.intervals import heading, resampled_ratio, worded
from vitolab.methods import CONTINUOUS_AGENT, METHODS, PAPER
from vitolab.methods import label as method_label
from vitolab.plots.style import METHOD_COLORS
from vitolab.plots.summary import charged_runs, order_of, setups_of
from vitolab.store.tables import largest

#: Methods that others are compared with, where they took part.
AGENTS = (PAPER, CONTINUOUS_AGENT)


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
        Of the resamples of the patients, see `vitolab.intervals.resampled_ratio`.

    Returns
    -------
    mean, low, high : float
        Of the first minus the second.
    """
    difference = np.asarray(one, dtype=float) - np.asarray(other, dtype=float)
    ends = resampled_ratio(difference, np.ones(len(difference)), seed)
    return float(difference.mean()), *ends


@dataclass(frozen=True)
class Pair:
    """A method beside another one on the patients whom both personalised.

    Attributes
    ----------
    patients : int
    better, worse, p
        See `mcnemar`.
    success : (float, float, float)
        Success of the first minus that of the other, in points, with its interval.
    runs : (float, float)
        Mean forward runs of the first and of the other; not solved counts as the whole budget.
    difference : (float, float, float)
        Of the first minus the other, with its interval.
    ratio : (float, float, float)
        Of the other over the first, with its interval.
    """

    patients: int
    better: int
    worse: int
    p: float
    success: tuple[float, float, float]
    runs: tuple[float, float]
    difference: tuple[float, float, float]
    ratio: tuple[float, float, float]


def paired(one: pd.DataFrame, other: pd.DataFrame) -> Pair | None:
    """Compare two methods on the patients, and on the numbered starts, that they share.

    Parameters
    ----------
    one, other : DataFrame
        Personalisations of one setup. Of several repeats or starts of a patient means count.

    Returns
    -------
    Pair or None
        None if no patient is shared.
    """
    both = (one, other)
    if all("start" in rows and rows["start"].notna().all() for rows in both):
        starts = set(one["start"]) & set(other["start"])
        one, other = (rows[rows["start"].isin(starts)] for rows in both)
    means = [
        rows.assign(solved=rows["solved"].astype(float), runs=charged_runs(rows))
        .groupby("patient")[["solved", "runs"]]
        .mean()
        for rows in (one, other)
    ]
    # an unfinished run holds fewer repeats of one of them: shares are compared, not counts
    pair = (
        means[0]
        .merge(means[1], left_index=True, right_index=True, suffixes=("", " other"))
        .sort_index()
    )
    if pair.empty:
        return None
    better, worse, p = mcnemar(pair["solved"], pair["solved other"])
    first, second = float(pair["runs"].mean()), float(pair["runs other"].mean())
    return Pair(
        len(pair),
        better,
        worse,
        p,
        bootstrap(100.0 * pair["solved"], 100.0 * pair["solved other"]),
        (first, second),
        bootstrap(pair["runs"], pair["runs other"]),
        (
            second / first if first else float("nan"),
            *resampled_ratio(pair["runs other"], pair["runs"]),
        ),
    )


@dataclass(frozen=True)
class Comparison:
    """Names that belong to a pair.

    Attributes
    ----------
    setup, method, other : str
    pair : Pair
    """

    setup: str
    method: str
    other: str
    pair: Pair


def comparisons(
    personalizations: pd.DataFrame, methods: Sequence[str] = AGENTS
) -> list[Comparison]:
    """Compare methods with every other one, patient by patient.

    Parameters
    ----------
    personalizations : DataFrame
        Of each method the largest training counts; single runs at a start do not.
    methods : sequence of str
        Those that the others are compared with, where they took part.

    Returns
    -------
    list of Comparison
        One per setup, method and other method.
    """
    rows = largest(personalizations)
    known = order_of([*METHOD_COLORS, *rows["method"]])
    others = [name for name in known if not _is_a_start(name)]
    found = []
    for setup in setups_of(rows["setup"]):
        of_setup = rows[rows["setup"] == setup]
        by_method = {str(name): own for name, own in of_setup.groupby("method", sort=False)}
        for method in [name for name in methods if name in by_method]:
            for other in [name for name in others if name in by_method and name != method]:
                pair = paired(by_method[method], by_method[other])
                if pair is not None:
                    found.append(Comparison(setup, method, other, pair))
    return found


def comparison_table(found: Sequence[Comparison]) -> pd.DataFrame:
    """Numbers of `comparisons`, one row each."""
    table = []
    for each in found:
        pair = each.pair
        table.append(
            {
                "setup": each.setup,
                "method": method_label(each.method),
                "beside": method_label(each.other),
                "patients": pair.patients,
                "solved more often": pair.better,
                "less often": pair.worse,
                "p (McNemar)": float(f"{pair.p:.2g}"),
                "more success, points": round(pair.success[0], 1),
                heading("more success"): worded(pair.success[1:]),
                "runs, all": round(pair.runs[0], 1),
                "runs of the other": round(pair.runs[1], 1),
                "more runs": round(pair.difference[0], 1),
                heading("more runs"): worded(pair.difference[1:]),
                "runs of the other, times": round(pair.ratio[0], 2),
                heading("times"): worded(pair.ratio[1:], 2),
            }
        )
    return pd.DataFrame(table)


def _is_a_start(name: str) -> bool:
    """Whether a method is a single run at a start."""
    method = METHODS.get(name)
    return method is not None and method.training is None and method.build is None
