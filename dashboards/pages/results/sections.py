"""What the page Results shows of each study: figures, numbers and a sentence for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from vitolab import plots
from vitolab.plots.summary import order_of, summarize
from vitolab.problem import Problem
from vitolab.uncertainty import summary as uncertainty

from ...kit.part import Part
from ...kit.problems import as_stored
from ...kit.stored import Stored
from . import grids, words
from .compare import methods_figure, methods_table

SYNTHETIC = "synthetic subjects"
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


def _scouting(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations[stored.personalizations["method"] == "vito"]
    table = words.named(summarize(rows, ["setup", "n_states"]))
    return Part(
        words.sweep(rows, "n_states", "states"),
        plots.scouting_curves(stored.personalizations),
        (("Means over patients and repeats", table),),
    )


def _own_scouting(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations[stored.personalizations["method"] == "vito"]
    if rows.empty:
        return Part("The paper's agent did not take part: the others have no states.")
    rows = rows[rows["n_samples"] == rows["n_samples"].max()]
    table = words.named(summarize(rows, ["setup", "n_states"]))
    return Part(
        words.sweep(rows, "n_states", "states"),
        plots.scouting_curves(rows, patients="patients of a file, leave-one-out"),
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
        tables=(
            ("Patient by patient", words.by_patient(stored.personalizations, stored.problems)),
        ),
    )


def _agents(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations
    own = stored.study == "problem"
    if own:  # which also goes through numbers of states
        rows = rows[rows["n_states"].isna() | (rows["n_states"] == rows["n_states"].max())]
    whose = ("of a file", "patients of a file") if own else ("synthetic", "synthetic patients")
    table = plots.agent_table(rows, whose=whose[0])
    episode = stored.entry.info.parameters.get("episode")
    figure = plots.agent_curves(
        rows, patients=whose[1], episode=episode if isinstance(episode, int) else 1
    )
    return Part(words.agents(table), figure, (("All numbers", table),))


def _failures(stored: Stored, repeat: int) -> Part:
    failures = stored.run.failures
    if failures.empty:
        return Part("All forward runs answered.")
    n_runs = int(stored.personalizations["n_runs"].sum())
    own = failures[failures["stage"] == "personalization"]
    counts = failures.groupby("kind", sort=False)["n_runs"].sum().sort_values(ascending=False)
    causes = ", ".join(f"{kind}: {n}" for kind, n in counts.items())
    sentence = (
        f"{failures['n_runs'].sum()} forward runs gave no answer ({causes}): "
        f"{own['n_runs'].sum()} of {n_runs} of the personalisations, and "
        f"{failures['n_runs'].sum() - own['n_runs'].sum()} of the exploration. The parameters are "
        "those of one run of each kind and patient."
    )
    return Part(sentence, tables=(("Failed runs by cause", failures),))


def _scaling(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations
    table = plots.agent_table(rows)
    figure = plots.scaling_curves(rows, _problems(stored))
    return Part(words.agents(table), figure, (("All numbers", table),))


def _problems(stored: Stored) -> dict[str, Problem]:
    """Problems by setup, to look at."""
    return {setup: as_stored(record) for setup, record in stored.problems.items()}


def _solutions(stored: Stored, repeat: int) -> Part:
    rows, problems = stored.personalizations, _problems(stored)
    table = uncertainty.identifiability_table(rows, problems)
    sentence = (
        "From many starts a method ends at other parameters wherever the measurements do not "
        "determine them: the range of its solutions, as a share of the domain. It grows with the "
        "number of solutions."
    )
    return Part(sentence, plots.solution_ranges(rows, problems), (("Range of solutions", table),))


def _coverage(stored: Stored, repeat: int) -> Part:
    rows, problems = stored.personalizations, _problems(stored)
    tables = (
        ("Truth within the region", uncertainty.coverage_table(rows, problems)),
        ("How well it was sampled", uncertainty.sampling_table(rows)),
    )
    sentence = (
        "On the diagonal a region of the posterior holds the true parameters as often as it says; "
        "grey is binomial error. It has to on patients of the personalised model itself, and need "
        "not on those of a richer one."
    )
    return Part(sentence, plots.coverage_curves(rows, problems), tables)


def _stability(stored: Stored, repeat: int) -> Part:
    rows, problems = stored.personalizations, _problems(stored)
    sentence = (
        "Each patient was measured again and again with new errors: the standard deviation of the "
        "parameters over the solved fits, as a share of the domain. A method that seldom succeeds "
        "has its spread of few patients; the last columns compare it with "
    )
    asked = [str(m) for m in stored.entry.info.parameters.get("methods") or []]
    reference = next((m for m in reversed(asked) if m in set(rows["method"])), None)
    reference = reference or str(rows["method"].iloc[0])
    sentence += f"{reference} over what both solved."
    table = uncertainty.stability_table(rows, problems, reference=reference)
    return Part(sentence, plots.stability_spread(rows, problems), (("All numbers", table),))


def _forecast(stored: Stored, repeat: int) -> Part:
    rows = stored.personalizations
    method = "vito-continuous" if "vito-continuous" in set(rows["method"]) else rows["method"][0]
    table = uncertainty.forecast_table(rows)
    subjects = "subjects of a file" if stored.entry.info.parameters.get("data") else SYNTHETIC
    sentence = (
        f"Pressures of {subjects} after a fluid bolus, forecast from a personalisation before it. "
        "On the horizontal line a forecast says no change; what does not beat that predicts "
        "nothing."
    )
    if subjects == SYNTHETIC:
        sentence += " Their errors say nothing about real patients."
    figure = plots.forecast_changes(rows, method=method, subjects=subjects)
    return Part(sentence, figure, (("Errors", table),))


_METHODS = Section("methods", "Methods", _methods)
_PATIENTS = Section("patients", "Patients", _patients)
_AGENTS = (Section("curves", "Curves", _agents), _PATIENTS)
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
    Section("errors", "Errors", grids.maps(plots.grid_error_map, plots.grid_error_maps)),
    Section("success", "Success", grids.maps(plots.grid_success_map, plots.grid_success_maps)),
    Section("paths", "Paths", grids.paths),
    Section("numbers", "Numbers", grids.numbers),
)
SECTIONS: Mapping[str, tuple[Section, ...]] = {
    "continuous-convergence": _AGENTS,
    "hindsight": _AGENTS,
    "wbc-12p": (Section("scaling", "Number of parameters", _scaling), *_AGENTS),
    "problem": (
        *_AGENTS,
        _METHODS,
        Section("states", "Number of states", _own_scouting),
        Section("failures", "Failed runs", _failures),
    ),
    "uncertainty": (
        Section("solutions", "All solutions", _solutions),
        Section("coverage", "Coverage", _coverage),
    ),
    "stability": (Section("spread", "Spread", _stability),),
    "prediction": (Section("forecast", "Forecast", _forecast),),
    "rosenbrock-grid": _GRID,
    "wbc-scouting": _SCOUTING,
    "ep-scouting": _SCOUTING,
    "wbc-convergence": _CONVERGENCE,
    "ep-convergence": _CONVERGENCE,
    "ep-initialization": (Section("boxes", "Errors of the start", _boxes), _METHODS),
    "ep-personalization": (_METHODS, Section("numbers", "Numbers", _ep_numbers)),
    "wbc-fit": (Section("fit", "Fit", _fit), Section("loops", "Loops", _loops), _PATIENTS),
    "tour": (Section("map", "Policy", _tour), Section("paths", "Paths", grids.paths), _METHODS),
}


def sections_of(study: str) -> tuple[Section, ...]:
    """Sections of a study; what any run can show for one that is not known."""
    return SECTIONS.get(study, (_METHODS, _PATIENTS))
