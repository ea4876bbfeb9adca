"""The setups of the circulation: the paper's four, and two more with the right heart and lungs.

The paper's setups 2p to 6p are those of `vitolab.models.circulation.model`, unchanged. Here their
tables go on: 9p and 12p take the paper's six parameters and objectives and the first three or all
six of `FURTHER_PARAMETERS` and `FURTHER_OBJECTIVES`, what MRI of the right ventricle and a
right-heart catheter measure. Every setup contains the smaller ones. Nothing here is the paper's,
whose authors report failure above ten parameters; domains, tolerances and order are our own.

Order, and so the three of 9p: right-ventricular maximum elastance, pulmonary resistance and
pulmonary compliance with end-systolic volume, mean and diastolic pressure, the counterparts of
what the paper's setups have on the left. Of all ways to take three of six parameters with three of
six measurements they, with either right-ventricular volume, leave the least identifiable direction
the least bad: the 10 % quantile of the smallest singular value of `vitolab.identifiability` is the
largest, over the defaults and 48 random points within the measured ranges, at the heart rates of
the scouting patients.

Over a periodic beat both ventricles eject the same volume, so that of the twelve objectives of 12p
only eleven are independent: one singular value is zero at every point, and one combination of the
twelve parameters, near most points little but the minimum RV elastance, cannot be found from them.
As on the left, times to maximum elastance above 0.8 of the beat are one and the same model.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from vitolab.files import source_version
from vitolab.kernels import circulation as kernel
from vitolab.models.circulation import model
from vitolab.models.circulation.model import MMHG, Numerics, Runs
from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem

# The step is 0.5 % of the range, as in the paper's table wbc_params. Defaults are the constants of
# the kernel; the domains are 0.03 to 0.6 mmHg s/mL for the resistance, 1 to 12 mL/mmHg for the
# compliance.
FURTHER_PARAMETERS = (
    Parameter("rv_emax", "RV maximum elastance", "mmHg/mL", 0.15, 2, 0.6, 0.00925),
    Parameter(
        "pulmonary_resistance", "Pulmonary resistance", "g/(cm⁴ s)", 40, 800, 0.095 * MMHG, 3.8
    ),
    Parameter(
        *("pulmonary_compliance", "Pulmonary compliance", "1e-3 cm⁴ s²/g"),
        *(0.75, 9, 4.0 / (1e-3 * MMHG), 0.04125),
    ),
    Parameter("rv_time_to_emax", "RV time to maximum elastance", "ms", 100, 600, 300, 2.5),
    Parameter("lv_emin", "LV minimum elastance", "mmHg/mL", 0.015, 0.15, 0.04, 0.000675),
    Parameter("rv_emin", "RV minimum elastance", "mmHg/mL", 0.015, 0.15, 0.05, 0.000675),
)
FURTHER_OBJECTIVES = (
    Objective("rv_esv", "End-systolic RV volume", "mL", 20),
    Objective("pulmonary_mean", "Mean pulmonary arterial pressure", "mmHg", 5),
    Objective("pulmonary_diastolic", "End-diastolic pulmonary arterial pressure", "mmHg", 5),
    Objective("rv_edv", "End-diastolic RV volume", "mL", 20),
    Objective("pulmonary_systolic", "Peak-systolic pulmonary arterial pressure", "mmHg", 5),
    Objective("la_mean", "Mean left-atrial (wedge) pressure", "mmHg", 4),
)
PARAMETERS = model.PARAMETERS + FURTHER_PARAMETERS
OBJECTIVES = model.OBJECTIVES + FURTHER_OBJECTIVES
SETUPS = model.SETUPS | {"9p": 9, "12p": 12}  # each takes the first of both tables

# Factor from the unit of a further parameter to the kernel's constant of the same name. The
# pulmonary resistance is the total; the kernel's is what follows the root of the artery.
FACTORS = {
    "rv_emax": 1.0,
    "pulmonary_resistance": 1.0 / MMHG,
    "pulmonary_compliance": 1e-3 * MMHG,
    "rv_time_to_emax": 1e-3,
    "lv_emin": 1.0,
    "rv_emin": 1.0,
}
DEFAULT_NUMERICS = Numerics()
_N_PAPER = len(model.PARAMETERS)
_COLUMNS = np.array([kernel.OUTPUTS.index(o.name) for o in OBJECTIVES])


def _size(setup: str) -> int:
    """Give the number of parameters and objectives of a setup."""
    if setup not in SETUPS:
        raise ValueError(f"setup is {setup!r}, expected one of {', '.join(SETUPS)}")
    return SETUPS[setup]


def pack(
    x: ArrayLike, patient: Patient, setup: str = "6p", constants: dict[str, float] | None = None
) -> FloatArray:
    """Constants of the kernel for the parameters of any setup.

    As `vitolab.models.circulation.model.pack`, with these conditions on the further parameters:
    all are positive, the pulmonary resistance is above that of the root of the artery
    (0.015 mmHg s/mL, 20 g/(cm⁴ s)), and no maximum elastance is below the minimum (an RV in which
    they are equal does not contract; blood still passes it).

    Returns
    -------
    ndarray, shape (n, N_CONSTANTS)

    Raises
    ------
    ValueError
        If one of these does not hold.
    """
    n = _size(setup)
    x = np.asarray(x, dtype=np.float64)
    if setup in model.SETUPS:
        return model.pack(x, patient, setup, constants)
    if x.ndim != 2 or x.shape[1] != n:
        raise ValueError(f"x has shape {x.shape}, expected (n, {n}) for {setup}")
    rows = model.pack(x[:, :_N_PAPER], patient, "6p", constants)
    for i, p in enumerate(PARAMETERS[_N_PAPER:n], _N_PAPER):
        wrong = ~(np.isfinite(x[:, i]) & (x[:, i] > 0.0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"row {row}: {p.name} is {x[row, i]:g} {p.unit}, expected a positive number"
            )
        rows[:, kernel.NAMES.index(p.name)] = x[:, i] * FACTORS[p.name]
    rows[:, kernel.PULMONARY_RESISTANCE] -= rows[:, kernel.PULMONARY_CHARACTERISTIC_RESISTANCE]
    small = rows[:, kernel.PULMONARY_RESISTANCE] <= 0.0
    if small.any():
        row = int(np.argmax(small))
        root = rows[row, kernel.PULMONARY_CHARACTERISTIC_RESISTANCE] * MMHG
        found = x[row, PARAMETERS.index(FURTHER_PARAMETERS[1])]
        raise ValueError(
            f"row {row}: pulmonary_resistance is {found:g} g/(cm⁴ s), expected above the "
            f"{root:.3g} of the root of the artery"
        )
    for side, high, low in (
        ("lv", kernel.LV_EMAX, kernel.LV_EMIN),
        ("rv", kernel.RV_EMAX, kernel.RV_EMIN),
    ):
        weak = rows[:, high] < rows[:, low]
        if weak.any():
            row = int(np.argmax(weak))
            raise ValueError(
                f"row {row}: {side}_emax is {rows[row, high]:g} mmHg/mL, expected at least the "
                f"minimum elastance {rows[row, low]:g}"
            )
    return rows


def run(
    x: ArrayLike,
    patient: Patient,
    setup: str = "6p",
    numerics: Numerics = DEFAULT_NUMERICS,
    **constants: float,
) -> Runs:
    """Forward runs with everything the kernel says about them; see `pack` for the arguments."""
    return _run(pack(x, patient, setup, constants), numerics)


def _run(rows: FloatArray, numerics: Numerics) -> Runs:
    """Run rows of constants."""
    start = kernel.initial_states(rows)
    return Runs(
        *kernel.simulate(rows, start, numerics.time_step, numerics.tolerance, numerics.max_beats)
    )


def curves(
    x: ArrayLike,
    patient: Patient,
    setup: str = "6p",
    numerics: Numerics = DEFAULT_NUMERICS,
    **constants: float,
) -> dict[str, FloatArray]:
    """Volumes, flows and pressures over one periodic beat.

    Parameters
    ----------
    x : array_like, shape (n_parameters,)
        One set of parameters; the other arguments are those of `pack`.

    Returns
    -------
    dict of str to ndarray, shape (n_points,)
        ``time`` (s), ``lv_volume`` (mL), ``aortic_pressure`` (mmHg) and the others of
        `vitolab.kernels.circulation.CURVES`.

    Raises
    ------
    ValueError
        As `pack`, or if the run finds no periodic state.
    """
    x = np.asarray(x, dtype=np.float64)
    rows = pack(x[np.newaxis], patient, setup, constants)
    runs = _run(rows, numerics)
    if runs.failed[0]:
        raise ValueError(f"patient {patient.name!r}: no periodic state for parameters {x}")
    _, _, table = kernel.beat(rows[0], runs.start[0], numerics.time_step)
    return {name: table[:, i].copy() for i, name in enumerate(kernel.CURVES)}


def _outputs(
    x: FloatArray, patient: Patient, setup: str, numerics: Numerics, constants: dict[str, float]
) -> FloatArray:
    """Objectives of a setup, see `vitolab.models.circulation.model.answers`."""
    rows = pack(x, patient, setup, constants)
    return model.answers(_run(rows, numerics), rows, _COLUMNS[: _size(setup)])


def problem(
    setup: str = "6p",
    numerics: Numerics = DEFAULT_NUMERICS,
    **constants: float,
) -> Problem:
    """Personalise the circulation: left heart and systemic side, from 9p on the right heart too.

    Patients need ``heart_rate`` (beats per minute, 30 to 200) in their data. With the setups 2p
    and 3p, whose dead volume stays at 10 mL, the model cannot reach end-diastolic volumes above
    about 520 and 550 mL.

    Parameters
    ----------
    setup : {"2p", "3p", "5p", "6p", "9p", "12p"}
        How many parameters and objectives, in the order of `PARAMETERS` and `OBJECTIVES`; the
        first six are the paper's.
    numerics : Numerics
    **constants : float
        Other values of the fixed constants, by name and in the units of
        `vitolab.kernels.circulation.TABLE`, e.g. ``cosine_shape=1.0``.

    Returns
    -------
    Problem
        Named ``circulation-6p`` and so on.

    Raises
    ------
    ValueError
        If the setup or a constant is unknown, or a constant leaves a part of the domain without a
        model.
    """
    n = _size(setup)
    if setup in model.SETUPS:
        return model.problem(setup, numerics, **constants)
    paper = model.problem("6p", numerics, **constants)
    # an elastance range is narrowest at this corner, the pulmonary resistance the smallest
    corner = [p.upper if p.name.endswith("emin") else p.lower for p in PARAMETERS[:n]]
    pack(np.array([corner]), Patient("corner", {}, {"heart_rate": 60}), setup, constants)
    return replace(
        paper,
        name=f"circulation-{setup}",
        version=f"{paper.version}-{source_version(__file__)}",
        parameters=PARAMETERS[:n],
        objectives=OBJECTIVES[:n],
        simulate=partial(_outputs, setup=setup, numerics=numerics, constants=constants),
    )
