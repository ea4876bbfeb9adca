"""Outcomes in words, and small tables: what stands beside a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitolab import plots
from vitolab.intervals import heading, mean_interval, share_interval, worded
from vitolab.methods import PAPER, REFERENCES, is_agent
from vitolab.methods import label as method_label
from vitolab.plots.paired import Comparison, paired
from vitolab.plots.summary import MEASURES, charged_runs, order_of, setups_of, summarize
from vitolab.store.records import ProblemRecord
from vitolab.store.tables import largest

#: Fewest patients of whom a sign test at 5 % can distinguish two methods.
FEWEST = 6
#: What stands in brackets behind a share or a mean.
BRACKETS = "In brackets: 95 % intervals over the patients."
_REFERENCES = {*REFERENCES, *map(method_label, REFERENCES)}

_NAMES = {
    "n_states": "states",
    "n_samples": "samples per patient",
    "n": "personalisations",
    "success": "success [%]",
    "runs_all": "runs, all",
    "runs_solved": "runs, solved",
    "direct": "solved without restart [%]",
    "direct_of_solved": "without restart [% of solved]",
}


def told(personalizations: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """A summary with columns as people read them, rounded, and its intervals over the patients."""
    summary = summarize(personalizations, by, intervals=MEASURES)
    columns = {name: summary[name].round(1) for name in (*by, "n")}
    for measure in MEASURES:
        columns[measure] = summary[measure].round(1)
        ends = zip(summary[f"{measure}_low"], summary[f"{measure}_high"], strict=True)
        columns[heading(_NAMES[measure])] = pd.Series([worded(pair) for pair in ends])
    return pd.DataFrame(columns).rename(columns=_NAMES)


def share(rows: pd.DataFrame) -> str:
    """Success of some personalisations in words, such as 92 % (80 to 97)."""
    solved = rows["solved"].astype(float)
    ends = worded(share_interval(rows, solved), 0)
    return f"{100.0 * solved.mean():.0f} % ({ends})"


def runs(rows: pd.DataFrame) -> str:
    """Mean forward runs of some personalisations in words, such as 28.5 (20.1 to 36.9)."""
    charged = charged_runs(rows)
    ends = worded(mean_interval(rows, charged))
    return f"{charged.mean():.1f}" + (f" ({ends})" if ends else "")


def grid(setups: Sequence[str], starts: Sequence[pd.DataFrame]) -> str:
    """How well personalisation ends from a grid of starts."""
    sentences = []
    for setup, table in zip(setups, starts, strict=True):
        worst = table.iloc[int(table["its error"].argmax())]
        sentences.append(
            f"{setup}: from {int((table['solved [%]'] == 100).sum())} of {len(table)} starts every "
            f"function was solved; the largest error is {worst['its error']:.3g}, of "
            f"{worst['worst function']} from ({worst.iloc[0]:.1f}, {worst.iloc[1]:.1f})."
        )
    return "\n".join([*sentences, "Red dots are the minima of the functions."])


def grid_numbers(table: pd.DataFrame) -> str:
    """How often Vito ends well within each limit of runs; of `plots.grid_table`."""
    sentences = []
    for setup, own in table[table["method"] == PAPER].groupby("setup", sort=False):
        limits = (
            f"{row['success [%]']:.1f} % ({row[heading('success')]})"
            + (f" within {row['runs allowed']} runs" if row["runs allowed"] else "")
            for row in own.to_dict("records")
        )
        sentences.append(f"{setup}: Vito solves {', '.join(limits)}.")
    return "\n".join(
        [
            *sentences,
            "In brackets: 95 % intervals; functions and, of several, repeats are resampled. Not "
            "solved counts as all runs that were allowed.",
        ]
    )


def sweep(
    personalizations: pd.DataFrame, size: str, what: str, references: Sequence[str] = ()
) -> str:
    """How success and cost change with a size."""
    sentences = []
    for setup in order_of(personalizations["setup"].tolist()):
        own = personalizations[personalizations["setup"] == setup]
        vito = own[own["method"] == PAPER]
        sizes = sorted(vito[size].dropna().unique())
        if not sizes:
            continue
        first, last = (vito[vito[size] == each] for each in (sizes[0], sizes[-1]))
        line = f"{setup}: Vito solves {share(first)}"
        if len(sizes) > 1:
            line += f" with {int(sizes[0]):,} and {share(last)}"
        line += f" with {int(sizes[-1]):,} {what}, then with {runs(last)} forward runs "
        line += "on average over all patients"
        for name in references:
            rows = own[own["method"] == name]
            if len(rows):
                line += f"; {plots.method_label(name)} {share(rows)}"
        sentences.append(f"{line}.")
    return "\n".join([*sentences, BRACKETS])


def agents(table: pd.DataFrame) -> str:
    """What each method reaches with most training, setup by setup; of `plots.agent_table`."""
    sentences = []
    for setup, own in table.groupby("setup", sort=False, observed=True):
        last = own.drop_duplicates("method", keep="last")
        methods = (
            f"{plots.method_label(row['method'])} {row['success of the solvable [%]']:.0f} % "
            f"({row[heading('success of the solvable')]})"
            + (f" in {row['runs, solved']:.1f} runs" if row["runs, solved"] > 0 else "")
            for row in last.to_dict("records")
        )
        sentences.append(
            f"{setup}, with most training, of those solved by any method: {'; '.join(methods)}."
        )
    return "\n".join([*sentences, BRACKETS])


def in_pairs(found: Sequence[Comparison]) -> str:
    """Who makes fewer and more runs than whom, and how that was told."""
    sentences = []
    for setup, method in dict.fromkeys((each.setup, each.method) for each in found):
        own = [each for each in found if (each.setup, each.method) == (setup, method)]
        ranks: dict[str, list[str]] = {"fewer runs than": [], "more runs than": [], "as": []}
        for each in own:
            _, low, high = each.pair.difference
            way = "fewer runs than" if high < 0 else "more runs than" if low > 0 else "as"
            way = way if each.pair.patients >= FEWEST else "as"
            ranks[way].append(plots.method_label(each.other))
        said = [f"{way} {', '.join(names)}" for way, names in list(ranks.items())[:2] if names]
        if ranks["as"]:
            said.append(f"as many runs, within the interval, as {', '.join(ranks['as'])}")
        sentences.append(f"{setup}: {plots.method_label(method)} makes {'; '.join(said)}.")
    return "\n".join(
        [
            *sentences,
            "Both methods of a pair personalised the same patients. The test is McNemar's exact "
            "one, of several repeats or starts a sign test of the patients whom one solved more "
            "often. Intervals are those of resampled patients, each with its mean; not solved "
            "counts as the whole budget. Neither is corrected for the number of pairs.",
        ]
    )


def drawing(personalizations: pd.DataFrame) -> str:
    """Whether the stochastic policy pays."""
    sentences = []
    for setup in order_of(personalizations["setup"].tolist()):
        own = personalizations[personalizations["setup"] == setup]
        own = own[own["n_samples"] == own["n_samples"].max()]
        drawn, best = own[own["method"] == PAPER], own[own["method"] != PAPER]
        pair = paired(drawn, best) if len(drawn) and len(best) else None
        if pair is not None:
            sentences.append(
                f"{setup}: {share(drawn)} solved when actions are drawn, {share(best)} when the "
                f"best is taken; {pair.better} patients more often and {pair.worse} less often "
                f"(p = {pair.p:.2g})."
            )
    if not sentences:
        return "The run holds one kind of policy only."
    return "\n".join([*sentences, BRACKETS])


def restarts(table: pd.DataFrame) -> str:
    """Share solved without a restart, with most samples."""
    last = table.groupby("setup", sort=False).tail(1)
    return "\n".join(
        f"{row['setup']}: {row['solved without restart [%]']:.0f} % of all patients (95 % "
        f"{row[heading('solved without restart [%]')]}) are solved without a restart, with "
        f"{int(row['samples per patient']):,} samples."
        for row in last.to_dict("records")
    )


def boxes(table: pd.DataFrame) -> str:
    """Medians of the absolute misfits, start by start."""
    columns = [str(name) for name in table if str(name).startswith("|")]
    sentences = []
    for row in table.to_dict("records"):
        medians = ", ".join(f"{name} {row[name].partition(' ')[0]}" for name in columns)
        failed = f" ({row['failed runs']} runs failed)" if row["failed runs"] else ""
        sentences.append(f"{row['setup']}, start {row['start']}: median {medians}{failed}.")
    return "\n".join(sentences)


def methods(table: pd.DataFrame) -> str:
    """The best and the cheapest of the methods."""
    sentences = []
    for setup in order_of(table.iloc[:, 0].tolist()):
        own = table[table.iloc[:, 0] == setup]
        vito = own[own["method"] == PAPER]
        others = own[own["method"].isin(_REFERENCES)]
        line = f"{setup}:"
        if len(vito):
            line += f" Vito solves {_success(vito.iloc[0])} with "
            line += f"{vito['runs, all'].iloc[0]:.1f} forward runs on average over all patients"
        if len(others):
            best = others.iloc[int(others["success [%]"].argmax())]
            line += f"{',' if len(vito) else ''} {best['method']}, the best reference, "
            line += f"{_success(best)} with {best['runs, all']:.1f}"
        sentences.append(f"{line}.")
    return "\n".join([*sentences, BRACKETS])


def _success(row: pd.Series[Any]) -> str:
    """Success with its interval, of a row of `vitolab.plots.methods.methods_table`."""
    return f"{row['success [%]']:.0f} % ({row[heading('success')]})"


def paths(traces: pd.DataFrame) -> str:
    """How long the shown personalisations took."""
    n = traces.groupby("start").size()
    runs = f"{n.min()} to {n.max()}" if n.min() < n.max() else f"{n.min()}"
    plural = "" if len(n) == 1 else "s from different starts"
    return f"{len(n)} personalisation{plural}, {runs} forward runs each."


def of_agents(personalizations: pd.DataFrame) -> pd.DataFrame:
    """Rows of the agents, with their largest training; all rows where no agent acted."""
    acted = personalizations[personalizations["method"].map(is_agent)]
    return largest(acted) if len(acted) else personalizations


def solved(personalizations: pd.DataFrame) -> str:
    """How many personalisations of each agent succeeded, by setup."""
    rows, sentences = of_agents(personalizations), []
    for setup in setups_of(rows["setup"]):
        for method, own in rows[rows["setup"] == setup].groupby("method", sort=False):
            most = own["n_samples"].dropna()
            trained = f" with {int(most.max()):,} samples per patient" if len(most) else ""
            sentences.append(
                f"{setup}: {int(own['solved'].sum())} of {len(own)} solved by {method}{trained}, "
                f"{share(own)}, {runs(own)} forward runs on average."
            )
    return "\n".join([*sentences, BRACKETS])


def by_patient(
    personalizations: pd.DataFrame, problems: Mapping[str, ProblemRecord]
) -> pd.DataFrame:
    """Each patient's outcome by each agent, with its largest training; hardest last."""
    rows = of_agents(personalizations)
    units = {o.name: o.unit for problem in problems.values() for o in problem.objectives}
    misfits = [name for name in map(str, rows) if name.startswith("misfit:")]
    columns = ["setup", "patient", "method", "n_samples", "solved", "n_runs", "n_restarts"]
    place = {setup: k for k, setup in enumerate(setups_of(rows["setup"]))}
    table = rows[[*columns, *misfits]].sort_values(
        ["setup", "solved", "n_runs"],
        ascending=[True, False, True],
        kind="stable",
        key=lambda column: column.map(place) if column.name == "setup" else column,
    )
    kept = table.assign(solved=np.where(table["solved"], "yes", "no")).round(3)
    names = {"n_runs": "forward runs", "n_restarts": "restarts", "n_samples": "samples"}
    for name in misfits:
        unit = units.get(name.partition(":")[2], "")
        names[name] = name.replace(":", ": ") + (f" [{unit}]" if unit else "")
    return kept.dropna(axis=1, how="all").rename(columns=names)
