"""What models answer at given parameters: run in a worker, as plain arrays."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.catalogue import model_of
from vitolab.problem import Patient, Problem

from ..kit.worker import Pool

Answer = dict[str, NDArray[Any]]
_LOCK = threading.Lock()  # a module is imported, a kernel compiled, by one thread


def pool_of(problem: Problem) -> Pool:
    """Where the model is run: a heart has to be built first, which takes seconds."""
    model = model_of(problem)
    return "long" if model is not None and model.is_slow else "short"


def current(record: Problem) -> Problem | None:
    """The problem as this version of the package has it; None if it is no built-in one."""
    model = model_of(record)
    return None if model is None else model.current(record)


def patient_of(row: Mapping[Any, Any]) -> Patient:
    """The patient of a row of the stored table of patients.

    Raises
    ------
    ValueError
        If it holds no name.
    """

    def group(prefix: str) -> dict[str, Any]:
        return {
            name.removeprefix(prefix): value
            for name, value in row.items()
            if name.startswith(prefix) and not (pd.api.types.is_scalar(value) and pd.isna(value))
        }

    measured = {name: float(value) for name, value in group("z:").items()}
    return Patient(str(row.get("patient", "")), measured, group("data:"))


def is_safe(problem: Problem, patient: Patient) -> bool:
    """Whether the data of a patient name no file: a store must not make this page open one."""
    model = model_of(problem)
    return model is None or model.is_safe(patient)


def background(problem: Problem, patient: Patient) -> Answer:
    """What a picture shows of the patient whatever the parameters are; in a worker.

    Parameters
    ----------
    problem : Problem
    patient : Patient

    Returns
    -------
    dict of str to ndarray
        See `vitolab.models.description.Model.background`.
    """
    model = model_of(problem)
    if model is None:
        return {}
    with _LOCK:
        return model.background(problem, patient)


def simulate(problem: Problem, x: NDArray[np.float64], patient: Patient) -> Answer:
    """What the model answers beyond its objectives; in a worker.

    Parameters
    ----------
    problem : Problem
    x : ndarray, shape (n_parameters,)
    patient : Patient

    Returns
    -------
    dict of str to ndarray
        See `vitolab.models.description.Model.answer`.

    Raises
    ------
    ValueError
        If the model has no answer there.
    """
    x = np.asarray(x, dtype=np.float64)
    model = model_of(problem)
    return {"x": x} if model is None else model.answer(problem, x, patient)
