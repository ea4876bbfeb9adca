"""Tables of the convergence study: what was found beside what the paper reports (section 3.3.4)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vitolab.intervals import heading, share_interval, wilson, worded
from vitolab.methods import PAPER
from vitolab.plots import paper
from vitolab.plots.paired import paired
from vitolab.plots.style import METHOD_COLORS
from vitolab.plots.summary import best_start, ends_of, order_of, summarize

_TOLD = ("success", "runs_all", "runs_solved")  # measures with intervals


def convergence_table(personalizations: pd.DataFrame) -> pd.DataFrame:
    """Every setup, sample size and method, beside the paper's number where it gives one.

    Parameters
    ----------
    personalizations : DataFrame

    Returns
    -------
    DataFrame
        Success, mean runs over all (not solved counts as the whole budget) and over the solved,
        share of the solved that needed no restart; intervals over the patients. For reference
        methods these are means over the random starts, and the columns ``best start`` tell the
        best of them (most solved, then fewest runs), as the paper does.
    """
    keys = ["setup", "n_samples", "method"]
    sums = summarize(personalizations, keys, intervals=_TOLD)
    methods = order_of([*METHOD_COLORS, *personalizations["method"]])
    rank = {name: i for i, name in enumerate(methods)}
    sums = sums.assign(rank=sums["method"].map(rank)).sort_values(
        ["setup", "rank", "n_samples"], na_position="last"
    )
    table = []
    for row in sums.to_dict("records"):
        setup, method, samples = row["setup"], row["method"], row["n_samples"]
        learned = not pd.isna(samples)
        same = personalizations[
            (personalizations["setup"] == setup) & (personalizations["method"] == method)
        ]
        if learned:
            same = same[same["n_samples"] == samples]
        best = None if learned else summarize(best_start(same), ["setup"]).iloc[0]
        table.append(
            {
                "setup": setup,
                "method": method,
                "samples per patient": f"{samples:,}" if learned else "",
                "repeats or starts": same["repeat" if learned else "start"].nunique(),
                "success [%]": round(row["success"], 1),
                heading("success"): worded(ends_of(row, "success")),
                "runs, all": round(row["runs_all"], 1),
                heading("runs, all"): worded(ends_of(row, "runs_all")),
                "runs, solved": round(row["runs_solved"], 1),
                heading("runs, solved"): worded(ends_of(row, "runs_solved")),
                "solved without restart [% of solved]": (
                    f"{row['direct_of_solved']:.1f}" if learned and row["success"] else ""
                ),
                "best start, success [%]": "" if best is None else f"{best['success']:.1f}",
                "best start, runs, all": "" if best is None else f"{best['runs_all']:.1f}",
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
        best start of the reference (most solved, then fewest runs), the factor in runs against
        that start, patient by patient, and the difference in success in points.
    """
    table = []
    known = personalizations[personalizations["method"] == reference]
    for setup in order_of(personalizations["setup"].tolist()):
        own = known[known["setup"] == setup]
        vito = personalizations[
            (personalizations["setup"] == setup) & (personalizations["method"] == PAPER)
        ]
        if own.empty or vito.empty:
            continue
        largest = int(vito["n_samples"].max())
        vito = vito[vito["n_samples"] == largest]
        row = summarize(vito, ["setup"], intervals=_TOLD).iloc[0].to_dict()
        starts = summarize(own, ["start"])
        chosen = best_start(own)
        best = summarize(chosen, ["setup"]).iloc[0]
        pair = paired(vito, chosen)
        if pair is None:  # an unfinished run may hold nobody whom both personalised
            continue
        gain = paper.SUCCESS_GAIN.get(setup)
        faster = paper.SPEED_UP.get(setup)
        equal = "equal or better" if setup in paper.SPEED_UP else ""
        table.append(
            {
                "setup": setup,
                "samples per patient": f"{largest:,}",
                "Vito, runs": round(row["runs_all"], 1),
                heading("Vito, runs"): worded(ends_of(row, "runs_all")),
                f"{reference}, runs, mean / best start": (
                    f"{starts['runs_all'].mean():.1f} / {best['runs_all']:.1f}"
                ),
                "fewer runs than best start, factor": round(pair.ratio[0], 2),
                heading("factor"): worded(pair.ratio[1:], 2),
                "paper: factor": f"≥ {faster:g}" if faster and setup != "2p" else f"{faster or ''}",
                "Vito, success [%]": round(row["success"], 1),
                heading("Vito, success"): worded(ends_of(row, "success")),
                f"{reference}, success [%], mean / best start": (
                    f"{starts['success'].mean():.1f} / {best['success']:.1f}"
                ),
                "more success than mean / best start, points": (
                    f"{row['success'] - starts['success'].mean():+.1f} / "
                    f"{row['success'] - best['success']:+.1f}"
                ),
                "p (McNemar, best start)": float(f"{pair.p:.2g}"),
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
        Per setup: patients, how many were solved at all, with Wilson's interval, and who was not.
        A lower bound of what can be solved: a patient without a solution here may have one.
    """
    table = []
    for setup in order_of(personalizations["setup"].tolist()):
        own = personalizations[personalizations["setup"] == setup]
        everyone = set(own["patient"])
        solved = set(own.loc[own["solved"], "patient"])
        low, high = wilson(len(solved) / len(everyone), len(everyone))
        table.append(
            {
                "setup": setup,
                "patients": f"{len(everyone)}, synthetic",
                "solved by some method": len(solved),
                "of all [%]": round(100.0 * len(solved) / len(everyone), 1),
                heading("of all"): worded((100.0 * low, 100.0 * high)),
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
        the normalised one is, patient by patient, beside the paper's upper figures.
    """
    table = []
    for setup in order_of(personalizations["setup"].tolist()):
        own = personalizations[personalizations["setup"] == setup]
        names = (paper.SIMPLEX, paper.SIMPLEX_PLAIN)
        normalised, plain = (own[own["method"] == name] for name in names)
        pair = paired(normalised, plain) if len(normalised) and len(plain) else None
        if pair is None:
            continue
        shares = [100.0 * rows["solved"].mean() for rows in (normalised, plain)]
        ends = [
            worded(share_interval(rows, rows["solved"].astype(float)))
            for rows in (normalised, plain)
        ]
        with np.errstate(divide="ignore"):
            faster = 100.0 * (1.0 - 1.0 / np.array(pair.ratio))
        table.append(
            {
                "setup": setup,
                "success, normalised [%]": round(shares[0], 1),
                heading("success, normalised"): ends[0],
                "success, plain [%]": round(shares[1], 1),
                heading("success, plain"): ends[1],
                "more success, points": round(pair.success[0], 1),
                heading("points"): worded(pair.success[1:]),
                "p (McNemar)": float(f"{pair.p:.2g}"),
                "paper: points": f"up to +{paper.WEIGHTING_SUCCESS:g}",
                "runs, normalised": round(pair.runs[0], 1),
                "runs, plain": round(pair.runs[1], 1),
                "faster [%]": round(faster[0], 1),
                heading("faster"): worded((faster[1], faster[2])),
                "paper: faster [%]": f"up to {paper.WEIGHTING_FASTER:g}",
                "patients": "synthetic",
            }
        )
    return pd.DataFrame(table)
