"""Figures of how well a personalised circulation fits its patient over the beat (section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.methods import PAPER
from vitolab.models.circulation.about import PICTURE
from vitolab.plots.style import (
    MEASURED_COLOR,
    SUCCESS_COLOR,
    fill,
    layout,
    panel,
    series_color,
    style,
)
from vitolab.problem import Problem
from vitolab.store.records import ProblemRecord

FloatArray = NDArray[np.float64]
Problems = Mapping[str, Problem | ProblemRecord]

MISSED_COLOR = "#D55E00"
# objectives that can be seen as a level of each curve
ROWS = tuple((shown.y, shown.y_label, shown.levels) for shown in PICTURE.panels if shown.levels)


def fit_curves(
    arrays: Mapping[str, FloatArray],
    personalizations: pd.DataFrame,
    patients: pd.DataFrame,
    problems: Problems,
    *,
    patients_are: str = "synthetic patient",
) -> Any:
    """LV volume and aortic pressure over the beat, model against measurement, in each setup.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        ``measured/time`` [s], ``measured/lv_volume`` [mL], ``measured/aortic_pressure``
        [mmHg], and the same of the personalised model under the name of each setup.
    personalizations, patients : DataFrame
        Tables of the run, of one patient.
    problems : mapping of setup name to Problem or ProblemRecord
    patients_are : str
        For the title.

    Returns
    -------
    HoloViews layout
        Bands are measurements with their tolerance: green where the model meets them, orange
        where not, strong where the setup is the first to ask for them.
    """
    rows = personalizations[personalizations["method"] == PAPER].set_index("setup")
    measured: dict[str, Any] = {row["setup"]: row for row in patients.to_dict("records")}
    size, gap = (3.0, 2.6), (0.12, 0.3)
    panels = []
    for name, label, levels in ROWS:
        lowest, highest = _range(arrays, problems, name)
        known: set[str] = set()
        for column, (setup, problem) in enumerate(problems.items()):
            outcome = rows.loc[setup]
            end = 1e3 * max(arrays["measured/time"][-1], arrays[f"{setup}/time"][-1])
            items = _bands(problem, levels, measured[setup], outcome, known, end)
            known |= {objective.name for objective in problem.objectives}
            items.append(_curve(arrays, "measured", name, "measured", MEASURED_COLOR, "dotted"))
            items.append(_curve(arrays, setup, name, "personalised model", "#0072B2", "solid"))
            last = column == len(problems) - 1 and name == "lv_volume"
            panels.append(
                panel(
                    hv.Overlay(items),
                    title=_words(setup, problem, outcome) if name == "lv_volume" else "",
                    xlabel="time [ms]",
                    ylabel=label if column == 0 else "",
                    size=size,
                    legend="right" if last else None,
                    xlim=(0.0, end),
                    ylim=(lowest, highest),
                )
            )
    who = str(patients["patient"].iloc[0])
    return layout(
        panels,
        columns=len(problems),
        title=f"{patients_are} {who}: model against measurements",
        size=size,
        gap=gap,
    )


def _bands(
    problem: Problem | ProblemRecord,
    levels: Mapping[str, str],
    measured: Mapping[str, Any],
    outcome: Any,
    known: set[str],
    end: float,
) -> list[Any]:
    """Measured levels with their tolerance; `known` ones were asked for by an earlier setup."""
    items: list[Any] = []
    for objective in problem.objectives:
        if objective.name not in levels:
            continue
        z = float(measured[f"z:{objective.name}"])
        met = abs(outcome[f"misfit:{objective.name}"]) < objective.tolerance
        color = SUCCESS_COLOR if met else MISSED_COLOR
        box = hv.Rectangles([(0.0, z - objective.tolerance, end, z + objective.tolerance)])
        items.append(fill(box, color, 0.15 if objective.name in known else 0.35))
        # within the band, at the end where no other band lies over it
        side = -1.0 if objective.name == "aortic_diastolic" else 1.0
        text = hv.Text(
            0.985 * end,
            z + 0.95 * side * objective.tolerance,
            levels[objective.name],
            fontsize=8,
            halign="right",
            valign="top" if side > 0 else "bottom",
        )
        items.append(style(text, bokeh={"text_color": color}, matplotlib={"color": color}))
    return items


def _range(arrays: Mapping[str, FloatArray], problems: Problems, name: str) -> tuple[float, float]:
    """Common limits of one kind of curve."""
    curves = [arrays[f"{source}/{name}"] for source in ("measured", *problems)]
    lowest, highest = min(c.min() for c in curves), max(c.max() for c in curves)
    room = max(0.08 * (highest - lowest), 22.0 if name == "lv_volume" else 12.0)
    return float(lowest - room), float(highest + room)


def _curve(
    arrays: Mapping[str, FloatArray], source: str, name: str, label: str, color: str, dash: str
) -> Any:
    """One curve over the beat."""
    points = (1e3 * arrays[f"{source}/time"], arrays[f"{source}/{name}"])
    return style(
        hv.Curve(points, "time", "value", label=label), color=color, line_width=2.0, line_dash=dash
    )


def _words(setup: str, problem: Problem | ProblemRecord, outcome: Any) -> str:
    """Title of a column."""
    end = "solved" if outcome["solved"] else "not solved"
    runs = int(outcome["n_runs"])
    words = f"{setup}: {end} in {runs} run{'' if runs == 1 else 's'}"
    for objective in problem.objectives:
        if objective.name == "ejection_time":
            c = outcome["misfit:ejection_time"]
            misfit = f"{c:+.0f}".replace("-", "−")
            words += f"\nejection time {misfit} of ±{objective.tolerance:g} {objective.unit}"
    return words


def pressure_volume_loops(
    arrays: Mapping[str, FloatArray],
    problems: Problems,
    *,
    title: str = "LV pressure against volume, synthetic patient",
) -> Any:
    """Pressure-volume loops of the personalised left ventricle in each setup.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        ``<setup>/lv_volume`` [mL] and ``<setup>/lv_pressure`` [mmHg].
    problems : mapping of setup name to Problem or ProblemRecord
    title : str
    """
    items = []
    for position, setup in enumerate(problems):
        loop = np.stack([arrays[f"{setup}/lv_volume"], arrays[f"{setup}/lv_pressure"]], axis=1)
        closed = np.vstack([loop, loop[:1]])
        curve = hv.Curve(closed, "volume", "pressure", label=setup)
        items.append(style(curve, color=series_color(position), line_width=2.0))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel="LV volume [mL]",
        ylabel="LV pressure [mmHg]",
        legend="right",
        padding=0.05,
    )


def fit_table(
    personalizations: pd.DataFrame, patients: pd.DataFrame, problems: Problems
) -> pd.DataFrame:
    """Measured, modelled, misfit and tolerance of every objective in every setup.

    Parameters
    ----------
    personalizations, patients : DataFrame
        Tables of the run, of one patient.
    problems : mapping of setup name to Problem or ProblemRecord
    """
    table = []
    measured: dict[str, Any] = {row["setup"]: row for row in patients.to_dict("records")}
    for setup, problem in problems.items():
        own = personalizations[
            (personalizations["setup"] == setup) & (personalizations["method"] == PAPER)
        ]
        outcome = own.iloc[0]
        for objective in problem.objectives:
            z = float(measured[setup][f"z:{objective.name}"])
            c = float(outcome[f"misfit:{objective.name}"])
            table.append(
                {
                    "setup": setup,
                    "objective": objective.label,
                    "unit": objective.unit,
                    "measured": round(z, 1),
                    "model": round(z + c, 1),
                    "misfit": round(c, 1),
                    "tolerance": objective.tolerance,
                    "met": abs(c) < objective.tolerance,
                }
            )
    return pd.DataFrame(table)
