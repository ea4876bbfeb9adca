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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.interpolate import RectBivariateSpline

from vitolab.files import digest, source_version
from vitolab.kernels import activation as kernel
from vitolab.models.electrophysiology import hearts
from vitolab.models.electrophysiology.hearts import Heart, heart
from vitolab.models.electrophysiology.leadfield import LEADS, electrical_axis
from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem

if TYPE_CHECKING:
    import pandas as pd

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
N_RATIOS = 25  # of the table, per axis
RATIOS = (500 / 1000, 5000 / 200)  # lowest and highest ratio of speeds in the domain
LEAD_I, LEAD_AVF = LEADS.index("I"), LEADS.index("aVF")


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
            "lead_field": hearts.LEAD_FIELDS,
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

    Patients need ``anatomy`` in their data, see `vitolab.models.electrophysiology.heart`.

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
    sources = source_version(kernel.__file__, Path(__file__))
    options = digest(mode, duration, axis)[:6]
    return Problem(
        name=f"electrophysiology-{lead_field}",
        version=f"{VERSION}-{hearts.version()}-{sources}-{options}",
        parameters=PARAMETERS,
        objectives=OBJECTIVES,
        simulate=partial(_outputs, definition=definition),
        confirm=partial(_outputs, definition=exact) if mode == "table" else None,
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
    """
    return _activation(_checked(np.asarray(x)[np.newaxis])[0], heart(patient, lead_field))


def ecg(x: ArrayLike, patient: Patient, lead_field: str = "bem") -> tuple[FloatArray, FloatArray]:
    """12-lead ECG of the depolarisation.

    Returns
    -------
    time : ndarray, shape (n_samples,)
        ms since the first activation.
    leads : ndarray, shape (12, n_samples)
        mV, in the order of `LEADS`.
    """
    ready = heart(patient, lead_field)
    tau = _activation(_checked(np.asarray(x)[np.newaxis])[0], ready)
    return _ecg(tau, ready)


def features(x: ArrayLike, patient: Patient, lead_field: str = "bem") -> dict[str, float]:
    """QRS duration (ms) and electrical axis (degrees) by every definition, see `Definition`."""
    found = {}
    for duration in ("robust", "span", "ecg"):
        definition = Definition(lead_field, duration=duration)
        found[f"duration:{duration}"] = float(_outputs(x, patient, definition)[0, 0])
    for axis in ("area", "peak"):
        definition = Definition(lead_field, axis=axis)
        found[f"axis:{axis}"] = float(_outputs(x, patient, definition)[0, 1])
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


def _arguments(ready: Heart) -> tuple[Any, Any, Any, Any, Any, Any]:
    """What the kernel needs to know of a heart before the speeds."""
    graph, roots = ready.graph, ready.anatomy.roots
    times = np.zeros(len(roots), dtype=np.float32)
    return graph.start, graph.neighbour, graph.length, graph.speed_class, roots, times


def _run(x: FloatArray, ready: Heart) -> FloatArray:
    """Answers of the kernel, shape (n, len(OUTPUTS))."""
    found: FloatArray = kernel.simulate(
        *_arguments(ready), ready.volume, ready.weights[LEAD_I], ready.weights[LEAD_AVF], x
    )
    return found


def _activation(x: FloatArray, ready: Heart) -> FloatArray:
    """Activation times, NaN where never."""
    tau = kernel.activate(*_arguments(ready), x).astype(np.float64)
    tau[tau >= kernel.UNREACHED] = np.nan
    return tau


def _ecg(tau: FloatArray, ready: Heart) -> tuple[FloatArray, FloatArray]:
    """Times and leads."""
    n_samples = int((np.nanmax(tau) + AFTER) / SAMPLING) + 1
    leads = kernel.ecg(tau, ready.weights, SAMPLING, n_samples)
    return np.arange(n_samples, dtype=np.float64) * SAMPLING, leads


def _outputs(x: ArrayLike, patient: Patient, definition: Definition) -> FloatArray:
    """QRS duration and axis, shape (n, 2); NaN where the run failed."""
    x = _checked(np.atleast_2d(np.asarray(x, dtype=np.float64)))
    if definition.mode == "table":
        found = _looked_up(x, hearts.described(patient), definition.lead_field)
    else:
        found = _run(x, heart(patient, definition.lead_field))
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
    y[np.hypot(area_i, area_avf) < NO_AXIS * gross, 1] = np.nan
    y[column["unreached"] > UNREACHED] = np.nan
    return y


def _looked_up(x: FloatArray, described: str, lead_field: str) -> FloatArray:
    """Answers of the table in place of the kernel's, shape (n, len(OUTPUTS))."""
    ratio = np.log(x[:, 1:] / x[:, :1])
    splines = _table(described, lead_field)
    found = np.stack([spline.ev(ratio[:, 0], ratio[:, 1]) for spline in splines], axis=1)
    times = [i for i, name in enumerate(kernel.OUTPUTS) if name != "unreached"]
    found[:, times] *= 1000.0 / x[:, :1]
    outside = (ratio < np.log(RATIOS[0]) - 1e-9) | (ratio > np.log(RATIOS[1]) + 1e-9)
    rows = outside.any(axis=1)
    if rows.any():  # outside the domain the table does not know
        found[rows] = _run(x[rows], hearts.prepared(described, lead_field))
    return found


@lru_cache(maxsize=256)
def _table(described: str, lead_field: str) -> tuple[RectBivariateSpline, ...]:
    """Splines over both log ratios at a myocardial speed of 1000 mm/s."""
    ready = hearts.prepared(described, lead_field)
    axis = np.linspace(np.log(RATIOS[0]), np.log(RATIOS[1]), N_RATIOS)
    lv, rv = (np.exp(values).ravel() for values in np.meshgrid(axis, axis, indexing="ij"))
    speeds = 1000.0 * np.stack([np.ones_like(lv), lv, rv], axis=1)
    name = digest(described, lead_field, source_version(kernel.__file__), N_RATIOS)
    values = hearts.cached(name, lambda: {"table": _run(speeds, ready)})["table"]
    grids = values.reshape(N_RATIOS, N_RATIOS, -1)
    return tuple(RectBivariateSpline(axis, axis, grids[..., i]) for i in range(grids.shape[-1]))


def reachable(
    patient: Patient, lead_field: str = "bem", n_values: int = 46
) -> tuple[FloatArray, FloatArray]:
    """Answers of the model over a grid of its domain, by the table.

    Parameters
    ----------
    patient : Patient
        Its measurements are not used.
    lead_field : {"bem", "infinite"}
    n_values : int
        Speeds per parameter, evenly spaced in Ω.

    Returns
    -------
    x : ndarray, shape (n_values³, 3)
    y : ndarray, shape (n_values³, 2)
    """
    axes = [np.linspace(p.lower, p.upper, n_values) for p in PARAMETERS]
    x = np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)
    return x, _outputs(x, patient, Definition(lead_field, "table"))


def is_solvable(patient: Patient, lead_field: str = "bem") -> bool:
    """Whether some point of a grid over Ω meets both tolerances, confirmed by an exact run.

    An answer of False is no proof: a solution may lie between the points.
    """
    exact = problem(lead_field)
    z = exact.measured(patient)
    x, y = reachable(patient, lead_field)
    worst = np.max(np.abs(exact.misfit(y, z)) / exact.tolerance, axis=1)
    best = np.argsort(np.nan_to_num(worst, nan=np.inf), kind="stable")[:20]
    return bool(exact.is_solved(exact.misfit(exact.simulate(x[best], patient), z)).any())


def solvable(
    patients: Sequence[Patient], lead_fields: Sequence[str] = ("bem",), n_jobs: int = 1
) -> pd.DataFrame:
    """Tell which patients can be solved at all, see `is_solvable`.

    Returns
    -------
    DataFrame
        Columns ``setup`` (lead field), ``patient`` and ``solvable``.
    """
    import pandas as pd

    keys = list(product(lead_fields, patients))
    found = Parallel(n_jobs=n_jobs)(delayed(is_solvable)(p, field) for field, p in keys)
    rows = [(field, p.name, can) for (field, p), can in zip(keys, found, strict=True)]
    return pd.DataFrame(rows, columns=["setup", "patient", "solvable"])
