"""Agents beside each other, and beside what a user would take instead."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from vitolab.plots.convergence import SAMPLES
from vitolab.plots.style import (
    MARKERS,
    METHOD_COLORS,
    layout,
    method_label,
    panel,
    series,
    style,
)
from vitolab.plots.summary import order_of, over_repeats, summarize

#: Of which the lines of reference methods are drawn.
REFERENCES = ("nelder-mead", "bobyqa-cascade-stable", "least-squares-multistart")
_MEASURES = (
    ("success", "patients solved [%]"),
    ("runs_all", "mean forward runs, all patients"),
    ("runs_solved", "mean forward runs, solved patients"),
)


def agent_curves(
    personalizations: pd.DataFrame,
    *,
    references: tuple[str, ...] = REFERENCES,
    patients: str = "synthetic patients",
) -> Any:
    """Success and runs of each agent against samples per patient, one column per setup.

    Parameters
    ----------
    personalizations : DataFrame
    references : tuple of str
        Methods that learn nothing; their means over all starts are dashed lines.
    patients : str
        Who was personalised, for the title.

    Returns
    -------
    HoloViews layout
        Bands of 0.5 and 1 standard deviation over the repeats, where there are any.
    """
    learned = personalizations[personalizations["n_samples"].notna()]
    curves = summarize(learned, ["setup", "method", "n_samples", "repeat"])
    known = [name for name in METHOD_COLORS if name in set(learned["method"])]
    means = summarize(personalizations, ["setup", "method"]).set_index(["setup", "method"])
    setups = order_of(learned["setup"].tolist())
    size = (3.0, 2.3)
    panels: list[Any] = []
    for measure, label in _MEASURES:
        success = measure == "success"
        for position, setup in enumerate(setups):
            items: list[Any] = []
            for name in references:
                if (setup, name) in means.index:
                    level = hv.HLine(float(means.loc[(setup, name), measure]), label=name)
                    items.append(
                        style(level, color=METHOD_COLORS[name], line_width=1.5, line_dash="dashed")
                    )
            for rank, name in enumerate(known):
                own = curves[(curves["setup"] == setup) & (curves["method"] == name)]
                own = over_repeats(own, ["setup", "n_samples"], measure)
                items += series(
                    own,
                    "n_samples",
                    label=method_label(name),
                    color=METHOD_COLORS[name],
                    dash="solid",
                    marker=MARKERS[rank % len(MARKERS)],
                )
            panels.append(
                panel(
                    hv.Overlay(items),
                    title=setup if success else "",
                    xlabel=SAMPLES,
                    ylabel=label if not position else "",
                    size=size,
                    legend="right" if success and position == len(setups) - 1 else None,
                    logx=True,
                    logy=not success,
                    padding=0.06,
                    **({"ylim": (-3.0, 103.0)} if success else {}),
                )
            )
    n = personalizations["patient"].nunique()
    title = f"{n} {patients}, leave-one-out; dashed: {', '.join(map(method_label, references))}"
    return layout(panels, columns=len(setups), title=title, size=size)


def agent_table(
    personalizations: pd.DataFrame, *, reference: str = "least-squares-multistart"
) -> pd.DataFrame:
    """Success of those who can be solved, and runs, of every method and training size.

    Parameters
    ----------
    personalizations : DataFrame
    reference : str
        What a user would take instead; the last column tells how many times more runs it makes.

    Returns
    -------
    DataFrame
        A patient can be solved if any method of the run solved it in any repeat or from any start.
    """
    solved = personalizations[personalizations["solved"].astype(bool)]
    solvable = solved.groupby("setup")["patient"].agg(lambda names: len(set(names)))
    keys = ["setup", "method", "n_samples"]
    sums = summarize(personalizations, keys)
    order = order_of([*METHOD_COLORS, *personalizations["method"]])
    sums = sums.assign(
        setup=pd.Categorical(sums["setup"], order_of(personalizations["setup"].tolist())),
        rank=sums["method"].map({name: k for k, name in enumerate(order)}),
    ).sort_values(["setup", "rank", "n_samples"])
    patients = personalizations.groupby("setup")["patient"].nunique()
    table = []
    for row in sums.to_dict("records"):
        setup = row["setup"]
        same = sums[(sums["setup"] == setup) & (sums["method"] == reference)]
        runs = float(same["runs_solved"].iloc[0]) if len(same) else np.nan
        share = row["success"] * patients[setup] / solvable.get(setup, np.nan)
        table.append(
            {
                "setup": setup,
                "method": row["method"],
                "samples per patient": "" if pd.isna(row["n_samples"]) else f"{row['n_samples']:,}",
                "success of all [%]": round(row["success"], 1),
                "success of the solvable [%]": round(float(share), 1),
                "runs, solved": round(row["runs_solved"], 2),
                "runs, all": round(row["runs_all"], 1),
                f"runs of {reference}, times": round(runs / row["runs_solved"], 1),
                "patients": f"{patients[setup]}, synthetic",
            }
        )
    return pd.DataFrame(table)
