"""Twelve leads on ECG paper: 25 mm/s, 10 mm/mV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
from numpy.typing import NDArray

from vitolab.methods import PAPER
from vitolab.models.electrophysiology.leadfield import LEADS
from vitolab.plots.style import MEASURED_COLOR, METHOD_COLORS, panel, series_color, style

FloatArray = NDArray[np.float64]

MM_PER_SECOND, MM_PER_MILLIVOLT = 25.0, 10.0
ROWS, COLUMNS = 3, 4
SMALL_COLOR, LARGE_COLOR = "#F8DCE0", "#EBA9B4"
TEXT_COLOR = "#222222"
PULSE = 5.0  # mm: the calibration pulse lasts 0.2 s
MARGIN = 10.0  # mm, before the first column; the calibration pulse stands there
INCHES_PER_MM = 0.07


def ecg_paper(
    time: FloatArray,
    leads: FloatArray | Mapping[str, FloatArray],
    *,
    names: Sequence[str] = LEADS,
    rhythm: str | None = None,
    column: float = 1000.0,
    before: float = 400.0,
    title: str = "12-lead ECG of the depolarisation, synthetic patient",
) -> Any:
    """Twelve leads in three rows of four on standard paper, with a calibration pulse of 1 mV.

    Parameters
    ----------
    time : ndarray, shape (n_samples,)
        ms.
    leads : ndarray, shape (12, n_samples), or mapping of a label to such
        mV. Several ECGs are drawn over one another; the first is dark.
    names : sequence of str
        Of the leads, down the columns of the paper.
    rhythm : str, optional
        A lead that a further row shows alone.
    column : float
        Time that each lead takes on the paper, ms; baseline before and after the samples.
    before : float
        Baseline before the first sample, ms.
    title : str

    Returns
    -------
    HoloViews overlay
        In mm of paper. Rows are as far apart as their leads need, at least 25 mm.

    Raises
    ------
    ValueError
        If the leads are not twelve rows of as many samples as `time`, do not fit into a column, or
        `rhythm` is none of them.
    """
    many = {"": leads} if isinstance(leads, np.ndarray) else dict(leads)
    for label, values in many.items():
        if values.shape != (len(names), len(time)) or len(names) != ROWS * COLUMNS:
            raise ValueError(
                f"ECG {label!r} has shape {values.shape}, expected {(ROWS * COLUMNS, len(time))}"
            )
    if rhythm is not None and rhythm not in names:
        raise ValueError(f"rhythm is {rhythm!r}, expected one of {', '.join(names)}")
    if before + time[-1] - time[0] > column:
        raise ValueError(
            f"the ECG takes {time[-1] - time[0]:g} ms and {before:g} ms before it, "
            f"expected at most {column:g} ms"
        )
    width = column * MM_PER_SECOND / 1000.0
    right = _rounded_up(MARGIN + COLUMNS * width)
    lines = [list(range(row, ROWS * COLUMNS, ROWS)) for row in range(ROWS)]
    if rhythm is not None:
        lines.append([list(names).index(rhythm)])
    baselines, height = _baselines(lines, list(many.values()))
    items = list(_grid(right, height))
    for base in baselines:
        pulse = np.array([(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (7.0, 1.0), (7.0, 0.0), (9.0, 0.0)])
        corners = pulse * (1.0, MM_PER_MILLIVOLT) + (0.5, base)
        items.append(style(hv.Curve(corners, "mm", "up"), color=TEXT_COLOR, line_width=1.0))
    shift = before - time[0]
    for position, (label, values) in enumerate(many.items()):
        color = _color(position, len(many))
        first = True
        for rows, base in zip(lines, baselines, strict=True):
            span = width if len(rows) == COLUMNS else right - MARGIN
            for place, lead in enumerate(rows):
                left = MARGIN + place * span
                x = np.concatenate([[0.0], (time + shift) * MM_PER_SECOND / 1000.0, [span]])
                y = np.concatenate([[0.0], values[lead], [0.0]]) * MM_PER_MILLIVOLT
                shown = (left + x, base + y)
                curve = hv.Curve(shown, "mm", "up", label=label if first else "")
                items.append(style(curve, color=color, line_width=1.3))
                first = False
    for rows, base in zip(lines, baselines, strict=True):
        for place, lead in enumerate(rows):
            at = (MARGIN + place * width + 0.7, base + 2.0)
            text = hv.Text(*at, names[lead], fontsize=9, halign="left", valign="bottom")
            colors = {"bokeh": {"text_color": TEXT_COLOR}, "matplotlib": {"color": TEXT_COLOR}}
            items.append(style(text, **colors))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel="25 mm/s: a large square (5 mm) is 0.2 s",
        ylabel="10 mm/mV: a large square is 0.5 mV",
        size=(right * INCHES_PER_MM, height * INCHES_PER_MM),
        legend="bottom" if len(many) > 1 else None,
        xlim=(0.0, right),
        ylim=(0.0, height),
        xticks=0,
        yticks=0,
    )


def _rounded_up(length: float) -> float:
    """Whole large squares."""
    return 5.0 * float(np.ceil(length / 5.0 - 1e-9))


def _baselines(lines: list[list[int]], ecgs: list[FloatArray]) -> tuple[list[float], float]:
    """Height of each row's baseline above the lower edge, and of the paper, mm."""
    up, down = [], []
    for rows in lines:
        values = np.concatenate([ecg[rows].ravel() for ecg in ecgs]) * MM_PER_MILLIVOLT
        up.append(max(_rounded_up(values.max() + 2.0), 15.0))
        down.append(max(_rounded_up(2.0 - values.min()), 10.0))
    height = sum(up) + sum(down)
    baselines, top = [], height
    for above, below in zip(up, down, strict=True):
        baselines.append(top - above)
        top -= above + below
    return baselines, height


def _grid(width: float, height: float) -> tuple[Any, Any]:
    """Lines of the paper: every millimetre, and stronger every fifth."""
    segments: tuple[list[Any], list[Any]] = ([], [])
    for length, other, upright in ((width, height, True), (height, width, False)):
        for mm in range(round(length) + 1):
            line = (mm, 0.0, mm, other) if upright else (0.0, mm, other, mm)
            segments[mm % 5 == 0].append(line)
    small, large = (hv.Segments(lines, ["mm", "up", "mm2", "up2"]) for lines in segments)
    return (
        style(small, color=SMALL_COLOR, line_width=0.5),
        style(large, color=LARGE_COLOR, line_width=0.8),
    )


def _color(position: int, number: int) -> str:
    """Colour of one of several ECGs; two are a measurement and its model."""
    if position == 0:
        return MEASURED_COLOR
    return METHOD_COLORS[PAPER] if number == 2 else series_color(position - 1)
