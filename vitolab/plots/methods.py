"""All methods of some personalisations beside each other: success and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import pandas as pd

from vitolab.methods import label as method_label
from vitolab.plots.style import (
    MARKERS,
    METHOD_COLORS,
    SERIES_COLORS,
    layout,
    panel,
    style,
)
from vitolab.plots.summary import order_of, summarize, training_runs
from vitolab.store.tables import largest

#: A label and the personalisations that it stands for.
Groups = Sequence[tuple[str, pd.DataFrame]]
#: Columns of a summary, and their labels on an axis.
MEASURES = (("success", "solved [%]"), ("runs_all", "mean forward runs, all"))


def methods_table(groups: Groups, what: str = "setup") -> pd.DataFrame:
    """Success and cost of each method of each group; the starts' lowest and highest beside."""
    table = []
    for label, rows in groups:
        rows = largest(rows)
        for method in _methods(rows):
            own = rows[rows["method"] == method]
            total = summarize(own, ["method"]).iloc[0]
            starts = summarize(own, ["start"])["success"]
            samples = own["n_samples"].dropna()
            table.append(
                {
                    what: label,
                    "method": method_label(method),
                    "samples per patient": f"{int(samples.iloc[0]):,}" if len(samples) else "",
                    "training runs": training_runs(own),
                    "personalisations": len(own),
                    "success [%]": round(total["success"], 1),
                    "runs, all": round(total["runs_all"], 1),
                    "runs, solved": round(total["runs_solved"], 1),
                    "success, starts from [%]": round(starts.min(), 1),
                    "to [%]": round(starts.max(), 1),
                }
            )
    return pd.DataFrame(table)


def _methods(rows: pd.DataFrame) -> list[str]:
    """Methods of some rows, in the order of all tables."""
    known = order_of(rows["method"].tolist())
    return [m for m in METHOD_COLORS if m in known] + [m for m in known if m not in METHOD_COLORS]


def methods_figure(groups: Groups, where: Mapping[str, int] | None = None, title: str = "") -> Any:
    """Success and mean forward runs of each method, a marker for each group.

    Parameters
    ----------
    groups : sequence of (str, DataFrame)
    where : mapping of label to int, optional
        Places among the colours.
    title : str
    """
    methods = _methods(pd.concat([rows for _, rows in groups]))[::-1]
    table = methods_table(groups, "group")
    panels: list[Any] = []
    for column, label in (("success [%]", MEASURES[0][1]), ("runs, all", MEASURES[1][1])):
        items: list[Any] = []
        for position, (group, _) in enumerate(groups):
            own = table[table["group"] == group]
            shift = 0.5 * ((position + 0.5) / len(groups) - 0.5)
            labels = [method_label(method) for method in methods]
            rows = [labels.index(name) - shift for name in own["method"]]
            place = position if where is None else where[group]
            color = SERIES_COLORS[place % len(SERIES_COLORS)]
            if column == "success [%]":
                ends = (own["success, starts from [%]"], rows, own["to [%]"], rows)
                line = hv.Segments(ends, ["x", "y", "x_to", "y_to"])
                items.append(style(line, color=color, line_width=2.5, alpha=0.4))
            dots = hv.Scatter((own[column], rows), "x", "y", label=group)
            marker = MARKERS[place % len(MARKERS)]
            tools = {"tools": ["hover"]}
            items.append(style(dots, color=color, size=9, marker=marker, bokeh=tools))
        panels.append(
            panel(
                hv.Overlay(items),
                title=title if column == "success [%]" else "",
                xlabel=f"{label}; line: random starts" if column == "success [%]" else label,
                ylabel="",
                size=(4.0, 0.9 + 0.32 * len(methods)),
                legend="right" if panels and len(groups) > 1 else None,
                yticks=list(enumerate(labels)),
                ylim=(-0.6, len(methods) - 0.4),
                xlim=(-3.0, 103.0)
                if column == "success [%]"
                else (0.0, 1.06 * table[column].max()),
            )
        )
    size = (4.0, 0.9 + 0.32 * len(methods))
    return layout(panels, columns=2, size=size, gap=(0.7, 0.4))
