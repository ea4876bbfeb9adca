"""Sections that several studies have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from vitolab.methods import METHODS as TABLE
from vitolab.methods import PAPER, POLICY
from vitolab.studies.base import Content, Section, StoredRun

if TYPE_CHECKING:
    import pandas as pd

    from vitolab.problem import Problem


def problems(stored: StoredRun) -> dict[str, Problem]:
    """Problems of a run by setup, to look at."""
    from vitolab.store.problems import as_stored

    return {setup: as_stored(record) for setup, record in stored.problems.items()}


def agents(
    stored: StoredRun,
    repeat: int,
    rows: pd.DataFrame | None = None,
    whose: str = "synthetic",
    patients: str = "synthetic patients",
) -> Content:
    """Agents against training.

    Parameters
    ----------
    stored : StoredRun
    repeat : int
    rows : DataFrame, optional
        Personalisations, by default all.
    whose, patients : str
        Who was personalised, for the table and for the title.
    """
    from vitolab import plots
    from vitolab.studies import words

    rows = stored.personalizations if rows is None else rows
    table = plots.agent_table(rows, whose=whose)
    episode = stored.parameters.get("episode")
    figure = plots.agent_curves(
        rows, patients=patients, episode=episode if isinstance(episode, int) else 1
    )
    return Content(words.agents(table), figure, (("All numbers", table),))


def experience(
    stored: StoredRun,
    repeat: int,
    whose: str = "synthetic",
    patients: str = "synthetic patients",
) -> Content:
    """Agents against training, beside who can be solved at all; see `agents`."""
    from vitolab import plots

    part = agents(stored, repeat, whose=whose, patients=patients)
    solvable = ("Who can be solved at all", plots.solvable_table(stored.personalizations))
    return replace(part, tables=(*part.tables, solvable))


def _methods(stored: StoredRun, repeat: int) -> Content:
    from vitolab.plots.methods import methods_figure, methods_table
    from vitolab.plots.summary import order_of
    from vitolab.studies import words

    rows = stored.personalizations
    groups = [(setup, rows[rows["setup"] == setup]) for setup in order_of(rows["setup"].tolist())]
    table = methods_table(groups)
    return Content(words.methods(table), methods_figure(groups), (("Success and cost", table),))


def _paired(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    found = plots.comparisons(stored.personalizations)
    if not found:
        raise ValueError("the run holds no agent beside another method on the same patients")
    table = plots.comparison_table(found)
    return Content(words.in_pairs(found), tables=(("Method beside method", table),))


def _patients(stored: StoredRun, repeat: int) -> Content:
    from vitolab.studies import words

    rows = stored.personalizations
    table = words.by_patient(rows, stored.problems)
    return Content(words.solved(rows), tables=(("Patient by patient", table),))


def _paths(stored: StoredRun, repeat: int) -> Content:
    """Paths of one function from several starts."""
    from vitolab import plots
    from vitolab.studies import words

    traces = stored.traces
    traces = traces[traces["method"] == PAPER]
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
    return Content(words.paths(own), figure, (("The last forward run from each start", ends),))


def _scouting(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    rows = stored.personalizations[stored.personalizations["method"] == PAPER]
    table = words.told(rows, ["setup", "n_states"])
    return Content(
        words.sweep(rows, "n_states", "states"),
        plots.scouting_curves(stored.personalizations),
        (("Means over patients and repeats", table),),
    )


def _scouting_numbers(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots

    table = plots.scouting_table(stored.personalizations)
    sentence = "The number of states that did best, beside the paper's; it is shown only."
    return Content(sentence, tables=(("Number of states", table),))


def _policies(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    rows = stored.personalizations
    alike = [name for name, method in TABLE.items() if method.training is POLICY]
    rows = rows[rows["method"].isin(alike)]
    table = words.told(rows, ["setup", "method", "n_samples"])
    return Content(
        words.drawing(rows),
        plots.policy_curves(stored.personalizations),
        (("Stochastic and deterministic policy", table),),
    )


def _restarts(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    rows = stored.personalizations[stored.personalizations["method"] == PAPER]
    table = words.told(rows, ["setup", "n_samples"])
    return Content(
        words.restarts(table),
        plots.restart_curves(stored.personalizations),
        (("Solved without a restart", table),),
    )


#: Paths of personalisations of a function of two parameters.
PATHS = Section("paths", "Paths", _paths)
#: All methods beside each other.
METHODS = Section("methods", "Methods", _methods)
#: Agents beside every other method, patient by patient.
PAIRED = Section("paired", "In pairs", _paired)
#: Every patient in a table.
PATIENTS = Section("patients", "Patients", _patients)
#: Agents against training.
AGENTS = Section("curves", "Curves", agents)
#: What experience adds: agents against training, beside who can be solved at all.
EXPERIENCE = (Section("curves", "Curves", experience), PAIRED, PATIENTS)
#: The number of states.
SCOUTING = (
    Section("curves", "Curves", _scouting),
    Section("numbers", "Numbers", _scouting_numbers),
)


def convergence(
    references: tuple[str, ...], numbers: Callable[[StoredRun, int], Content]
) -> tuple[Section, ...]:
    """Sections of a study of the number of training samples.

    Parameters
    ----------
    references : tuple of str
        Methods that stand beside the curves.
    numbers : callable
        Builds the section of the numbers.
    """

    def curves(stored: StoredRun, repeat: int) -> Content:
        from vitolab import plots
        from vitolab.studies import words

        rows = stored.personalizations
        solvable = None
        if stored.finished and "solvable" in stored.patients:
            solvable = stored.patients
        known = tuple(m for m in references if m in set(rows["method"]))
        table = plots.convergence_table(rows[rows["method"].isin([PAPER, *known])])
        return Content(
            words.sweep(rows, "n_samples", "samples per patient", known),
            plots.convergence_curves(rows, references=known, solvable=solvable),
            (("Numbers of these curves, beside the paper's", table),),
        )

    return (
        Section("curves", "Curves", curves),
        Section("draws", "Stochastic policy", _policies),
        Section("restarts", "Restarts", _restarts),
        PAIRED,
        Section("numbers", "Numbers", numbers),
    )
