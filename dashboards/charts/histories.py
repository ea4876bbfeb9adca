"""Charts of what happened over the forward runs of a personalisation or a game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bokeh.events import Tap
from bokeh.models import BoxAnnotation, ColumnDataSource, Range1d, Span

from vitolab.problem import Problem

from ..kit import safe
from .bokeh import GREEN, ORANGE, chart, colors, legend, look, pane, unit

Pick = Callable[[int], None]
FLOOR = 1e-2  # tolerances; what is smaller has its place here on a log axis


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
