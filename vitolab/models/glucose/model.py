"""The model of Topp et al. (2000) as a problem: a glucose challenge, and fasting a year later.

Beta cells grow and die by the glucose around them, over months, while glucose and insulin settle
within hours, see `vitolab.kernels.glucose`. A patient comes fasting, is given glucose into a vein,
0.05 to 1 g per kg of body weight, and comes back after a year. The dose raises glucose at once, in
a volume of 1.7 dL/kg, usual for the minimal model of glucose (Bergman et al. 1979).

Six parameters are free. They were chosen by the singular values of `vitolab.identifiability`, at
parameters drawn by ratio: of mass of beta cells and secretion only the product matters, the three
rates d0, r1, r2 act through the glucose at which beta cells neither grow nor die, and glucose
effectiveness EG0 cannot be told from production and insulin sensitivity, in the range of a
challenge; so secretion, r1, r2 and EG0 keep their published values. Insulin clearance rests on the
sample at five minutes alone: insulin follows its clearance within a few minutes. The tolerances, of
the order by which repeated tests of one patient differ, the domain and the steps, 1 % of the
defaults, are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from vitolab.failures import Kind, Reason
from vitolab.files import source_version
from vitolab.kernels import glucose as kernel
from vitolab.models.glucose.about import DOSE_RANGE
from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem
from vitolab.running import Answers

VERSION = "1"
TOLERANCE = 1e-6  # of a step, relative
VOLUME = 1.7  # dL per kg of body weight, in which glucose spreads
DAY = 1440.0  # minutes
YEAR = 365.0  # days


def _parameter(name: str, label: str, unit: str, lower: float, upper: float) -> Parameter:
    """Take the published value for the default."""
    default = float(kernel.DEFAULTS[kernel.NAMES.index(name)])
    return Parameter(name, label, unit, lower, upper, default, 0.01 * default, "log")


PARAMETERS = (
    _parameter("glucose_production", "Glucose production", "mg/dL/d", 400, 1800),
    _parameter("insulin_sensitivity", "Insulin sensitivity", "mL/μU/d", 0.05, 5),
    _parameter("beta_cell_mass", "Mass of beta cells", "mg", 30, 3000),
    _parameter("half_secretion", "Half secretion", "mg²/dL²", 5000, 80000),
    _parameter("insulin_clearance", "Insulin clearance", "1/d", 100, 1500),
    _parameter("beta_cell_loss", "Loss of beta cells", "1/d", 0.04, 0.09),
)
OBJECTIVES = (
    Objective("fasting_glucose", "Fasting glucose", "mg/dL", 10),
    Objective("fasting_insulin", "Fasting insulin", "μU/mL", 2),
    Objective("insulin_5", "Insulin at 5 min", "μU/mL", 5),
    Objective("glucose_30", "Glucose at 30 min", "mg/dL", 15),
    Objective("insulin_30", "Insulin at 30 min", "μU/mL", 5),
    Objective("glucose_60", "Glucose at 60 min", "mg/dL", 15),
    Objective("glucose_120", "Glucose at 120 min", "mg/dL", 15),
    Objective("insulin_120", "Insulin at 120 min", "μU/mL", 4),
    Objective("year_glucose", "Fasting glucose after a year", "mg/dL", 15),
)
_MINUTES = ((0, 0), (0, 1), (5, 1), (30, 0), (30, 1), (60, 0), (120, 0), (120, 1))
#: When each objective is measured, in days since the dose, and of which state.
SAMPLED = (*((minutes / DAY, state) for minutes, state in _MINUTES), (YEAR, 0))
_TIMES = np.array(sorted({time for time, _ in SAMPLED}))
_COLUMNS = (
    np.array([_TIMES.tolist().index(time) for time, _ in SAMPLED]),
    np.array([state for _, state in SAMPLED]),
)
_FREE = np.array([kernel.NAMES.index(p.name) for p in PARAMETERS])


def rise(patient: Patient) -> float:
    """Rise of glucose by the dose of a patient, mg/dL.

    Raises
    ------
    ValueError
        If the dose is absent, not a number or out of range.
    """
    low, high, unit = DOSE_RANGE
    value = patient.data.get("glucose_dose")
    if isinstance(value, (int, float, np.number)) and low <= value <= high:
        return 1000.0 * float(value) / VOLUME
    found = "missing" if value is None else repr(value)
    raise ValueError(
        f"patient {patient.name!r}: glucose_dose is {found}, expected {low:g} to {high:g} {unit}"
    )


def _rows(x: ArrayLike, patient: Patient) -> FloatArray:
    """Constants of the kernel, shape (n, N_CONSTANTS)."""
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != len(PARAMETERS):
        raise ValueError(f"x has shape {x.shape}, expected (n, {len(PARAMETERS)})")
    wrong = ~(np.isfinite(x) & (x > 0.0))
    if wrong.any():
        row, i = np.argwhere(wrong)[0]
        raise ValueError(
            f"row {row}: {PARAMETERS[i].name} is {x[row, i]:g} {PARAMETERS[i].unit}, expected a "
            "positive number"
        )
    rows = np.tile(kernel.DEFAULTS, (len(x), 1))
    rows[:, _FREE] = x
    rows[:, kernel.DOSE] = rise(patient)
    return rows


def course(x: ArrayLike, patient: Patient, times: Sequence[float] | FloatArray) -> FloatArray:
    """Course of glucose (mg/dL), insulin (μU/mL) and the mass of beta cells (mg).

    Parameters
    ----------
    x : array_like, shape (n_parameters,)
    patient : Patient
        With ``glucose_dose`` in its data.
    times : sequence of float, shape (n_times,)
        Rising, in days since the dose; 0 is the fasting state before it.

    Returns
    -------
    ndarray, shape (n_times, 3)

    Raises
    ------
    ValueError
        If a parameter is not positive, the dose is missing or out of range, the times do not rise
        from 0 or later, or the run fails.
    """
    when = np.asarray(times, dtype=np.float64)
    if when.ndim != 1 or not (np.isfinite(when).all() and (np.diff(when, prepend=0.0) >= 0).all()):
        raise ValueError(f"times are {times}, expected rising numbers of days from 0 or later")
    x = np.asarray(x, dtype=np.float64)
    rows = _rows(x[np.newaxis], patient)
    states, status = kernel.simulate(rows, when, TOLERANCE)
    if status[0] != kernel.SUCCESS:
        raise ValueError(f"patient {patient.name!r}: no course for parameters {x}")
    found: FloatArray = states[0]
    return found


class _Outputs:
    """Objectives, NaN where the integration failed."""

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model, shape (n, n_objectives)."""
        return self.answers(x, patient).y

    def answers(self, x: FloatArray, patient: Patient) -> Answers:
        """Run the model, and say why rows have no answer."""
        states, status = kernel.simulate(_rows(x, patient), _TIMES, TOLERANCE)
        y = np.ascontiguousarray(states[:, *_COLUMNS])
        failed = np.flatnonzero(status != kernel.SUCCESS).tolist()
        y[failed] = np.nan
        text = f"integration failed, expected at most {kernel.MOST_STEPS} steps for a year"
        return Answers(y, {row: Reason(Kind.NOT_FINITE, text) for row in failed})


def problem() -> Problem:
    """Personalise glucose, insulin and beta cells to a challenge and a fasting glucose a year on.

    Patients need ``glucose_dose`` (g per kg of body weight, 0.05 to 1) in their data.

    Returns
    -------
    Problem
        Named ``glucose``.
    """
    return Problem(
        name="glucose",
        version=f"{VERSION}-{source_version(kernel.__file__, Path(__file__))}",
        parameters=PARAMETERS,
        objectives=OBJECTIVES,
        simulate=_Outputs(),
        features=("glucose_dose",),
    )
