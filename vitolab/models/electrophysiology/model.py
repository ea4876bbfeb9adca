"""Cardiac electrophysiology as a problem to personalise: three speeds from QRS duration and axis.

Paper, section "Personalization of Cardiac Electrophysiology Model": depolarisation times by
shortest paths over a graph (Wallman et al. 2012), a step action potential (-70 to 30 mV), 12 leads
on a torso, QRS duration and electrical axis (Zettinig et al. 2014). The model is one of the class
described there, not a reproduction of its authors' code; anatomies, root sites, electrodes and the
definitions of both features are our own.

Units are mm, ms and mm/s. The paper prints speeds in m/s, with domains of 200 to 1000 and 500 to
5000: these are mm/s (0.2 to 1 and 0.5 to 5 m/s), and so is its step of 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vitolab.files import digest, source_version
from vitolab.kernels import activation as kernel
from vitolab.models.electrophysiology import geometry, ratios
from vitolab.models.electrophysiology.cache import version
from vitolab.models.electrophysiology.description import described
from vitolab.models.electrophysiology.hearts import LEAD_FIELDS, Heart, heart
from vitolab.models.electrophysiology.leadfield import electrical_axis
from vitolab.models.electrophysiology.ratios import LEAD_AVF, LEAD_I, arguments, looked_up, run
from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem

VERSION = "1"
Mode = Literal["exact", "table"]
Duration = Literal["robust", "span", "ecg"]
Axis = Literal["area", "peak"]

PARAMETERS = (
    Parameter("v_myo", "Myocardial speed", "mm/s", 200, 1000, 500, 5, "log"),
    Parameter("v_lv", "LV endocardial speed", "mm/s", 500, 5000, 2000, 5, "log"),
    Parameter("v_rv", "RV endocardial speed", "mm/s", 500, 5000, 2000, 5, "log"),
)
OBJECTIVES = (
    Objective("qrs_duration", "QRS duration", "ms", 5),
    Objective("electrical_axis", "Electrical axis", "°", 10, "angle"),
)
UNREACHED = 0.005  # share of the volume above which a run has failed
NO_AXIS = 0.01  # net area over gross area below which the axis is undefined
SAMPLING = 0.5  # ms, of ECGs
AFTER = 40.0  # ms of an ECG after the last activation


@dataclass(frozen=True)
class Definition:
    """How the model is run and its answers are read.

    Attributes
    ----------
    lead_field : {"bem", "infinite"}
        Leads of a homogeneous torso (boundary elements), or of an infinite medium.
    mode : {"exact", "table"}
        Every run a run of the model, or looked up in a table over the two ratios of speeds. All
        times scale with the inverse of a common factor of the speeds, so that the table holds
        625 runs per patient. A success in the table counts only where the exact run agrees.
    duration : {"robust", "span", "ecg"}
        QRS duration: until 99.5 % of the volume is active, from the first to the last activation,
        or where the ECG exceeds 5 % of its maximum.
    axis : {"area", "peak"}
        Electrical axis from net areas of leads I and aVF, or from their sums of extremes.

    Raises
    ------
    ValueError
        If a value is none of these, or the table cannot answer.
    """

    lead_field: str = "bem"
    mode: Mode = "exact"
    duration: Duration = "robust"
    axis: Axis = "area"

    def __post_init__(self) -> None:
        allowed = {
            "lead_field": LEAD_FIELDS,
            "mode": ("exact", "table"),
            "duration": ("robust", "span", "ecg"),
            "axis": ("area", "peak"),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}, expected one of {', '.join(values)}"
                )
        if self.mode == "table" and (self.duration == "ecg" or self.axis == "peak"):
            raise ValueError(
                "mode is 'table' with features of a sampled ECG, whose smoothing does not scale "
                "with the speeds; expected duration 'robust' or 'span' and axis 'area'"
            )


def problem(
    lead_field: str = "bem",
    mode: Mode = "exact",
    duration: Duration = "robust",
    axis: Axis = "area",
) -> Problem:
    """Personalise conduction speeds from QRS duration and electrical axis.

    Patients need ``anatomy`` in their data, see `vitolab.models.electrophysiology.heart`; the
    geometry of their hearts is what is known of them, see
    `vitolab.models.electrophysiology.geometry`.

    Parameters
    ----------
    lead_field, mode, duration, axis
        See `Definition`.

    Returns
    -------
    Problem
        Named ``electrophysiology-bem`` or ``electrophysiology-infinite``.

    Raises
    ------
    ValueError
        As `Definition`.
    """
    definition = Definition(lead_field, mode, duration, axis)
    exact = Definition(lead_field, "exact", duration, axis)
    modules = (kernel.__file__, ratios.__file__, geometry.__file__)
    sources = source_version(*modules, Path(__file__))
    options = digest(mode, duration, axis)[:6]
    return Problem(
        name=f"electrophysiology-{lead_field}",
        version=f"{VERSION}-{version()}-{sources}-{options}",
        parameters=PARAMETERS,
        objectives=OBJECTIVES,
        simulate=partial(outputs, definition=definition),
        confirm=partial(outputs, definition=exact) if mode == "table" else None,
        features=tuple(geometry.GEOMETRY),
        featuring=geometry.of_patient,
    )


def activation(x: ArrayLike, patient: Patient, lead_field: str = "bem") -> FloatArray:
    """Activation time of each node, ms after the first; NaN where it never arrives.

    Parameters
    ----------
    x : array_like, shape (3,)
        Speeds, mm/s.
    patient : Patient
    lead_field : {"bem", "infinite"}
        Does not matter for the times, only for what is cached.

    Returns
    -------
    ndarray, shape (n_nodes,)

    Raises
    ------
    ValueError
        If a speed is not positive, or the data name no heart.
    """
    return _activation(_checked(np.asarray(x)[np.newaxis])[0], heart(patient, lead_field))


def ecg(x: ArrayLike, patient: Patient, lead_field: str = "bem") -> tuple[FloatArray, FloatArray]:
    """12-lead ECG of the depolarisation.

    Parameters
    ----------
    x : array_like, shape (3,)
        Speeds, mm/s.
    patient : Patient
    lead_field : {"bem", "infinite"}

    Returns
    -------
    time : ndarray, shape (n_samples,)
        ms since the first activation.
    leads : ndarray, shape (12, n_samples)
        mV, in the order of `vitolab.models.electrophysiology.LEADS`.

    Raises
    ------
    ValueError
        If a speed is not positive, or the data name no heart.
    """
    ready = heart(patient, lead_field)
    tau = _activation(_checked(np.asarray(x)[np.newaxis])[0], ready)
    return _ecg(tau, ready)


def features(x: ArrayLike, patient: Patient, lead_field: str = "bem") -> dict[str, float]:
    """QRS duration and electrical axis by every definition, see `Definition`.

    Parameters
    ----------
    x : array_like, shape (3,)
        Speeds, mm/s.
    patient : Patient
    lead_field : {"bem", "infinite"}

    Returns
    -------
    dict of str to float
        ``duration:robust``, ``duration:span`` and ``duration:ecg`` in ms, ``axis:area`` and
        ``axis:peak`` in degrees.

    Raises
    ------
    ValueError
        If a speed is not positive, or the data name no heart.
    """
    found = {}
    for duration in ("robust", "span", "ecg"):
        definition = Definition(lead_field, duration=duration)
        found[f"duration:{duration}"] = float(outputs(x, patient, definition)[0, 0])
    for axis in ("area", "peak"):
        definition = Definition(lead_field, axis=axis)
        found[f"axis:{axis}"] = float(outputs(x, patient, definition)[0, 1])
    return found


def _checked(x: FloatArray) -> FloatArray:
    """Speeds, shape (n, 3), refused unless positive."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != len(PARAMETERS):
        raise ValueError(f"x has shape {x.shape}, expected (n, {len(PARAMETERS)})")
    wrong = ~(np.isfinite(x) & (x > 0.0))
    if wrong.any():
        row, i = np.argwhere(wrong)[0]
        raise ValueError(
            f"row {row}: {PARAMETERS[i].name} is {x[row, i]:g} mm/s, expected a positive number"
        )
    return x


def _activation(x: FloatArray, ready: Heart) -> FloatArray:
    """Activation times, NaN where never."""
    tau = kernel.activate(*arguments(ready), x).astype(np.float64)
    tau[tau >= kernel.UNREACHED] = np.nan
    return tau


def _ecg(tau: FloatArray, ready: Heart) -> tuple[FloatArray, FloatArray]:
    """Times and leads."""
    n_samples = int((np.nanmax(tau) + AFTER) / SAMPLING) + 1
    leads = kernel.ecg(tau, ready.weights, SAMPLING, n_samples)
    return np.arange(n_samples, dtype=np.float64) * SAMPLING, leads


def outputs(x: ArrayLike, patient: Patient, definition: Definition) -> FloatArray:
    """Run the model.

    Parameters
    ----------
    x : array_like, shape (n, 3)
        Speeds, mm/s.
    patient : Patient
    definition : Definition

    Returns
    -------
    ndarray, shape (n, 2)
        QRS duration (ms) and electrical axis (degrees in (-180, 180]); NaN where the run failed.

    Raises
    ------
    ValueError
        If a speed is not positive, or the data name no heart.
    """
    x = _checked(np.atleast_2d(np.asarray(x, dtype=np.float64)))
    if definition.mode == "table":
        found = looked_up(x, described(patient), definition.lead_field)
    else:
        found = run(x, heart(patient, definition.lead_field))
    column = {name: found[:, i] for i, name in enumerate(kernel.OUTPUTS)}
    duration = column["qrs_span" if definition.duration == "span" else "qrs_robust"]
    area_i, area_avf = column["area_i"], column["area_avf"]
    gross = column["area_scale"]
    if definition.duration == "ecg" or definition.axis == "peak":
        duration, area_i, area_avf = duration.copy(), area_i.copy(), area_avf.copy()
        ready = heart(patient, definition.lead_field)
        for row, speeds in enumerate(x):
            _, leads = _ecg(_activation(speeds, ready), ready)
            if definition.duration == "ecg":
                duration[row] = kernel.qrs_duration(leads, SAMPLING)
            if definition.axis == "peak":
                peak = leads.max(axis=1) + leads.min(axis=1)
                area_i[row], area_avf[row] = peak[LEAD_I], peak[LEAD_AVF]
                gross[row] = np.abs(leads[[LEAD_I, LEAD_AVF]]).max(axis=1).sum()
    y = np.stack([duration, electrical_axis(area_i, area_avf)], axis=1)
    y[~(np.hypot(area_i, area_avf) > NO_AXIS * gross), 1] = np.nan
    y[column["unreached"] > UNREACHED] = np.nan
    return y
