"""Figures of a grid of starts: where in parameter space personalisation ends well (section 3.1)."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.methods import PAPER
from vitolab.plots.style import MAP, layout, panel, style
from vitolab.plots.summary import order_of, summarize

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
    rows = personalizations[
        (personalizations["setup"] == setup)
        & (personalizations["method"] == PAPER)
        & (personalizations["repeat"] == repeat)
    ]
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
    converged = int(np.sum(errors["error"] < CONVERGED))
    return _map(
        starts[errors.index.to_numpy()],
        errors["error"].to_numpy(),
        patients,
        title=(
            f"{_title(setup, repeat)}\n"
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

    Parameters
    ----------
    personalizations, patients, starts, setup, repeat, size, share
        As for `grid_error_map`.
    """
    errors = start_errors(personalizations, patients, setup, repeat)
    return _map(
        starts[errors.index.to_numpy()],
        errors["success"].to_numpy(),
        patients,
        title=f"{_title(setup, repeat)}\n{errors['success'].mean():.1f} % of all solved",
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


def grid_table(personalizations: pd.DataFrame, patients: pd.DataFrame) -> pd.DataFrame:
    """Outcome of every setup and method beside the paper's statement.

    Parameters
    ----------
    personalizations, patients : DataFrame
        Tables of the run.

    Returns
    -------
    DataFrame
        Per setup and method: success over all (start, function) pairs, as mean and, with
        several repeats, range; share of the starts from which every function was solved;
        mean runs over all and over the solved; largest error in x; the paper's words.
    """
    rows = []
    keys = ["setup", "method", "repeat"]
    overall = summarize(personalizations, keys)
    per_start = summarize(personalizations, [*keys, "start"])
    for setup in order_of(personalizations["setup"].tolist()):
        known = personalizations.loc[personalizations["setup"] == setup, "method"].tolist()
        for method in order_of([*(m for m in known if m == PAPER), *known]):
            own = overall[(overall["setup"] == setup) & (overall["method"] == method)]
            starts = per_start[(per_start["setup"] == setup) & (per_start["method"] == method)]
            every = 100.0 * np.mean(starts["success"] == 100.0)
            learned = method == PAPER
            worst = [
                start_errors(personalizations, patients, setup, int(repeat))["error"].max()
                for repeat in (own["repeat"].dropna() if learned else ())
            ]
            rows.append(
                {
                    "setup": setup,
                    "method": method,
                    "repeats": len(own),
                    "starts": starts["start"].nunique(),
                    "success [%]": round(own["success"].mean(), 1),
                    "lowest, highest repeat [%]": (
                        f"{own['success'].min():.1f}, {own['success'].max():.1f}"
                        if len(own) > 1
                        else ""
                    ),
                    "starts that solve every function [%]": round(every, 1),
                    "runs, all": round(own["runs_all"].mean(), 1),
                    "runs, solved": round(own["runs_solved"].mean(), 1),
                    "largest error in x": round(max(worst), 2) if worst else np.nan,
                    "paper": WORDS.get(_configuration(setup), "") if learned else "",
                }
            )
    return pd.DataFrame(rows)


def _title(setup: str, repeat: int) -> str:
    """Setup, and which repeat of several."""
    return setup if repeat == 0 else f"{setup}, repeat {repeat + 1}"


def _configuration(setup: str) -> str:
    """What the paper's configuration would be called: border rules and signs are ours."""
    ours = ("free", "clip", "reject", "absolute")
    words = [word for word in setup.split(", ") if word not in ours]
    return ", ".join(words)
