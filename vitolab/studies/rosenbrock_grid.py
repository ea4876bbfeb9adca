"""Rosenbrock functions, personalised from a grid of starts (section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from vitolab.methods import PAPER
from vitolab.studies import shared
from vitolab.studies.base import (
    ACTING,
    Content,
    Section,
    StoredRun,
    Study,
    check_acting,
    choices,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

#: The size of the standard profile; others change some of it.
_GRID: Mapping[str, Any] = {
    **ACTING,
    "n_functions": 100,
    "n_evaluated": 5,
    "grid_size": 21,
    "n_samples": 1000,
    "n_states": 100,
    "max_runs": 1000,
    "max_runs_restart": 10_000,
    "action_sets": ["base", "extended"],
    "borders": ["free", "clip"],
    "restarts": [False, True],
    "signs": ["signed", "absolute"],
    "methods": ["nelder-mead", "least-squares"],
    "n_compared": 40,
    "n_repeats": 10,
}


def _starts(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Starts of a grid study, shape (n, 2).

    Raises
    ------
    ValueError
        If the run stored none.
    """
    import numpy as np

    if "grid/x1" not in arrays or "grid/x2" not in arrays:
        raise ValueError("the run stored no grid of starts, which the map needs")
    return np.stack([arrays["grid/x1"], arrays["grid/x2"]], axis=1)


def worst_functions(stored: StoredRun, setup: str, repeat: int) -> pd.DataFrame:
    """For each start its worst function, with its error, and the share that was solved."""
    import numpy as np
    import pandas as pd

    from vitolab import plots

    rows, patients = stored.personalizations, stored.patients
    rows = rows[(rows["setup"] == setup) & (rows["method"] == PAPER) & (rows["repeat"] == repeat)]
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


def _maps(stored: StoredRun, repeat: int, draw: Any, draw_all: Any) -> Content:
    """Maps of the grid of starts, one per setup."""
    import pandas as pd

    from vitolab import plots
    from vitolab.plots.summary import order_of
    from vitolab.studies import words

    tables = (stored.personalizations, stored.patients, _starts(stored.arrays))
    learned = stored.personalizations["method"] == PAPER
    setups = order_of(stored.personalizations.loc[learned, "setup"].tolist())
    hover = tuple(worst_functions(stored, setup, repeat) for setup in setups)
    maps = [draw(*tables, setup, repeat) for setup in setups]
    starts = pd.concat([t.assign(setup=s) for s, t in zip(setups, hover, strict=True)])
    columns = ["setup", *hover[0].columns]
    return Content(
        words.grid(setups, hover),
        draw_all(*tables, repeat),
        (("Each start with its worst function", starts[columns]),),
        plots.layout(maps, columns=3) if len(maps) > 1 else maps[0],
        hover,
    )


def _errors(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots

    return _maps(stored, repeat, plots.grid_error_map, plots.grid_error_maps)


def _success(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots

    return _maps(stored, repeat, plots.grid_success_map, plots.grid_success_maps)


def _numbers(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    limits = [stored.parameters.get(name) for name in ("max_runs", "max_runs_restart")]
    known = tuple(sorted({n for n in limits if isinstance(n, int)}))
    table = plots.grid_table(stored.personalizations, stored.patients, limits=known)
    return Content(words.grid_numbers(table), tables=(("Outcome", table),))


STUDY = Study(
    name="rosenbrock-grid",
    notebook="rosenbrock_grid.ipynb",
    title="Rosenbrock functions from a grid of starts (section 3.1)",
    profiles={
        # a fifth of the functions, with as many samples in all
        "quick": {
            **_GRID,
            "n_functions": 20,
            "n_evaluated": 20,
            "grid_size": 11,
            "n_samples": 5000,
            "max_runs": 300,
            "max_runs_restart": 300,
            "action_sets": ["base"],
            "borders": ["free"],
            "signs": ["signed"],
            "n_compared": 30,
            "n_repeats": 1,
        },
        "standard": _GRID,
        "paper": {**_GRID, "n_evaluated": 100, "n_compared": 441},
    },
    duration={"quick": "a minute", "standard": "15 minutes", "paper": "about five hours"},
    sections=(
        Section("errors", "Errors", _errors),
        Section("success", "Success", _success),
        shared.PATHS,
        Section("numbers", "Numbers", _numbers),
        shared.PAIRED,
    ),
    choices={
        **choices("methods"),
        "borders": ("free", "clip", "reject"),
        "action_sets": ("base", "extended"),
        "signs": ("signed", "absolute"),
    },
    least={"n_functions": 2},
    check=partial(check_acting, "rosenbrock-grid"),
    traces=True,
    policy=True,
    tiny={
        "n_functions": 3,
        "n_evaluated": 2,
        "grid_size": 2,
        "n_samples": 50,
        "n_states": 10,
        "max_runs": 20,
        "max_runs_restart": 40,
        "methods": ["nelder-mead"],
        "n_compared": 2,
    },
)
