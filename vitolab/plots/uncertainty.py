"""Figures of what one answer leaves out: ranges, posteriors, coverage, stability, forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from vitolab.methods import label as method_label
from vitolab.models.bolus import PRESSURES
from vitolab.plots.style import (
    MARKERS,
    MEASURED_COLOR,
    METHOD_COLORS,
    fill,
    layout,
    panel,
    series_color,
    style,
)
from vitolab.problem import Parameter, Problem
from vitolab.uncertainty.summary import (
    FORECASTS,
    POSTERIOR,
    band_of,
    groups,
    levels_of,
    range_of,
    spread_of,
)

SOLUTION_COLOR = "#D55E00"


def _axis(parameter: Parameter) -> str:
    """Label of a parameter with its unit."""
    return f"{parameter.label} [{parameter.unit}]" if parameter.unit else parameter.label


def share_dots(
    tables: Mapping[str, tuple[str, pd.DataFrame]],
    problem: Problem,
    title: str,
    ylabel: str,
    top: float | None,
) -> Any:
    """One dot per patient, method and parameter, and a bar at the median.

    The tables are labels and shares by method.
    """
    items: list[Any] = []
    width = 0.8 / max(len(tables), 1)
    for position, (method, (label, shares)) in enumerate(tables.items()):
        color = METHOD_COLORS.get(method, series_color(position))
        marker = MARKERS[position % len(MARKERS)]
        where, height, bars = [], [], []
        for i, p in enumerate(problem.parameters):
            values = shares[p.name].dropna().to_numpy()
            centre = i - 0.4 + width * (position + 0.5)
            where.append(centre + width * np.linspace(-0.3, 0.3, len(values)))
            height.append(values)
            if len(values):
                median = float(np.median(values))
                bars.append((centre - 0.4 * width, median, centre + 0.4 * width, median))
        points = hv.Scatter(
            (np.concatenate(where), np.concatenate(height)), "parameter", "share", label=label
        )
        items.append(style(points, color=color, size=4, marker=marker, alpha=0.5))
        items.append(style(hv.Segments(bars), color=color, line_width=2.5))
    return panel(
        hv.Overlay(items),
        title=title,
        xlabel="",
        ylabel=ylabel,
        size=(1.0 + 0.9 * problem.n_parameters, 3.2),
        legend="right",
        xticks=[(i, p.label) for i, p in enumerate(problem.parameters)],
        xrotation=30,
        xlim=(-0.6, problem.n_parameters - 0.4),
        ylim=(0.0, top),
    )


def solution_ranges(
    personalizations: pd.DataFrame,
    problems: Mapping[str, Problem],
    *,
    patients: str = "synthetic patients",
) -> Any:
    """Range of each patient's solutions as a share of Ω, parameter by parameter.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.posteriors`.
    problems : mapping of setup name to Problem
    patients : str
        Who was personalised, for the titles.

    Returns
    -------
    HoloViews layout
        A panel per setup. Dots are patients with at least two solutions, bars their medians. The
        number of solutions per patient stands beside the method: a range grows with it.
    """
    found = personalizations[personalizations["method"] != POSTERIOR]
    panels = []
    for setup, problem in problems.items():
        own = {
            method: (
                f"{method_label(method)} ({rows['solved'].sum() / rows['patient'].nunique():.1f} "
                "solutions)",
                range_of(rows, problem),
            )
            for _, _, method, rows in groups(found, {setup: problem})
        }
        title = titled(found, setup, patients)
        panels.append(share_dots(own, problem, title, "range of solutions / domain", 1.03))
    return layout(panels, columns=1, title="", size=(5.0, 3.2), gap=(0.3, 0.6))


def titled(personalizations: pd.DataFrame, setup: str, patients: str) -> str:
    """Setup and number of its patients."""
    n = personalizations.loc[personalizations["setup"] == setup, "patient"].nunique()
    return f"{setup}, {n} {patients}"


def stability_spread(
    personalizations: pd.DataFrame,
    problems: Mapping[str, Problem],
    *,
    patients: str = "synthetic patients",
) -> Any:
    """Spread of each parameter over perturbed measurements, by method, with the success of each.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.stability`.
    problems : mapping of setup name to Problem
    patients : str
        Who was personalised, for the titles.

    Returns
    -------
    HoloViews layout
        A panel per setup. Dots are patients, bars their medians.
    """
    panels = []
    for setup, problem in problems.items():
        own = {
            method: (
                f"{method_label(method)} ({100 * rows['solved'].mean():.0f} % solved)",
                spread_of(rows, problem),
            )
            for _, _, method, rows in groups(personalizations, {setup: problem})
        }
        title = titled(personalizations, setup, patients)
        panels.append(share_dots(own, problem, title, "standard deviation / domain", None))
    return layout(panels, columns=1, title="", size=(5.0, 3.2), gap=(0.3, 0.6))


def posterior_marginals(
    traces: pd.DataFrame,
    problem: Problem,
    *,
    setup: str,
    patient: str,
    personalizations: pd.DataFrame | None = None,
    truth: Mapping[str, float] | None = None,
) -> Any:
    """Posterior of one patient, parameter by parameter, with the solutions below.

    Parameters
    ----------
    traces : DataFrame
        Of `vitolab.uncertainty.posteriors`.
    problem : Problem
    setup, patient : str
    personalizations : DataFrame, optional
        Solutions of all methods, as marks.
    truth : mapping of str to float, optional
        True parameters by name, where the patient is synthetic.

    Returns
    -------
    HoloViews layout
        Over the whole domain of each parameter; the central 50 and 90 % are shaded.
    """
    own = traces[(traces["setup"] == setup) & (traces["patient"] == patient)]
    own = own[own["method"] == POSTERIOR]
    panels = []
    for p in problem.parameters:
        values = own[f"x:{p.name}"].to_numpy()
        counts, edges = np.histogram(values, bins=40, range=(p.lower, p.upper), density=True)
        top = float(counts.max()) * 1.05
        items: list[Any] = []
        for tail, alpha in ((0.05, 0.15), (0.25, 0.3)):
            low, high = np.quantile(values, [tail, 1.0 - tail])
            items.append(fill(hv.Rectangles([(low, 0.0, high, top)]), "#0072B2", alpha))
        steps = hv.Curve((np.repeat(edges, 2)[1:-1], np.repeat(counts, 2)), "x", "density")
        items.append(style(steps, color="#0072B2", line_width=1.5))
        if personalizations is not None:
            rows = personalizations[
                (personalizations["setup"] == setup)
                & (personalizations["patient"] == patient)
                & (personalizations["method"] != POSTERIOR)
                & personalizations["solved"]
            ]
            x = rows[f"x:{p.name}"].to_numpy(float)
            marks = hv.Scatter((x, np.full(len(x), 0.03 * top)), "x", "density")
            items.append(style(marks, color=SOLUTION_COLOR, size=4, alpha=0.6))
        if truth is not None:
            line = style(hv.VLine(truth[p.name]), color=MEASURED_COLOR, line_width=1.5)
            items.append(style(line, line_dash="dashed"))
        panels.append(
            panel(
                hv.Overlay(items),
                title="",
                xlabel=_axis(p),
                ylabel=f"density [1/({p.unit})]" if p.unit else "density",
                size=(3.0, 2.2),
                xticks=4,
                xlim=(p.lower, p.upper),
                ylim=(0.0, top),
            )
        )
    what = "synthetic, " if truth is not None else ""
    what += "central 50 and 90 % shaded"
    what += "" if personalizations is None else ", dots: solutions"
    what += "" if truth is None else ", dashed: truth"
    return layout(panels, columns=3, title=f"{patient}, {setup}: {what}", size=(3.0, 2.2))


def coverage_curves(personalizations: pd.DataFrame, problems: Mapping[str, Problem]) -> Any:
    """Share of patients whose true parameters lie in a region, against the share it promises.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.posteriors` with the truth known.
    problems : mapping of setup name to Problem

    Returns
    -------
    HoloViews layout
        A panel per setup: the joint highest-density region (thick) and the central interval of
        each parameter; in grey where 95 % of the curves of a kept promise lie, point by point.
    """
    promised = np.linspace(0.0, 1.0, 101)
    panels = []
    for setup, problem in problems.items():
        levels = levels_of(personalizations, setup, problem)
        if not levels:
            continue
        n = len(next(iter(levels.values())))
        low, high = band_of(n, promised)
        band = hv.Area((100 * promised, 100 * low, 100 * high), "promised", ["low", "high"])
        kept = hv.Curve([(0.0, 0.0), (100.0, 100.0)], "promised", "found")
        items: list[Any] = [
            fill(band, "#777777", 0.25),
            style(kept, color="#777777", line_width=1.0, line_dash="dashed"),
        ]
        for position, (label, level) in enumerate(levels.items()):
            found = [100 * float((level <= share).mean()) for share in promised]
            joint = position == 0
            curve = hv.Curve((100 * promised, found), "promised", "found", label=label)
            color = MEASURED_COLOR if joint else series_color(position - 1)
            items.append(style(curve, color=color, line_width=3.0 if joint else 1.2))
        panels.append(
            panel(
                hv.Overlay(items),
                title=f"{setup}, {n} synthetic patients",
                xlabel="probability of the region [%]",
                ylabel="truth within [% of patients]",
                size=(3.4, 3.4),
                legend="right",
                xlim=(0.0, 100.0),
                ylim=(0.0, 100.0),
            )
        )
    return layout(panels, columns=2, size=(3.4, 3.4), gap=(1.05, 0.4))


def forecast_changes(
    personalizations: pd.DataFrame, *, method: str, subjects: str = "synthetic subjects"
) -> Any:
    """Forecast against measured change of each pressure after a fluid bolus.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.forecasts`.
    method : str
        Whose personalisations the forecasts start from.
    subjects : str
        Who was forecast, for the title.

    Returns
    -------
    HoloViews layout
        A panel per pressure. On the diagonal a forecast is right; on the horizontal line it says
        no change.
    """
    own = personalizations[personalizations["method"] == method]
    panels = []
    for name in PRESSURES:
        before = own[f"before:{name}"].to_numpy()
        measured = own[f"after:{name}"].to_numpy() - before
        changes = {f: own[f"{f}:{name}"].to_numpy() - before for f in FORECASTS}
        ends = np.concatenate([measured, *changes.values()])
        low, high = float(np.min(ends)) - 3.0, float(np.max(ends)) + 3.0
        right = hv.Curve([(low, low), (high, high)], "measured", "forecast")
        naive = hv.Curve([(low, 0.0), (high, 0.0)], "measured", "forecast", label="no change")
        items = [
            style(right, color="#999999", line_width=1.2),
            style(naive, color="#999999", line_width=1.2, line_dash="dashed"),
        ]
        for position, (forecast, change) in enumerate(changes.items()):
            points = hv.Scatter((measured, change), "measured", "forecast", label=forecast)
            marker = MARKERS[position]
            items.append(
                style(points, color=series_color(position), size=6, marker=marker, alpha=0.8)
            )
        panels.append(
            panel(
                hv.Overlay(items),
                title=name.replace("_", " ").capitalize(),
                xlabel="measured change [mmHg]",
                ylabel="forecast change [mmHg]",
                size=(3.0, 3.0),
                legend="right" if name == PRESSURES[-1] else None,
                xlim=(low, high),
                ylim=(low, high),
            )
        )
    title = f"Pressure after a fluid bolus, {len(own)} {subjects}, {method_label(method)}"
    return layout(panels, columns=3, title=title, size=(3.0, 3.0), gap=(0.35, 0.3))
