"""Parts of the page Results that show Rosenbrock functions, personalised from a grid of starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab import plots
from vitolab.plots.summary import order_of

from ...kit.part import Part
from ...kit.stored import Stored
from . import words


def _starts(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Starts of a grid study, shape (n, 2).

    Raises
    ------
    ValueError
        If the run stored none.
    """
    if "grid/x1" not in arrays or "grid/x2" not in arrays:
        raise ValueError("the run stored no grid of starts, which the map needs")
    return np.stack([arrays["grid/x1"], arrays["grid/x2"]], axis=1)


def worst_functions(stored: Stored, setup: str, repeat: int) -> pd.DataFrame:
    """For each start its worst function, with its error, and the share that was solved."""
    rows, patients = stored.personalizations, stored.patients
    rows = rows[(rows["setup"] == setup) & (rows["method"] == "vito") & (rows["repeat"] == repeat)]
    truths = [name for name in map(str, patients) if name.startswith("truth:")]
    truth = patients.drop_duplicates("patient").set_index("patient")[truths]
    last = rows[[name.replace("truth:", "last:") for name in truths]].to_numpy(float)
    error = np.linalg.norm(last - truth.loc[rows["patient"]].to_numpy(float), axis=1)
    known = pd.DataFrame({"start": rows["start"].astype(int), "function": rows["patient"]})
    known = known.assign(error=error).sort_values("error", kind="stable")
    worst = known.drop_duplicates("start", keep="last").set_index("start").sort_index()
    share = plots.start_errors(rows, patients, setup, repeat)["success"]
    at = _starts(stored.arrays)[worst.index.to_numpy()]
    return pd.DataFrame(
        {
            "start x₁": at[:, 0],
            "start x₂": at[:, 1],
            "worst function": worst["function"].astype(str).to_numpy(),
            "its error": worst["error"].to_numpy(),
            "solved [%]": share.loc[worst.index].to_numpy(float),
        }
    )


def maps(draw: Any, draw_all: Any) -> Callable[[Stored, int], Part]:
    """Maps of the grid of starts, one per setup."""

    def build(stored: Stored, repeat: int) -> Part:
        tables = (stored.personalizations, stored.patients, _starts(stored.arrays))
        learned = stored.personalizations["method"] == "vito"
        setups = order_of(stored.personalizations.loc[learned, "setup"].tolist())
        hover = tuple(worst_functions(stored, setup, repeat) for setup in setups)
        maps = [draw(*tables, setup, repeat) for setup in setups]
        told = pd.concat([t.assign(setup=s) for s, t in zip(setups, hover, strict=True)])
        columns = ["setup", *hover[0].columns]
        return Part(
            words.grid(setups, hover),
            draw_all(*tables, repeat),
            (("Each start with its worst function", told[columns]),),
            plots.layout(maps, columns=3) if len(maps) > 1 else maps[0],
            hover,
        )

    return build


def numbers(stored: Stored, repeat: int) -> Part:
    """Every setup and method in numbers."""
    table = plots.grid_table(stored.personalizations, stored.patients)
    return Part("Every setup and method, beside the paper's words.", tables=(("Outcome", table),))


def paths(stored: Stored, repeat: int) -> Part:
    """Paths of one function from several starts."""
    traces = stored.traces
    traces = traces[traces["method"] == "vito"]
    if traces.empty:
        raise ValueError("the run stored no traces of Vito, which this figure shows")
    first = traces.iloc[0]
    own = traces[(traces["setup"] == first["setup"]) & (traces["patient"] == first["patient"])]
    truth = stored.patients
    truth = truth[truth["patient"] == first["patient"]]
    known = "truth:x1" in truth and len(truth)
    figure = plots.personalization_paths(
        {f"start {start}": trace for start, trace in own.groupby("start")},
        stored.problems[str(first["setup"])],
        truth=truth[["truth:x1", "truth:x2"]].to_numpy(float)[0] if known else None,
        title=f"{first['patient']}, {first['setup']}",
        limits=(-6.0, 6.0, -6.0, 6.0),
    )
    shown = own[["start", "iteration", "event", *(c for c in own if c[:2] in ("x:", "c:"))]]
    ends = shown.groupby("start").tail(1)
    return Part(words.paths(own), figure, (("The last forward run from each start", ends),))
