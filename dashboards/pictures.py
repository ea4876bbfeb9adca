"""Pictures of what a model answers, built once; a new answer changes their data alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import panel as pn
from bokeh.models import BoxAnnotation, ColorBar, ColumnDataSource, LinearColorMapper, Range1d
from bokeh.palettes import Greys256, Viridis256

from vitolab.problem import Patient, Problem

from . import answers
from .charts import GREEN, ORANGE, chart, legend, look, pane

BLUE = "#0072B2"
# objectives that are levels of a curve
LEVELS = {
    "lv_volume": ("lv_edv", "lv_esv"),
    "aortic_pressure": ("aortic_systolic", "aortic_mean", "aortic_diastolic"),
}
COLUMN = 250.0  # ms of an ECG beside the next lead
LATEST = 160.0  # ms, the end of the colours of activation
# rings of the bull's-eye, basal first: segments, angle where the first begins, radii
RINGS = ((6, 60.0, 0.75, 1.0), (6, 60.0, 0.5, 0.75), (4, 45.0, 0.25, 0.5), (1, 0.0, 0.0, 0.25))


def row(*panes: Any) -> Any:
    """Charts beside each other, below each other where the screen is narrow."""
    return pn.FlexBox(*panes, sizing_mode="stretch_width", margin=0, gap="8px 16px")


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


class Electric:
    """Activation of the left ventricle and the 12-lead ECG."""

    def __init__(self, problem: Problem) -> None:
        from vitolab.models.electrophysiology import LEADS

        ink = look().ink
        self.problem = problem
        self.segments = ColumnDataSource(_wedges())
        colors = LinearColorMapper(Viridis256[::-1], low=0.0, high=LATEST, nan_color="#888888")
        span = Range1d(-1.25, 1.25)
        eye = chart(
            "Activation of the LV, mean per segment [ms]",
            "",
            "",
            x_range=span,
            y_range=Range1d(-1.25, 1.25),
            sizing_mode="fixed",
            width=348,
            height=310,
        )
        eye.axis.visible = False
        eye.grid.visible = False
        eye.annular_wedge(
            x=0.0,
            y=0.0,
            inner_radius="inner",
            outer_radius="outer",
            start_angle="begin",
            end_angle="end",
            fill_color={"field": "time", "transform": colors},
            line_color="#FFFFFF",
            source=self.segments,
        )
        words = {"text_align": "center", "text_baseline": "middle"}
        eye.text(
            "u", "v", text="words", text_color="shade", source=self.segments,
            text_font_size="12px", **words,
        )  # fmt: skip
        places = ([0.0, 0.0, -1.12, 1.12], [1.12, -1.12, 0.0, 0.0])
        eye.text(
            *places,
            text=["anterior", "inferior", "septal", "lateral"],
            angle=[0.0, 0.0, math.pi / 2, -math.pi / 2],
            text_color=ink,
            text_font_size="12px",
            **words,
        )
        bar = ColorBar(
            color_mapper=colors,
            title="ms",
            width=10,
            background_fill_alpha=0.0,
            major_label_text_color=ink,
            title_text_color=ink,
        )
        eye.add_layout(bar, "right")
        self.leads = ColumnDataSource({"time": [], "potential": []})
        self.labels = ColumnDataSource({"x": [], "y": [], "words": []})
        self.marks = ColumnDataSource({"left": [], "right": [], "bottom": [], "top": []})
        self.scale = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": []})
        ecg = chart(
            "12-lead ECG; band: measured QRS duration",
            f"time [ms], {COLUMN:g} ms for each lead",
            "potential; the bar is 1 mV",
            height=340,
            x_range=Range1d(-20.0, 4 * COLUMN),
        )
        ecg.yaxis.major_label_text_font_size = "0px"
        ecg.yaxis.ticker = []
        ecg.quad(
            left="left", right="right", bottom="bottom", top="top", source=self.marks,
            color=GREEN, alpha=0.25, line_width=0,
        )  # fmt: skip
        ecg.multi_line("time", "potential", source=self.leads, color=ink, line_width=1.3)
        ecg.text("x", "y", text="words", source=self.labels, text_color=ink, text_font_size="12px")
        ecg.segment("x0", "y0", "x1", "y1", source=self.scale, color=BLUE, line_width=3)
        self.names = LEADS
        self.qrs = (0.0, 0.0)
        self.pane = row(pane(eye), pane(ecg))

    def patient(self, patient: Patient, known: answers.Answer) -> None:
        """Show another patient."""
        tolerance = self.problem.objectives[0].tolerance
        z = float(patient.measurements["qrs_duration"])
        self.qrs = (z - tolerance, z + tolerance)

    def show(self, answer: answers.Answer, c: Any) -> None:
        """Show another answer."""
        times = answer["segments"] if answer else np.full(17, np.nan)
        self.segments.data = {
            **self.segments.data,
            "time": times,
            "words": ["" if np.isnan(value) else f"{value:.0f}" for value in times],
            "shade": ["#FFFFFF" if value > 0.5 * LATEST else "#1f2328" for value in times],
        }
        if not answer:
            self.leads.data = {"time": [], "potential": []}
            return
        time, leads = answer["time"], answer["leads"]
        shown = time <= COLUMN - 20.0
        step = max(0.5, 1.05 * float(np.ptp(leads, axis=1).max()))
        x = [COLUMN * (k // 3) + time[shown] for k in range(12)]
        base = [-step * (k % 3) for k in range(12)]
        self.leads.data = {
            "time": x,
            "potential": [lead[shown] + up for lead, up in zip(leads, base, strict=True)],
        }
        left = np.array([COLUMN * (k // 3) for k in range(12)])
        up = np.array(base)
        self.labels.data = {"x": left, "y": up + 0.3 * step, "words": list(self.names)}
        self.marks.data = {
            "left": left + self.qrs[0],
            "right": left + self.qrs[1],
            "bottom": up - 0.35 * step,
            "top": up + 0.35 * step,
        }
        self.scale.data = {"x0": [-12.0], "x1": [-12.0], "y0": [-0.5], "y1": [0.5]}


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


def _wedges() -> dict[str, Any]:
    """Shapes of the 17 segments of the left ventricle."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("inner", "outer", "begin", "end", "u", "v")
    }
    for n, first, inner, outer in RINGS:
        for k in range(n):
            begin = math.radians(first + 360.0 * k / n)
            end = begin + 2 * math.pi / n - (1e-6 if n == 1 else 0.0)
            middle = 0.0 if n == 1 else 0.5 * (inner + outer)
            at = 0.5 * (begin + end)
            values = (inner, outer, begin, end, middle * math.cos(at), middle * math.sin(at))
            for name, value in zip(columns, values, strict=True):
                columns[name].append(value)
    empty = {"time": [math.nan] * 17, "words": [""] * 17, "shade": [""] * 17}
    return columns | empty
