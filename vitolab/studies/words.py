"""Outcomes in words, and small tables: what stands beside a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from vitolab import plots
from vitolab.methods import PAPER, REFERENCES, is_agent
from vitolab.methods import label as method_label
from vitolab.plots.summary import order_of, setups_of, summarize
from vitolab.store.records import ProblemRecord
from vitolab.store.tables import largest

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


def named(summary: pd.DataFrame) -> pd.DataFrame:
    """A summary with columns as people read them, rounded."""
    return summary.round(1).rename(columns=_NAMES)


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


def sweep(
    personalizations: pd.DataFrame, size: str, what: str, references: Sequence[str] = ()
) -> str:
    """How success and cost change with a size."""
    sentences = []
    for setup in order_of(personalizations["setup"].tolist()):
        own = personalizations[personalizations["setup"] == setup]
        means = summarize(own[own["method"] == PAPER], [size])
        if means.empty:
            continue
        first, last = means.iloc[0], means.iloc[-1]
        line = f"{setup}: Vito solves {first['success']:.0f} %"
        if len(means) > 1:
            line += f" with {int(first[size]):,} and {last['success']:.0f} %"
        line += f" with {int(last[size]):,} {what}, then with {last['runs_all']:.1f} forward runs "
        line += "on average over all patients"
        for name in references:
            rows = own[own["method"] == name]
            if len(rows):
                line += f"; {plots.method_label(name)} {100 * rows['solved'].mean():.0f} %"
        sentences.append(f"{line}.")
    return "\n".join(sentences)


def agents(table: pd.DataFrame) -> str:
    """What each method reaches with most training, setup by setup; of `plots.agent_table`."""
    sentences = []
    for setup, own in table.groupby("setup", sort=False, observed=True):
        last = own.drop_duplicates("method", keep="last")
        methods = (
            f"{plots.method_label(row['method'])} {row['success of the solvable [%]']:.0f} %"
            + (f" in {row['runs, solved']:.1f} runs" if row["runs, solved"] > 0 else "")
            for row in last.to_dict("records")
        )
        sentences.append(
            f"{setup}, with most training, of those solved by any method: {'; '.join(methods)}."
        )
    return "\n".join(sentences)


def drawing(personalizations: pd.DataFrame) -> str:
    """Whether the stochastic policy pays."""
    sentences = []
    for setup in order_of(personalizations["setup"].tolist()):
        own = personalizations[personalizations["setup"] == setup]
        own = own[own["n_samples"] == own["n_samples"].max()]
        rate = 100.0 * own.groupby("method")["solved"].mean()
        if len(rate) == 2:
            (best,) = rate.drop(PAPER)
            sentences.append(
                f"{setup}: {rate[PAPER]:.0f} % solved when actions are drawn, "
                f"{best:.0f} % when the best is taken."
            )
    return "\n".join(sentences) or "The run holds one kind of policy only."


def restarts(table: pd.DataFrame) -> str:
    """Share solved without a restart, with most samples."""
    last = table.groupby("setup", sort=False).tail(1)
    return "\n".join(
        f"{row['setup']}: {row['solved without restart [%]']:.0f} % of all patients are solved "
        f"without a restart, with {int(row['samples per patient']):,} samples."
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
            line += f" Vito solves {vito['success [%]'].iloc[0]:.0f} % with "
            line += f"{vito['runs, all'].iloc[0]:.1f} forward runs on average over all patients"
        if len(others):
            best = others.iloc[int(others["success [%]"].argmax())]
            line += f"{',' if len(vito) else ''} {best['method']}, the best reference, "
            line += f"{best['success [%]']:.0f} % with {best['runs, all']:.1f}"
        sentences.append(f"{line}.")
    return "\n".join(sentences)


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
                f"{own['n_runs'].mean():.1f} forward runs on average."
            )
    return "\n".join(sentences)


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
