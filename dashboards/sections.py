"""What the page Results shows of each study: figures, numbers and a sentence for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab import plots
from vitolab.plots.summary import order_of, summarize

from . import words
from .compare import methods_figure, methods_table
from .part import Part
from .stored import Stored

_CURVES = {"time": "time [s]", "lv_volume": "LV volume [mL]", "lv_pressure": "LV pressure [mmHg]"}


@dataclass(frozen=True)
class Section:
    """A part of the page, by the name that addresses hold.

    Attributes
    ----------
    name, title : str
    build : callable
        ``build(stored, repeat) -> Part``.
    """

    name: str
    title: str
    build: Callable[[Stored, int], Part]


def grid_starts(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
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
    at = grid_starts(stored.arrays)[worst.index.to_numpy()]
    return pd.DataFrame(
        {
            "start x₁": at[:, 0],
            "start x₂": at[:, 1],
            "worst function": worst["function"].astype(str).to_numpy(),
            "its error": worst["error"].to_numpy(),
            "solved [%]": share.loc[worst.index].to_numpy(float),
        }
    )


def _maps(draw: Any, draw_all: Any) -> Callable[[Stored, int], Part]:
    """Maps of the grid of starts, one per setup."""

    def build(stored: Stored, repeat: int) -> Part:
        tables = (stored.personalizations, stored.patients, grid_starts(stored.arrays))
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


def _grid_numbers(stored: Stored, repeat: int) -> Part:
    table = plots.grid_table(stored.personalizations, stored.patients)
    return Part("Every setup and method, beside the paper's words.", tables=(("Outcome", table),))


def _paths(stored: Stored, repeat: int) -> Part:
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


def _scouting(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations[stored.personalizations["method"] == "vito"]
    table = words.named(summarize(rows, ["setup", "n_states"]))
    return Part(
        words.sweep(rows, "n_states", "states"),
        plots.scouting_curves(stored.personalizations),
        (("Means over patients and repeats", table),),
    )


def _scouting_numbers(stored: Stored, repeat: int) -> Part:
    table = plots.scouting_table(stored.personalizations)
    sentence = "The number of states that did best, beside the paper's; it is shown only."
    return Part(sentence, tables=(("Number of states", table),))


def _references(stored: Stored) -> tuple[str, ...]:
    """Reference methods that stand beside the curves."""
    if stored.study.startswith("ep-"):
        return ("bobyqa-simple", "bobyqa-cascade-stable", "least-squares-multistart")
    return ("nelder-mead", "least-squares-multistart")


def _convergence(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations
    solvable = None
    if stored.entry.info.status == "complete" and "solvable" in stored.patients:
        solvable = stored.patients
    known = tuple(m for m in _references(stored) if m in set(rows["method"]))
    table = plots.convergence_table(rows[rows["method"].isin(["vito", *known])])
    return Part(
        words.sweep(rows, "n_samples", "samples per patient", known),
        plots.convergence_curves(rows, references=known, solvable=solvable),
        (("Numbers of these curves, beside the paper's", table),),
    )


def _policies(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations
    rows = rows[rows["method"].isin(["vito", "vito-deterministic"])]
    table = words.named(summarize(rows, ["setup", "method", "n_samples"]))
    return Part(
        words.drawing(rows),
        plots.policy_curves(stored.personalizations),
        (("Stochastic and deterministic policy", table),),
    )


def _restarts(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations[stored.personalizations["method"] == "vito"]
    table = words.named(summarize(rows, ["setup", "n_samples"]))
    return Part(
        words.restarts(table),
        plots.restart_curves(stored.personalizations),
        (("Solved without a restart", table),),
    )


def _convergence_numbers(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations
    known, tables = set(rows["method"]), []
    if stored.study.startswith("ep-"):
        tables.append(("Beside the paper", plots.ep_table(rows, stored.patients)))
        tables.append(("Samples needed", plots.samples_needed(rows, target=49.0)))
    else:
        tables.append(("Samples needed", plots.samples_needed(rows)))
        for name, claims in (("nelder-mead", True), ("least-squares-multistart", False)):
            if name in known:
                title = f"Vito beside {plots.method_label(name)}"
                tables.append((title, plots.reference_table(rows, reference=name, claims=claims)))
        if "nelder-mead-unweighted" in known:
            tables.append(("Normalised or plain misfit", plots.weighting_table(rows)))
    tables.append(("Who can be solved at all", plots.solvable_table(rows)))
    tables.append(("All numbers", plots.convergence_table(rows)))
    return Part("What was found, beside what the paper reports.", tables=tuple(tables))


def _boxes(stored: Stored, repeat: int) -> Part:
    problem = next(iter(stored.problems.values()))
    table = plots.initialization_table(stored.personalizations, problem.objectives)
    return Part(
        words.boxes(table),
        plots.initialization_boxes(stored.personalizations, problem.objectives),
        (("Medians and quartiles of the absolute misfits", table),),
    )


def _methods(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations
    groups = [(setup, rows[rows["setup"] == setup]) for setup in order_of(rows["setup"].tolist())]
    table = methods_table(groups)
    return Part(words.methods(table), methods_figure(groups), (("Success and cost", table),))


def _ep_numbers(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations
    tables = (
        ("Success, errors and cost, beside the paper's", plots.ep_table(rows, stored.patients)),
        ("Who can be solved at all", plots.solvable_table(rows)),
    )
    return Part("What was found, beside what the paper reports.", tables=tables)


def _fit(stored: Stored, repeat: int) -> Part:
    tables = (stored.personalizations, stored.patients, stored.problems)
    table = plots.fit_table(*tables)
    return Part(
        words.solved(stored.personalizations),
        plots.fit_curves(stored.arrays, *tables),
        (("Objective by objective", table),),
    )


def _loops(stored: Stored, repeat: int) -> Part:
    figure = plots.pressure_volume_loops(stored.arrays, stored.problems)
    sentence = "What the model says about a pressure in the ventricle that was not measured."
    tables = []
    for setup in stored.problems:
        curves = {name: stored.arrays[f"{setup}/{name}"] for name in _CURVES}
        table = pd.DataFrame({label: curves[name] for name, label in _CURVES.items()})
        tables.append(table.assign(setup=setup))
    return Part(sentence, figure, (("The curves of the model", pd.concat(tables)),))


def _tour(stored: Stored, repeat: int) -> Part:
    arrays = stored.arrays
    if "policy/x" not in arrays or "landscape/axis" not in arrays:
        raise ValueError("the run stored no map of its policy, which this figure shows")
    axis = arrays["landscape/axis"]
    ground = plots.function_map(
        axis, axis, arrays["landscape/values"], label="log₁₀ f(x)", faint=True
    )
    figure = plots.policy_map(arrays["policy/x"], arrays["policy/steps"], background=ground)
    steps = arrays["policy/steps"]
    told = {"x₁": arrays["policy/x"][:, 0], "x₂": arrays["policy/x"][:, 1]}
    table = pd.DataFrame(told | {"steps in x₁": steps[:, 0], "steps in x₂": steps[:, 1]})
    sentence = "The best action at points of parameter space, for one function."
    return Part(sentence, figure, (("Best action at each point", table),))


def _patients(stored: Stored, repeat: int) -> Part:
    return Part(
        words.solved(stored.personalizations),
        tables=(("Patient by patient", words.by_patient(stored.personalizations)),),
    )


_METHODS = Section("methods", "Methods", _methods)
_PATIENTS = Section("patients", "Patients", _patients)
_SCOUTING = (
    Section("curves", "Curves", _scouting),
    Section("numbers", "Numbers", _scouting_numbers),
)
_CONVERGENCE = (
    Section("curves", "Curves", _convergence),
    Section("draws", "Stochastic policy", _policies),
    Section("restarts", "Restarts", _restarts),
    Section("numbers", "Numbers", _convergence_numbers),
)
_GRID = (
    Section("errors", "Errors", _maps(plots.grid_error_map, plots.grid_error_maps)),
    Section("success", "Success", _maps(plots.grid_success_map, plots.grid_success_maps)),
    Section("paths", "Paths", _paths),
    Section("numbers", "Numbers", _grid_numbers),
)
SECTIONS: Mapping[str, tuple[Section, ...]] = {
    "rosenbrock-grid": _GRID,
    "wbc-scouting": _SCOUTING,
    "ep-scouting": _SCOUTING,
    "wbc-convergence": _CONVERGENCE,
    "ep-convergence": _CONVERGENCE,
    "ep-initialization": (Section("boxes", "Errors of the start", _boxes), _METHODS),
    "ep-personalization": (_METHODS, Section("numbers", "Numbers", _ep_numbers)),
    "wbc-fit": (Section("fit", "Fit", _fit), Section("loops", "Loops", _loops), _PATIENTS),
    "tour": (Section("map", "Policy", _tour), Section("paths", "Paths", _paths), _METHODS),
}


def sections_of(study: str) -> tuple[Section, ...]:
    """Sections of a study; what any run can show for one that is not known."""
    return SECTIONS.get(study, (_METHODS, _PATIENTS))
