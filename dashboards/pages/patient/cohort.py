"""All patients of a setup and method: a list that sorts, and a scatter that is linked to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import panel as pn
from bokeh.models import ColumnDataSource, HoverTool, TapTool

from vitolab.intervals import share_interval, worded
from vitolab.problem import Problem

from ...charts.bokeh import BLUE, GREEN, ORANGE, chart, in_one_message, look, pane, unit
from ...kit import safe
from ...kit.table import Table

BASE = {"runs": "forward runs", "worst": "worst misfit [tolerances]", "solved": "solved [%]"}
COLUMNS: list[dict[str, Any]] = [
    {"field": "patient", "title": "patient"},
    {
        "field": "solved",
        "title": "solved [%]",
        "hint": "Share of the fits that were solved",
        "digits": 0,
    },
    {
        "field": "runs",
        "title": "runs",
        "hint": "Forward runs, mean over the fits; not solved counts as the whole budget",
        "digits": 1,
    },
    {
        "field": "worst",
        "title": "worst misfit [tol.]",
        "hint": "Largest misfit in tolerances, mean over the fits",
        "digits": 2,
    },
    {
        "field": "fits",
        "title": "fits",
        "hint": "Fits with the largest training size",
        "digits": 0,
        "below": 600,
    },
]


class Cohort:
    """List and scatter of all patients.

    Parameters
    ----------
    pick : callable
        Called with the name of a patient who was clicked.
    """

    def __init__(self, pick: Callable[[str], None]) -> None:
        self._pick = pick
        self._busy = False
        self._data = pd.DataFrame(columns=["patient", "solved", "runs", "worst", "fits"])
        self._chosen = ""
        self.list = Table(
            COLUMNS, single=True, size=12, caption="All patients, to choose one", margin=0
        )
        self.list.param.watch(self._listed, "chosen")
        self.x = safe.select(label="Across", width=180)
        self.y = safe.select(label="Up", width=180)
        for widget, value in ((self.x, "runs"), (self.y, "worst")):
            widget.options, widget.value = {v: k for k, v in BASE.items()}, value
            widget.param.watch(lambda _: self._draw(), "value")
        self.caption = safe.html("")
        self.source = ColumnDataSource({name: [] for name in ("x", "y", "patient", "color")})
        self.mark = ColumnDataSource({"x": [], "y": []})
        self.figure = chart("All patients; click one", "", "", height=320)
        self.figure.scatter(
            "x", "y", source=self.source, size=9, color="color", line_color=look().paper,
            alpha=0.85, nonselection_alpha=0.85,
        )  # fmt: skip
        self.figure.scatter(
            "x", "y", source=self.mark, size=17, fill_alpha=0.0, line_width=2.5,
            line_color=look().ink,
        )  # fmt: skip
        self.figure.add_tools(TapTool(), HoverTool(tooltips=[("patient", "@patient")]))
        self.source.selected.on_change("indices", self._tapped)
        scatter = pn.Column(
            pn.FlexBox(self.x, self.y, margin=0),
            pane(self.figure),
            styles={"flex": "1 1 340px", "min-width": "0"},
            margin=0,
        )
        listed = pn.Column(self.list, styles={"flex": "1 1 340px", "min-width": "0"}, margin=0)
        self.panel = pn.Column(
            self.caption,
            pn.FlexBox(listed, scatter, sizing_mode="stretch_width", margin=0, gap="8px 16px"),
            sizing_mode="stretch_width",
            margin=0,
        )

    @in_one_message
    def show(self, data: pd.DataFrame, problem: Problem, title: str) -> None:
        """Show other patients; see `fits.summary`."""
        self._data = data
        options = {v: k for k, v in BASE.items()}
        named = {f"z:{o.name}": unit(o) for o in problem.objectives}
        for name in data.columns:
            if name.startswith(("z:", "data:")):
                options[named.get(name, safe.plain(name.partition(":")[2], 40))] = name
        self._busy = True
        try:
            for widget, default in ((self.x, "runs"), (self.y, "worst")):
                keep = widget.value if widget.value in options.values() else default
                widget.options = options
                widget.value = keep
            self.list.show(_rows(data))
        finally:
            self._busy = False
        solved = int((data["solved"] >= 50).sum())
        each = data.loc[data.index.repeat(data["fits"].astype(int))]
        share = each["solved"] / 100.0
        self.caption.object = safe.fill(
            "<h3>{title}</h3><div class='faint'>{n} patients; {success} of the fits solved (95 % "
            "over the patients: {ends}); {solved} patients solved in at least half of their fits; "
            "median of the forward runs {runs:}, not solved counts as the whole budget. Blue: "
            "solved in every fit, orange: in none, green: in some.</div>",
            title=title,
            n=len(data),
            success=f"{100.0 * share.mean():.0f} %" if len(each) else "–",
            ends=worded(share_interval(each, share), 0) or "–",
            solved=solved,
            runs=f"{data['runs'].median():.0f}" if len(data) else "–",
        )
        self._draw()
        self.choose(self._chosen)

    @in_one_message
    def choose(self, patient: str) -> None:
        """Mark a patient."""
        self._chosen = patient
        rows = np.flatnonzero((self._data["patient"] == patient).to_numpy())
        self._busy = True
        try:
            self.list.chosen = [str(row) for row in rows]
            self.source.selected.indices = rows.tolist()
        finally:
            self._busy = False
        self.mark.data = {
            axis: self._data[widget.value].to_numpy(float)[rows] if len(self._data) else []
            for axis, widget in (("x", self.x), ("y", self.y))
        }

    @in_one_message
    def _draw(self) -> None:
        """Draw the scatter anew."""
        if self._busy or not len(self._data):
            return
        labels = {value: name for name, value in self.x.options.items()}
        self.figure.xaxis.axis_label = labels[self.x.value]
        self.figure.yaxis.axis_label = labels[self.y.value]
        solved = self._data["solved"].to_numpy(float)
        self.source.data = {
            "x": self._data[self.x.value].to_numpy(float),
            "y": self._data[self.y.value].to_numpy(float),
            "patient": [safe.plain(name, 64) for name in self._data["patient"]],
            "color": [BLUE if s >= 100 else ORANGE if s <= 0 else GREEN for s in solved],
        }
        self.choose(self._chosen)

    def _listed(self, event: Any) -> None:
        """A row of the list was clicked."""
        if not self._busy and event.new:
            self._picked(int(event.new[0]))

    def _tapped(self, attr: str, old: Any, new: Any) -> None:
        """A point of the scatter was clicked."""
        if not self._busy and new:
            self._picked(new[0])

    def _picked(self, row: int) -> None:
        """Tell which patient was clicked."""
        if row < len(self._data):
            self._pick(str(self._data["patient"].iloc[row]))


def _rows(data: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of the list, by their number."""
    rows = []
    for k, values in enumerate(data.to_dict("records")):
        name = safe.plain(values["patient"], 64)
        row: dict[str, Any] = {"key": str(k), "choice": True, "label": name, "patient": name}
        for field in ("solved", "runs", "worst", "fits"):
            row[field] = float(values[field]) if np.isfinite(values[field]) else None
        rows.append(row)
    return rows
