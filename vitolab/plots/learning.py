"""Figures of what an agent has learned: states, values, policy, start candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
from numpy.typing import NDArray

from vitolab.plots.style import MAP, SUCCESS_COLOR, panel, series_color, style
from vitolab.problem import Objective, Parameter
from vitolab.states import StateSpace
from vitolab.store.records import ObjectiveRecord, ParameterRecord

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Named = Parameter | ParameterRecord | Objective | ObjectiveRecord

# points along each axis at which a map of states asks for the state
RESOLUTION = 300


def axis_label(named: Named) -> str:
    """Label of a parameter or objective, with its unit if it has one."""
    return f"{named.label} [{named.unit}]" if named.unit else named.label


def state_space(
    states: StateSpace,
    objectives: Sequence[Objective | ObjectiveRecord],
    *,
    values: FloatArray | None = None,
    visited: FloatArray | None = None,
    axes: tuple[int, int] = (0, 1),
    limits: tuple[float, float] | None = None,
    title: str = "states",
    size: tuple[float, float] = (4.2, 3.6),
) -> Any:
    """Cells of the states in the plane of two objectives, with the success box.

    Parameters
    ----------
    states : StateSpace
    objectives : sequence of Objective
        All objectives of the problem.
    values : ndarray, shape (n_states,), optional
        Value v of each state, shown as colour; without it neighbouring cells only differ. One more
        value, that of failed runs, is not shown.
    visited : ndarray, shape (n, n_objectives), optional
        Misfits to show as points.
    axes : (int, int)
        The two objectives; all others are zero (a slice).
    limits : (float, float), optional
        Half width and half height of the picture; by default what the centroids span.
    title : str
    size : (float, float)
        Inches.
    """
    i, j = axes
    if limits is None:
        spread = np.abs(states.centroids).max(axis=0)
        limits = (1.1 * float(spread[i]), 1.1 * float(spread[j]))
    horizontal, vertical = (np.linspace(-limit, limit, RESOLUTION) for limit in limits)
    c = np.zeros((RESOLUTION**2, states.centroids.shape[1]))
    mesh = np.meshgrid(horizontal, vertical)
    c[:, i], c[:, j] = mesh[0].ravel(), mesh[1].ravel()
    label = states.quantize(c).reshape(RESOLUTION, RESOLUTION)
    if values is None:
        # neighbours in the list are far apart in shade
        shade = (np.arange(states.n_states) * 0.618034) % 1.0
        shown, name = shade[label], "shade"
    else:
        values = values[: states.n_states]
        shown, name = values[label], "value v"
    cells = style(
        hv.Image((horizontal, vertical, shown), ["c_i", "c_j"], [name]),
        cmap="Greys" if values is None else MAP,
        # success, worth 0, is a point on this scale and has its frame
        clim=(-1.0, 3.0) if values is None else (float(values.min()), float(values[1:].max())),
        colorbar=values is not None,
        clabel=name,
        matplotlib={"cbar_padding": 0.03},
    )
    border = np.zeros(label.shape, dtype=bool)
    border[:, 1:] |= label[:, 1:] != label[:, :-1]
    border[1:] |= label[1:] != label[:-1]
    lines = style(
        hv.Image((horizontal, vertical, np.where(border, 1.0, np.nan)), ["c_i", "c_j"], ["border"]),
        cmap=["#FFFFFF"],
        alpha=0.6,
    )
    items: list[Any] = [cells, lines]
    inside = np.abs(states.centroids[:, [i, j]]) <= limits
    off_axes = np.delete(states.centroids, [i, j], axis=1)
    # in a slice only the centroids that lie in it are points of it
    here = states.centroids[inside.all(axis=1) & (off_axes == 0).all(axis=1)][:, [i, j]]
    if visited is not None:
        seen = visited[(np.abs(visited[:, [i, j]]) <= limits).all(axis=1)][:, [i, j]]
        dots = hv.Points(seen, ["c_i", "c_j"], label="visited")
        items.append(style(dots, color="#4477AA", size=3, marker="o", alpha=0.5))
    centers = hv.Points(here, ["c_i", "c_j"], label="centroid")
    items.append(style(centers, color="#000000", size=4, marker="o"))
    psi_i, psi_j = states.tolerance[i], states.tolerance[j]
    box = np.array(
        [[-psi_i, -psi_j], [psi_i, -psi_j], [psi_i, psi_j], [-psi_i, psi_j], [-psi_i, -psi_j]]
    )
    frame = hv.Curve(box, "c_i", "c_j", label="success: within all tolerances")
    items.append(style(frame, color=SUCCESS_COLOR, line_width=2.5))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel=f"misfit: {axis_label(objectives[i])}",
        ylabel=f"misfit: {axis_label(objectives[j])}",
        size=size,
        legend="bottom",
        xlim=(-limits[0], limits[0]),
        ylim=(-limits[1], limits[1]),
    )


def value_convergence(
    residuals: Mapping[str, FloatArray], size: tuple[float, float] = (4.2, 3.0)
) -> Any:
    """Largest Bellman residual against the round of the solution.

    Parameters
    ----------
    residuals : mapping of a name to ndarray, shape (n_rounds,)
    size : (float, float)
        Inches.
    """
    items = []
    for position, (name, values) in enumerate(residuals.items()):
        rounds = np.arange(1, len(values) + 1)
        positive = values > 0
        curve = hv.Curve((rounds[positive], values[positive]), "round", "residual", label=f"{name}")
        items.append(style(curve, color=series_color(position), line_width=2.0))
    return panel(
        hv.Overlay(items),
        title="solving for the values",
        xlabel="round",
        ylabel="largest Bellman residual",
        size=size,
        legend="top_right",
        logy=True,
    )


def policy_map(
    x: FloatArray,
    steps: IntArray,
    *,
    background: Any = None,
    multipliers: Sequence[int] = (1, 10, 100, 500),
    title: str = "best action",
    size: tuple[float, float] = (4.2, 4.2),
    labels: tuple[str, str] = ("x₁", "x₂"),
) -> Any:
    """Best action at each point of a regular grid, as an arrow.

    Parameters
    ----------
    x : ndarray, shape (n, 2)
        Points of a regular grid of two parameters.
    steps : ndarray of int, shape (n, 2)
        Steps that the best action takes there; zeros where there is nothing to do.
    background : HoloViews element, optional
        What lies below the arrows, such as `function_map`.
    multipliers : sequence of int
        Numbers of steps that actions take; each has its colour and length.
    title : str
    size : (float, float)
        Inches.
    labels : (str, str)

    Returns
    -------
    HoloViews overlay
        Direction is that of the action; length and colour tell how many steps it takes.
    """
    cell = np.array([np.diff(np.unique(x[:, k])).min() for k in range(2)])
    multiple = np.abs(steps).max(axis=1)
    items: list[Any] = [] if background is None else [background]
    for rank, m in enumerate(multipliers):
        rows = multiple == m
        if not rows.any():
            continue
        direction = np.sign(steps[rows])
        length = (0.35 + 0.45 * (rank + 1) / len(multipliers)) * cell
        start, end = x[rows] - 0.5 * direction * length, x[rows] + 0.5 * direction * length
        color = series_color(rank)
        name = f"{m} step{'' if m == 1 else 's'}"
        shafts = hv.Segments(np.hstack([start, end]), ["x1", "x2", "x1_to", "x2_to"], label=name)
        items.append(style(shafts, color=color, line_width=1.4))
        for marker, toward in (("^", (0, 1)), ("v", (0, -1)), (">", (1, 0)), ("<", (-1, 0))):
            heads = end[(direction == toward).all(axis=1)]
            if len(heads):
                head = hv.Points(heads, ["x1", "x2"])
                items.append(style(head, color=color, size=5, marker=marker))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel=labels[0],
        ylabel=labels[1],
        size=size,
        legend="bottom",
    )


def candidates(
    members: FloatArray,
    means: FloatArray,
    weights: FloatArray,
    parameters: Sequence[Parameter | ParameterRecord],
    *,
    density: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    truth: FloatArray | None = None,
    axes: tuple[int, int] = (0, 1),
    title: str = "start candidates",
    size: tuple[float, float] = (4.2, 4.2),
) -> Any:
    """Members of a patient's cluster, their density, and the ranked start candidates.

    Parameters
    ----------
    members : ndarray, shape (n, n_parameters)
        Parameters whose outputs lie in the cluster nearest to the measurements.
    means : ndarray, shape (m, n_parameters)
        Candidates, best first.
    weights : ndarray, shape (m,)
        Weights of the mixture components behind them.
    parameters : sequence of Parameter
    density : (ndarray, ndarray, ndarray), optional
        The two axes, and the density with the second parameter along the rows; shown over
        four decades.
    truth : ndarray, shape (n_parameters,), optional
    axes : (int, int)
        The two parameters shown.
    title : str
    size : (float, float)
        Inches.
    """
    i, j = axes
    items: list[Any] = []
    if density is not None:
        x1, x2, values = density
        peak = float(values.max())
        logs = np.log10(np.maximum(values, 1e-4 * peak) / peak)
        image = hv.Image((x1, x2, logs), ["x1", "x2"], ["log₁₀ of density over its peak"])
        items.append(style(image, cmap="Blues", clim=(-4.0, 1.0)))
    dots = hv.Points(members[:, [i, j]], ["x1", "x2"], label="members of the cluster")
    items.append(style(dots, color="#555555", size=3.5, marker="o", alpha=0.6))
    for rank, (mean, weight) in enumerate(zip(means, weights, strict=True)):
        at = hv.Points(mean[None, [i, j]], ["x1", "x2"], label="" if rank else "start candidates")
        items.append(
            style(at, color="#D55E00", size=6 + 12 * float(weight / weights.max()), marker="D")
        )
    if truth is not None:
        goal = hv.Points(truth[None, [i, j]], ["x1", "x2"], label="truth")
        items.append(style(goal, color="#D7191C", size=13, marker="*"))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel=axis_label(parameters[i]),
        ylabel=axis_label(parameters[j]),
        size=size,
        legend="right",
    )
