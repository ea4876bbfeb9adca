"""Charts that move: each is built once for a problem, afterwards only its data change.

The figures of `vitolab.plots` are drawn anew for each picture, which takes longer than a step of
a film may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import panel as pn
from bokeh.events import Tap
from bokeh.models import BoxAnnotation, ColumnDataSource, Legend, LegendItem, Range1d, Span
from bokeh.plotting import figure
from panel.io import unlocked

from vitolab.problem import Objective, Parameter, Problem

from . import safe

Pick = Callable[[int], None]

#: Decorates what changes figures. Panel queues what it sends; a bare change of a Bokeh model would
#: overtake the message by which the browser learns of that model.
in_one_message = unlocked()

GREEN, ORANGE = "#009E73", "#D55E00"
FLOOR = 1e-2  # tolerances; what is smaller has its place here on a log axis


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
        title=safe.plain(title, 80),
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
    made.title.update(text_color=shade.ink, text_font_size="13px")
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
        styles={"flex": "1 1 340px", "min-width": "min(340px, 100%)", "max-width": f"{most}px"},
    )


class History:
    """Curves against the forward run, with a line at the run that is looked at.

    Parameters
    ----------
    names : list of str
        One for each curve.
    title, ylabel : str
    pick : callable, optional
        Called with the run, from 1, that was clicked.
    kind : {"line", "step"}
    shown : list of str, optional
        Colour of each curve.
    **options
        Of the figure.
    """

    def __init__(
        self,
        names: list[str],
        title: str,
        ylabel: str,
        *,
        pick: Pick | None = None,
        kind: str = "line",
        shown: list[str] | None = None,
        **options: Any,
    ) -> None:
        shade = look()
        self.x_range = Range1d(0.5, 1.5)
        self.figure = chart(title, "forward run", ylabel, x_range=self.x_range, **options)
        self.figure.xaxis.ticker.min_interval = 1
        self.source = ColumnDataSource({"run": [], **{f"y{k}": [] for k in range(len(names))}})
        self.restarts = ColumnDataSource({"run": []})
        self.figure.vspan(
            x="run", source=self.restarts, line_color=shade.ink, line_dash="dotted", line_width=1.2
        )
        items = {}
        for k, (name, color) in enumerate(zip(names, shown or colors(len(names)), strict=True)):
            draw = self.figure.line if kind == "line" else self.figure.step
            more = {} if kind == "line" else {"mode": "after"}
            drawn = draw("run", f"y{k}", source=self.source, color=color, line_width=1.8, **more)
            dots = self.figure.scatter("run", f"y{k}", source=self.source, color=color, size=5)
            items[name] = [drawn, dots]
        if len(names) > 1:
            legend(self.figure, items)
        self.cursor = Span(location=1, dimension="height", line_color=ORANGE, line_width=2)
        self.figure.add_layout(self.cursor)
        if pick is not None:
            self.figure.on_event(Tap, lambda event: pick(round(event.x)))
        self.pane = pane(self.figure)

    def show(self, values: Any, restarts: Any) -> None:
        """Show other values, shape (n_runs, n_curves), and where the method began anew."""
        values = np.asarray(values, dtype=float)
        n = len(values)
        runs = np.arange(1, n + 1)
        self.restarts.data = {"run": runs[np.asarray(restarts, dtype=bool)] - 0.5}
        self.source.data = {"run": runs, **{f"y{k}": row for k, row in enumerate(values.T)}}
        self.x_range.update(start=0.5, end=max(n, 1) + 0.5)

    def at(self, run: int) -> None:
        """Mark a run, from 1."""
        self.cursor.location = run


class MisfitHistory(History):
    """Sizes of misfits in tolerances, with the band that they must reach.

    Parameters
    ----------
    problem : Problem
    pick : callable, optional
    """

    def __init__(self, problem: Problem, pick: Pick | None = None) -> None:
        self.tolerance = problem.tolerance
        self.y_range = Range1d(0.1, 10.0)
        super().__init__(
            [safe.plain(o.label, 40) for o in problem.objectives],
            "Misfits over the runs; band: success",
            "|misfit| / tolerance",
            pick=pick,
            y_axis_type="log",
            y_range=self.y_range,
            height=230 + 18 * len(problem.objectives),
        )
        band = BoxAnnotation(top=1.0, fill_color=GREEN, fill_alpha=0.18, line_alpha=0.0)
        self.figure.add_layout(band)

    def show(self, values: Any, restarts: Any) -> None:
        """Show other misfits, shape (n_runs, n_objectives); a failed run leaves a gap."""
        sizes = np.maximum(np.abs(np.asarray(values, dtype=float)) / self.tolerance, FLOOR)
        super().show(sizes, restarts)
        known = sizes[np.isfinite(sizes)]
        low, high = (known.min(), known.max()) if known.size else (1.0, 1.0)
        self.y_range.update(start=min(0.1, 0.8 * float(low)), end=max(2.0, 1.5 * float(high)))


def parameter_histories(problem: Problem, pick: Pick | None = None) -> list[History]:
    """One small chart for each parameter, over its domain."""
    made = []
    shown = colors(len(problem.parameters))
    for parameter, color in zip(problem.parameters, shown, strict=True):
        history = History(
            [parameter.name],
            unit(parameter),
            safe.plain(parameter.unit, 20) or "value",
            pick=pick,
            shown=[color],
            height=170,
        )
        domain = {"line_color": look().ink, "line_dash": "dashed", "line_alpha": 0.5}
        for bound in (parameter.lower, parameter.upper):
            history.figure.add_layout(Span(location=bound, dimension="width", **domain))
        made.append(history)
    return made


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
            words.append(safe.plain(f"{objective.label}: {told}".replace("-", "−"), 90))
        self.source.data = {
            "y": np.arange(n) + 0.05,
            "up": np.arange(n) - 0.38,
            "left": np.full(n, -end * 0.99),
            "c": np.nan_to_num(sizes, nan=0.0),
            "color": [GREEN if abs(size) < 1 else ORANGE for size in sizes],
            "words": words,
        }
        self.x_range.update(start=-end, end=end)


def numbers(problem: Problem, x: Any, y: Any, z: Any, c: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables of one forward run: parameters, and outputs against measurements."""
    parameters = pd.DataFrame(
        {
            "parameter": [p.label for p in problem.parameters],
            "value": [
                f"{value:.5g} {p.unit}" for p, value in zip(problem.parameters, x, strict=True)
            ],
            "domain": [f"{p.lower:g} to {p.upper:g}" for p in problem.parameters],
        }
    )
    rows = list(zip(problem.objectives, y, z, c, strict=True))
    objectives = pd.DataFrame(
        {
            "objective": [unit(o) for o, *_ in rows],
            "model": [f"{value:.4g}" for _, value, *_ in rows],
            "measured": [f"{value:.4g} ± {o.tolerance:g}" for o, _, value, _ in rows],
            "misfit": [f"{value:+.4g}" for *_, value in rows],
            "met": ["✓" if abs(value) < o.tolerance else "✗" for o, *_, value in rows],
        }
    )
    return parameters, objectives
