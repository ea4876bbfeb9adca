"""Figures of how an agent decides: what it has seen, what it values, what it draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
from numpy.typing import NDArray

from vitolab.methods import PAPER
from vitolab.plots.style import METHOD_COLORS, fill, panel, style

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CHOSEN_COLOR = METHOD_COLORS[PAPER]
DISCARDED_COLOR = "#BBBBBB"


def visits_map(
    visits: IntArray, actions: Sequence[str], size: tuple[float, float] = (5.2, 3.4)
) -> Any:
    """How often each action was seen in each state; white where it never was.

    Parameters
    ----------
    visits : ndarray of int, shape (n_states, n_actions)
    actions : sequence of str
        Names of the actions.
    size : (float, float)
        Inches.

    Returns
    -------
    HoloViews element
        States by falling number of visits; on a log scale.
    """
    order = np.argsort(-visits.sum(axis=1), kind="stable")
    counts = visits[order].T.astype(float)
    with np.errstate(divide="ignore"):
        logs = np.where(counts > 0, np.log10(counts), np.nan)
    image = hv.Image(
        (np.arange(len(order)), np.arange(len(actions)), logs), ["state", "action"], ["visits"]
    )
    image = style(
        image,
        cmap="viridis",
        colorbar=True,
        clabel="log₁₀ transitions seen",
        matplotlib={"cbar_padding": 0.03},
    )
    return panel(
        image,
        title=f"{100 * np.mean(visits > 0):.0f} % of all (state, action) pairs were seen",
        xlabel="state, by number of visits",
        ylabel="",
        size=size,
        yticks=list(enumerate(actions)),
    )


def action_choice(
    q: FloatArray,
    probability: FloatArray,
    actions: Sequence[str],
    *,
    epsilon: float = 0.8,
    title: str = "values of the actions in one state",
    size: tuple[float, float] = (5.2, 3.0),
) -> Any:
    """Normalised values of the actions of one state, and with what probability each is drawn.

    Parameters
    ----------
    q : ndarray, shape (n_actions,)
        Values as they are, or `Policy.normalised`.
    probability : ndarray, shape (n_actions,)
    actions : sequence of str
        Names of the actions.
    epsilon : float
        Actions below it are discarded.
    title : str
    size : (float, float)
        Inches.
    """
    span = float(q.max() - q.min())
    height = (q - q.min()) / span if span > 0 else np.ones_like(q)
    items: list[Any] = []
    for label, color, rows in (
        ("candidate, drawn in … %", CHOSEN_COLOR, probability > 0),
        ("discarded", DISCARDED_COLOR, probability == 0),
    ):
        bars = [(i - 0.4, 0.0, i + 0.4, height[i]) for i in np.flatnonzero(rows)]
        if bars:
            items.append(fill(hv.Rectangles(bars, label=label), color, 1.0))
    for i in np.flatnonzero(probability > 0):
        text = hv.Text(i, height[i] + 0.05, f"{100 * probability[i]:.0f}", fontsize=8)
        items.append(style(text, bokeh={"text_color": "#222222"}, matplotlib={"color": "#222222"}))
    line = hv.Curve([(-0.6, epsilon), (len(q) - 0.4, epsilon)], label=f"threshold ε = {epsilon:g}")
    items.append(style(line, color="#D55E00", line_width=1.5, line_dash="dashed"))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel="",
        ylabel="normalised value",
        size=size,
        legend="right",
        xticks=list(enumerate(actions)),
        xrotation=90,
        xlim=(-0.6, len(q) - 0.4),
        ylim=(0.0, 1.15),
    )
