"""Figures of a grid of starts: where in parameter space personalisation ends well (section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.intervals import heading, share_interval, worded
from vitolab.methods import PAPER
from vitolab.plots.style import MAP, layout, panel, style
from vitolab.plots.summary import ends_of, order_of, summarize

FloatArray = NDArray[np.float64]

# Largest error that the colours tell apart, and what counts as solved in the paper's figure.
CLIP = 5.0
CONVERGED = 0.25

# What the paper says of each configuration (section 3.1.2); it does not name its border rule.
WORDS = {
    "base": "solved from the majority of starts; largest error ≈ 110",
    "extended": "solved from every start but one spot near (−1, 2)",
    "extended, restart": "solved from every start",
}


def start_errors(
    personalizations: pd.DataFrame, patients: pd.DataFrame, setup: str, repeat: int = 0
) -> pd.DataFrame:
    """Worst error in parameter space and share of functions solved, for each start.

    Parameters
    ----------
    personalizations : DataFrame
    patients : DataFrame
        With the truth of each patient.
    setup : str
    repeat : int

    Returns
    -------
    DataFrame
        Index ``start``; ``error``, the largest Euclidean distance over all functions between
        the last parameters and the truth, and ``success`` [%].

    Raises
    ------
    ValueError
        If there is nothing of this setup and repeat.
    """
    rows = _rows(personalizations, setup, repeat)
    if rows.empty:
        raise ValueError(f"no personalisations of setup {setup!r}, repeat {repeat}")
    truths = [name for name in map(str, patients) if name.startswith("truth:")]
    truth = patients.drop_duplicates("patient").set_index("patient")[truths]
    last = rows[[name.replace("truth:", "last:") for name in truths]].to_numpy(float)
    error = np.linalg.norm(last - truth.loc[rows["patient"]].to_numpy(float), axis=1)
    frame = pd.DataFrame(
        {"start": rows["start"].astype(int), "error": error, "success": 100.0 * rows["solved"]}
    )
    return frame.groupby("start").agg(error=("error", "max"), success=("success", "mean"))


def _rows(personalizations: pd.DataFrame, setup: str, repeat: int) -> pd.DataFrame:
    """Personalisations by Vito in one setup and repeat."""
    own: pd.DataFrame = personalizations[
        (personalizations["setup"] == setup)
        & (personalizations["method"] == PAPER)
        & (personalizations["repeat"] == repeat)
    ]
    return own


def _on_grid(starts: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Axes of the grid, and the values with x₂ along the rows."""
    x1, x2 = np.unique(starts[:, 0]), np.unique(starts[:, 1])
    image = np.full((len(x2), len(x1)), np.nan)
    image[np.searchsorted(x2, starts[:, 1]), np.searchsorted(x1, starts[:, 0])] = values
    return x1, x2, image


def _map(
    starts: FloatArray,
    values: FloatArray,
    patients: pd.DataFrame,
    *,
    title: str,
    label: str,
    limits: tuple[float, float],
    size: tuple[float, float],
    share: float | None,
    colors: str = MAP,
) -> Any:
    """Image of one value per start, with the true optima.

    The colour bar is given by the share of the whole figure that this map takes; None hides it.
    """
    image = hv.Image(_on_grid(starts, values), ["x1", "x2"], [label])
    image = style(
        image,
        cmap=colors,
        clim=limits,
        colorbar=share is not None,
        clabel=label,
        bokeh={"tools": ["hover"]},
        matplotlib={"cbar_width": 0.05 * (share or 1.0), "cbar_padding": 0.05 * (share or 1.0)},
    )
    truth = patients.drop_duplicates("patient")[["truth:x1", "truth:x2"]].to_numpy(float)
    optima = style(hv.Points(truth, ["x1", "x2"]), color="#D7191C", size=3.5, marker="o")
    return panel(image * optima, title=title, xlabel="start x₁", ylabel="start x₂", size=size)


def grid_error_map(
    personalizations: pd.DataFrame,
    patients: pd.DataFrame,
    starts: FloatArray,
    setup: str,
    repeat: int = 0,
    size: tuple[float, float] = (3.6, 3.6),
    share: float | None = 1.0,
) -> Any:
    """Map of the largest error over all functions against the start (the paper's figure).

    Parameters
    ----------
    personalizations, patients : DataFrame
        Tables of the run.
    starts : ndarray, shape (n_starts, 2)
    setup : str
    repeat : int
    size : (float, float)
        Inches.
    share : float, optional
        Share of the width of the figure that this map takes; None hides the colour bar.

    Returns
    -------
    HoloViews overlay
        Errors of 5 and more have the brightest colour; red dots are the true optima.
    """
    errors = start_errors(personalizations, patients, setup, repeat)
    own = _rows(personalizations, setup, repeat)
    converged = int(np.sum(errors["error"] < CONVERGED))
    return _map(
        starts[errors.index.to_numpy()],
        errors["error"].to_numpy(),
        patients[patients["patient"].isin(own["patient"])],
        title=(
            f"{_title(setup, repeat, personalizations)}\n"
            f"{converged} of {len(errors)} starts: all errors < {CONVERGED:g}"
        ),
        label=f"largest L₂ error in x ({CLIP:g}: or more)",
        limits=(0.0, CLIP),
        size=size,
        share=share,
    )


def grid_success_map(
    personalizations: pd.DataFrame,
    patients: pd.DataFrame,
    starts: FloatArray,
    setup: str,
    repeat: int = 0,
    size: tuple[float, float] = (3.6, 3.6),
    share: float | None = 1.0,
) -> Any:
    """Map of the share of functions that were solved from each start.

    The interval of the share of all is over the functions, of this repeat alone.

    Parameters
    ----------
    personalizations, patients, starts, setup, repeat, size, share
        As for `grid_error_map`.
    """
    errors = start_errors(personalizations, patients, setup, repeat)
    own = _rows(personalizations, setup, repeat)
    return _map(
        starts[errors.index.to_numpy()],
        errors["success"].to_numpy(),
        patients[patients["patient"].isin(own["patient"])],
        title=(
            f"{_title(setup, repeat, personalizations)}\n{errors['success'].mean():.1f} % "
            f"({worded(share_interval(own, own['solved'].astype(float)))}) of all solved"
        ),
        label="functions solved [%]",
        limits=(0.0, 100.0),
        size=size,
        share=share,
        colors="viridis",
    )


def grid_error_maps(
    personalizations: pd.DataFrame,
    patients: pd.DataFrame,
    starts: FloatArray,
    repeat: int = 0,
    columns: int = 3,
) -> Any:
    """Layout of `grid_error_map` for every setup."""
    return _maps(grid_error_map, personalizations, patients, starts, repeat, columns)


def grid_success_maps(
    personalizations: pd.DataFrame,
    patients: pd.DataFrame,
    starts: FloatArray,
    repeat: int = 0,
    columns: int = 3,
) -> Any:
    """Layout of `grid_success_map` for every setup."""
    return _maps(grid_success_map, personalizations, patients, starts, repeat, columns)


def _maps(
    draw: Any,
    personalizations: pd.DataFrame,
    patients: pd.DataFrame,
    starts: FloatArray,
    repeat: int,
    columns: int,
) -> Any:
    """One map per setup."""
    size, gap = (2.9, 2.9), (0.25, 0.5)
    learned = personalizations[personalizations["method"] == PAPER]
    setups = order_of(learned["setup"].tolist())
    columns = min(columns, len(setups))
    share = 1.0 / (columns + gap[0] * (columns - 1))
    maps = []
    for position, name in enumerate(setups):
        last = position % columns == columns - 1 or position == len(setups) - 1
        maps.append(
            draw(personalizations, patients, starts, name, repeat, size, share if last else None)
        )
    return layout(maps, columns=columns, size=size, gap=gap)


def grid_table(
    personalizations: pd.DataFrame, patients: pd.DataFrame, *, limits: Sequence[int] = ()
) -> pd.DataFrame:
    """Outcome of every setup and method beside the paper's statement.

    Parameters
    ----------
    personalizations, patients : DataFrame
        Tables of the run.
    limits : sequence of int
        Numbers of forward runs; a setup that was allowed more than one of them has a row for it,
        too: a walk up to there does not depend on how far it may go.

    Returns
    -------
    DataFrame
        Per setup, method and limit: success over all (start, function) pairs, as mean and, with
        several repeats, range; share of the starts from which every function was solved;
        mean runs over all (not solved counts as all that were allowed) and over the solved;
        largest error in x; the paper's words. Intervals are those of resampled functions and
        repeats: these share what was explored.
    """
    told = ("success", "runs_all", "runs_solved")
    rows = []
    for setup in order_of(personalizations["setup"].tolist()):
        of_setup = personalizations[personalizations["setup"] == setup]
        known = of_setup["method"].tolist()
        for method in order_of([*(m for m in known if m == PAPER), *known]):
            whole = of_setup[of_setup["method"] == method]
            allowed = _allowed(whole)
            for limit in [*(n for n in limits if allowed and n < allowed), allowed]:
                own = whole if limit == allowed else _within(whole, limit)
                sums = summarize(own, ["method"], intervals=told, crossed=True).iloc[0].to_dict()
                repeats = summarize(own, ["repeat"])["success"]
                starts = summarize(own, ["repeat", "start"])
                errors = [
                    start_errors(own, patients, setup, int(repeat))["error"].max()
                    for repeat in own["repeat"].dropna().unique()
                    if method == PAPER and limit == allowed
                ]
                several = len(repeats) > 1
                rows.append(
                    {
                        "setup": setup,
                        "method": method,
                        "runs allowed": f"{limit:,}" if limit else "",
                        "repeats": len(repeats),
                        "functions": own["patient"].nunique(),
                        "starts": starts["start"].nunique(),
                        "success [%]": round(sums["success"], 1),
                        heading("success"): worded(ends_of(sums, "success")),
                        "deviation over repeats": round(repeats.std(), 1) if several else np.nan,
                        "lowest, highest repeat [%]": (
                            f"{repeats.min():.1f}, {repeats.max():.1f}" if several else ""
                        ),
                        "starts that solve every function [%]": round(
                            100.0 * float(np.mean(starts["success"] == 100.0)), 1
                        ),
                        "runs, all": round(sums["runs_all"], 1),
                        heading("runs, all"): worded(ends_of(sums, "runs_all")),
                        "runs, solved": round(sums["runs_solved"], 1),
                        heading("runs, solved"): worded(ends_of(sums, "runs_solved")),
                        "largest error in x": round(max(errors), 2) if errors else np.nan,
                        "paper": WORDS.get(_configuration(setup), "") if method == PAPER else "",
                    }
                )
    return pd.DataFrame(rows)


def _allowed(own: pd.DataFrame) -> int:
    """Forward runs that were allowed; 0 where the run did not store it."""
    known = own["max_runs"].dropna() if "max_runs" in own else own["n_runs"].iloc[:0]
    return int(known.max()) if len(known) else 0


def _within(own: pd.DataFrame, limit: int) -> pd.DataFrame:
    """What the same personalisations had come to within fewer forward runs."""
    in_time = own["n_runs"] <= limit
    return own.assign(
        solved=own["solved"].astype(bool) & in_time,
        n_runs=own["n_runs"].where(in_time, limit),
        max_runs=limit,
    )


def _title(setup: str, repeat: int, personalizations: pd.DataFrame) -> str:
    """Setup, and which repeat of several."""
    n = personalizations["repeat"].dropna().nunique()
    return f"{setup}, {f'repeat {repeat + 1} of {n}' if n > 1 else 'one repeat'}"


def _configuration(setup: str) -> str:
    """What the paper's configuration would be called: border rules and signs are ours."""
    ours = ("free", "clip", "reject", "absolute")
    words = [word for word in setup.split(", ") if word not in ours]
    return ", ".join(words)
