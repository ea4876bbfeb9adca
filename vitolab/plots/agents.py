"""Agents beside each other, and beside what a user would take instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from vitolab.identifiability import Sensitivity
from vitolab.intervals import heading, resampled_ratio, share_interval, worded
from vitolab.methods import is_agent, learns_states
from vitolab.methods import title as method_title
from vitolab.plots.convergence import SAMPLES
from vitolab.plots.style import (
    MARKERS,
    METHOD_COLORS,
    layout,
    logarithmic,
    panel,
    series,
    series_color,
    style,
)
from vitolab.plots.summary import (
    bands,
    curve,
    ends_of,
    order_of,
    setups_of,
    summarize,
    training_runs,
)
from vitolab.problem import Problem

#: Singular values below are shown as zero: noise of finite differences, far below any tolerance.
FLOOR = 1e-3
_MEASURES = (
    ("success", "patients solved [%]"),
    ("runs_all", "forward runs, all"),
    ("runs_solved", "forward runs, solved"),
)


def agent_curves(
    personalizations: pd.DataFrame,
    *,
    references: Sequence[str] | None = None,
    patients: str = "synthetic patients",
    episode: int = 1,
) -> Any:
    """Success and runs of each agent against samples per patient, one column per setup.

    Parameters
    ----------
    personalizations : DataFrame
    references : sequence of str, optional
        Methods that learn nothing, by default all; their means over all starts are dashed lines.
    patients : str
        Who was personalised, for the title.
    episode : int
        Transitions per walk of agents without states: each walk takes one forward run
        more, which the legend says.

    Returns
    -------
    HoloViews layout
        Bands of 0.5 and 1 standard deviation over the repeats, or, of one repeat, the 95 %
        interval over the patients.
    """
    learned = personalizations[personalizations["n_samples"].notna()]
    curves = {name: curve(learned, ["setup", "method", "n_samples"], name) for name, _ in _MEASURES}
    known = [name for name in METHOD_COLORS if name in set(learned["method"])]
    means = summarize(personalizations, ["setup", "method"])
    levels = {(row["setup"], row["method"]): row for row in means.to_dict("records")}
    if references is None:
        untrained = set(personalizations.loc[personalizations["n_samples"].isna(), "method"])
        references = [name for name in METHOD_COLORS if name in untrained]
    n = personalizations.groupby("setup")["patient"].nunique()
    setups = setups_of(learned["setup"])
    more = f"\n({1.0 + 1.0 / episode:.3g} forward runs per sample)"
    size = (3.0, 2.3)
    panels: list[Any] = []
    for measure, label in _MEASURES:
        success = measure == "success"
        for position, setup in enumerate(setups):
            sizes = sorted(learned.loc[learned["setup"] == setup, "n_samples"].unique())
            ends = np.array([sizes[0] / 1.3, sizes[-1] * 1.3])
            shown, items = [], []
            for name in references:
                if (setup, name) in levels:
                    level = float(levels[setup, name][measure])
                    line = hv.Curve(
                        (ends, [level, level]), "n_samples", "value", label=method_title(name)
                    )
                    shown.append(level)
                    items.append(
                        style(line, color=METHOD_COLORS[name], line_width=1.6, line_dash="dashed")
                    )
            for rank, name in enumerate(known):
                own = curves[measure]
                own = own[(own["setup"] == setup) & (own["method"] == name)]
                shown += own["mean"].tolist()
                items += series(
                    own,
                    "n_samples",
                    label=method_title(name) + ("" if learns_states(name) else more),
                    color=METHOD_COLORS[name],
                    dash="solid",
                    marker=MARKERS[rank % len(MARKERS)],
                )
            if not np.isfinite(shown).any():  # axes alone, which need something to span
                items = [style(hv.Curve((ends, [0.5, 0.5]), "n_samples", "value"), alpha=0.0)]
            panels.append(
                panel(
                    hv.Overlay(items),
                    title=f"{setup} (n = {n[setup]})" if success else "",
                    xlabel=SAMPLES,
                    ylabel=label if not position else "",
                    size=size,
                    legend="right" if success and position == len(setups) - 1 else None,
                    logx=True,
                    xlim=(float(ends[0]), float(ends[1])),
                    xticks=[(float(size), f"{size:,}") for size in sizes],
                    **({"ylim": (-3.0, 103.0)} if success else logarithmic(shown)),
                )
            )
    title = f"{patients}, agents leave-one-out, {bands(learned)}; dashed: no training"
    return layout(panels, columns=len(setups), title=title, size=size)


def scaling_curves(
    personalizations: pd.DataFrame,
    problems: Mapping[str, Problem],
    *,
    patients: str = "synthetic patients",
) -> Any:
    """Success and runs of every method against the number of parameters.

    Parameters
    ----------
    personalizations : DataFrame
        Of several setups.
    problems : mapping of setup name to Problem
        Or what is stored of them: their parameters are counted.
    patients : str
        Who was personalised, for the title.

    Returns
    -------
    HoloViews layout
        Agents with the largest training that all setups share, references over all their starts.
        Bands are 95 % intervals over the patients.

    Raises
    ------
    ValueError
        If the setups share no size of training.
    """
    trained = personalizations[personalizations["n_samples"].notna()]
    sizes_of = [set(own["n_samples"]) for _, own in trained.groupby("setup")]
    shared = set.intersection(*sizes_of) if sizes_of else set()
    if not shared:
        raise ValueError("the setups share no size of training, expected one to compare them at")
    most = max(shared)
    kept = personalizations["n_samples"].isna() | (personalizations["n_samples"] == most)
    rows = personalizations[kept]
    n_parameters = {setup: len(problem.parameters) for setup, problem in problems.items()}
    rows = rows.assign(n_parameters=rows["setup"].map(n_parameters))
    told = [name for name, _ in _MEASURES]
    means = summarize(rows, ["method", "n_parameters"], intervals=told)
    methods = [name for name in METHOD_COLORS if name in set(means["method"])]
    sizes = sorted(set(means["n_parameters"]))
    panels: list[Any] = []
    for measure, label in _MEASURES:
        items: list[Any] = []
        for rank, name in enumerate(methods):
            own = means[means["method"] == name].assign(deviation=np.nan, repeats=1)
            ends = {f"{measure}_low": "low", f"{measure}_high": "high"}
            items += series(
                own.rename(columns={measure: "mean", **ends}),
                "n_parameters",
                label=method_title(name),
                color=METHOD_COLORS[name],
                dash="solid" if is_agent(name) else "dashed",
                marker=MARKERS[rank % len(MARKERS)],
            )
        success = measure == "success"
        panels.append(
            panel(
                hv.Overlay(items),
                title="",
                xlabel="free parameters",
                ylabel=label,
                legend="right" if measure == _MEASURES[-1][0] else None,
                size=(3.2, 2.8),
                xticks=[(n, str(n)) for n in sizes],
                xlim=(sizes[0] - 0.5, sizes[-1] + 0.5),
                **({"ylim": (-3.0, 103.0)} if success else logarithmic(means[measure].tolist())),
            )
        )
    n = personalizations["patient"].nunique()
    title = (
        f"{n} {patients}, agents leave-one-out with {most:,} samples; "
        "band: 95 % interval over patients; dashed: no training"
    )
    return layout(panels, columns=len(panels), title=title, size=(3.2, 2.8))


def singular_values(sensitivities: Mapping[str, Sensitivity]) -> Any:
    """How well the objectives determine the independent combinations of parameters.

    Parameters
    ----------
    sensitivities : mapping of setup name to Sensitivity

    Returns
    -------
    HoloViews overlay
        Singular values, largest first, on a logarithmic axis; open marks on its lower end are
        those that are zero but for noise. Below the dotted line the whole domain moves no output
        by one tolerance, to first order.
    """
    values = {setup: found.singular_values for setup, found in sensitivities.items()}
    positive = np.concatenate([own[own > FLOOR] for own in values.values()])
    low = float(positive.min()) / 3.0 if len(positive) else FLOOR
    longest = max(len(own) for own in values.values())
    items: list[Any] = []
    for rank, (setup, own) in enumerate(values.items()):
        number, marker = np.arange(1, len(own) + 1), MARKERS[rank % len(MARKERS)]
        nothing = dict.fromkeys(("deviation", "low", "high"), np.nan)
        points = pd.DataFrame({"n": number, "mean": own, "repeats": 1, **nothing})
        color = series_color(rank)
        items += series(
            points[own > FLOOR], "n", label=setup, color=color, dash="solid", marker=marker
        )
        zeros = hv.Scatter((number[own <= FLOOR], np.full((own <= FLOOR).sum(), low)), "n", "value")
        items.append(style(zeros, color="#FFFFFF", size=7, marker=marker, line_color=color))
    items.append(style(hv.HLine(1.0), color="#555555", line_width=1.2, line_dash="dotted"))
    return panel(
        hv.Overlay(items),
        title="What the measurements determine",
        xlabel="independent combination of parameters (open: zero)",
        ylabel="singular value [tolerances]",
        legend="right",
        logy=True,
        xlim=(0.5, longest + 0.5),
        ylim=(low / 1.5, 2.0 * float(positive.max()) if len(positive) else 1.0),
    )


def agent_table(
    personalizations: pd.DataFrame,
    *,
    reference: str = "least-squares-multistart",
    whose: str = "synthetic",
) -> pd.DataFrame:
    """Success of those who can be solved, and runs, of every method and training size.

    Parameters
    ----------
    personalizations : DataFrame
    reference : str
        What a user would take instead: how many times more runs it makes, over the patients that
        both solved, whose number stands beside.
    whose : str
        What the patients are, as the table says.

    Returns
    -------
    DataFrame
        A patient is counted as solvable if any method of the run solved it in any repeat or from
        any start: a lower bound, at which the best method stands nearly by construction.
        Intervals are over the patients; not solved counts as the whole budget in the runs over
        all.
    """
    solved = personalizations[personalizations["solved"].astype(bool)]
    solvable_names = {s: set(own["patient"]) for s, own in solved.groupby("setup")}
    solvable = {setup: len(names) for setup, names in solvable_names.items()}
    keys = ["setup", "method", "n_samples"]
    sums = summarize(personalizations, keys, intervals=("success", "runs_all", "runs_solved"))
    order = order_of([*METHOD_COLORS, *personalizations["method"]])
    sums = sums.assign(
        setup=pd.Categorical(sums["setup"], setups_of(personalizations["setup"])),
        rank=sums["method"].map({name: k for k, name in enumerate(order)}),
    ).sort_values(["setup", "rank", "n_samples"])
    patients = personalizations.groupby("setup")["patient"].nunique()
    table = []
    for row in sums.to_dict("records"):
        setup = row["setup"]
        rows = personalizations[personalizations["setup"] == setup]
        rows = rows[rows["method"] == row["method"]]
        rows = rows[rows["n_samples"].isna() | (rows["n_samples"] == row["n_samples"])]
        own = rows[rows["solved"].astype(bool)]
        runs = own.groupby("patient")["n_runs"].mean()
        other = solved[(solved["setup"] == setup) & (solved["method"] == reference)]
        other = other.groupby("patient")["n_runs"].mean()
        both = runs.index.intersection(other.index)
        times = float(other[both].mean() / runs[both].mean()) if len(both) else np.nan
        ends = resampled_ratio(other[both], runs[both]) if len(both) else (np.nan, np.nan)
        able = rows[rows["patient"].isin(solvable_names.get(setup, set()))]
        within = share_interval(able, able["solved"].astype(float))
        share = row["success"] * patients[setup] / solvable.get(setup, np.nan)
        table.append(
            {
                "setup": setup,
                "method": row["method"],
                "samples per patient": "" if pd.isna(row["n_samples"]) else f"{row['n_samples']:,}",
                "training runs": training_runs(rows),
                "success of all [%]": round(row["success"], 1),
                heading("success of all"): worded(ends_of(row, "success")),
                "success of the solvable [%]": round(float(share), 1),
                heading("success of the solvable"): worded(within),
                "runs, solved": round(row["runs_solved"], 2),
                heading("runs, solved"): worded(ends_of(row, "runs_solved"), 2),
                "runs, all": round(row["runs_all"], 1),
                heading("runs, all"): worded(ends_of(row, "runs_all")),
                f"runs of {reference}, times": round(times, 1),
                heading("times"): worded(ends),
                "solved by both": len(both),
                "solvable": int(solvable.get(setup, 0)),
                "patients": f"{patients[setup]}, {whose}",
            }
        )
    return pd.DataFrame(table)
