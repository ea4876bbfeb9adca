"""Tables of cohorts whose patients teach each other, one after the other."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vitolab.intervals import Ends, heading, mean_interval, resampled_ratio, share_interval, worded
from vitolab.methods import CONTINUOUS_AGENT
from vitolab.plots.paired import paired
from vitolab.plots.style import METHOD_COLORS
from vitolab.plots.summary import setups_of

#: What the name of a setup ends in, in the stored tables, whose patients a method may give up.
GIVES_UP = ", gives up"
#: Positions in the order up to which each group of patients reaches; whoever is left is the last.
GROUPS = (1, 5, 10, 20)
#: Patients at the beginning and at the end of an order that the table sums up.
N_ENDS = 10


def without_giving_up(personalizations: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Personalisations in which nobody was given up, and the others, with their setups' own names.

    Parameters
    ----------
    personalizations : DataFrame
        Setups of the others end in `GIVES_UP`.
    """
    ends = personalizations["setup"].str.endswith(GIVES_UP)
    others = personalizations[ends]
    own = others["setup"].str.removesuffix(GIVES_UP)
    return personalizations[~ends], others.assign(setup=own)


def position_table(personalizations: pd.DataFrame) -> pd.DataFrame:
    """Numbers of `position_curves`: for each group of positions a column, and its interval."""
    table = []
    for setup, rows in by_setup(personalizations):
        own = solvable_of(rows)
        last = int(own["position"].max())
        for name, groups in by_group(own).groupby("method", sort=False):
            row: dict[str, object] = {"setup": setup, "method": name}
            for each in groups.to_dict("records"):
                place = group_name(int(each["group"]), last)
                row[place] = round(each["mean"], 2)
                row[heading(place)] = worded((each["low"], each["high"]), 2)
            table.append(row)
    return pd.DataFrame(table)


def continuing_table(personalizations: pd.DataFrame, whose: str = "synthetic") -> pd.DataFrame:
    """Success and cost of each method of each setup, over the whole cohort and at its ends.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    whose : str
        What the patients are, as the table says.

    Returns
    -------
    DataFrame
        Forward runs are those that were made. Intervals are over the patients, of all orders
        together, see `vitolab.intervals`. Solvable are those whom some method of the run solved.
    """
    table = []
    for setup, rows in by_setup(personalizations):
        solvable = solvable_of(rows)
        for name in methods_of(rows):
            own = rows[rows["method"] == name]
            runs, n = by_position(own), own["patient"].nunique()
            can = solvable[solvable["method"] == name]
            solved = own["solved"].astype(float)
            low, high = share_interval(own, solved)
            table.append(
                {
                    "setup": setup,
                    "method": name,
                    "orders": runs.shape[1],
                    "solved [%]": round(100.0 * float(solved.mean()), 1),
                    "95 % from": round(low, 1),
                    "to": round(high, 1),
                    "runs, whole cohort": round(float(runs.sum().mean()), 1),
                    "lowest order": int(runs.sum().min()),
                    "highest order": int(runs.sum().max()),
                    "per solvable patient": round(float(can["n_runs"].mean()), 2),
                    heading("per solvable patient"): worded(mean_interval(can, can["n_runs"]), 2),
                    f"per patient, first {N_ENDS}": round(
                        float(runs.iloc[:N_ENDS].mean().mean()), 2
                    ),
                    f"per patient, last {N_ENDS}": round(
                        float(runs.iloc[-N_ENDS:].mean().mean()), 2
                    ),
                    "patients": f"{n}, {whose}",
                }
            )
    return pd.DataFrame(table)


def paired_table(personalizations: pd.DataFrame, method: str = CONTINUOUS_AGENT) -> pd.DataFrame:
    """A method against the best of the others, patient by patient.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    method : str

    Returns
    -------
    DataFrame
        One row per setup in which the method and another one personalised. The best of the others
        solved most, and of equals made the fewest runs. See `vitolab.plots.paired.Pair`.
    """
    table = []
    for setup, rows in by_setup(personalizations):
        known = rows.assign(solved=rows["solved"].astype(float))
        means = known.groupby(["method", "patient"])[["solved", "n_runs"]].mean()
        totals = means.groupby("method").sum()
        others = [name for name in methods_of(rows) if name != method]
        if method not in set(rows["method"]) or not others:
            continue
        best = str(
            totals.loc[others].sort_values(["solved", "n_runs"], ascending=[False, True]).index[0]
        )
        pair = paired(rows[rows["method"] == method], rows[rows["method"] == best])
        if pair is None:
            continue
        table.append(
            {
                "setup": setup,
                "best other method": best,
                "patients": pair.patients,
                f"solved more often by {method}": pair.better,
                "less often": pair.worse,
                "p (sign test)": float(f"{pair.p:.2g}"),
                f"runs, {method}": round(pair.runs[0], 2),
                "runs, other": round(pair.runs[1], 2),
                "difference": round(pair.difference[0], 2),
                "95 % from": round(pair.difference[1], 2),
                "to": round(pair.difference[2], 2),
                "other, times": round(pair.ratio[0], 2),
                heading("times"): worded(pair.ratio[1:], 2),
            }
        )
    return pd.DataFrame(table)


def giving_up_table(without: pd.DataFrame, giving_up: pd.DataFrame) -> pd.DataFrame:
    """A method that gives patients up beside itself without that rule, in the same orders.

    Parameters
    ----------
    without, giving_up : DataFrame
        Personalisations of one method in both ways, under the same names of setups.
    """
    keys = ["setup", "patient", "repeat"]
    table = []
    joined = without.merge(giving_up, on=keys, suffixes=("", " ends"))
    for setup, own in by_setup(joined):
        ended = own["stop_reason ends"] == "unreachable"
        runs, fewer = own["n_runs"].sum(), own["n_runs ends"].sum()
        table.append(
            {
                "setup": setup,
                "personalisations": len(own),
                "given up": int(ended.sum()),
                "of these solved without the rule": int((ended & own["solved"]).sum()),
                "solved [%]": round(100.0 * own["solved ends"].mean(), 1),
                heading("solved"): worded(share_interval(own, own["solved ends"].astype(float))),
                "without the rule [%]": round(100.0 * own["solved"].mean(), 1),
                heading("without the rule"): worded(
                    share_interval(own, own["solved"].astype(float))
                ),
                "runs per patient": round(fewer / len(own), 2),
                heading("runs per patient"): worded(mean_interval(own, own["n_runs ends"]), 2),
                "without the rule": round(runs / len(own), 2),
                "fewer runs [%]": round(100.0 * (1.0 - fewer / runs), 1),
                heading("fewer runs"): worded(_fewer(own)),
            }
        )
    return pd.DataFrame(table)


def _fewer(own: pd.DataFrame) -> Ends:
    """Interval of the share of runs that giving up saves [%], patient by patient."""
    by_patient = own.groupby("patient")[["n_runs", "n_runs ends"]].sum()
    low, high = resampled_ratio(by_patient["n_runs ends"], by_patient["n_runs"])
    return 100.0 * (1.0 - high), 100.0 * (1.0 - low)


def by_setup(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Rows of each setup, in the order of all tables."""
    if "position" not in rows:
        raise ValueError("the run stored no positions of patients, which this section shows")
    return [(setup, rows[rows["setup"] == setup]) for setup in setups_of(rows["setup"])]


def methods_of(rows: pd.DataFrame) -> list[str]:
    """Methods of some rows, in the order of all tables."""
    known = set(rows["method"])
    return [name for name in METHOD_COLORS if name in known]


def solvable_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the patients of a setup whom some method solved; all if there are none."""
    solved = rows["patient"].isin(set(rows.loc[rows["solved"].astype(bool), "patient"]))
    return rows[solved] if solved.any() else rows


def by_position(rows: pd.DataFrame) -> pd.DataFrame:
    """Forward runs of one method: a row for each position, a column for each order."""
    return rows.pivot_table("n_runs", "position", "repeat").astype(float)


def by_group(rows: pd.DataFrame) -> pd.DataFrame:
    """Forward runs that each method of a setup made in each group, with intervals.

    Returns
    -------
    DataFrame
        Columns ``method``, ``group``, ``mean``, ``low``, ``high``, in the order of all tables.
    """
    group = np.searchsorted(GROUPS, rows["position"].to_numpy(float))
    known = rows.assign(group=group)
    table = []
    for name in methods_of(rows):
        for place, own in known[known["method"] == name].groupby("group"):
            runs = own["n_runs"].astype(float)
            table.append((name, place, float(runs.mean()), *mean_interval(own, runs)))
    return pd.DataFrame(table, columns=["method", "group", "mean", "low", "high"])


def group_name(group: int, last: int) -> str:
    """Positions of a group, such as 2–5."""
    first = GROUPS[group - 1] + 1 if group else 1
    end = min(last, GROUPS[group]) if group < len(GROUPS) else last
    return f"{first}" if first == end else f"{first}–{end}"
