"""Figure of the states that stand for two misfits, learned and by hand (section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
from numpy.typing import NDArray

from vitolab.plots.learning import axis_label
from vitolab.plots.style import SUCCESS_COLOR, fill, layout, panel, style
from vitolab.problem import Objective
from vitolab.states import StateSpace, scaled
from vitolab.store.records import ObjectiveRecord

FloatArray = NDArray[np.float64]

# The thresholds of the paper's predecessor are not known to us: multiples of the tolerances that
# give about as many states as the paper's 120.
THRESHOLDS = (1.0, 2.0, 4.0, 8.0, 16.0)
MAX_POINTS = 3_000
OBSERVED_COLOR, LINE_COLOR = "#4477AA", "#999999"


def nearest_cells(points: FloatArray, half: FloatArray) -> list[FloatArray]:
    """Split a rectangle into the cells of those points that are nearest.

    Parameters
    ----------
    points : ndarray, shape (n, 2)
        Distinct.
    half : ndarray, shape (2,)
        Half width and half height of the rectangle about the origin.

    Returns
    -------
    list of ndarray, shape (n_corners, 2)
        One convex polygon per point; without corners where the cell lies outside.
    """
    corners = half * np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])
    cells = []
    for i, point in enumerate(points):
        distance = np.linalg.norm(points - point, axis=1)
        cell = corners
        for j in np.argsort(distance, kind="stable"):
            reach = 2.0 * np.linalg.norm(cell - point, axis=1).max() if len(cell) else 0.0
            if distance[j] >= reach:
                break
            if j != i:
                normal = points[j] - point
                cell = _clipped(cell, normal, float(normal @ (points[j] + point)) / 2.0)
        cells.append(cell)
    return cells


def _clipped(polygon: FloatArray, normal: FloatArray, offset: float) -> FloatArray:
    """Part of a convex polygon where ``normal @ x <= offset``."""
    side = polygon @ normal - offset
    kept: list[FloatArray] = []
    for i in range(len(polygon)):
        k = (i + 1) % len(polygon)
        if side[i] <= 0.0:
            kept.append(polygon[i])
        if side[i] * side[k] < 0.0:
            share = side[i] / (side[i] - side[k])
            kept.append(polygon[i] + share * (polygon[k] - polygon[i]))
    return np.array(kept).reshape(-1, 2)


def state_map(
    states: StateSpace,
    objectives: Sequence[Objective | ObjectiveRecord],
    observed: FloatArray | None = None,
    *,
    thresholds: Sequence[float] = THRESHOLDS,
    limits: tuple[float, float] | None = None,
    patients: str = "synthetic patients",
    size: tuple[float, float] = (4.2, 4.2),
) -> Any:
    """States of two objectives as learned, beside a grid of thresholds set by hand.

    Parameters
    ----------
    states : StateSpace
        Of two objectives.
    objectives : sequence of Objective or ObjectiveRecord
    observed : ndarray, shape (n, 2), optional
        Misfits from which the states were learned; at most 3,000 are drawn.
    thresholds : sequence of float
        Of the grid on the right, in tolerances, on both sides of zero.
    limits : (float, float), optional
        Half width and half height of the picture; by default what 98 % of the observed misfits
        span, or all centroids.
    patients : str
        Whose misfits these are, for the title.
    size : (float, float)
        Inches, of each panel.

    Returns
    -------
    HoloViews layout
        A misfit belongs to the cell of the nearest centroid in the paper's weighted distance,
        unless it lies within both tolerances: the green box, success.

    Raises
    ------
    ValueError
        If there are not two objectives.
    """
    if len(objectives) != 2 or states.centroids.shape[1] != 2:
        raise ValueError(
            f"states of {states.centroids.shape[1]} and {len(objectives)} objectives, expected 2"
        )
    if limits is None:
        spread = np.abs(states.centroids)
        limit = spread.max(axis=0)
        if observed is not None and len(observed):
            limit = np.nanquantile(np.abs(observed), 0.98, axis=0)
        limits = (1.05 * float(limit[0]), 1.05 * float(limit[1]))
    half, tolerance = np.array(limits), states.tolerance
    unit = tolerance / scaled(tolerance, tolerance, states.squared)
    others = states.centroids[1:]
    cells = [
        cell * unit
        for cell in nearest_cells(scaled(others, tolerance, states.squared), half / unit)
        if len(cell) > 2
    ]
    outlines = [np.vstack([cell, cell[:1]]) for cell in cells]
    drawn = style(hv.Path(outlines, ["c_i", "c_j"]), color=LINE_COLOR, line_width=0.7)
    inside = states.centroids[(np.abs(states.centroids) <= half).all(axis=1)]
    dots = style(
        hv.Points(inside, ["c_i", "c_j"], label="centroid"), color="#000000", size=3.5, marker="o"
    )
    faint = _observed(observed, half)
    learned = [*faint, drawn, _success(tolerance), dots]
    edges = np.array(sorted({*thresholds, *(-t for t in thresholds)}))
    number = (len(edges) + 1) ** 2
    by_hand = [*faint, _grid(edges, tolerance, half), _success(tolerance)]
    shown = "" if len(cells) == len(others) else f", {1 + len(cells)} in view"
    words = ", ".join(f"{t:g}" for t in sorted(thresholds))
    panels = [
        panel(
            hv.Overlay(items),
            title=title,
            xlabel=f"misfit: {axis_label(objectives[0])}",
            ylabel=f"misfit: {axis_label(objectives[1])}",
            size=size,
            legend="bottom",
            xlim=(-limits[0], limits[0]),
            ylim=(-limits[1], limits[1]),
        )
        for items, title in (
            (learned, f"learned: {states.n_states} states{shown}"),
            (
                by_hand,
                f"by hand, for illustration: {number} states\nour thresholds: ±{words} tolerances",
            ),
        )
    ]
    return layout(
        panels, columns=2, title=f"states of two misfits, {patients}", size=size, gap=(0.3, 0.35)
    )


def _observed(observed: FloatArray | None, half: FloatArray) -> list[Any]:
    """Misfits that were seen, faint."""
    if observed is None:
        return []
    seen = observed[(np.abs(observed) <= half).all(axis=1)]
    seen = seen[:: max(1, -(-len(seen) // MAX_POINTS))]
    dots = hv.Points(seen, ["c_i", "c_j"], label="observed misfit")
    return [style(dots, color=OBSERVED_COLOR, size=2.5, marker="o", alpha=0.2)]


def _success(tolerance: FloatArray) -> Any:
    """Box of the success state."""
    a, b = tolerance
    box = hv.Rectangles([(-a, -b, a, b)], label="success: within both tolerances")
    return fill(box, SUCCESS_COLOR, 0.75)


def _grid(edges: FloatArray, tolerance: FloatArray, half: FloatArray) -> Any:
    """Thresholds within the picture, in both directions."""
    lines: list[tuple[float, float, float, float]] = []
    for edge in edges:
        u, v = edge * tolerance
        if abs(u) < half[0]:
            lines.append((u, -half[1], u, half[1]))
        if abs(v) < half[1]:
            lines.append((-half[0], v, half[0], v))
    return style(hv.Segments(lines, ["c_i", "c_j", "u", "v"]), color=LINE_COLOR, line_width=0.7)
