"""Judges of the paper's claims: each makes evidence of the personalisations of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from vitolab.methods import PAPER

if TYPE_CHECKING:
    import pandas as pd

NEXT_TO_NOTHING = 10.0  # points: what 75 patients can tell apart at best

Verdict = Literal["holds", "does not hold", "not decided", "not run"]


class Evidence(NamedTuple):
    """What a published run says about a claim.

    Attributes
    ----------
    verdict : {"holds", "does not hold", "not decided", "not run"}
    found : str
        The quantity with its interval, the training, and how many patients and repeats.
    """

    verdict: Verdict
    found: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that a study can contradict.

    Attributes
    ----------
    section : str
        Of the paper.
    words : str
    study : str
        Whose published run decides.
    judge : callable
        Gives the evidence from the personalisations; raises `KeyError` where the run lacks what it
        takes.
    """

    section: str
    words: str
    study: str
    judge: Callable[[pd.DataFrame], Evidence]


def above(ends: tuple[float, float], limit: float) -> Verdict:
    """Verdict on a quantity that is claimed to be at least a limit, by its interval."""
    low, high = ends
    if math.isnan(low) or math.isnan(high):
        return "not decided"
    if low >= limit:
        return "holds"
    return "does not hold" if high < limit else "not decided"


def more(ends: tuple[float, float]) -> Verdict:
    """Verdict on a quantity that is claimed to be above nothing, by its interval."""
    low, high = ends
    if low > 0.0:
        return "holds"
    return "does not hold" if high < 0.0 else "not decided"


def equal(ends: tuple[float, float], within: float) -> Verdict:
    """Verdict on a difference that is claimed to be next to nothing, by its interval.

    Parameters
    ----------
    ends : (float, float)
    within : float
        Largest difference that is next to nothing.
    """
    low, high = ends
    if -within <= low and high <= within:
        return "holds"
    return "does not hold" if low > within or high < -within else "not decided"


def _largest(rows: pd.DataFrame, setup: str, method: str) -> pd.DataFrame:
    """Personalisations of a method in a setup, of an agent those with the largest training."""
    own = rows[(rows["setup"] == setup) & (rows["method"] == method)]
    if own.empty:
        raise KeyError(f"{setup}, {method}")
    sizes = own["n_samples"]
    return own if sizes.isna().all() else own[sizes == sizes.max()]


def _sized(rows: pd.DataFrame, n_samples: int, setup: str) -> pd.DataFrame:
    """Personalisations of the paper's agent in a setup with so many samples per patient."""
    own = rows[(rows["setup"] == setup) & (rows["method"] == PAPER)]
    own = own[own["n_samples"] == n_samples]
    if own.empty:
        raise KeyError(f"{setup}, {n_samples} samples")
    return own


def _size(rows: pd.DataFrame) -> str:
    """Training, patients and repeats of some personalisations."""
    parts = []
    if rows["n_samples"].notna().any():
        parts.append(f"{int(rows['n_samples'].max()):,} samples")
    n = rows["patient"].nunique()
    parts.append(f"{n} patients")
    repeats = rows["repeat"].nunique()
    parts.append(f"{repeats} repeat{'s' if repeats != 1 else ''}" if repeats else "")
    return ", ".join(filter(None, parts))


def _share(rows: pd.DataFrame, crossed: bool = False) -> tuple[float, tuple[float, float]]:
    """Share that was solved [%] and its interval."""
    from vitolab.intervals import share_interval

    solved = rows["solved"].astype(float)
    return 100.0 * float(solved.mean()), share_interval(rows, solved, crossed=crossed)


def _told(value: float, ends: tuple[float, float], unit: str = " %", digits: int = 0) -> str:
    """A value with its interval."""
    low, high = ends
    return f"{value:.{digits}f}{unit} ({low:.{digits}f} to {high:.{digits}f})"


def share_of_starts(setup: str, least: float) -> Callable[[pd.DataFrame], Evidence]:
    """At least a share of all starts and functions is solved."""

    def judge(rows: pd.DataFrame) -> Evidence:
        own = _largest(rows, setup, PAPER)
        crossed = own["repeat"].nunique() > 1
        share, ends = _share(own, crossed=crossed)
        # at a limit of 100 % an interval has no other side
        verdict = above(ends, least) if least < 100.0 else _all(share, ends)
        words = _size(own).replace("patients", "functions")
        return Evidence(verdict, f"{_told(share, ends, digits=1)}; {words}")

    return judge


def _all(share: float, ends: tuple[float, float]) -> Verdict:
    """Verdict on a claim that nobody fails."""
    if share == 100.0:
        return "holds"
    return "does not hold" if ends[1] < 99.5 else "not decided"


def _paired(one: pd.DataFrame, other: pd.DataFrame) -> Any:
    """Two methods on the patients that they share."""
    from vitolab.plots.paired import paired

    pair = paired(one, other)
    if pair is None:
        raise KeyError("no patient was personalised by both")
    return pair


def success_beside(
    setup: str,
    other: str,
    verdict: Callable[[tuple[float, float]], Verdict],
    best: bool = False,
    n_samples: int | None = None,
) -> Callable[[pd.DataFrame], Evidence]:
    """Difference in success of the paper's agent and of another method, in points."""

    def judge(rows: pd.DataFrame) -> Evidence:
        from vitolab.plots.summary import best_start

        own, rival = _largest(rows, setup, PAPER), _largest(rows, setup, other)
        one = own if n_samples is None else _sized(rows, n_samples, setup)
        rival = best_start(rival) if best else rival
        pair = _paired(one, rival)
        difference, *ends = pair.success
        success = (_share(one)[0], _share(rival)[0])
        told = f"{success[0]:.0f} against {success[1]:.0f} %, difference "
        told += _told(difference, (ends[0], ends[1]), " points")
        return Evidence(verdict((ends[0], ends[1])), f"{told}; {_size(one)}")

    return judge


def fewer_runs(
    setup: str, other: str, factor: float, n_samples: int | None = None
) -> Callable[[pd.DataFrame], Evidence]:
    """Forward runs of the best start of another method over those of the paper's agent."""

    def judge(rows: pd.DataFrame) -> Evidence:
        from vitolab.plots.summary import best_start

        own = _largest(rows, setup, PAPER)
        one = own if n_samples is None else _sized(rows, n_samples, setup)
        pair = _paired(one, best_start(_largest(rows, setup, other)))
        ratio, *ends = pair.ratio
        told = f"{pair.runs[0]:.1f} against {pair.runs[1]:.1f} runs, factor "
        told += _told(ratio, (ends[0], ends[1]), "", 1)
        return Evidence(above((ends[0], ends[1]), factor), f"{told}; {_size(one)}")

    return judge


def solved_with(setup: str, n_samples: int, share: float) -> Callable[[pd.DataFrame], Evidence]:
    """With at most so many samples a share of the patients is solved."""

    def judge(rows: pd.DataFrame) -> Evidence:
        own = rows[(rows["setup"] == setup) & (rows["method"] == PAPER)]
        sizes = own["n_samples"][own["n_samples"] <= n_samples]
        if sizes.empty:
            raise KeyError(f"{setup}, {n_samples} samples or fewer")
        one = _sized(rows, int(sizes.max()), setup)
        found, ends = _share(one)
        return Evidence(above(ends, share), f"{_told(found, ends)}; {_size(one)}")

    return judge


def varies_with_start(setup: str, method: str, least: float) -> Callable[[pd.DataFrame], Evidence]:
    """Success of a method changes with its random start by at least some points."""

    def judge(rows: pd.DataFrame) -> Evidence:
        own = _largest(rows, setup, method)
        by_start = 100.0 * own.groupby("start")["solved"].mean()
        span = float(by_start.max() - by_start.min())
        told = f"{by_start.min():.0f} to {by_start.max():.0f} % over {len(by_start)} starts"
        verdict: Verdict = "holds" if span >= least else "does not hold"
        return Evidence(verdict, f"{told}; {_size(own)}")

    return judge


def never_solved(setup: str, around: float) -> Callable[[pd.DataFrame], Evidence]:
    """About a share of the patients is solved by nobody."""

    def judge(rows: pd.DataFrame) -> Evidence:
        from vitolab.intervals import wilson

        by_patient = rows[rows["setup"] == setup].groupby("patient")["solved"].max()
        if by_patient.empty:
            raise KeyError(setup)
        share = 1.0 - float(by_patient.mean())
        low, high = wilson(share, len(by_patient))
        ends = (100.0 * low, 100.0 * high)
        verdict = equal((ends[0] - around, ends[1] - around), NEXT_TO_NOTHING)
        return Evidence(verdict, f"{_told(100.0 * share, ends)}; {len(by_patient)} patients")

    return judge


def more_without_restart(setup: str) -> Callable[[pd.DataFrame], Evidence]:
    """More patients need no restart with the largest training than with the smallest."""

    def judge(rows: pd.DataFrame) -> Evidence:
        own = rows[(rows["setup"] == setup) & (rows["method"] == PAPER)]
        if own.empty:
            raise KeyError(f"{setup}, {PAPER}")
        first = own["solved"].astype(bool) & (own["n_restarts"] == 0)
        own = own.assign(solved=first)
        sizes = own["n_samples"].astype(int)
        small, large = own[sizes == sizes.min()], own[sizes == sizes.max()]
        pair = _paired(large, small)
        difference, *ends = pair.success
        told = f"{_share(small)[0]:.0f} to {_share(large)[0]:.0f} %, difference "
        told += _told(difference, (ends[0], ends[1]), " points")
        words = f"{sizes.min():,} to {_size(large)}"
        return Evidence(more((ends[0], ends[1])), f"{told}; {words}")

    return judge


def first_guess(objective: str, unit: str, n_samples: int) -> Callable[[pd.DataFrame], Evidence]:
    """The first guess is nearer to a measurement than the best fixed start."""

    def judge(rows: pd.DataFrame) -> Evidence:
        from vitolab.plots.paired import bootstrap

        errors = rows.assign(error=rows[f"misfit:{objective}"].astype(float).abs())
        fixed = errors[errors["method"] == "fixed"].groupby("patient")["error"].mean()
        guess = errors[(errors["method"] == "vito-initial") & (errors["n_samples"] == n_samples)]
        known = guess.groupby("patient")["error"].mean()
        both = known.to_frame("guess").join(fixed.rename("fixed"), how="inner").dropna()
        if both.empty:
            raise KeyError(f"first guess with {n_samples} samples")
        gain, *ends = bootstrap(both["fixed"], both["guess"])
        told = f"{both['guess'].mean():.1f} against {both['fixed'].mean():.1f} {unit}, gain "
        told += _told(gain, (ends[0], ends[1]), f" {unit}", 1)
        return Evidence(more((ends[0], ends[1])), f"{told}; {_size(guess)}")

    return judge


def weighted(setup: str) -> Callable[[pd.DataFrame], Evidence]:
    """The simplex solves more with the misfit over its tolerances than with the plain one."""

    def judge(rows: pd.DataFrame) -> Evidence:
        one = _largest(rows, setup, "nelder-mead")
        other = _largest(rows, setup, "nelder-mead-unweighted")
        difference, *ends = _paired(one, other).success
        told = f"difference {_told(difference, (ends[0], ends[1]), ' points')}"
        return Evidence(more((ends[0], ends[1])), f"{told}; {_size(one)}")

    return judge


def wide_range(setup: str, least: int, most: int) -> Callable[[pd.DataFrame], Evidence]:
    """Success hardly depends on the number of states within a range."""

    def judge(rows: pd.DataFrame) -> Evidence:
        own = rows[(rows["setup"] == setup) & (rows["method"] == PAPER)]
        share = 100.0 * own.groupby("n_states")["solved"].mean()
        inside = share[(share.index >= least) & (share.index <= most)]
        if len(inside) < 2:
            raise KeyError(f"two numbers of states from {least} to {most}")
        worst = own[own["n_states"] == inside.idxmin()]
        best = own[own["n_states"] == share.idxmax()]
        difference, *ends = _paired(worst, best).success
        told = f"worst {inside.min():.0f} %, best of all {share.max():.0f} %, difference "
        told += _told(difference, (ends[0], ends[1]), " points")
        return Evidence(equal((ends[0], ends[1]), NEXT_TO_NOTHING), f"{told}; {_size(own)}")

    return judge
