"""What the built-in models answer at given parameters: simulated in a worker, as plain arrays."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.problem import Patient, Problem

from ..kit.worker import Pool

Answer = dict[str, NDArray[Any]]
MAP_POINTS = 121
MAP_LIMIT = 6.0  # half width of the map of a function, beyond its domain of ±5
_LOCK = threading.Lock()  # a module is imported, a kernel compiled, by one thread


def kind(problem: Problem) -> str:
    """Built-in model of a problem; empty if it is none."""
    name = problem.name.partition("-")[0]
    return name if name in ("rosenbrock", "circulation", "electrophysiology") else ""


def pool_of(problem: Problem) -> Pool:
    """Where the model is run: a heart has to be built first, which takes seconds."""
    return "long" if kind(problem) == "electrophysiology" else "short"


def setup(problem: Problem) -> str:
    """Setup of a built-in model, such as ``6p`` or ``bem``."""
    return problem.name.partition("-")[2]


def current(record: Problem) -> Problem | None:
    """The problem as this version of the package has it; None if it is no built-in one."""
    from vitolab.models import circulation, electrophysiology, rosenbrock

    name = kind(record)
    if name == "circulation" and setup(record) in circulation.SETUPS:
        return circulation.problem(setup(record))
    if name == "electrophysiology" and setup(record) in electrophysiology.LEAD_FIELDS:
        exact, table = (electrophysiology.problem(setup(record), m) for m in ("exact", "table"))
        return table if table.version == record.version else exact
    if name == "rosenbrock":
        return rosenbrock.problem(
            extended=500 in record.multipliers,
            absolute="absolute" in record.version,
            border=record.border,
        )
    return None


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


def is_safe(patient: Patient) -> bool:
    """Whether the data of a patient name no file: a store must not make this page open one."""
    from vitolab.models import electrophysiology

    named = patient.data.get("anatomy")
    return named is None or (isinstance(named, str) and named in electrophysiology.PRESETS)


def background(problem: Problem, patient: Patient) -> Answer:
    """What a picture shows of the patient whatever the parameters are; in a worker.

    Parameters
    ----------
    problem : Problem
    patient : Patient

    Returns
    -------
    dict of str to ndarray
        Of the circulation the measured curves ``time`` [s], ``lv_volume`` [mL] and
        ``aortic_pressure`` [mmHg], empty where there are none; of a function ``map``, log₁₀ of
        its values over a square of ± `MAP_LIMIT`, and its ``optimum``; of a heart ``segment``
        of each node.
    """
    name = kind(problem)
    with _LOCK:
        if name == "circulation":
            return _measured(patient)
        if name == "rosenbrock":
            return _map(float(patient.data["alpha"]))
        if name == "electrophysiology":
            from vitolab.models import electrophysiology
            from vitolab.plots.segments import segments

            heart = electrophysiology.heart(patient, setup(problem))
            anatomy = heart.anatomy
            found = segments(anatomy.apex_base, anatomy.rotation, anatomy.right)
            return {"segment": found, "volume": heart.volume}
    return {}


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
        Of the circulation ``time`` [s], ``lv_volume`` [mL], ``lv_pressure`` and
        ``aortic_pressure`` [mmHg]; of a heart ``segments``, mean activation times of the 17
        segments [ms], ``time`` [ms] and ``leads`` [mV], shape (12, n_samples).

    Raises
    ------
    ValueError
        If the model has no answer there.
    """
    x = np.asarray(x, dtype=np.float64)
    name = kind(problem)
    if name == "circulation":
        from vitolab.models import circulation

        curves = circulation.curves(x, patient, setup(problem))
        names = ("time", "lv_volume", "lv_pressure", "aortic_pressure")
        return {name: curves[name] for name in names}
    if name == "electrophysiology":
        from vitolab.models import electrophysiology
        from vitolab.plots.segments import segment_means

        field = setup(problem)
        tau = electrophysiology.activation(x, patient, field)
        known = background(problem, patient)
        time, leads = electrophysiology.ecg(x, patient, field)
        means = segment_means(tau, known["volume"], known["segment"])
        return {"segments": means, "time": time, "leads": leads}
    return {"x": x}


def _measured(patient: Patient) -> Answer:
    """Measured curves of a synthetic patient; those of a namesake are not shown."""
    from vitolab.models import circulation

    cohort = circulation.cohort()
    for known in cohort.scouting + cohort.evaluation:
        shared = known.measurements.keys() & patient.measurements.keys()
        same = all(known.measurements[name] == patient.measurements[name] for name in shared)
        if known.name == patient.name and same and known.data == patient.data:
            return dict(circulation.measured_curves()[known.name])
    return {}


def _map(alpha: float) -> Answer:
    """Values of a Rosenbrock function."""
    axis = np.linspace(-MAP_LIMIT, MAP_LIMIT, MAP_POINTS)
    x1, x2 = np.meshgrid(axis, axis)
    values = (alpha - x1) ** 2 + 100.0 * (x2 - x1**2) ** 2
    return {"map": np.log10(values + 1e-3), "optimum": np.array([alpha, alpha**2])}
