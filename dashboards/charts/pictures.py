"""Pictures of what a model answers, built once; a new answer changes their data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import BoxAnnotation, ColumnDataSource, LinearColorMapper, Range1d
from bokeh.palettes import Greys256

from vitolab.problem import Patient, Problem

from . import answers
from .bokeh import BLUE, GREEN, ORANGE, chart, legend, look, pane, row
from .heart import Electric

# objectives that are levels of a curve
LEVELS = {
    "lv_volume": ("lv_edv", "lv_esv"),
    "aortic_pressure": ("aortic_systolic", "aortic_mean", "aortic_diastolic"),
}


class Beat:
    """LV volume, aortic pressure and the pressure-volume loop of the circulation."""

    def __init__(self, problem: Problem) -> None:
        ink = look().ink
        self.problem = problem
        self.model, self.measured = ColumnDataSource(), ColumnDataSource()
        self.bands: dict[str, BoxAnnotation] = {}
        names = ("time", "lv_volume", "lv_pressure", "aortic_pressure")
        self.model.data = {name: [] for name in names}
        self.measured.data = {name: [] for name in ("time", "lv_volume", "aortic_pressure")}
        figures = []
        for name, title, label in (
            ("lv_volume", "LV volume", "LV volume [mL]"),
            ("aortic_pressure", "Aortic pressure", "aortic pressure [mmHg]"),
        ):
            made = chart(title, "time [ms]", label, height=280)
            for objective in problem.objectives:
                if objective.name in LEVELS[name]:
                    band = BoxAnnotation(fill_alpha=0.25, line_alpha=0.0, visible=False)
                    self.bands[objective.name] = band
                    made.add_layout(band)
            points = made.scatter(
                "time", name, source=self.measured, size=4, color=ink, fill_alpha=0.7
            )
            line = made.line("time", name, source=self.model, color=BLUE, line_width=2.2)
            band = made.scatter(
                [np.nan], [np.nan], marker="square", color=GREEN, alpha=0.4, size=12
            )
            legend(
                made,
                {
                    "model": [line],
                    "measured": [points],
                    "measured ± tolerance (green: met)": [band],
                },
                3,
            )
            figures.append(pane(made))
        loop = chart("Pressure-volume loop", "LV volume [mL]", "LV pressure [mmHg]", height=280)
        line = loop.line("lv_volume", "lv_pressure", source=self.model, color=BLUE, line_width=2.2)
        legend(loop, {"model; LV pressure was not measured": [line]})
        self.pane = row(*figures, pane(loop))

    def patient(self, patient: Patient, known: answers.Answer) -> None:
        """Show another patient."""
        empty: dict[str, Any] = {name: [] for name in self.measured.data}
        names = tuple(empty)
        found = {name: known[name] for name in names} if "time" in known else empty
        self.measured.data = found | {"time": 1e3 * np.asarray(found["time"], dtype=float)}
        for objective in self.problem.objectives:
            if objective.name in self.bands:
                z = float(patient.measurements[objective.name])
                tolerance = objective.tolerance
                band = self.bands[objective.name]
                band.update(bottom=z - tolerance, top=z + tolerance, visible=True)

    def show(self, answer: answers.Answer, c: Any) -> None:
        """Show another answer; bands that its misfits meet are green."""
        if answer:
            self.model.data = {**answer, "time": 1e3 * answer["time"]}
        else:
            self.model.data = {name: [] for name in self.model.data}
        for objective, value in zip(self.problem.objectives, c, strict=True):
            if objective.name in self.bands:
                met = abs(value) < objective.tolerance
                self.bands[objective.name].fill_color = GREEN if met else ORANGE


class Plane:
    """Map of a function with the path through it.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        ink = look().ink
        end = answers.MAP_LIMIT
        self.problem = problem
        self.image = ColumnDataSource({"image": []})
        self.path = ColumnDataSource({"x1": [], "x2": []})
        self.goal = ColumnDataSource({"x1": [], "x2": []})
        self.here = ColumnDataSource({"x1": [], "x2": []})
        made = chart(
            "Path through parameter space",
            "x₁",
            "x₂",
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
        made.add_layout(BoxAnnotation(left=-5, right=5, bottom=-5, top=5, fill_alpha=0, **border))
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


Picture = Beat | Electric | Plane


def picture(problem: Problem) -> Picture | None:
    """Picture of a built-in model; None if there is none."""
    kinds: dict[str, type[Picture]] = {
        "circulation": Beat,
        "electrophysiology": Electric,
        "rosenbrock": Plane,
    }
    made = kinds.get(answers.kind(problem))
    return made(problem) if made else None
