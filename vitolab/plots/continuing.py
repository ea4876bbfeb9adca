"""Figures of cohorts whose patients teach each other, one after the other."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from vitolab.methods import is_agent
from vitolab.methods import title as method_title
from vitolab.plots.orders import (
    by_group,
    by_position,
    by_setup,
    group_name,
    methods_of,
    solvable_of,
)
from vitolab.plots.style import (
    MARKERS,
    METHOD_COLORS,
    fill,
    layout,
    logarithmic,
    panel,
    series,
    style,
)

_SIZE = (3.2, 2.7)
_COLUMNS = 3


def cumulative_curves(
    personalizations: pd.DataFrame, *, patients: str = "synthetic patients"
) -> Any:
    """All forward runs so far against the number of patients, one panel per setup.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    patients : str
        Who was personalised, for the title.

    Returns
    -------
    HoloViews layout
        Means over the orders; bands reach from the lowest to the highest of them.
    """
    panels = []
    for setup, own in by_setup(personalizations):
        items: list[Any] = []
        for name in methods_of(own):
            runs = by_position(own[own["method"] == name]).cumsum()
            n, color = runs.index.to_numpy(float), METHOD_COLORS[name]
            if runs.shape[1] > 1:
                ends = (n, runs.min(axis=1), runs.max(axis=1))
                items.append(fill(hv.Area(ends, "n", ["low", "high"]), color, 0.18))
            line = hv.Curve((n, runs.mean(axis=1)), "n", "value", label=method_title(name))
            items.append(style(line, color=color, line_width=2.0, line_dash=_dash(name)))
            # few marks, which tell the curves apart without their colours
            shown = np.unique(np.linspace(0, len(n) - 1, 5).round().astype(int))
            marks = hv.Scatter(
                (n[shown], runs.mean(axis=1).to_numpy()[shown]),
                "n",
                "value",
                label=method_title(name),
            )
            items.append(
                style(marks, color=color, size=7, marker=_marker(name), bokeh={"tools": ["hover"]})
            )
        last = float(own["position"].max())
        axes = {"xlabel": "patients", "xlim": (0.0, 1.03 * last), "ylim": (0.0, None)}
        panels.append((items, setup, own, axes))
    band = "band: all orders" if personalizations["repeat"].nunique() > 1 else "no band: one order"
    return _figure(panels, "forward runs so far", personalizations, patients, band)


def position_curves(personalizations: pd.DataFrame, *, patients: str = "synthetic patients") -> Any:
    """Mean forward runs of a patient against its position in the order, one panel per setup.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.validation.from_nothing`.
    patients : str
        Who was personalised, for the title.

    Returns
    -------
    HoloViews layout
        Positions are grouped, see `vitolab.plots.orders.GROUPS`; means over the orders and over
        the patients whom some method solved in some order, with 95 % intervals over these
        patients. Of the others, who take all runs that are allowed, chance has more in one group
        than in another.
    """
    panels = []
    for setup, rows in by_setup(personalizations):
        own = solvable_of(rows)
        means = by_group(own)
        groups = np.unique(means["group"].to_numpy(int))
        items: list[Any] = []
        for name in methods_of(own):
            values = means[means["method"] == name].assign(deviation=np.nan, repeats=1)
            items += series(
                values,
                "group",
                label=method_title(name),
                color=METHOD_COLORS[name],
                dash=_dash(name),
                marker=_marker(name),
            )
        last = int(own["position"].max())
        ticks = [(int(k), group_name(int(k), last)) for k in groups]
        axes = {
            "xlabel": "position in the order",
            "xticks": ticks,
            "xlim": (groups[0] - 0.4, groups[-1] + 0.4),
            **logarithmic(means["mean"].tolist()),
        }
        panels.append((items, setup, own, axes))
    return _figure(
        panels,
        "forward runs per patient",
        personalizations,
        patients,
        "patients whom some method solved; band: 95 % interval over patients",
    )


def _dash(method: str) -> str:
    """Dashed lines belong to methods that learn nothing."""
    return "solid" if is_agent(method) else "dashed"


def _marker(method: str) -> str:
    """Marker of a method, the same in every panel."""
    return MARKERS[list(METHOD_COLORS).index(method) % len(MARKERS)]


def _figure(
    panels: list[tuple[list[Any], str, pd.DataFrame, dict[str, Any]]],
    ylabel: str,
    personalizations: pd.DataFrame,
    patients: str,
    what: str,
) -> Any:
    """Panels of all setups, and one legend."""
    columns = min(_COLUMNS, len(panels))
    drawn = [
        panel(
            hv.Overlay(items),
            title=f"{setup} (n = {own['patient'].nunique()})",
            ylabel=ylabel if not position % columns else "",
            size=_SIZE,
            legend="right" if position == columns - 1 else None,
            **axes,
        )
        for position, (items, setup, own, axes) in enumerate(panels)
    ]
    n = personalizations["repeat"].nunique()
    orders = f"{n} random order{'' if n == 1 else 's'}"
    title = f"{patients}, no exploration, {orders}; {what}; dashed: learns nothing"
    return layout(drawn, columns=columns, title=title, size=_SIZE, gap=(0.3, 0.4))
