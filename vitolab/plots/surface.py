"""Figure of the surface of a heart, coloured by activation time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import holoviews as hv
import numpy as np
from numpy.typing import NDArray

from vitolab.models.electrophysiology.anatomy import boundary
from vitolab.plots.style import TIMES, layout, panel, style

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class View(NamedTuple):
    """From where a heart is looked at.

    Attributes
    ----------
    direction : (float, float, float)
        From the heart to the viewer; z points up in the picture.
    across, up : str
        What rightwards and upwards are, for the axes.
    """

    direction: tuple[float, float, float]
    across: str
    up: str


VIEWS = {
    # nodes in the torso frame
    "anterior": View((0, -1, 0), "to the patient's left", "to the head"),
    "posterior": View((0, 1, 0), "to the patient's right", "to the head"),
    "left": View((1, 0, 0), "to the back", "to the head"),
    "right": View((-1, 0, 0), "to the front", "to the head"),
    # nodes in the heart frame
    "RV side": View((-1, 0, 0), "anterior (−y)", "apex to base"),
    "LV side": View((1, 0, 0), "inferior (+y)", "apex to base"),
}


def activation_view(
    nodes: FloatArray,
    tets: IntArray,
    tau: FloatArray,
    *,
    views: Sequence[str] = ("anterior", "left"),
    limits: tuple[float, float] | None = None,
    title: str = "activation times, synthetic patient",
    size: tuple[float, float] = (3.8, 3.8),
    n_pixels: int = 420,
) -> Any:
    """Surface of the heart, coloured by activation time, looked at from some sides.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
        mm, in the torso frame, or in the heart frame for the views of that.
    tets : ndarray of int, shape (m, 4)
        Positively oriented.
    tau : ndarray, shape (n,)
        Activation times, ms; NaN where it never arrives, grey.
    views : sequence of str
        Names in `VIEWS`.
    limits : (float, float), optional
        Ends of the colours, ms; by default earliest and latest time.
    title : str
    size : (float, float)
        Inches, of each view.
    n_pixels : int
        Of each view, in each direction.

    Returns
    -------
    HoloViews layout
        Orthographic, in one scale.

    Raises
    ------
    ValueError
        If a view is not known.
    """
    unknown = [name for name in views if name not in VIEWS]
    if unknown:
        raise ValueError(f"view is {unknown[0]!r}, expected one of {', '.join(VIEWS)}")
    triangles = boundary(tets)
    used = np.unique(triangles)
    seen = {name: nodes @ _axes(VIEWS[name]).T for name in views}
    ends = [(s[used, :2].min(axis=0), s[used, :2].max(axis=0)) for s in seen.values()]
    half = 0.53 * float(max((high - low).max() for low, high in ends))
    if limits is None:
        limits = (float(np.nanmin(tau)), float(np.nanmax(tau)))
    gap = (0.3, 0.35)
    share = 1.0 / (len(views) + gap[0] * (len(views) - 1))
    panels = []
    for (name, points), (low, high) in zip(seen.items(), ends, strict=True):
        center = 0.5 * (low + high)
        offset = half * (2.0 * (np.arange(n_pixels) + 0.5) / n_pixels - 1.0)
        u, v = center[0] + offset, center[1] + offset
        time, light = drawn_surface(points, triangles, tau, u, v)
        image = style(
            hv.Image((u, v, time), ["u", "v"], ["time"]),
            cmap=TIMES,
            clim=limits,
            colorbar=name == views[-1],
            clabel="activation time [ms]",
            matplotlib={"cbar_width": 0.05 * share, "cbar_padding": 0.05 * share},
        )
        dark = np.zeros((n_pixels, n_pixels))
        alpha = np.where(np.isnan(light), 0.0, 0.45 * (1.0 - light))
        shade = hv.RGB((u, v, dark, dark, dark, alpha), ["u", "v"], vdims=list("RGBA"))
        view = VIEWS[name]
        panels.append(
            panel(
                image * shade,
                title=name,
                xlabel=f"{view.across} [mm]",
                ylabel=f"{view.up} [mm]",
                size=size,
                xlim=(center[0] - half, center[0] + half),
                ylim=(center[1] - half, center[1] + half),
            )
        )
    return layout(panels, columns=len(views), title=title, size=size, gap=gap)


def _axes(view: View) -> FloatArray:
    """Rows: rightwards, upwards, and to the viewer."""
    toward = np.array(view.direction, dtype=np.float64)
    across = np.cross((0.0, 0.0, 1.0), toward)
    return np.stack([across, (0.0, 0.0, 1.0), toward])


def drawn_surface(
    points: FloatArray, triangles: IntArray, values: FloatArray, u: FloatArray, v: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Value and light at each pixel of a surface seen along its last axis.

    Parameters
    ----------
    points : ndarray, shape (n, 3)
        Rightwards, upwards, to the viewer.
    triangles : ndarray of int, shape (t, 3)
        Counter-clockwise seen from outside, of a closed surface.
    values : ndarray, shape (n,)
        Linear on each triangle.
    u, v : ndarray, shape (w,), (h,)
        Evenly spaced, rising centres of the pixels.

    Returns
    -------
    value, light : ndarray, shape (h, w)
        NaN where there is no surface; light from 0 to 1.
    """
    corner = points[triangles]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    smooth = np.zeros_like(points)
    for k in range(3):
        np.add.at(smooth, triangles[:, k], normal)
    smooth /= np.maximum(np.linalg.norm(smooth, axis=1, keepdims=True), 1e-12)
    bright = np.clip(smooth @ (np.array([-0.3, 0.4, 0.87]) / np.sqrt(1.0069)), 0.0, 1.0)
    depth = np.full((len(v), len(u)), -np.inf)
    value, light = np.full((2, *depth.shape), np.nan)
    step_u, step_v = u[1] - u[0], v[1] - v[0]
    for t in np.flatnonzero(normal[:, 2] > 1e-12):  # what faces away is hidden
        (a, b, c), double_area = corner[t, :, :2], normal[t, 2]
        low, high = corner[t, :, :2].min(axis=0), corner[t, :, :2].max(axis=0)
        i = slice(*_pixels(low[0], high[0], u[0], step_u, len(u)))
        j = slice(*_pixels(low[1], high[1], v[0], step_v, len(v)))
        du, dv = u[np.newaxis, i], v[j, np.newaxis]
        at_b = ((du - a[0]) * (c[1] - a[1]) - (dv - a[1]) * (c[0] - a[0])) / double_area
        at_c = ((b[0] - a[0]) * (dv - a[1]) - (b[1] - a[1]) * (du - a[0])) / double_area
        at = np.stack([1.0 - at_b - at_c, at_b, at_c])
        height = np.tensordot(corner[t, :, 2], at, 1)
        nearer = (at >= -1e-9).all(axis=0) & (height > depth[j, i])
        for image, nodal in ((depth, points[:, 2]), (value, values), (light, bright)):
            image[j, i][nearer] = np.tensordot(nodal[triangles[t]], at, 1)[nearer]
    return value, light


def _pixels(low: float, high: float, first: float, step: float, n: int) -> tuple[int, int]:
    """First pixel and the one after the last whose centres lie in a range."""
    begin = int(np.ceil((low - first) / step - 1e-9))
    end = int(np.floor((high - first) / step + 1e-9)) + 1
    return min(max(begin, 0), n), min(max(end, 0), n)
