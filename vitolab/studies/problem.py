"""A model and patients of your own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitolab.display import say
from vitolab.methods import HINDSIGHT_REPLAYS, METHODS, PAPER, learns_states
from vitolab.settings import RUNS_PER_PARAMETER
from vitolab.studies import shared
from vitolab.studies.base import PEERS, Content, Section, StoredRun, Study, choices

if TYPE_CHECKING:
    from vitolab.problemfile import OwnProblem

#: The files are named by options of the command line.
_OWN: Mapping[str, Any] = {
    "problem": "",
    "problem_key": "",
    "patients": "",
    "allow_missing": False,
    "learn_as_you_go": False,
    "agents": ["vito", "vito-continuous"],
    "n_replays": HINDSIGHT_REPLAYS,
    "episode": 1,
    "runs_per_parameter": RUNS_PER_PARAMETER,
}


def _check(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Read a problem and its patients, to refuse them before anything runs.

    Returns
    -------
    dict
        Parameters that follow: where the problem is, and its key.

    Raises
    ------
    ProblemError, InputError, ValueError
    """
    from vitolab.patients import read_patients
    from vitolab.problemfile import read_problem

    for name in ("problem", "patients"):
        if not parameters[name]:
            raise ValueError(f"{STUDY.name}: {name} is missing, expected --{name} FILE")
    if parameters["problem_key"]:
        raise ValueError(f"{STUDY.name}: problem_key follows from the problem, expected none")
    own: OwnProblem = read_problem(parameters["problem"])
    table = read_patients(
        Path(parameters["patients"]).absolute(),
        own.problem,
        data=own.data,
        ranges=own.ranges,
        allow_missing=parameters["allow_missing"],
    )
    for warning in table.warnings:
        say(f"vitolab: warning: {warning}")
    whole = [p for p in table.patients if own.problem.observed(p) is own.problem]
    if len(whole) < 2:
        raise ValueError(
            f"{parameters['patients']}: found {len(whole)} patients with all measurements, "
            "expected at least 2: each is personalised by what was learned from the others"
        )
    for name in parameters["methods"]:
        method = METHODS.get(name)
        if method is not None and not method.applies_to(own.problem):
            raise ValueError(
                f"{STUDY.name}: method is {name!r}, which needs {', '.join(method.needs)}, "
                "expected another one"
            )
    if parameters["learn_as_you_go"] and all(learns_states(name) for name in parameters["agents"]):
        raise ValueError(
            f"{STUDY.name}: agents are {parameters['agents']}, which learn states, expected one "
            "without, such as vito-continuous, with learn_as_you_go"
        )
    return {"problem": str(own.path), "problem_key": own.key}


def _states(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    rows = stored.personalizations[stored.personalizations["method"] == PAPER]
    if rows.empty:
        return Content("The paper's agent did not take part: the others have no states.")
    rows = rows[rows["n_samples"] == rows["n_samples"].max()]
    table = words.told(rows, ["setup", "n_states"])
    return Content(
        words.sweep(rows, "n_states", "states"),
        plots.scouting_curves(rows, patients="patients of a file, leave-one-out"),
        (("Means over patients and repeats", table),),
    )


def _in_order(stored: StoredRun) -> Content:
    rows = stored.personalizations
    rows = rows[rows["order"].notna()].sort_values(["order", "method"])
    table = rows.pivot(index=["order", "patient"], columns="method", values="n_runs").reset_index()
    methods = rows.groupby("method", sort=False)
    told = "; ".join(
        f"{name} solved {own['solved'].sum()} of {len(own)} in {own['n_runs'].sum()} forward runs"
        for name, own in methods
    )
    sentence = (
        f"Nothing was explored: in the order of the file each patient learned from those before. "
        f"{told}."
    )
    return Content(sentence, tables=(("All numbers", table),))


def _curves(stored: StoredRun, repeat: int) -> Content:
    if stored.parameters.get("learn_as_you_go"):
        return _in_order(stored)
    rows = stored.personalizations  # the study also goes through numbers of states
    rows = rows[rows["n_states"].isna() | (rows["n_states"] == rows["n_states"].max())]
    return shared.agents(stored, repeat, rows, "of a file", "patients of a file")


def _failures(stored: StoredRun, repeat: int) -> Content:
    failures = stored.failures
    if failures.empty:
        return Content("All forward runs answered.")
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
    return Content(sentence, tables=(("Failed runs by cause", failures),))


STUDY = Study(
    name="problem",
    notebook="problem.ipynb",
    title="Your own model, your own patients",
    profiles={
        "quick": {
            **_OWN,
            "n_states": [50, 100],
            "n_samples": [10, 100],
            "n_repeats": 1,
            "methods": ["nelder-mead", "least-squares-multistart"],
            "n_starts": 2,
        },
        "standard": {
            **_OWN,
            "n_states": [50, 100, 200, 400],
            "n_samples": [10, 100, 1000],
            "n_repeats": 1,
            "methods": PEERS,
            "n_starts": 5,
        },
        "paper": {
            **_OWN,
            "n_states": [50, 100, 200, 300, 400, 500, 600],
            "n_samples": [10, 100, 1000, 10000],
            "n_repeats": 5,
            "methods": PEERS,
            "n_starts": 100,
        },
    },
    duration=dict.fromkeys(("quick", "standard", "paper"), "as long as your model takes"),
    sections=(
        Section("curves", "Curves", _curves),
        shared.PATIENTS,
        shared.METHODS,
        shared.PAIRED,
        Section("states", "Number of states", _states),
        Section("failures", "Failed runs", _failures),
    ),
    choices=choices("agents", "methods"),
    check=_check,
    traces=True,
    policy=True,
)
