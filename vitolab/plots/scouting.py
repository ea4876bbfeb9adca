"""Figures of the search for the number of representative states (sections 3.2.2 and 3.3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import pandas as pd

from vitolab.intervals import heading, worded
from vitolab.methods import PAPER
from vitolab.plots import paper
from vitolab.plots.style import MARKERS, layout, panel, series, series_color, style
from vitolab.plots.summary import bands, curve, ends_of, order_of, summarize

PAPER_STATES = {**paper.N_STATES, **paper.EP_N_STATES}


def scouting_curves(
    personalizations: pd.DataFrame,
    *,
    method: str = PAPER,
    paper_states: Mapping[str, int] = PAPER_STATES,
    patients: str = "synthetic scouting patients",
) -> Any:
    """Success (solid) and mean runs (dashed) against the number of states.

    Parameters
    ----------
    personalizations : DataFrame
    method : str
    paper_states : mapping of setup name to int
        The paper's choices, dotted in the colour of their setup.
    patients : str
        Who was personalised, for the title.

    Returns
    -------
    HoloViews layout
        Bands are 0.5 and 1 standard deviation over the repeats, or, of one repeat, the 95 %
        interval over the patients.
    """
    rows = personalizations[personalizations["method"] == method]
    runs = curve(rows, ["setup", "n_states"], "runs_all")
    setups = order_of(runs["setup"].tolist())
    panels: list[Any] = []
    ends = runs[["high", "mean"]].assign(above=runs["mean"] + runs["deviation"])
    highest = 1.08 * float(ends.max().max())
    for measure, dash, title, label, limits in (
        ("success", "solid", "success", "patients solved [%]", (-3.0, 103.0)),
        ("runs_all", "dashed", "forward runs", "mean forward runs, all patients", (0.0, highest)),
    ):
        curves = curve(rows, ["setup", "n_states"], measure)
        items: list[Any] = []
        for position, setup in enumerate(setups):
            color = series_color(position)
            own = curves[curves["setup"] == setup].astype({"n_states": float})
            items += series(
                own,
                "n_states",
                label=setup,
                color=color,
                dash=dash,
                marker=MARKERS[position % len(MARKERS)],
            )
            if setup in paper_states:
                line = style(
                    hv.VLine(paper_states[setup]), color=color, line_width=1.3, line_dash="dotted"
                )
                items.append(line)
        panels.append(
            panel(
                hv.Overlay(items),
                title=title,
                xlabel="representative states n_S",
                ylabel=label,
                legend="right" if panels else None,
                padding=0.05,
                ylim=limits,
            )
        )
    dotted = "; dotted: the paper's n_S" if set(setups) & set(paper_states) else ""
    return layout(panels, columns=2, title=f"{patients}, {bands(rows)}{dotted}")


def scouting_table(
    personalizations: pd.DataFrame,
    *,
    method: str = PAPER,
    paper_states: Mapping[str, int] = PAPER_STATES,
) -> pd.DataFrame:
    """Number of states that did best, beside the paper's.

    Best is the highest success, then the fewest runs. It is shown only: every study uses the
    paper's numbers. Intervals are over the patients; they do not know that the best was chosen.

    Parameters
    ----------
    personalizations : DataFrame
    method : str
    paper_states : mapping of setup name to int
    """
    rows = personalizations[personalizations["method"] == method]
    measures = ("success", "runs_all")
    rows_by_state = summarize(rows, ["setup", "n_states"], intervals=measures)
    table = []
    for setup in order_of(rows_by_state["setup"].tolist()):
        own = rows_by_state[rows_by_state["setup"] == setup]
        best = own.sort_values(["success", "runs_all"], ascending=[False, True]).iloc[0]
        known = paper_states.get(setup)
        near = own.iloc[(own["n_states"] - known).abs().argmin()] if known else best
        table.append(
            {
                "setup": setup,
                "scouted n_S": int(best["n_states"]),
                "success [%]": round(best["success"], 1),
                heading("success"): worded(ends_of(best, "success")),
                "runs, all": round(best["runs_all"], 1),
                heading("runs, all"): worded(ends_of(best, "runs_all")),
                "paper's n_S": known,
                "tested nearest to it": int(near["n_states"]),
                "success there [%]": round(near["success"], 1),
                heading("success there"): worded(ends_of(near, "success")),
                "runs there, all": round(near["runs_all"], 1),
                heading("runs there, all"): worded(ends_of(near, "runs_all")),
                "patients": "synthetic",
            }
        )
    return pd.DataFrame(table)
