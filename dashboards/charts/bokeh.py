"""Charts that move: each is built once for a problem, afterwards only its data change.

The figures of `vitolab.plots` are drawn anew for each picture, which takes longer than a step of
a film may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import panel as pn
from bokeh.models import BoxAnnotation, ColumnDataSource, Legend, LegendItem, Range1d, Span, Title
from bokeh.plotting import figure
from panel.io import unlocked

from vitolab.explain import signed
from vitolab.problem import Objective, Parameter, Problem

from ..kit import safe

#: Decorates what changes figures. Panel queues what it sends; a bare change of a Bokeh model would
#: overtake the message by which the browser learns of that model.
in_one_message = unlocked()

BLUE, GREEN, ORANGE = "#0072B2", "#009E73", "#D55E00"


@dataclass(frozen=True)
class Look:
    """Colours of text, lines and ground."""

    ink: str
    line: str
    paper: str


LIGHT, DARK = Look("#1f2328", "#d5dae0", "#ffffff"), Look("#e8eaed", "#3a4148", "#15181c")


def look() -> Look:
    """Colours of the page of this session."""
    return DARK if pn.config.theme == "dark" else LIGHT


def colors(number: int) -> list[str]:
    """Colours of parameters, objectives and other series."""
    from vitolab.plots.style import series_color

    return [series_color(k) for k in range(number)]


def unit(named: Objective | Parameter) -> str:
    """Label with its unit, if it has one."""
    return safe.plain(f"{named.label} [{named.unit}]" if named.unit else named.label, 60)


def chart(title: str, xlabel: str, ylabel: str, *, height: int = 260, **options: Any) -> Any:
    """Empty figure that fills the width it is given."""
    shade = look()
    made = figure(
        title=Title(text=safe.plain(title, 80), text_color=shade.ink, text_font_size="13px"),
        tools="box_zoom,pan,reset,save",
        toolbar_location="above",
        background_fill_alpha=0.0,
        border_fill_alpha=0.0,
        outline_line_color=shade.line,
        min_border_right=12,
        **{"sizing_mode": "stretch_width", "height": height, **options},
    )
    made.toolbar.logo = None
    made.toolbar.autohide = True
    for axis, label in ((made.xaxis, xlabel), (made.yaxis, ylabel)):
        axis.axis_label = label
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = "12px"
        axis.major_label_text_font_size = "11px"
        for part in ("axis_label_text_color", "major_label_text_color", "axis_line_color"):
            setattr(axis, part, shade.ink)
        axis.major_tick_line_color = axis.minor_tick_line_color = shade.ink
    made.grid.grid_line_color = shade.line
    made.grid.grid_line_alpha = 0.6
    return made


def legend(made: Any, items: Mapping[str, list[Any]], ncols: int = 2) -> None:
    """Legend below the figure, where it takes no width."""
    shade = look()
    made.add_layout(
        Legend(
            items=[LegendItem(label=name, renderers=drawn) for name, drawn in items.items()],
            ncols=ncols,
            label_text_color=shade.ink,
            label_text_font_size="12px",
            background_fill_alpha=0.0,
            border_line_alpha=0.0,
            padding=2,
            spacing=2,
        ),
        "below",
    )


def pane(made: Any, most: int = 1600) -> Any:
    """Pane of a figure; in a row of charts it shrinks and grows, unless its size is fixed."""
    fixed = {} if made.sizing_mode == "fixed" else {"sizing_mode": "stretch_width"}
    return pn.Column(
        pn.pane.Bokeh(made, margin=0, **({"sizing_mode": "fixed"} | fixed)),
        sizing_mode="stretch_width",
        margin=0,
        styles={
            "flex": "1 1 340px",
            "min-width": "min(340px, 100%)",
            "max-width": f"{most}px",
            "overflow": "hidden",  # a long title does not wrap
        },
    )


def row(*panes: Any) -> Any:
    """Charts beside each other, below each other where the screen is narrow."""
    return pn.FlexBox(*panes, sizing_mode="stretch_width", margin=0, gap="8px 16px")


class MisfitBars:
    """Misfit of each objective as a bar in tolerances.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        shade = look()
        self.problem = problem
        n = len(problem.objectives)
        self.x_range = Range1d(-3.0, 3.0)
        self.figure = chart(
            "Misfits; goal: all within the band",
            "misfit / tolerance",
            "",
            height=90 + 46 * n,
            x_range=self.x_range,
            y_range=Range1d(n - 0.4, -0.75),
        )
        self.figure.yaxis.visible = False
        self.figure.ygrid.visible = False
        band = {"fill_color": GREEN, "fill_alpha": 0.18, "line_alpha": 0.0}
        self.figure.add_layout(BoxAnnotation(left=-1.0, right=1.0, **band))
        empty: dict[str, list[Any]] = {
            name: [] for name in ("y", "c", "color", "words", "up", "left")
        }
        self.source = ColumnDataSource(empty)
        self.figure.hbar(y="y", right="c", left=0.0, height=0.42, color="color", source=self.source)
        self.figure.text(
            x="left",
            y="up",
            text="words",
            source=self.source,
            text_color=shade.ink,
            text_font_size="12px",
            text_baseline="middle",
        )
        self.figure.add_layout(Span(location=0.0, dimension="height", line_color=shade.ink))
        self.pane = pane(self.figure)

    def show(self, c: Any) -> None:
        """Show misfits, shape (n_objectives,)."""
        c = np.asarray(c, dtype=float)
        sizes = c / self.problem.tolerance
        worst = np.nanmax(np.abs(sizes)) if np.isfinite(sizes).any() else 1.0
        end = float(min(max(3.0, 1.1 * worst), 1e6))
        n = len(c)
        words = []
        for objective, value, size in zip(self.problem.objectives, c, sizes, strict=True):
            told = f"{value:+.4g} {objective.unit}".strip() + f" = {size:+.2f} tolerances"
            told = told if np.isfinite(value) else "the model did not answer"
            words.append(safe.plain(f"{objective.label}: {signed(told)}", 90))
        self.source.data = {
            "y": np.arange(n) + 0.05,
            "up": np.arange(n) - 0.38,
            "left": np.full(n, -end * 0.99),
            "c": np.nan_to_num(sizes, nan=0.0),
            "color": [GREEN if abs(size) < 1 else ORANGE for size in sizes],
            "words": words,
        }
        self.x_range.update(start=-end, end=end)
