"""Figures of walks through parameter space, explored or personalised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.plots.learning import axis_label
from vitolab.plots.style import MAP, SUCCESS_COLOR, fill, panel, series_color, style
from vitolab.problem import Problem
from vitolab.store.records import ProblemRecord

FloatArray = NDArray[np.float64]


def function_map(
    x1: FloatArray,
    x2: FloatArray,
    values: FloatArray,
    *,
    label: str,
    title: str = "",
    bar: bool = True,
    faint: bool = False,
) -> Any:
    """Map of a positive function of two parameters, dark where it is low, on a log scale.

    Parameters
    ----------
    x1, x2 : ndarray, shape (n1,), (n2,)
        Regular axes.
    values : ndarray, shape (n2, n1)
    label : str
        Text for the colour bar.
    title : str
    bar : bool
        Whether there is a colour bar.
    faint : bool
        In light greys, to lie below something else.
    """
    logs = np.log10(np.maximum(values, np.finfo(float).tiny))
    low, high = np.quantile(logs, [0.005, 1.0])
    image = hv.Image((x1, x2, np.maximum(logs, low)), ["x1", "x2"], [label])
    image = style(
        image,
        cmap="Greys_r" if faint else MAP,
        alpha=0.5 if faint else 1.0,
        clim=(float(low), float(high)),
        colorbar=bar and not faint,
        clabel=label,
        matplotlib={"cbar_padding": 0.03},
    )
    return panel(image, title=title, xlabel="x₁", ylabel="x₂", size=(4.2, 4.2))


def explored_walks(
    walks: Sequence[FloatArray],
    *,
    background: Any = None,
    title: str = "explored walks",
    labels: tuple[str, str] = ("x₁", "x₂"),
    size: tuple[float, float] = (4.2, 4.2),
    limits: tuple[float, float, float, float] | None = None,
) -> Any:
    """Walks in the plane of two parameters; a dot where each starts.

    Parameters
    ----------
    walks : sequence of ndarray, shape (n_points, 2)
    background : HoloViews element, optional
    title : str
    labels : (str, str)
    size : (float, float)
        Inches.
    limits : (float, float, float, float), optional
        Lowest and highest of the first, then of the second parameter.
    """
    items: list[Any] = [] if background is None else [background]
    for position, walk in enumerate(walks):
        color = series_color(position)
        items.append(style(hv.Path([walk], ["x1", "x2"]), color="#FFFFFF", line_width=2.6))
        items.append(style(hv.Path([walk], ["x1", "x2"]), color=color, line_width=1.4))
        items.append(style(hv.Points(walk[:1], ["x1", "x2"]), color=color, size=8, marker="o"))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel=labels[0],
        ylabel=labels[1],
        size=size,
        **_window(limits),
    )


def _window(limits: tuple[float, float, float, float] | None) -> dict[str, Any]:
    """Axis limits as options."""
    return {} if limits is None else {"xlim": limits[:2], "ylim": limits[2:]}


def personalization_paths(
    traces: Mapping[str, pd.DataFrame],
    problem: Problem | ProblemRecord,
    *,
    background: Any = None,
    truth: FloatArray | None = None,
    colors: Mapping[str, str] | None = None,
    axes: tuple[int, int] = (0, 1),
    title: str = "personalisation",
    size: tuple[float, float] = (4.2, 4.2),
    limits: tuple[float, float, float, float] | None = None,
) -> Any:
    """Forward runs of personalisations in the plane of two parameters.

    Parameters
    ----------
    traces : mapping of a label to DataFrame
        Rows of one personalisation each.
    problem : Problem or ProblemRecord
    background : HoloViews element, optional
    truth : ndarray, shape (2,), optional
        True parameters, a red star.
    colors : mapping of a label to colour, optional
        Such as the colours of the methods.
    axes : (int, int)
        The two parameters shown.
    title : str
    size : (float, float)
        Inches.
    limits : (float, float, float, float), optional
        Lowest and highest of the first, then of the second parameter.

    Returns
    -------
    HoloViews overlay
        A square at each start, a dot at each run, a thin dotted line where it restarted, and
        a diamond where it ended.
    """
    names = [f"x:{problem.parameters[k].name}" for k in axes]
    items: list[Any] = [] if background is None else [background]
    for position, (label, trace) in enumerate(traces.items()):
        color = (colors or {}).get(label, series_color(position))
        x = trace[names].to_numpy(float)
        begins = np.flatnonzero(trace["event"].isin(["start", "restart"]).to_numpy())
        begins = np.union1d([0], begins)
        legs = [x[a:b] for a, b in zip(begins, [*begins[1:], len(x)], strict=True)]
        for width, shade in ((3.0, "#FFFFFF"), (1.8, color)):
            path = hv.Path(legs, ["x1", "x2"])
            items.append(style(path, color=shade, line_width=width))
        jumps = [x[b - 1 : b + 1] for b in begins[1:]]
        if jumps:
            items.append(
                style(hv.Path(jumps, ["x1", "x2"]), color=color, line_width=0.9, line_dash="dotted")
            )
        for points, size_, marker, text in (
            (x, 3.5, "o", ""),
            (x[begins], 8, "s", ""),
            (x[-1:], 10, "D", f"{label}: {len(x)} runs"),
        ):
            dots = hv.Points(points, ["x1", "x2"], label=text)
            edge: dict[str, Any] = {"line_color": "#FFFFFF"} if marker != "o" else {}
            items.append(style(dots, color=color, size=size_, marker=marker, **edge))
    if truth is not None:
        goal = hv.Points(truth[None], ["x1", "x2"], label="truth")
        items.append(style(goal, color="#D7191C", size=14, marker="*"))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel=axis_label(problem.parameters[axes[0]]),
        ylabel=axis_label(problem.parameters[axes[1]]),
        size=size,
        legend="bottom",
        **_window(limits),
    )


def misfit_history(
    trace: pd.DataFrame,
    problem: Problem | ProblemRecord,
    *,
    title: str = "misfit after each forward run",
    size: tuple[float, float] = (5.6, 3.0),
) -> Any:
    """Misfit of every objective in tolerances against the forward run.

    Parameters
    ----------
    trace : DataFrame
        Rows of one personalisation.
    problem : Problem or ProblemRecord
    title : str
    size : (float, float)
        Inches.

    Returns
    -------
    HoloViews overlay
        The band is the tolerance: solved where every curve lies in it. Dotted lines are
        restarts.
    """
    run = trace["iteration"].to_numpy(float) + 1.0
    band = hv.Rectangles([(0.5, 1e-3, float(run.max()) + 0.5, 1.0)], label="within tolerance")
    items: list[Any] = [fill(band, SUCCESS_COLOR, 0.15)]
    restarts = run[(trace["event"] == "restart").to_numpy()]
    items += [
        style(hv.VLine(at - 0.5), color="#777777", line_width=1.0, line_dash="dotted")
        for at in restarts
    ]
    # a misfit of zero has no place on a log scale; a failed run leaves a gap
    sizes = {
        o.label: np.abs(trace[f"c:{o.name}"].to_numpy(float)) / o.tolerance
        for o in problem.objectives
    }
    many = len(run) > 60
    for position, (label, c) in enumerate(sizes.items()):
        shown = (run, np.maximum(c, 1.2e-3))
        color = series_color(position)
        curve = hv.Curve(shown, "run", "misfit", label=label)
        items.append(style(curve, color=color, line_width=1.0 if many else 1.6, alpha=0.8))
        if not many:
            dots = hv.Scatter(shown, "run", "misfit", label=label)
            items.append(style(dots, color=color, size=5, marker="o"))
    worst = np.max(list(sizes.values()), axis=0)
    if len(sizes) > 1 and many:
        curve = hv.Curve((run, worst), "run", "misfit", label="worst of all")
        items.append(style(curve, color="#000000", line_width=2.0))
    finite = worst[np.isfinite(worst)]
    highest = max(1.0, float(finite.max())) if finite.size else 1.0
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel="forward run",
        ylabel="|misfit| / tolerance",
        size=size,
        legend="right",
        logy=True,
        xlim=(0.5, float(run.max()) + 0.5),
        ylim=(1e-3, 2.0 * highest),
    )
