"""Figure of when the segments of the left ventricle are activated."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
from numpy.typing import NDArray

from vitolab.models.electrophysiology.segments import RINGS, segment_means, segments
from vitolab.plots.style import TIMES, panel, style

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def bullseye(
    tau: FloatArray,
    apex_base: FloatArray,
    rotation: FloatArray,
    right: BoolArray,
    volume: FloatArray,
    *,
    limits: tuple[float, float] | None = None,
    title: str = "activation of the left ventricle, synthetic patient",
    size: tuple[float, float] = (4.0, 4.0),
) -> Any:
    """Mean activation times in the 17 AHA segments, seen from the apex, septum on the left.

    Parameters
    ----------
    tau : ndarray, shape (n,)
        Activation time of each node, ms.
    apex_base, rotation, right : ndarray, shape (n,)
        See `segments`.
    volume : ndarray, shape (n,)
        Of each node.
    limits : (float, float), optional
        Ends of the colours, ms; by default earliest and latest segment.
    title : str
    size : (float, float)
        Inches.
    """
    means = segment_means(tau, volume, segments(apex_base, rotation, right))
    low, high = limits or (float(np.nanmin(means)), float(np.nanmax(means)))
    high = max(high, low + 1e-9)
    shapes, texts = [], []
    for number, (corners, middle) in enumerate(_shapes()):
        value = means[number]
        shapes.append({"u": corners[:, 0], "v": corners[:, 1], "time": value})
        dark = np.isfinite(value) and value > low + 0.5 * (high - low)
        texts.append((*middle, "" if np.isnan(value) else f"{value:.0f}", dark))
    items = [
        style(
            hv.Polygons(shapes, ["u", "v"], ["time"]),
            cmap=TIMES,
            clim=(low, high),
            colorbar=True,
            clabel="mean activation time [ms]",
            line_color="#FFFFFF",
            line_width=1.5,
            bokeh={"color": "time"},
            matplotlib={"color": "time", "cbar_padding": 0.03},
        )
    ]
    items += [
        _text(u, v, words, "#FFFFFF" if dark else "#222222", 10) for u, v, words, dark in texts
    ]
    items += [
        _text(u, v, words, "#222222", 9, angle)
        for u, v, words, angle in (
            (0.0, 1.08, "anterior", 0),
            (-1.08, 0.0, "septal", 90),
            (0.0, -1.08, "inferior", 0),
            (1.08, 0.0, "lateral", 270),
        )
    ]
    disc = panel(
        hv.Overlay(items),
        title=title,
        xlabel="",
        ylabel="",
        size=size,
        xaxis=None,
        yaxis=None,
        xlim=(-1.2, 1.2),
        ylim=(-1.2, 1.2),
    )
    return style(disc, matplotlib={"show_frame": False}, bokeh={"show_frame": False})


def _text(u: float, v: float, words: str, color: str, points: int, angle: float = 0.0) -> Any:
    """Words in the picture."""
    text = hv.Text(u, v, words, fontsize=points, rotation=angle)
    return style(text, bokeh={"text_color": color}, matplotlib={"color": color})


def _shapes() -> list[tuple[FloatArray, tuple[float, float]]]:
    """Outline and middle of each of the 17 segments in the picture."""
    shapes = []
    for n, begin, inner, outer in RINGS:
        for i in range(n):
            angle = np.radians(begin + np.linspace(i, i + 1, 1 + 240 // n) * 360.0 / n)
            arc = np.stack([np.cos(angle), np.sin(angle)], axis=1)
            outline = outer * arc if n == 1 else np.vstack([outer * arc, inner * arc[::-1]])
            middle = 0.0 if n == 1 else 0.5 * (inner + outer)
            center = np.radians(begin + (i + 0.5) * 360.0 / n)
            shapes.append((outline, (middle * np.cos(center), middle * np.sin(center))))
    return shapes
