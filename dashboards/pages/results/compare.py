"""Several runs or setups in one figure, and what differs between runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd

from vitolab.methods import PAPER
from vitolab.plots.methods import MEASURES, Groups, methods_figure, methods_table
from vitolab.plots.paired import Comparison, comparison_table, paired
from vitolab.plots.style import MARKERS, SERIES_COLORS, layout, panel, series, style
from vitolab.plots.summary import bands, curve, setups_of
from vitolab.store.tables import SIZES, largest
from vitolab.studies import words
from vitolab.studies.base import Content

from ...kit import safe


def places(run_ids: Sequence[str]) -> dict[str, int]:
    """Fixed place among the colours and markers of each run.

    It follows from the identifier, and only where two would share a place from the other: a run
    keeps its colour while others come and go.
    """
    taken: dict[str, int] = {}
    n = len(SERIES_COLORS)
    for run in sorted(set(run_ids)):
        place = hashlib.sha256(run.encode()).digest()[0] % n
        free = [(place + k) % n for k in range(n) if (place + k) % n not in taken.values()]
        taken[run] = free[0] if free else place
    return taken


def _setups(groups: Groups) -> list[str]:
    """Setups of some runs, those that most of them share first."""
    names = [setup for _, rows in groups for setup in rows["setup"].unique().tolist()]
    return sorted(setups_of(names), key=lambda setup: -names.count(setup))


def swept(groups: Groups) -> str:
    """The size that all of some runs go through; empty if there is none."""
    vito = [rows[rows["method"] == PAPER] for _, rows in groups]
    vito = [rows for rows in vito if len(rows)]
    for size in SIZES:
        numbers = [rows.groupby("setup")[size].nunique().max() for rows in vito]
        if numbers and min(numbers) > 1:
            return size
    return ""


def sweep_figure(groups: Groups, where: Mapping[str, int], size: str) -> Any:
    """Curves of Vito in several runs: a row of panels for each setup, a colour for each run."""
    setups = _setups(groups)
    panels: list[Any] = []
    for setup in setups:
        for measure, label in MEASURES:
            items: list[Any] = []
            highest = 0.0
            for group, rows in groups:
                own = rows[(rows["setup"] == setup) & (rows["method"] == PAPER)]
                if own.empty:
                    continue
                place = where[group]
                means = curve(own, [size], measure).astype({size: float})
                deviation = means["deviation"].fillna(0.0)
                top = pd.concat([means["mean"] + deviation, means["high"]]).max()
                highest = max(highest, float(top)) if pd.notna(top) else highest
                items += series(
                    means,
                    size,
                    label=group,
                    color=SERIES_COLORS[place % len(SERIES_COLORS)],
                    dash="solid",
                    marker=MARKERS[place % len(MARKERS)],
                )
            if items:
                success = measure == "success"
                panels.append(
                    panel(
                        hv.Overlay(items),
                        title=setup,
                        xlabel=SIZES[size],
                        ylabel=label,
                        # one for all, beside the first row
                        legend="right" if len(panels) == 1 else None,
                        logx=size == "n_samples",
                        padding=0.06,
                        ylim=(-3.0, 103.0) if success else (0.0, 1.08 * highest or 1.0),
                    )
                )
    return layout(panels, columns=2, gap=(0.3, 0.6))


def sweep_table(groups: Groups, size: str) -> pd.DataFrame:
    """Numbers of `sweep_figure`."""
    tables = [
        words.told(rows[rows["method"] == PAPER], ["setup", size]).assign(run=group)
        for group, rows in groups
    ]
    table = pd.concat(tables, ignore_index=True)
    return table[["run", *(name for name in table if name != "run")]]


def pairs(groups: Groups, patients: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Vito in the first run beside Vito in each other one, patient by patient.

    Parameters
    ----------
    groups : sequence of (str, DataFrame)
    patients : mapping of label to DataFrame
        Patients of the runs: only those with the same measurements are the same.
    """
    found = []
    (first, rows), *others = groups
    for label, beside in others:
        for setup in [name for name in setups_of(rows["setup"]) if name in set(beside["setup"])]:
            own, other = (_acted(each, setup) for each in (rows, beside))
            same = _alike(patients.get(first), patients.get(label), setup)
            pair = paired(own[own["patient"].isin(same)], other[other["patient"].isin(same)])
            if pair is not None:
                found.append(Comparison(setup, first, label, pair))
    names = {"method": "run", "beside": "beside run"}
    return comparison_table(found).rename(columns=names)


def _acted(rows: pd.DataFrame, setup: str) -> pd.DataFrame:
    """Personalisations by Vito with its largest training in a setup."""
    own: pd.DataFrame = largest(rows[(rows["method"] == PAPER) & (rows["setup"] == setup)])
    return own


def _alike(one: pd.DataFrame | None, other: pd.DataFrame | None, setup: str) -> set[str]:
    """Names of patients with the same measurements in two runs."""
    if one is None or other is None:
        return set()
    own, beside = (
        each[each["setup"] == setup].drop_duplicates("patient").set_index("patient")
        for each in (one, other)
    )
    measured = [str(name) for name in own if str(name).startswith("z:")]
    if not measured or set(measured) != {n for n in map(str, beside) if n.startswith("z:")}:
        return set()
    shared = own.index.intersection(beside.index)
    z, other_z = (each.loc[shared, measured].to_numpy(float) for each in (own, beside))
    same = np.isclose(z, other_z, equal_nan=True).all(axis=1)
    return {str(name) for name, alike in zip(shared, same, strict=True) if alike}


def compared(
    groups: Groups, ids: Mapping[str, str], patients: Mapping[str, pd.DataFrame] | None = None
) -> Content:
    """Some runs in one figure.

    Parameters
    ----------
    groups : sequence of (str, DataFrame)
        Label and personalisations of each run.
    ids : mapping of label to identifier
        From which the colours follow.
    patients : mapping of label to DataFrame, optional
        Patients of the runs that have them, see `pairs`.
    """
    in_pairs = pairs(groups, patients or {})
    further = (("In pairs, Vito with its largest training", in_pairs),) if len(in_pairs) else ()
    place = places(list(ids.values()))
    where = {label: place[run] for label, run in ids.items()}
    size = swept(groups)
    if size:
        table = sweep_table(groups, size)
        figure = sweep_figure(groups, where, size)
        return Content(_told(groups), figure, (("Curves", table), *further))
    setups = _setups(groups)
    panels: list[Any] = []
    tables = []
    for setup in setups:
        own = [(label, rows[rows["setup"] == setup]) for label, rows in groups]
        own = [(label, rows) for label, rows in own if len(rows)]
        pair = list(methods_figure(own, where, setup))
        panels += [style(p, show_legend=False) for p in pair] if panels else pair
        tables.append(methods_table(own, "run").assign(setup=setup))
    table = pd.concat(tables, ignore_index=True)
    figure = layout(panels, columns=2, gap=(0.7, 0.6))
    return Content(_told(groups), figure, (("Success and cost", table), *further))


def _told(groups: Groups) -> str:
    """Success of Vito in each run.

    In the setups that all runs with Vito have; where there is none, in all of each.
    """
    acted = {label: largest(rows[rows["method"] == PAPER]) for label, rows in groups}
    setups = [set(rows["setup"]) for rows in acted.values() if len(rows)]
    shared = [s for s in _setups(groups) if all(s in own for own in setups)] if setups else []
    lines = []
    for label, rows in acted.items():
        told = []
        for setup in shared or sorted(set(rows["setup"])):
            own = rows[rows["setup"] == setup]
            if len(own):
                told.append(
                    f"{setup} {words.share(own)} with {words.runs(own)} forward runs on average"
                )
        solves = f"Vito solves {', '.join(told)}" if told else "none by the paper's agent"
        repeats = f"; {bands(rows)}" if len(rows) else ""
        lines.append(f"{label}: {solves}, with its largest training{repeats}.")
    return "\n".join([*lines, words.BRACKETS])


def swatches(labels: Mapping[str, str]) -> str:
    """HTML that tells which colour a run has.

    Parameters
    ----------
    labels : mapping of identifier to label
    """
    place = places(list(labels))
    told = []
    for run, label in labels.items():
        color = SERIES_COLORS[place[run] % len(SERIES_COLORS)]
        dot = f'<span aria-hidden="true" style="color:{color}">●</span>'
        told.append(f"<span>{dot} {safe.text(label)}</span>")
    return f'<div class="row">{"".join(told)}</div>'
