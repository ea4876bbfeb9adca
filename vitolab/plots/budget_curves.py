"""Figure of what a budget buys: patients solved against hours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from vitolab.methods import CONTINUOUS_AGENT, is_agent
from vitolab.plots.budget import Course, Plan
from vitolab.plots.style import METHOD_COLORS, fill, panel, style

N_TIMES = 200  # of a curve
BUDGET_COLOR = "#D55E00"


def solved_by(found: Mapping[str, Course], plan: Plan) -> pd.DataFrame:
    """Patients solved against hours: numbers of `budget_curves`.

    Parameters
    ----------
    found : mapping of label to Course
        See `vitolab.plots.budget.courses`.
    plan : Plan

    Returns
    -------
    DataFrame
        Columns ``method``, ``hours``, ``mean``, ``low`` and ``high``, the last three over the
        stored orders. Times reach from that of one run to a little beyond the budget and the end
        of the slowest method, by their logarithm.
    """
    run = plan.seconds / 3600.0
    ends = [float(course.ends.max()) * run for course in found.values()]
    last = 1.2 * max([plan.hours, run, *ends])
    times = np.union1d(np.geomspace(run, last, N_TIMES), plan.hours)
    table = []
    for label, course in found.items():
        for hours in times:
            # as of a plan; rounding must not take the last run away
            n = course.n_solved(int(hours / run * (1.0 + 1e-12)))
            row = {"method": label, "hours": hours, "mean": n.mean()}
            table.append(row | {"low": n.min(), "high": n.max()})
    return pd.DataFrame(table)


def budget_curves(found: Mapping[str, Course], plan: Plan) -> Any:
    """Patients solved against hours, one curve per method, and the budget as a vertical line.

    Parameters
    ----------
    found : mapping of label to Course
        See `vitolab.plots.budget.courses`.
    plan : Plan

    Returns
    -------
    HoloViews overlay
        Means over the stored orders; bands reach from the lowest to the highest of them.
    """
    if CONTINUOUS_AGENT in found:  # one curve for it: as the command line would have it
        found = {
            label: course
            for label, course in found.items()
            if label == CONTINUOUS_AGENT or course.stored[0].method != CONTINUOUS_AGENT
        }
    table = solved_by(found, plan)
    items: list[Any] = []
    for label, course in found.items():
        own = table[table["method"] == label]
        method = course.stored[0].method
        color = METHOD_COLORS[method]
        hours = own["hours"].to_numpy(float)
        if len(course.ends) > 1:
            ends = (hours, own["low"].to_numpy(float), own["high"].to_numpy(float))
            items.append(fill(hv.Area(ends, "hours", ["low", "high"]), color, 0.12))
        line = hv.Curve((hours, own["mean"].to_numpy(float)), "hours", "value", label=label)
        dash = "solid" if is_agent(method) else "dashed"
        items.append(style(line, color=color, line_width=2.0, line_dash=dash))
    low, high = float(table["hours"].min()), float(table["hours"].max())
    top = 1.05 * plan.n_patients
    budget = hv.Curve([(plan.hours, 0.0), (plan.hours, top)], "hours", "value", label="budget")
    items.append(style(budget, color=BUDGET_COLOR, line_width=2.0))
    return panel(
        hv.Overlay(items),
        title="Patients solved, estimated",
        xlabel="hours",
        ylabel=f"patients solved, of {plan.n_patients:,}",
        size=(6.0, 2.8),
        legend="bottom",
        logx=True,
        xlim=(low, high),
        xticks=_ticks(low, high),
        ylim=(0.0, top),
    )


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks of a logarithmic axis that can be read: few, in plain numbers."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    digits = (1.0, 3.0) if last - first <= 4 else (1.0,)
    every = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
    return [(tick, f"{tick:,.12g}") for tick in every if low <= tick <= high]
