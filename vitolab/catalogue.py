"""The built-in models as the command line offers them: setups, what a file must hold, training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vitolab.store.display import say

if TYPE_CHECKING:
    from vitolab.patients import PatientTable, Range
    from vitolab.problem import Patient, Problem


def _unchecked(table: PatientTable, setup: str, n_jobs: int) -> PatientTable:
    """Take the patients of a file as they are."""
    return table


@dataclass(frozen=True)
class Model:
    """A model whose patients can come from a file.

    Attributes
    ----------
    name : str
    n_states : mapping of str to int
        Setups, and the number of representative states for each: the paper's where it has one.
    setup : str
        The one that is taken unless another is asked for.
    problem : callable
        ``problem(setup)``: the problem of a setup; a ValueError if there is no such setup.
    training : callable
        ``training(setup, n_jobs)``: the synthetic patients to learn from, ready to be run; None
        if there are none.
    max_runs : int or None
        Forward runs allowed per patient; None for 50 per parameter.
    data : mapping of str to str
        Name and unit of the numbers that it needs to know of a patient.
    ranges : mapping of str to (lower, upper, unit), optional
        Limits by name of quantity, see `vitolab.patients.read_patients`, which has its own.
    texts : mapping of str to str
        Name of the texts that it needs to know, and what stands for an absent one.
    checked : callable
        ``checked(table, setup, n_jobs)``: the patients of a file, after what only the model can
        check; an InputError of one sentence that names file and patient.
    """

    name: str
    n_states: Mapping[str, int]
    setup: str
    problem: Callable[[str], Problem]
    training: Callable[[str, int], list[Patient]] | None
    max_runs: int | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, Range] | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    checked: Callable[[PatientTable, str, int], PatientTable] = _unchecked


def _circulation(setup: str) -> Problem:
    from vitolab.models import circulation

    return circulation.problem(setup)


def _circulation_training(setup: str, n_jobs: int) -> list[Patient]:
    from vitolab.models import circulation

    return circulation.cohort().evaluation


# The further setups take 100 states per parameter, as 6p does; the scouting patients hardly tell
# one number from another there.
CIRCULATION = Model(
    name="circulation",
    n_states={"2p": 70, "3p": 150, "5p": 400, "6p": 600, "9p": 900, "12p": 1200},
    setup="6p",
    problem=_circulation,
    training=_circulation_training,
    data={"heart_rate": "1/min"},
)


def _electrophysiology(setup: str) -> Problem:
    from vitolab.models import electrophysiology

    return electrophysiology.problem(setup)


def _electrophysiology_training(setup: str, n_jobs: int) -> list[Patient]:
    from vitolab.models import electrophysiology

    patients = electrophysiology.cohort().evaluation
    say(f"preparing the hearts of {len(patients)} synthetic patients (kept for the next time)")
    electrophysiology.prepare(patients, [setup], n_jobs)
    return patients


def _with_hearts(table: PatientTable, setup: str, n_jobs: int) -> PatientTable:
    """Find the mesh of each patient beside the file, note its checksum, and build each heart."""
    from vitolab.models import electrophysiology
    from vitolab.patients import InputError

    patients = []
    for patient in table.patients:
        named = patient.data["anatomy"]
        if named not in electrophysiology.PRESETS:
            path = table.path.parent.joinpath(named).resolve()
            data = {**patient.data, "anatomy": str(path)}
            if path.is_file():
                data["mesh_checksum"] = electrophysiology.mesh_checksum(path)
            patient = replace(patient, data=data)
        patients.append(patient)
    try:
        electrophysiology.prepare(patients, [setup], n_jobs)
    except ValueError as error:
        raise InputError(f"{table.path}: {error}") from error
    return replace(table, patients=patients)


ELECTROPHYSIOLOGY = Model(
    name="electrophysiology",
    n_states={"bem": 120, "infinite": 120},
    setup="bem",
    problem=_electrophysiology,
    training=_electrophysiology_training,
    max_runs=100,
    texts={"anatomy": "normal"},
    checked=_with_hearts,
)

MODELS: Mapping[str, Model] = {model.name: model for model in (CIRCULATION, ELECTROPHYSIOLOGY)}


def find_model(name: str) -> Model:
    """Model of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if name not in MODELS:
        raise ValueError(f"model is {name!r}, expected one of {', '.join(MODELS)}")
    return MODELS[name]
