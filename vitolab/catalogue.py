"""The models, and one door to each: built-in ones by name, a user's own by its problem file.

A further model is a module with a `vitolab.models.description.Model`, and an entry in `MODELS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vitolab.models.bolus.about import MODEL as BOLUS
from vitolab.models.circulation.about import MODEL as CIRCULATION
from vitolab.models.description import Model, Range, setup_of
from vitolab.models.electrophysiology.about import MODEL as ELECTROPHYSIOLOGY
from vitolab.models.glucose.about import MODEL as GLUCOSE
from vitolab.models.rosenbrock.about import MODEL as ROSENBROCK

if TYPE_CHECKING:
    from vitolab.patients import PatientTable
    from vitolab.problem import Patient, Problem

__all__ = [
    "BOLUS",
    "CIRCULATION",
    "ELECTROPHYSIOLOGY",
    "GLUCOSE",
    "MODELS",
    "ROSENBROCK",
    "find_model",
    "model_of",
    "read_table",
    "synthetic_patients",
    "template_for",
]

#: The built-in models by name.
MODELS: dict[str, Model] = {
    model.name: model for model in (CIRCULATION, ELECTROPHYSIOLOGY, ROSENBROCK, BOLUS, GLUCOSE)
}


def find_model(name: str | Path) -> Model:
    """Find a built-in model, or open a model of one's own.

    Parameters
    ----------
    name : str or Path
        Name of a built-in model, or a problem file (``.toml``).

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        If there is no such model.
    ProblemError
        If the file is refused.
    """
    if Path(name).suffix == ".toml":
        return _own(name)
    if str(name) not in MODELS:
        expected = ", ".join(MODELS)
        raise ValueError(f"model is {str(name)!r}, expected one of {expected}, or a .toml file")
    return MODELS[str(name)]


def model_of(problem: Problem) -> Model | None:
    """Built-in model of a problem, stored or not; None if it is none of them."""
    model = MODELS.get(problem.name.partition("-")[0])
    if model is None or (setup_of(problem) and setup_of(problem) not in model.n_states):
        return None
    return model


def _own(path: str | Path) -> Model:
    """Model of a problem file."""
    from vitolab.problemfile import read_problem

    own = read_problem(path)

    def problem(setup: str) -> Problem:
        if setup != own.problem.name:
            raise ValueError(f"setup is {setup!r}, expected none for a model of your own")
        return own.problem

    return Model(
        name=own.problem.name,
        # as many per parameter as the built-in ones
        n_states={own.problem.name: 100 * own.problem.n_parameters},
        setup=own.problem.name,
        problem=problem,
        data=own.data,
        ranges=own.ranges,
    )


def synthetic_patients(model: Model, setup: str, n_jobs: int) -> list[Patient] | None:
    """Synthetic patients to learn from, ready to be run; None if the model has none."""
    if model.patients is None:
        return None
    from vitolab.display import say

    patients = model.patients()
    if model.prepares:
        n = len(patients)
        say(f"preparing the {model.prepares} of {n} synthetic patients (kept for the next time)")
    model.prepare(patients, setup, n_jobs)
    return patients


def template_for(model: Model, setup: str) -> str:
    """CSV text with the header of a setup and two example patients."""
    from vitolab.patients import template

    return template(
        model.problem(setup),
        data=model.data,
        texts=model.texts,
        ranges=model.ranges,
        examples=model.examples,
    )


def read_table(
    model: Model, path: Path, setup: str, *, n_jobs: int = 1, allow_missing: bool = False
) -> PatientTable:
    """Read the patients of a file, and prepare them to be run.

    Parameters
    ----------
    model : Model
    path : Path
        See `vitolab.patients.read_patients`.
    setup : str
    n_jobs : int
    allow_missing : bool

    Returns
    -------
    PatientTable

    Raises
    ------
    InputError
        If the file is refused, with one sentence that says where and why.
    """
    from vitolab.patients import InputError, read_patients

    table = read_patients(
        path,
        model.problem(setup),
        data=model.data,
        texts=model.texts,
        ranges=_limits(model),
        rising=model.rising,
        allow_missing=allow_missing,
    )
    try:
        patients = model.located(table.patients, table.path.parent)
        model.prepare(patients, setup, n_jobs)
    except ValueError as error:
        raise InputError(f"{_where(model, table, str(error))}: {error}") from error
    return replace(table, patients=patients)


def _where(model: Model, table: PatientTable, said: str) -> str:
    """Place in a file of what is said of a patient who cannot be prepared."""
    for patient in table.patients:
        if said.startswith(f"patient {patient.name!r}: ") and patient.name in table.rows:
            row = f"{table.path}, row {table.rows[patient.name]}"
            # the one text that the model needs; numbers were checked cell by cell
            return ", column ".join([row, *(repr(name) for name in list(model.texts)[:1])])
    return str(table.path)


def _limits(model: Model) -> Mapping[str, Range]:
    """Limits of the quantities of a model; built-in ones know each other's columns."""
    if MODELS.get(model.name) is not model:
        return model.ranges
    known = {name: limits for other in MODELS.values() for name, limits in other.ranges.items()}
    return {**known, **model.ranges}
