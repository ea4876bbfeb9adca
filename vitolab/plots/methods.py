"""All methods of some personalisations beside each other: success and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import pandas as pd

from vitolab.intervals import heading, worded
from vitolab.methods import label as method_label
from vitolab.plots.style import (
    MARKERS,
    METHOD_COLORS,
    SERIES_COLORS,
    layout,
    panel,
    style,
)
from vitolab.plots.summary import ends_of, order_of, summarize, training_runs
from vitolab.store.tables import largest

#: A label and the personalisations that it stands for.
Groups = Sequence[tuple[str, pd.DataFrame]]
#: Columns of a summary, and their labels on an axis.
MEASURES = (("success", "solved [%]"), ("runs_all", "mean forward runs, all"))


def methods_table(groups: Groups, what: str = "setup") -> pd.DataFrame:
    """Success and cost of each method of each group; the starts' lowest and highest beside.

    Intervals are over the patients; not solved counts as the whole budget in the runs over all.
    """
    table = []
    for label, total, own in _totals(groups):
        starts = summarize(own, ["start"])["success"]
        samples = own["n_samples"].dropna()
        table.append(
            {
                what: label,
                "method": method_label(total["method"]),
                "samples per patient": f"{int(samples.iloc[0]):,}" if len(samples) else "",
                "training runs": training_runs(own),
                "personalisations": len(own),
                "success [%]": round(total["success"], 1),
                heading("success"): worded(ends_of(total, "success")),
                "runs, all": round(total["runs_all"], 1),
                heading("runs, all"): worded(ends_of(total, "runs_all")),
                "runs, solved": round(total["runs_solved"], 1),
                heading("runs, solved"): worded(ends_of(total, "runs_solved")),
                "success, starts from [%]": round(starts.min(), 1),
                "to [%]": round(starts.max(), 1),
            }
        )
    return pd.DataFrame(table)


def _totals(groups: Groups) -> list[tuple[str, dict[Any, Any], pd.DataFrame]]:
    """Label, summary and rows of each method of each group, with its largest training."""
    told = ("success", "runs_all", "runs_solved")
    totals = []
    for label, rows in groups:
        rows = largest(rows)
        for method in _methods(rows):
            own = rows[rows["method"] == method]
            total = summarize(own, ["method"], intervals=told).iloc[0].to_dict()
            totals.append((label, total, own))
    return totals


def _methods(rows: pd.DataFrame) -> list[str]:
    """Methods of some rows, in the order of all tables."""
    known = order_of(rows["method"].tolist())
    return [m for m in METHOD_COLORS if m in known] + [m for m in known if m not in METHOD_COLORS]


def methods_figure(groups: Groups, where: Mapping[str, int] | None = None, title: str = "") -> Any:
    """Success and mean forward runs of each method, a marker for each group.

    Thin lines are 95 % intervals over the patients, pale ones reach from the lowest to the highest
    of the random starts.

    Parameters
    ----------
    groups : sequence of (str, DataFrame)
    where : mapping of label to int, optional
        Places among the colours.
    title : str
    """
    methods = _methods(pd.concat([rows for _, rows in groups]))[::-1]
    labels = [method_label(method) for method in methods]
    totals = _totals(groups)
    panels: list[Any] = []
    for measure, label in MEASURES:
        success = measure == "success"
        items: list[Any] = []
        highest = 0.0
        for position, (group, _) in enumerate(groups):
            own = [(total, rows) for name, total, rows in totals if name == group]
            shift = 0.5 * ((position + 0.5) / len(groups) - 0.5)
            rows = [methods.index(total["method"]) - shift for total, _ in own]
            place = position if where is None else where[group]
            color = SERIES_COLORS[place % len(SERIES_COLORS)]
            values = [float(total[measure]) for total, _ in own]
            ends = [ends_of(total, measure) for total, _ in own]
            highest = max([highest, *values, *(high for _, high in ends if high == high)])
            if success:
                starts = [summarize(rows, ["start"])["success"] for _, rows in own]
                lines = [
                    (found.min(), row, found.max(), row)
                    for found, row in zip(starts, rows, strict=True)
                ]
                items.append(_segments(lines, color, line_width=5.0, alpha=0.3))
            lines = [(low, row, high, row) for (low, high), row in zip(ends, rows, strict=True)]
            known = [line for line in lines if line[0] == line[0]]
            items.append(_segments(known, color, line_width=1.4))
            dots = hv.Scatter((values, rows), "x", "y", label=group)
            marker = MARKERS[place % len(MARKERS)]
            tools = {"tools": ["hover"]}
            items.append(style(dots, color=color, size=9, marker=marker, bokeh=tools))
        said = "line: 95 %; pale: random starts" if success else "line: 95 %"
        panels.append(
            panel(
                hv.Overlay(items),
                title=title if success else "",
                xlabel=f"{label}; {said}",
                ylabel="",
                size=(4.0, 0.9 + 0.32 * len(methods)),
                legend="right" if panels and len(groups) > 1 else None,
                yticks=list(enumerate(labels)),
                ylim=(-0.6, len(methods) - 0.4),
                xlim=(-3.0, 103.0) if success else (0.0, 1.06 * highest),
            )
        )
    size = (4.0, 0.9 + 0.32 * len(methods))
    return layout(panels, columns=2, size=size, gap=(0.7, 0.4))


def _segments(lines: list[tuple[float, float, float, float]], color: str, **options: Any) -> Any:
    """Horizontal lines."""
    return style(hv.Segments(lines, ["x", "y", "x_to", "y_to"]), color=color, **options)
