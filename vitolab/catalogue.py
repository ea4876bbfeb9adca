"""The built-in models as the command line offers them: setups, what a file must hold, training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from vitolab.patients import PatientTable
    from vitolab.problem import Patient, Problem


class Model(ABC):
    """A model whose patients can come from a file.

    Attributes
    ----------
    name : str
    n_states : mapping of str to int
        Setups, and the number of representative states that the paper took for each.
    setup : str
        The one that is taken unless another is asked for.
    max_runs : int or None
        Forward runs allowed per patient; None for 50 per parameter.
    data : mapping of str to str
        Name and unit of the numbers that it needs to know of a patient.
    texts : mapping of str to str
        Name of the texts that it needs to know, and what stands for an absent one.
    """

    name: ClassVar[str]
    n_states: ClassVar[Mapping[str, int]]
    setup: ClassVar[str]
    max_runs: ClassVar[int | None] = None
    data: ClassVar[Mapping[str, str]] = {}
    texts: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def problem(self, setup: str) -> Problem:
        """Problem of a setup.

        Raises
        ------
        ValueError
            If there is no such setup.
        """

    @abstractmethod
    def training(self) -> list[Patient]:
        """Give the synthetic patients to learn from."""

    def checked(self, table: PatientTable) -> PatientTable:
        """Check what only the model can check of the patients of a file.

        Raises
        ------
        InputError
            With one sentence that names file and patient.
        """
        return table


class Circulation(Model):
    """Whole-body circulation."""

    name = "circulation"
    n_states: ClassVar[Mapping[str, int]] = {"2p": 70, "3p": 150, "5p": 400, "6p": 600}
    setup = "6p"
    data: ClassVar[Mapping[str, str]] = {"heart_rate": "1/min"}

    def problem(self, setup: str) -> Problem:
        """Problem of 2, 3, 5 or 6 parameters."""
        from vitolab.models import circulation

        return circulation.problem(setup)

    def training(self) -> list[Patient]:
        """Give the 48 evaluation patients of the cohort."""
        from vitolab.models import circulation

        return circulation.cohort().evaluation


class Electrophysiology(Model):
    """Cardiac electrophysiology."""

    name = "electrophysiology"
    n_states: ClassVar[Mapping[str, int]] = {"bem": 120, "infinite": 120}
    setup = "bem"
    max_runs = 100
    texts: ClassVar[Mapping[str, str]] = {"anatomy": "normal"}

    def problem(self, setup: str) -> Problem:
        """Problem of a lead field."""
        from vitolab.models import electrophysiology

        return electrophysiology.problem(setup)

    def training(self) -> list[Patient]:
        """Give the 75 evaluation patients of the cohort."""
        from vitolab.models import electrophysiology

        return electrophysiology.cohort().evaluation

    def checked(self, table: PatientTable) -> PatientTable:
        """Find the mesh of each patient beside the file, and build each heart."""
        from vitolab.models import electrophysiology
        from vitolab.patients import InputError

        patients = []
        for patient in table.patients:
            named = patient.data["anatomy"]
            if named not in electrophysiology.PRESETS:
                path = str(table.path.parent.joinpath(named).resolve())
                patient = replace(patient, data={**patient.data, "anatomy": path})
            try:
                electrophysiology.heart(patient)
            except ValueError as error:
                raise InputError(f"{table.path}: {error}") from error
            patients.append(patient)
        return replace(table, patients=patients)


MODELS: Mapping[str, Model] = {model.name: model for model in (Circulation(), Electrophysiology())}


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
