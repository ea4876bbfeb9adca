"""Figures of the page Policy: the states in the plane of two objectives, and what is done there."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
from numpy.typing import NDArray

from vitolab import plots
from vitolab.explain import signed
from vitolab.plots.learning import axis_label
from vitolab.plots.quantization import nearest_cells
from vitolab.plots.style import MAP, SERIES_COLORS, SUCCESS_COLOR, fill, panel, style
from vitolab.states import scaled

from .learned import Learned, drift

FloatArray = NDArray[np.float64]
#: What colours can show, by the name that addresses hold.
COLORS = {"value": "value", "visits": "visits", "action": "best action"}
#: What is drawn at each state.
MARKS = {"arrows": "arrows: where it leads", "labels": "labels: best action", "plain": "nothing"}
#: Half width of the picture around success: so many tolerances, or what holds such a share.
NEAR, NEAR_SHARE = 12.0, 0.25
#: Labels that a picture holds at most.
MOST_LABELS = 60
_SIZE = (5.6, 4.6)
_UP, _DOWN = "^", "v"


def limits_of(known: Learned, axes: tuple[int, int], near: bool) -> FloatArray:
    """Half width and half height of the picture."""
    far = np.abs(known.states.centroids[:, list(axes)])
    if not near:
        whole: FloatArray = 1.08 * far.max(axis=0)
        return whole
    psi = known.states.tolerance[list(axes)]
    half: FloatArray = psi * max(NEAR, float(np.quantile((far / psi).max(axis=1), NEAR_SHARE)))
    return half


def inside(known: Learned, axes: tuple[int, int], near: bool) -> NDArray[np.bool_]:
    """Which states lie in the picture."""
    far = np.abs(known.states.centroids[:, list(axes)])
    within: NDArray[np.bool_] = np.all(far <= limits_of(known, axes, near), axis=1)
    return within


def short_action(known: Learned, action: int) -> str:
    """An action in few characters."""
    steps = known.problem.actions[action]
    place = int(np.flatnonzero(steps)[0])
    return signed(f"{known.problem.parameters[place].label} {steps[place]:+d}")


def plane(known: Learned, axes: tuple[int, int], color: str, near: bool, marks: str) -> Any:
    """Representative states in the plane of two objectives.

    Parameters
    ----------
    known : Learned
    axes : (int, int)
        The objectives across and up.
    color : str
        One of `COLORS`.
    near : bool
        Whether only what lies around success is shown.
    marks : str
        One of `MARKS`.
    """
    half = limits_of(known, axes, near)
    rows = np.flatnonzero(inside(known, axes, near))
    at = known.states.centroids[:, list(axes)]
    psi = known.states.tolerance[list(axes)]
    box = hv.Rectangles([(-psi[0], -psi[1], psi[0], psi[1])], label="success: all tolerances met")
    items = [*_cells(known, axes, half), fill(box, SUCCESS_COLOR, 0.45)]
    if marks == "arrows":
        items += _arrows(known, axes, half, rows)
    items += _states(known, at, rows, color)
    if marks == "labels":
        items += _labels(known, at, rows, half)
    objectives = known.problem.objectives
    return panel(
        hv.Overlay(items),
        title=f"{known.setup}: {len(rows)} of {known.states.n_states} states",
        xlabel=f"misfit: {axis_label(objectives[axes[0]])}",
        ylabel=f"misfit: {axis_label(objectives[axes[1]])}",
        size=_SIZE,
        legend="bottom",
        xlim=(-half[0], half[0]),
        ylim=(-half[1], half[1]),
    )


def _cells(known: Learned, axes: tuple[int, int], half: FloatArray) -> list[Any]:
    """Borders between states, where there are no further objectives."""
    if known.problem.n_objectives != 2:
        return []
    psi = known.states.tolerance
    unit = psi / scaled(psi, psi, known.states.squared)
    cells = nearest_cells(
        scaled(known.states.centroids[1:], psi, known.states.squared),
        (half if axes == (0, 1) else half[::-1]) / unit,
    )
    lines = [np.vstack([c, c[:1]])[:, list(axes)] * unit[list(axes)] for c in cells if len(c) > 2]
    return [style(hv.Path(lines, ["c_i", "c_j"]), color="#999999", line_width=0.5)]


def _states(known: Learned, at: FloatArray, rows: NDArray[np.int64], color: str) -> list[Any]:
    """Dots of the states in their colours."""
    if color == "action":
        return _by_action(known, at, rows)
    if color == "visits" and known.visits is not None:
        values, name = np.log10(1.0 + known.visits.sum(axis=1)), "log₁₀ (1 + times seen)"
    else:
        values, name = known.policy.v, "value v"
    dots = hv.Points((at[rows, 0], at[rows, 1], values[rows]), ["c_i", "c_j"], [name])
    others = values[1:] if len(values) > 1 else values  # success, worth 0, has its box
    low, high = float(others.min()), float(others.max())
    return [
        style(
            dots,
            size=9,
            marker="o",
            cmap=MAP,
            clim=(low, high if high > low else low + 1.0),
            colorbar=True,
            clabel=name,
            bokeh={"color": name, "line_color": "#FFFFFF", "line_width": 0.5},
            matplotlib={"color": hv.dim(name), "edgecolors": "#FFFFFF", "linewidth": 0.5},
        )
    ]


def _by_action(known: Learned, at: FloatArray, rows: NDArray[np.int64]) -> list[Any]:
    """Dots by the parameter that the best action changes, and its direction."""
    best = known.problem.actions[known.policy.greedy]
    items: list[Any] = []
    for place, parameter in enumerate(known.problem.parameters):
        for sign, marker, word in ((1, _UP, "+"), (-1, _DOWN, "−")):
            own = rows[(np.sign(best[rows, place]) == sign) & (rows > 0)]
            if len(own):
                dots = hv.Points(at[own], ["c_i", "c_j"], label=f"{parameter.label} {word}")
                color = SERIES_COLORS[place % len(SERIES_COLORS)]
                items.append(style(dots, size=10, marker=marker, color=color))
    return items


def _arrows(
    known: Learned, axes: tuple[int, int], half: FloatArray, rows: NDArray[np.int64]
) -> list[Any]:
    """From each state towards where its best action leads on average."""
    ends = drift(known)
    if ends is None:
        return []
    rows = rows[np.isfinite(ends[rows]).all(axis=1)]
    start = known.states.centroids[rows][:, list(axes)] / half
    way = ends[rows][:, list(axes)] / half - start
    length = np.linalg.norm(way, axis=1, keepdims=True)
    # all arrows are seen: long ones are cut, their direction is kept
    way *= np.minimum(1.0, 0.16 / np.maximum(length, 1e-12))
    end = start + way
    across = np.stack([-way[:, 1], way[:, 0]], axis=1)
    barbs = [end - 0.3 * way + side * across for side in (0.18, -0.18)]
    lines = [np.hstack([start * half, end * half])]
    lines += [np.hstack([end * half, barb * half]) for barb in barbs]
    drawn = hv.Segments(np.vstack(lines), ["c_i", "c_j", "to_i", "to_j"])
    return [style(drawn, color="#333333", line_width=1.0)]


def _labels(known: Learned, at: FloatArray, rows: NDArray[np.int64], half: FloatArray) -> list[Any]:
    """Best action of each state, as text; of many states those that were seen most."""
    rows = rows[rows > 0]
    if known.visits is not None:
        rows = rows[np.argsort(-known.visits[rows].sum(axis=1), kind="stable")]
    rows = rows[:MOST_LABELS]
    words = [short_action(known, int(known.policy.greedy[row])) for row in rows]
    text = hv.Labels((at[rows, 0], at[rows, 1] + 0.02 * half[1], words), ["c_i", "c_j"], "action")
    return [
        style(
            text,
            bokeh={"text_font_size": "8pt", "text_color": "#333333", "text_baseline": "bottom"},
            matplotlib={"size": 7, "color": "#333333", "verticalalignment": "bottom"},
        )
    ]


def choices(known: Learned, state: int) -> Any:
    """Values of the actions of a state, and with what probability each is drawn."""
    return plots.action_choice(
        known.policy.normalised[state],
        known.policy.probabilities[state],
        [short_action(known, a) for a in range(known.problem.n_actions)],
        epsilon=known.policy.epsilon,
        title=f"state {state}: values of its actions",
        size=(5.6, 2.8),
    )


def convergence(residuals: dict[str, FloatArray]) -> Any:
    """Residual against the round of the solution."""
    return plots.value_convergence(residuals, size=(4.6, 3.0))


def parameter_map(
    points: FloatArray, steps: NDArray[np.int64], optimum: FloatArray, title: str
) -> Any:
    """Best action over parameter space, with the optimum of the function."""
    goal = hv.Points(optimum[None], ["x1", "x2"], label="optimum")
    goal = style(goal, color="#D7191C", size=13, marker="*")
    return plots.policy_map(points, steps, background=goal, title=title, size=(4.6, 4.6))
