"""Constants of the circulation kernel, from a patient and parameters in the paper's units."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vitolab.kernels import circulation as kernel
from vitolab.models.circulation.parameters import (
    CONSTANTS,
    FURTHER_PARAMETERS,
    HEART_RATE_RANGE,
    MMHG,
    PAPER_PARAMETERS,
    PARAMETERS,
    SETUPS,
)
from vitolab.problem import FloatArray, Patient

_INPUTS = np.array([kernel.NAMES.index(CONSTANTS[p.name][0]) for p in PARAMETERS])
_FACTORS = np.array([CONSTANTS[p.name][1] for p in PARAMETERS])
_SIGNED = ("initial_volume", "lv_dead_volume")
_POSITIVE = np.array([p.name not in _SIGNED and p.lower > 0.0 for p in PARAMETERS])
_NOT_NEGATIVE = np.array([p.name not in _SIGNED for p in PARAMETERS])


def heart_rate(patient: Patient) -> float:
    """Heart rate of a patient in beats per minute.

    Raises
    ------
    ValueError
        If it is absent, not a number or outside 30 to 200.
    """
    low, high = HEART_RATE_RANGE
    value = patient.data.get("heart_rate")
    if isinstance(value, (int, float, np.number)) and low <= value <= high:
        return float(value)
    found = "missing" if value is None else repr(value)
    raise ValueError(
        f"patient {patient.name!r}: heart_rate is {found}, expected {low:g} to {high:g} "
        "beats per minute"
    )


def size_of(setup: str) -> int:
    """Give the number of parameters and objectives of a setup."""
    if setup not in SETUPS:
        raise ValueError(f"setup is {setup!r}, expected one of {', '.join(SETUPS)}")
    return SETUPS[setup]


def known(constants: dict[str, float]) -> dict[str, float]:
    """Give the constants back, or refuse an unknown name or a value that is no finite number."""
    for name, value in constants.items():
        if name not in kernel.NAMES:
            raise ValueError(f"{name!r} is not a constant of the circulation model")
        if not np.isfinite(value):
            raise ValueError(f"constant {name!r} is {value}, expected a finite number")
    return constants


def pack(
    x: ArrayLike, patient: Patient, setup: str = "6p", constants: dict[str, float] | None = None
) -> FloatArray:
    """Constants of the kernel for parameters in the paper's units.

    Parameters
    ----------
    x : array_like, shape (n, n_parameters)
    patient : Patient
        With ``heart_rate`` in its data.
    setup : {"2p", "3p", "5p", "6p", "9p", "12p", "20p"}
    constants : dict, optional
        Other values, by name and in the units of `vitolab.kernels.circulation.TABLE`.

    Returns
    -------
    ndarray, shape (n, N_CONSTANTS)

    Raises
    ------
    ValueError
        If a name is unknown, a parameter is not finite, an elastance, resistance, compliance or
        time is not positive, the maximum LV elastance is not above the minimum, the maximum RV
        elastance is below the minimum (an RV in which they are equal does not contract; blood
        still passes it), an active elastance or a leak is negative, the pulmonary resistance is not
        above that of the root of the artery (0.015 mmHg s/mL, 20 g/(cm⁴ s)), or the aortic one
        not above the characteristic one.
    """
    n = size_of(setup)
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != n:
        raise ValueError(f"x has shape {x.shape}, expected (n, {n}) for {setup}")
    rows = np.tile(kernel.DEFAULTS, (len(x), 1))
    for name, value in known(constants or {}).items():
        rows[:, kernel.NAMES.index(name)] = value
    wrong = ~np.isfinite(x) | (_POSITIVE[:n] & ~(x > 0.0)) | (_NOT_NEGATIVE[:n] & ~(x >= 0.0))
    if wrong.any():
        row, i = np.argwhere(wrong)[0]
        kind = "positive" if _POSITIVE[i] else "non-negative" if _NOT_NEGATIVE[i] else "finite"
        raise ValueError(
            f"row {row}: {PARAMETERS[i].name} is {x[row, i]:g} {PARAMETERS[i].unit}, expected a "
            f"{kind} number"
        )
    rows[:, _INPUTS[:n]] = x * _FACTORS[:n]
    weak = rows[:, kernel.LV_EMAX] <= rows[:, kernel.LV_EMIN]
    if weak.any():
        row = int(np.argmax(weak))
        raise ValueError(
            f"row {row}: lv_emax is {rows[row, kernel.LV_EMAX]:g} mmHg/mL, expected above the "
            f"minimum elastance {rows[row, kernel.LV_EMIN]:g}"
        )
    if n > len(PAPER_PARAMETERS):
        _finish_right(rows, x)
    if n > len(PAPER_PARAMETERS) + len(FURTHER_PARAMETERS):
        _finish_lab(rows)
    rows[:, kernel.HEART_PERIOD] = 60.0 / heart_rate(patient)
    return rows


def _finish_right(rows: FloatArray, x: FloatArray) -> None:
    """Check the right heart and take the root of the artery from the pulmonary resistance."""
    rows[:, kernel.PULMONARY_RESISTANCE] -= rows[:, kernel.PULMONARY_CHARACTERISTIC_RESISTANCE]
    small = rows[:, kernel.PULMONARY_RESISTANCE] <= 0.0
    if small.any():
        row = int(np.argmax(small))
        root = rows[row, kernel.PULMONARY_CHARACTERISTIC_RESISTANCE] * MMHG
        found = x[row, [p.name for p in PARAMETERS].index("pulmonary_resistance")]
        raise ValueError(
            f"row {row}: pulmonary_resistance is {found:g} g/(cm⁴ s), expected above the "
            f"{root:.3g} of the root of the artery"
        )
    weak = rows[:, kernel.RV_EMAX] < rows[:, kernel.RV_EMIN]
    if weak.any():
        row = int(np.argmax(weak))
        raise ValueError(
            f"row {row}: rv_emax is {rows[row, kernel.RV_EMAX]:g} mmHg/mL, expected at least the "
            f"minimum elastance {rows[row, kernel.RV_EMIN]:g}"
        )


def _finish_lab(rows: FloatArray) -> None:
    """Take atrial maxima from what contraction adds, and the aortic root as a share."""
    rows[:, kernel.LA_EMAX] += rows[:, kernel.LA_EMIN]
    rows[:, kernel.RA_EMAX] += rows[:, kernel.RA_EMIN]
    rows[:, kernel.CHARACTERISTIC_SHARE] /= rows[:, kernel.AORTIC_RESISTANCE]
    high = rows[:, kernel.CHARACTERISTIC_SHARE] >= 1.0
    if high.any():
        row = int(np.argmax(high))
        total = rows[row, kernel.AORTIC_RESISTANCE] * MMHG
        root = rows[row, kernel.CHARACTERISTIC_SHARE] * total
        raise ValueError(
            f"row {row}: aortic_resistance is {total:.6g} g/(cm⁴ s), expected above the "
            f"characteristic resistance {root:.6g}"
        )
