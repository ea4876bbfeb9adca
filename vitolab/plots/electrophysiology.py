"""Errors of personalised electrophysiology: after initialisation and in the end (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.intervals import heading, share_interval, worded
from vitolab.methods import PAPER
from vitolab.methods import label as method_label
from vitolab.plots import paper
from vitolab.plots.style import (
    METHOD_COLORS,
    SUCCESS_COLOR,
    fill,
    layout,
    panel,
    style,
)
from vitolab.plots.summary import best_start, ends_of, order_of, summarize
from vitolab.problem import Objective
from vitolab.store.records import ObjectiveRecord

FloatArray = NDArray[np.float64]

# as in the paper's figure, told apart by colour-blind readers
FIXED_COLOR, INITIAL_COLOR, FULL_COLOR, MEDIAN_COLOR = "#56B4E9", "#FFFFFF", "#009E73", "#D55E00"
# methods of runs at fixed values, and what their boxes are called
FIXED_LABELS = {"fixed": "fixed", "fixed-default": "default"}
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def initialization_boxes(
    personalizations: pd.DataFrame,
    objectives: Sequence[Objective | ObjectiveRecord],
    *,
    setup: str | None = None,
    patients: str = "synthetic patients",
    size: tuple[float, float] = (4.8, 3.2),
) -> Any:
    """Absolute misfits after fixed and data-driven starts, and after full personalisation.

    Parameters
    ----------
    personalizations : DataFrame
        Methods ``fixed``, ``vito-initial`` and ``vito``, whose largest size is shown.
    objectives : sequence of Objective or ObjectiveRecord
    setup : str, optional
        The only setup to show; by default each has a row of panels.
    patients : str
        Who was personalised, for the title.
    size : (float, float)
        Inches, of each panel.

    Returns
    -------
    HoloViews layout
        Boxes of the runs that did not fail (how many did is said below): from the lower to the
        upper quartile, median in orange, whiskers to the last value
        within 1.5 heights of the box, dots beyond. The band is the tolerance; the scale is
        that of square roots, on which small and large errors can both be read.
    """
    if setup is not None:
        personalizations = personalizations[personalizations["setup"] == setup]
    setups = order_of(personalizations["setup"].tolist())
    panels = []
    for name in setups:
        groups = _groups(personalizations[personalizations["setup"] == name])
        for objective in objectives:
            column = f"misfit:{objective.name}"
            boxes = [
                (_told(label, _failed(rows, objectives)), color, rows[column].to_numpy(float))
                for label, color, rows in groups
            ]
            title = objective.label if len(setups) == 1 else f"{name}: {objective.label}"
            panels.append(_boxes(boxes, objective, title, size))
    n = personalizations["patient"].nunique()
    repeats = personalizations["repeat"].nunique()
    words = f"{n} {patients}, leave-one-out" + (f", {repeats} repeats" if repeats > 1 else "")
    return layout(panels, columns=len(objectives), title=words, size=size, gap=(0.25, 0.4))


def initialization_table(
    personalizations: pd.DataFrame, objectives: Sequence[Objective | ObjectiveRecord]
) -> pd.DataFrame:
    """Quartiles of the absolute misfits that `initialization_boxes` draws.

    Returns
    -------
    DataFrame
        One row per setup and box; medians with the lower and upper quartile, for which a failed
        run is worse than any other.
    """
    rows = []
    for setup in order_of(personalizations["setup"].tolist()):
        for label, _, own in _groups(personalizations[personalizations["setup"] == setup]):
            row: dict[str, Any] = {
                "setup": setup,
                "start": label,
                "patients": own["patient"].nunique(),
                "failed runs": _failed(own, objectives),
            }
            for objective in objectives:
                values = np.abs(own[f"misfit:{objective.name}"].to_numpy(float))
                ranked = np.nan_to_num(values, nan=np.inf)
                low, median, high = np.quantile(
                    ranked, [0.25, 0.5, 0.75], method="averaged_inverted_cdf"
                )
                row[f"|{objective.label}| [{objective.unit}]"] = (
                    f"{median:.1f} ({low:.1f} to {high:.1f})"
                )
            row["within both tolerances [%]"] = round(100.0 * own["solved"].mean(), 1)
            inside = share_interval(own, own["solved"].astype(float))
            row[heading("within both tolerances")] = worded(inside)
            rows.append(row)
    return pd.DataFrame(rows)


def _groups(own: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Label, colour and rows of each box."""
    groups = [
        (label, FIXED_COLOR, own[own["method"] == method]) for method, label in FIXED_LABELS.items()
    ]
    initial = own[own["method"] == "vito-initial"]
    groups += [
        (_power(int(n)), INITIAL_COLOR, initial[initial["n_samples"] == n])
        for n in sorted(initial["n_samples"].dropna().unique())
    ]
    full = own[own["method"] == PAPER]
    full = full[full["n_samples"] == full["n_samples"].max()]
    groups.append(("Vito", FULL_COLOR, full))
    return [group for group in groups if len(group[2])]


def _told(label: str, n_failed: int) -> str:
    """Add to the label of a box how many runs it leaves out."""
    return f"{label}\n({n_failed} failed)" if n_failed else label


def _failed(own: pd.DataFrame, objectives: Sequence[Objective | ObjectiveRecord]) -> int:
    """Personalisations in which no run gave finite outputs."""
    columns = [f"misfit:{objective.name}" for objective in objectives]
    return int((~np.isfinite(own[columns].to_numpy(float))).any(axis=1).sum())


def _power(n: int) -> str:
    """Write powers of ten as such."""
    exponent = len(str(n)) - 1
    return f"10{str(exponent).translate(_SUPERSCRIPT)}" if n == 10**exponent else f"{n:,}"


def box_of(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Whisker, quartile, median, quartile, whisker; and the values beyond the whiskers.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Finite.

    Returns
    -------
    box : ndarray, shape (5,)
    beyond : ndarray
    """
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (high - low)
    inside = (values >= low - reach) & (values <= high + reach)
    box = np.array([values[inside].min(), low, median, high, values[inside].max()])
    return box, values[~inside]


def _boxes(
    boxes: Sequence[tuple[str, str, FloatArray]],
    objective: Objective | ObjectiveRecord,
    title: str,
    size: tuple[float, float],
) -> Any:
    """One panel of box plots."""
    bodies: dict[str, list[tuple[float, ...]]] = {}
    whiskers: list[tuple[float, ...]] = []
    medians, dots, highest = [], [], objective.tolerance
    for place, (_, color, misfits) in enumerate(boxes):
        values = np.abs(misfits[np.isfinite(misfits)])
        if not values.size:
            continue
        highest = max(highest, float(values.max()))
        box, beyond = box_of(values)
        end, low, median, high, top = np.sqrt(box)
        bodies.setdefault(color, []).append((place - 0.3, low, place + 0.3, high))
        whiskers += [(place, end, place, low), (place, high, place, top)]
        whiskers += [(place - 0.12, y, place + 0.12, y) for y in (end, top)]
        medians.append((place - 0.3, median, place + 0.3, median))
        dots += [(place, y) for y in np.sqrt(beyond)]
    limits = (-0.6, len(boxes) - 0.4)
    unit = objective.unit
    band = hv.Rectangles([(limits[0], 0.0, limits[1], np.sqrt(objective.tolerance))])
    items = [fill(band, SUCCESS_COLOR, 0.15)]
    items.append(style(hv.Segments(whiskers), color="#222222", line_width=1.0))
    for color, rectangles in bodies.items():
        items.append(
            style(
                hv.Rectangles(rectangles),
                line_width=1.0,
                line_color="#222222",
                bokeh={"fill_color": color},
                matplotlib={"facecolor": color},
            )
        )
    items.append(style(hv.Segments(medians), color=MEDIAN_COLOR, line_width=2.5))
    points = style(hv.Points(dots), color="#222222", size=3, marker="o", alpha=0.6)
    items.append(points)
    top = 1.05 * float(np.sqrt(highest))
    steps = [0, 1, objective.tolerance, 10, 20, 50, 100, 180, 400, 1000]
    marks = sorted({float(m) for m in steps if np.sqrt(m) <= top})
    return panel(
        hv.Overlay(items),
        title=f"{title} (band: ±{objective.tolerance:g}{'' if unit == '°' else ' '}{unit})",
        xlabel="fixed values | start from data, samples per patient | full",
        ylabel=f"absolute misfit [{unit}], √ scale",
        size=size,
        xticks=list(enumerate(label for label, _, _ in boxes)),
        yticks=[(float(np.sqrt(m)), f"{m:g}") for m in marks],
        xlim=limits,
        ylim=(0.0, top),
    )


def ep_table(personalizations: pd.DataFrame, patients: pd.DataFrame | None = None) -> pd.DataFrame:
    """Success, errors and runs of every method, beside the paper's.

    Parameters
    ----------
    personalizations : DataFrame
        Methods that learn are shown with their largest number of samples.
    patients : DataFrame, optional
        With a column ``solvable``: whether some point of a grid over the domain meets the
        tolerances, an upper bound of every success rate but for what lies between its points.

    Returns
    -------
    DataFrame
        Per setup and method: all repeats or random starts together, and of random starts the
        best (highest success, then fewest runs), as the paper reports its references. Intervals
        are over the patients; not solved counts as the whole budget in the runs over all. Errors
        are mean ± standard deviation of the absolute misfit, failed runs left out.
    """
    methods = order_of([*METHOD_COLORS, *personalizations["method"]])
    table = []
    for setup in order_of(personalizations["setup"].tolist()):
        own = personalizations[personalizations["setup"] == setup]
        solvable = _solvable(setup, own, patients)
        for method in methods:
            rows = own[own["method"] == method]
            if rows.empty:
                continue
            if rows["n_samples"].notna().any():
                rows = rows[rows["n_samples"] == rows["n_samples"].max()]
            known = paper.EP_METHODS.get(method)
            random = rows["start"].nunique() > 1
            table.append(
                _row(setup, method, "mean of starts" if random else "all", rows)
                | {"solved per start": _range(rows) if random else ""}
                | _paper_says(None if random else known, solved=known if random else None)
                | solvable
            )
            if random:
                table.append(
                    _row(setup, method, "best start", best_start(rows))
                    | {"solved per start": ""}
                    | _paper_says(known)
                    | solvable
                )
    return pd.DataFrame(table)


def _row(setup: str, method: str, which: str, rows: pd.DataFrame) -> dict[str, Any]:
    """Outcome of some personalisations by one method."""
    found = summarize(rows, ["setup"], intervals=("success", "runs_all", "runs_solved")).iloc[0]
    samples = rows["n_samples"].dropna()
    return {
        "setup": setup,
        "method": method_label(method),
        "of": which,
        "samples per patient": f"{samples.iloc[0]:,}" if len(samples) else "",
        "personalisations": len(rows),
        "success [%]": round(found["success"], 1),
        heading("success"): worded(ends_of(found, "success")),
        "|QRSd| [ms]": _error(rows["misfit:qrs_duration"]),
        "|EA| [°]": _error(rows["misfit:electrical_axis"]),
        "runs, all": round(found["runs_all"], 1),
        heading("runs, all"): worded(ends_of(found, "runs_all")),
        "runs, solved": round(found["runs_solved"], 1),
        heading("runs, solved"): worded(ends_of(found, "runs_solved")),
    }


def _error(misfits: pd.Series) -> str:
    """Mean and standard deviation of what is finite."""
    values = np.abs(misfits.to_numpy(float))
    values = values[np.isfinite(values)]
    if not values.size:
        return ""
    deviation = values.std(ddof=1) if values.size > 1 else 0.0
    return f"{values.mean():.1f} ± {deviation:.1f}"


def _range(rows: pd.DataFrame) -> str:
    """Fewest and most patients that a start solves."""
    starts = summarize(rows, ["start"])
    solved = (starts["success"] * starts["n"] / 100.0).round().astype(int)
    return f"{solved.min()}–{solved.max()} of {rows['patient'].nunique()}"


def _paper_says(
    known: paper.Reported | None, solved: paper.Reported | None = None
) -> dict[str, str]:
    """The paper's numbers for one row."""
    said = dict.fromkeys(
        (
            "paper: success [%]",
            "paper: |QRSd| [ms]",
            "paper: |EA| [°]",
            "paper: runs",
            "paper: solved per start",
        ),
        "",
    )
    if known is not None:
        said["paper: success [%]"] = f"{known.success:g}"
        said["paper: |QRSd| [ms]"] = "{} ± {}".format(*known.qrs_duration)
        said["paper: |EA| [°]"] = "{} ± {}".format(*known.electrical_axis)
        said["paper: runs"] = f"{known.runs:g}"
    if solved is not None and solved.solved is not None:
        said["paper: solved per start"] = "{}–{} of {}".format(*solved.solved, paper.EP_PATIENTS)
    return said


def _solvable(setup: str, own: pd.DataFrame, patients: pd.DataFrame | None) -> dict[str, Any]:
    """Share of the personalised patients that can be solved, where that was computed."""
    shown: dict[str, Any] = {"patients": f"{own['patient'].nunique()}, synthetic"}
    if patients is None or "solvable" not in patients:
        return shown
    rows = patients[(patients["setup"] == setup) & patients["patient"].isin(own["patient"])]
    known = rows["solvable"].dropna().astype(bool)
    return {"solvable [%]": round(100.0 * known.mean(), 1)} | shown if len(known) else shown
