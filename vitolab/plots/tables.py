"""Tables of the convergence study: what was found beside what the paper reports (section 3.3.4)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.methods import PAPER
from vitolab.plots import paper
from vitolab.plots.style import METHOD_COLORS
from vitolab.plots.summary import order_of, over_repeats, summarize

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
    summary = summarize(rows, ["setup", "n_samples", "repeat"])
    means = over_repeats(summary, ["setup", "n_samples"], "success")
    table = []
    for setup in order_of(means["setup"].tolist()):
        own = means[means["setup"] == setup]
        sizes, success = own["n_samples"].to_numpy(float), own["mean"].to_numpy(float)
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
                f"samples for {target:g} %": words,
                f"paper: for {target:g} %": paper.SAMPLES_FOR.get(target, {}).get(setup, ""),
                "plateau from": level,
                "paper: plateau from": f"{known:,}" if known else "",
                "sizes tested": ", ".join(f"{size:,.0f}" for size in sizes),
                "patients": "synthetic",
            }
        )
    return pd.DataFrame(table)


def convergence_table(personalizations: pd.DataFrame) -> pd.DataFrame:
    """Every setup, sample size and method, beside the paper's number where it gives one.

    Parameters
    ----------
    personalizations : DataFrame

    Returns
    -------
    DataFrame
        Success, mean runs over all and over the solved, share of the solved that needed no
        restart. For reference methods these are means over the random starts, and the columns
        ``best start`` tell the best of them, as the paper does.
    """
    keys = ["setup", "n_samples", "method"]
    summary = summarize(personalizations, [*keys, "repeat", "start"])
    sums = summarize(personalizations, keys)
    methods = order_of([*METHOD_COLORS, *personalizations["method"]])
    rank = {name: i for i, name in enumerate(methods)}
    sums = sums.assign(rank=sums["method"].map(rank)).sort_values(
        ["setup", "rank", "n_samples"], na_position="last"
    )
    table = []
    for row in sums.to_dict("records"):
        setup, method, samples = row["setup"], row["method"], row["n_samples"]
        learned = not pd.isna(samples)
        same = summary[(summary["setup"] == setup) & (summary["method"] == method)]
        if learned:
            same = same[same["n_samples"] == samples]
        table.append(
            {
                "setup": setup,
                "method": method,
                "samples per patient": f"{samples:,}" if learned else "",
                "repeats or starts": len(same),
                "success [%]": round(row["success"], 1),
                "runs, all": round(row["runs_all"], 1),
                "runs, solved": round(row["runs_solved"], 1),
                "solved without restart [% of solved]": (
                    f"{row['direct_of_solved']:.1f}" if learned and row["success"] else ""
                ),
                "best start, success [%]": "" if learned else f"{same['success'].max():.1f}",
                "best start, runs, all": "" if learned else f"{same['runs_all'].min():.1f}",
                "paper": _paper_says(setup, method, samples if learned else 0),
                "patients": "synthetic",
            }
        )
    return pd.DataFrame(table)


def _paper_says(setup: str, method: str, samples: int) -> str:
    """The paper's number for one row."""
    if setup == "2p" and method == PAPER and samples >= paper.RUNS_2P_FROM:
        return f"{paper.RUNS_2P:.1f} runs"
    if setup == "2p" and method == paper.SIMPLEX:
        return f"{paper.RUNS_2P_SIMPLEX} runs, best start"
    if setup in paper.EP_SETUPS and method == PAPER and samples in paper.EP_RUNS:
        return f"{paper.EP_RUNS[samples]} runs"
    if setup in paper.EP_SETUPS and not samples and method in paper.EP_METHODS:
        known = paper.EP_METHODS[method]
        return f"{known.success:g} %, {known.runs} runs, best start"
    return ""


def reference_table(
    personalizations: pd.DataFrame, *, reference: str = "nelder-mead", claims: bool = True
) -> pd.DataFrame:
    """Vito with most samples against a reference method, beside the paper's factors.

    Parameters
    ----------
    personalizations : DataFrame
    reference : str
        The paper's is the simplex method.
    claims : bool
        Whether the paper's factors stand beside; they are about the simplex method.

    Returns
    -------
    DataFrame
        Per setup: mean runs and success of Vito at its largest size, of the mean and of the
        best start of the reference (fewest runs, highest success, each on its own), the factor
        in runs against the best start, and the difference in success in points.
    """
    table = []
    starts = summarize(
        personalizations[personalizations["method"] == reference], ["setup", "start"]
    )
    for setup in order_of(personalizations["setup"].tolist()):
        own = starts[starts["setup"] == setup]
        vito = personalizations[
            (personalizations["setup"] == setup) & (personalizations["method"] == PAPER)
        ]
        if own.empty or vito.empty:
            continue
        largest = int(vito["n_samples"].max())
        best = summarize(vito[vito["n_samples"] == largest], ["setup"]).iloc[0]
        gain = paper.SUCCESS_GAIN.get(setup)
        faster = paper.SPEED_UP.get(setup)
        equal = "equal or better" if setup in paper.SPEED_UP else ""
        table.append(
            {
                "setup": setup,
                "samples per patient": f"{largest:,}",
                "Vito, runs": round(best["runs_all"], 1),
                f"{reference}, runs, mean / best start": (
                    f"{own['runs_all'].mean():.1f} / {own['runs_all'].min():.1f}"
                ),
                "fewer runs than best start, factor": round(
                    own["runs_all"].min() / best["runs_all"], 2
                ),
                "paper: factor": f"≥ {faster:g}" if faster and setup != "2p" else f"{faster or ''}",
                "Vito, success [%]": round(best["success"], 1),
                f"{reference}, success [%], mean / best start": (
                    f"{own['success'].mean():.1f} / {own['success'].max():.1f}"
                ),
                "more success than mean / best start, points": (
                    f"{best['success'] - own['success'].mean():+.1f} / "
                    f"{best['success'] - own['success'].max():+.1f}"
                ),
                "paper: points": f"up to +{gain:g}" if gain else equal,
                "patients": "synthetic",
            }
        )
    frame = pd.DataFrame(table)
    return frame if claims else frame.filter(regex="^(?!paper)")


def solvable_table(personalizations: pd.DataFrame) -> pd.DataFrame:
    """Patients that some method of the run solved, from any start and with any training.

    Parameters
    ----------
    personalizations : DataFrame

    Returns
    -------
    DataFrame
        Per setup: patients, how many were solved at all, and who was not. A lower bound of what
        can be solved: a patient without a solution here may have one.
    """
    table = []
    for setup in order_of(personalizations["setup"].tolist()):
        own = personalizations[personalizations["setup"] == setup]
        everyone = set(own["patient"])
        solved = set(own.loc[own["solved"], "patient"])
        table.append(
            {
                "setup": setup,
                "patients": f"{len(everyone)}, synthetic",
                "solved by some method": len(solved),
                "never solved": ", ".join(sorted(everyone - solved)),
            }
        )
    return pd.DataFrame(table)


def weighting_table(personalizations: pd.DataFrame) -> pd.DataFrame:
    """The simplex with the paper's normalised misfit against plain squares.

    Parameters
    ----------
    personalizations : DataFrame
        Methods ``nelder-mead`` and ``nelder-mead-unweighted``.

    Returns
    -------
    DataFrame
        Per setup: success and mean runs of both; how much faster and how much more successful
        the normalised one is, beside the paper's upper figures.
    """
    table = []
    sums = summarize(personalizations, ["setup", "method"]).to_dict("records")
    known = {(row["setup"], row["method"]): row for row in sums}
    for setup in order_of(personalizations["setup"].tolist()):
        normalised = known.get((setup, paper.SIMPLEX))
        plain = known.get((setup, paper.SIMPLEX_PLAIN))
        if normalised is None or plain is None:
            continue
        table.append(
            {
                "setup": setup,
                "success, normalised [%]": round(normalised["success"], 1),
                "success, plain [%]": round(plain["success"], 1),
                "more success, points": round(normalised["success"] - plain["success"], 1),
                "paper: points": f"up to +{paper.WEIGHTING_SUCCESS:g}",
                "runs, normalised": round(normalised["runs_all"], 1),
                "runs, plain": round(plain["runs_all"], 1),
                "faster [%]": round(100 * (1 - normalised["runs_all"] / plain["runs_all"]), 1),
                "paper: faster [%]": f"up to {paper.WEIGHTING_FASTER:g}",
                "patients": "synthetic",
            }
        )
    return pd.DataFrame(table)
