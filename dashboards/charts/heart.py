"""Picture of what the model of a heart answers: activation and ECG."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bokeh.models import ColorBar, ColumnDataSource, LinearColorMapper, Range1d
from bokeh.palettes import Viridis256

from vitolab.problem import Patient, Problem

from . import answers
from .bokeh import BLUE, GREEN, chart, look, pane, row

COLUMN = 250.0  # ms of an ECG beside the next lead
LATEST = 160.0  # ms, the end of the colours of activation


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


def _wedges() -> dict[str, Any]:
    """Shapes of the 17 segments of the left ventricle."""
    from vitolab.models.electrophysiology.segments import RINGS

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
