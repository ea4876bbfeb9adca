"""Pictures of what a model answers, built once; a new answer changes their data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import BoxAnnotation, ColumnDataSource, LinearColorMapper, Range1d
from bokeh.palettes import Greys256

from vitolab.catalogue import model_of
from vitolab.models.description import Curves, Landscape
from vitolab.problem import Patient, Problem

from . import answers
from .bokeh import BLUE, GREEN, ORANGE, chart, legend, look, pane, row
from .heart import Electric


class Lines:
    """Curves of an answer in panels, with what was measured: levels as bands, curves as points."""

    def __init__(self, problem: Problem, shown: Curves) -> None:
        ink = look().ink
        self.problem = problem
        self.model, self.measured = ColumnDataSource(), ColumnDataSource()
        self.bands: dict[str, BoxAnnotation] = {}
        self.model.data = {name: [] for panel in shown.panels for name in (panel.x, panel.y)}
        self.measured.data = {
            name: [] for panel in shown.panels if panel.measured for name in (panel.x, panel.y)
        }
        figures = []
        for panel in shown.panels:
            made = chart(panel.title, panel.x_label, panel.y_label, height=280)
            for objective in problem.objectives:
                if objective.name in panel.levels:
                    band = BoxAnnotation(fill_alpha=0.25, line_alpha=0.0, visible=False)
                    self.bands[objective.name] = band
                    made.add_layout(band)
            key = {}
            if panel.measured:
                points = made.scatter(
                    panel.x, panel.y, source=self.measured, size=4, color=ink, fill_alpha=0.7
                )
                key["measured"] = [points]
            line = made.line(panel.x, panel.y, source=self.model, color=BLUE, line_width=2.2)
            key = {panel.note: [line], **key}
            if panel.levels:
                square = made.scatter(
                    [np.nan], [np.nan], marker="square", color=GREEN, alpha=0.4, size=12
                )
                key["measured ± tolerance (green: met)"] = [square]
            legend(made, key, len(key))
            figures.append(pane(made))
        self.pane = row(*figures)

    def patient(self, patient: Patient, known: answers.Answer) -> None:
        """Show another patient."""
        names = tuple(self.measured.data)
        has_curves = set(names) <= set(known)
        self.measured.data = {name: known[name] if has_curves else [] for name in names}
        for objective in self.problem.objectives:
            if objective.name in self.bands:
                z = float(patient.measurements[objective.name])
                tolerance = objective.tolerance
                band = self.bands[objective.name]
                band.update(bottom=z - tolerance, top=z + tolerance, visible=True)

    def show(self, answer: answers.Answer, c: Any) -> None:
        """Show another answer; bands that its misfits meet are green."""
        self.model.data = {name: answer[name] if answer else [] for name in self.model.data}
        for objective, value in zip(self.problem.objectives, c, strict=True):
            if objective.name in self.bands:
                met = abs(value) < objective.tolerance
                self.bands[objective.name].fill_color = GREEN if met else ORANGE


class Plane:
    """Map of a function with the path through it.

    Parameters
    ----------
    problem : Problem
    shown : Landscape
    """

    def __init__(self, problem: Problem, shown: Landscape) -> None:
        ink = look().ink
        end = shown.limit
        self.problem = problem
        self.image = ColumnDataSource({"image": []})
        self.path = ColumnDataSource({"x1": [], "x2": []})
        self.goal = ColumnDataSource({"x1": [], "x2": []})
        self.here = ColumnDataSource({"x1": [], "x2": []})
        made = chart(
            "Path through parameter space",
            *(p.label for p in problem.parameters),
            height=420,
            x_range=Range1d(-end, end),
            y_range=Range1d(-end, end),
        )
        made.grid.visible = False
        colors = LinearColorMapper(Greys256[40:], low=-2.0, high=4.2)
        self.shown = made.image(
            "image", x=-end, y=-end, dw=2 * end, dh=2 * end, color_mapper=colors, source=self.image
        )
        border = {"line_dash": "dashed", "line_color": ink}
        (left, bottom), (right, top) = problem.lower.tolist(), problem.upper.tolist()
        domain = {"left": left, "right": right, "bottom": bottom, "top": top}
        made.add_layout(BoxAnnotation(**domain, fill_alpha=0, **border))
        made.line("x1", "x2", source=self.path, color="#FFFFFF", line_width=3.5)
        line = made.line("x1", "x2", source=self.path, color=BLUE, line_width=1.8)
        dots = made.scatter("x1", "x2", source=self.path, color=BLUE, size=4)
        here = made.scatter(
            "x1", "x2", source=self.here, marker="diamond", size=16, color=ORANGE,
            line_color="#FFFFFF",
        )  # fmt: skip
        goal = made.scatter(
            "x1", "x2", source=self.goal, marker="star", size=16, color="#D7191C",
            line_color="#FFFFFF",
        )  # fmt: skip
        legend(made, {"forward runs": [line, dots], "selected run": [here], "minimum": [goal]}, 3)
        self.goal_shown = goal
        self.pane = row(pane(made, most=640))

    def patient(self, patient: Patient, known: answers.Answer) -> None:
        """Show another function."""
        self.image.data = {"image": [known["map"]]} if known else {"image": []}
        goal = known["optimum"] if known else [np.nan, np.nan]
        self.goal.data = {"x1": [goal[0]], "x2": [goal[1]]}

    def walked(self, x: Any, restarts: Any) -> None:
        """Show another path, shape (n_runs, 2), and where it began anew."""
        x = np.asarray(x, dtype=float).reshape(-1, 2)
        x = np.insert(x, np.flatnonzero(restarts), np.nan, axis=0)  # a gap
        self.path.data = {"x1": x[:, 0], "x2": x[:, 1]}

    def show(self, answer: answers.Answer, c: Any) -> None:
        """Mark another run."""
        x = answer["x"] if answer else [np.nan, np.nan]
        self.here.data = {"x1": [x[0]], "x2": [x[1]]}

    def reveal(self, shown: bool) -> None:
        """Show the map and the minimum, or hide them."""
        self.shown.visible = self.goal_shown.visible = shown


Picture = Lines | Electric | Plane


def picture(problem: Problem) -> Picture | None:
    """Picture of what the model of a problem answers; None if there is none."""
    model = model_of(problem)
    shown = None if model is None else model.picture
    if isinstance(shown, Curves):
        return Lines(problem, shown)
    if isinstance(shown, Landscape):
        return Plane(problem, shown)
    return None if shown is None else Electric(problem)
