"""Figures of what an agent gains from more training samples (section 3.3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from vitolab.methods import PAPER
from vitolab.methods import label as method_label
from vitolab.plots.style import (
    MARKERS,
    fill,
    layout,
    lighter,
    panel,
    series,
    series_color,
    style,
)
from vitolab.plots.summary import bands, curve, deciles, order_of, summarize

SUCCESS = ("success", "patients solved [%]", (-3.0, 103.0), "highest")
RUNS = ("runs_all", "mean forward runs, all patients", (0.0, None), "lowest")
DIRECT = ("direct", "share of all patients [%]", (-3.0, 103.0), "highest")
SAMPLES = "training samples per patient"


def _learning(
    personalizations: pd.DataFrame, method: str, measure: str, dash: str = "solid", suffix: str = ""
) -> list[Any]:
    """Curves of one measure against samples per patient, one per setup."""
    rows = personalizations[personalizations["method"] == method]
    curves = curve(rows, ["setup", "n_samples"], measure)
    items: list[Any] = []
    for position, setup in enumerate(order_of(personalizations["setup"].tolist())):
        own = curves[curves["setup"] == setup]
        items += series(
            own,
            "n_samples",
            label=setup + suffix,
            color=series_color(position),
            dash=dash,
            marker=MARKERS[position % len(MARKERS)],
            band=not suffix,
        )
    return items


def reference_deciles(
    personalizations: pd.DataFrame, method: str, measure: str, *, best: str
) -> Any:
    """Results of a reference method over its random starts, as shades of 10 % each.

    Parameters
    ----------
    personalizations : DataFrame
    method : str
    measure : str
        A column of `vitolab.plots.summary.summarize`.
    best : {"highest", "lowest"}
        Which end of the measure is good; the best tenth is the darkest.
    """
    rows = personalizations[personalizations["method"] == method]
    summary = summarize(rows, ["setup", "start"])
    setups = order_of(personalizations["setup"].tolist())
    boxes, means, named = [], [], []
    for position, setup in enumerate(setups):
        values = summary.loc[summary["setup"] == setup, measure].to_numpy(float)
        values = values[np.isfinite(values)]  # a start that solves nobody has no runs of the solved
        if not values.size:
            continue
        left, right = position - 0.35, position + 0.35
        bands = deciles(values, best=best)
        color = series_color(position)
        for rank, (low, high) in enumerate(bands):
            boxes.append((left, low, right, high, lighter(color, 0.088 * rank)))
        means.append((left, values.mean(), right, values.mean()))
        # the best tenth once more, for the legend
        top = hv.Rectangles([(left, bands[0, 0], right, bands[0, 1])], label=setup)
        named.append(fill(top, color, 1.0))
    shades = style(
        hv.Rectangles(boxes, vdims=["shade"]),
        bokeh={"color": "shade", "line_width": 0},
        matplotlib={"color": hv.dim("shade"), "linewidth": 0},
    )
    lines = style(hv.Segments(means), color="#000000", line_width=1.4)
    return hv.Overlay([shades, *named, lines])


def convergence_curves(
    personalizations: pd.DataFrame,
    *,
    references: tuple[str, ...] = ("nelder-mead", "least-squares-multistart"),
    solvable: pd.DataFrame | None = None,
    patients: str = "synthetic patients",
) -> Any:
    """Success and mean runs against samples per patient, beside the reference methods.

    Parameters
    ----------
    personalizations : DataFrame
    references : tuple of str
        Methods for the panels on the right.
    solvable : DataFrame, optional
        Columns ``setup`` and ``solvable``, one row per patient: the dotted lines are the share
        of patients that have a solution.
    patients : str
        Who was personalised, for the title.

    Returns
    -------
    HoloViews layout
        Left: one curve per setup, bands of 0.5 and 1 standard deviation over the repeats, or, of
        one repeat, the 95 % interval over the patients.
        Right: each shade is a tenth of a reference method's results over its random starts,
        darkest the best; the black line is their mean.
    """
    known = set(personalizations["method"])
    references = tuple(name for name in references if name in known)
    setups = order_of(personalizations["setup"].tolist())
    shown = personalizations[personalizations["method"].isin([PAPER, *references])]
    summary = summarize(shown, ["setup", "method", "n_samples", "repeat", "start"])
    above = curve(shown[shown["method"] == PAPER], ["setup", "n_samples"], "runs_all")["high"]
    highest = float(np.nanmax([summary["runs_all"].max(), above.max()])) * 1.08
    size = (3.7, 2.7)
    panels: list[Any] = []
    for (measure, label, limits, best), top in ((SUCCESS, 103.0), (RUNS, highest)):
        first = measure == "success"
        ceilings = _ceilings(setups, solvable) if first else []
        panels.append(
            panel(
                hv.Overlay([*_learning(personalizations, PAPER, measure), *ceilings]),
                title="Vito" if first else "",
                xlabel=SAMPLES,
                ylabel=label,
                size=size,
                legend="right" if first and not references else None,
                logx=True,
                padding=0.06,
                ylim=(limits[0], top),
            )
        )
        panels += [
            panel(
                hv.Overlay(
                    [*reference_deciles(personalizations, name, measure, best=best), *ceilings]
                ),
                title=method_label(name) if first else "",
                xlabel="setup",
                ylabel=label,
                size=size,
                legend="right" if first and name == references[-1] else None,
                xticks=list(enumerate(setups)),
                xlim=(-0.6, len(setups) - 0.4),
                ylim=(limits[0], top),
            )
            for name in references
        ]
    return layout(
        panels,
        columns=1 + len(references),
        title=_title(personalizations, patients)
        + ("" if solvable is None else "; dotted: share with a solution"),
        size=size,
    )


def _ceilings(setups: Sequence[str], solvable: pd.DataFrame | None) -> list[Any]:
    """Draw the share of patients that have a solution, in percent, for each setup."""
    if solvable is None:
        return []
    share = 100.0 * solvable.groupby("setup")["solvable"].mean()
    return [
        style(
            hv.HLine(share[setup]),
            color=series_color(position),
            line_width=1.3,
            line_dash="dotted",
        )
        for position, setup in enumerate(setups)
    ]


def _title(personalizations: pd.DataFrame, patients: str) -> str:
    """How many patients, repeats and starts a figure shows."""
    n = personalizations["patient"].nunique()
    words = [f"{n} {patients}, leave-one-out"]
    if personalizations["repeat"].notna().any():
        words.append(bands(personalizations))
    if number := personalizations["start"].nunique():
        words.append(f"{number} random start{'s' if number > 1 else ''}")
    return ", ".join(words)


def learning_panel(
    personalizations: pd.DataFrame,
    *,
    title: str,
    measure: tuple[str, str, tuple[float, float | None], str] = SUCCESS,
    size: tuple[float, float] = (4.4, 3.2),
) -> Any:
    """One measure of Vito against samples per patient.

    Parameters
    ----------
    personalizations : DataFrame
    title : str
    measure : tuple
        `SUCCESS`, `RUNS` or `DIRECT`.
    size : (float, float)
        Inches.
    """
    name, label, limits, _ = measure
    return panel(
        hv.Overlay(_learning(personalizations, PAPER, name)),
        title=title,
        xlabel=SAMPLES,
        ylabel=label,
        size=size,
        legend="right",
        logx=True,
        padding=0.06,
        ylim=limits,
    )


def policy_curves(personalizations: pd.DataFrame, *, patients: str = "synthetic patients") -> Any:
    """Stochastic (solid) against deterministic policy (dashed).

    Parameters
    ----------
    personalizations : DataFrame
        Methods ``vito`` and ``vito-deterministic``.
    patients : str
        Who was personalised, for the title.
    """
    panels: list[Any] = []
    for measure, label, limits, _ in (SUCCESS, RUNS):
        items = _learning(personalizations, PAPER, measure, suffix=", stochastic")
        items += _learning(
            personalizations, "vito-deterministic", measure, "dashed", ", deterministic"
        )
        panels.append(
            panel(
                hv.Overlay(items),
                title="success" if measure == "success" else "forward runs",
                xlabel=SAMPLES,
                ylabel=label,
                legend="right" if panels else None,
                logx=True,
                padding=0.06,
                ylim=limits,
            )
        )
    learned = personalizations[personalizations["start"].isna()]
    return layout(panels, columns=2, title=_title(learned, patients))


def restart_curves(personalizations: pd.DataFrame, *, patients: str = "synthetic patients") -> Any:
    """Share of patients that are solved without re-initialisation, against samples per patient.

    Parameters
    ----------
    personalizations : DataFrame
    patients : str
        Who was personalised, for the title.
    """
    learned = personalizations[personalizations["start"].isna()]
    title = f"solved without re-initialisation\n{_title(learned, patients)}"
    return learning_panel(personalizations, title=title, measure=DIRECT)
