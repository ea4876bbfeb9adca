"""The circulation model as a problem to personalise: parameters, objectives, units, checks.

Paper, section "Personalization of Whole-Body Circulation Model". The model is one of the class
described there (four time-varying elastances, valves with resistance and inertance, three- and
two-element Windkessels), not a reproduction of its authors' code: all constants beside the
personalised ones are our own, see `vitolab.kernels.circulation.TABLE`.

Units are the paper's outside and mmHg, mL, s inside (1 mmHg = 1333.22 dyn/cm²). The paper prints
aortic compliance in 10⁹ cm⁴ s²/g; its default 1.4 with the default resistance of 1100 g/(cm⁴ s)
gives a diastolic time constant R C near the human 1 to 2 s only as 1.4e-3 cm⁴ s²/g (1.54 s), so
the unit here is 1e-3 cm⁴ s²/g and the numbers stay as printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vitolab.failures import Kind, explain
from vitolab.files import digest, source_version
from vitolab.kernels import circulation as kernel
from vitolab.problem import FloatArray, IntArray, Objective, Parameter, Patient, Problem

VERSION = "1"
MMHG = 1333.22  # dyn/cm²
HEART_RATE_RANGE = (30.0, 200.0)  # beats per minute
STABLE_TIME_STEP = 0.01  # s; the fastest mode of the domain allows 0.0116

# Table wbc_params of the paper; the step is 0.5 % of the range.
PARAMETERS = (
    Parameter("initial_volume", "Initial volume", "mL", 200, 1000, 400, 4),
    Parameter("lv_emax", "LV maximum elastance", "mmHg/mL", 0.2, 5, 2.4, 0.024),
    Parameter("aortic_resistance", "Aortic resistance", "g/(cm⁴ s)", 500, 2500, 1100, 10),
    Parameter("aortic_compliance", "Aortic compliance", "1e-3 cm⁴ s²/g", 0.5, 6, 1.4, 0.0275),
    Parameter("lv_dead_volume", "LV dead volume", "mL", -50, 500, 10, 2.75),
    Parameter("time_to_emax", "Time to maximum elastance", "ms", 100, 600, 300, 2.5),
)
# Table wbc_objectives of the paper
OBJECTIVES = (
    Objective("lv_edv", "End-diastolic LV volume", "mL", 20),
    Objective("lv_esv", "End-systolic LV volume", "mL", 20),
    Objective("aortic_mean", "Mean aortic pressure", "mmHg", 10),
    Objective("aortic_systolic", "Peak-systolic aortic pressure", "mmHg", 10),
    Objective("aortic_diastolic", "End-diastolic aortic pressure", "mmHg", 10),
    Objective("ejection_time", "Ejection time", "ms", 50),
)
SETUPS = {"2p": 2, "3p": 3, "5p": 5, "6p": 6}  # each takes the first of both tables

# Kernel constant behind each parameter, and the factor from the paper's unit to the kernel's
CONSTANTS = {
    "initial_volume": ("initial_volume", 1.0),
    "lv_emax": ("lv_emax", 1.0),
    "aortic_resistance": ("aortic_resistance", 1.0 / MMHG),
    "aortic_compliance": ("aortic_compliance", 1e-3 * MMHG),
    "lv_dead_volume": ("lv_dead_volume", 1.0),
    "time_to_emax": ("lv_time_to_emax", 1e-3),
}
_COLUMNS = np.array([kernel.NAMES.index(CONSTANTS[p.name][0]) for p in PARAMETERS])
_FACTORS = np.array([CONSTANTS[p.name][1] for p in PARAMETERS])
# blood in all, and what of it stretches nothing
_HELD = [kernel.INITIAL_VOLUME, kernel.REFERENCE_VOLUME]
_DEAD = [
    kernel.LV_DEAD_VOLUME,
    kernel.RV_DEAD_VOLUME,
    kernel.LA_DEAD_VOLUME,
    kernel.RA_DEAD_VOLUME,
]
_POSITIVE = np.array([p.name not in ("initial_volume", "lv_dead_volume") for p in PARAMETERS])


@dataclass(frozen=True)
class Numerics:
    """How exactly the model is solved.

    Attributes
    ----------
    time_step : float
        Longest time step, s. An absolute time: the explicit method is unstable above 0.0116.
    tolerance : float
        Largest change of a volume over a periodic beat, mL.
    max_beats : int
        Beats after which a run counts as failed.

    Raises
    ------
    ValueError
        If a value is not positive or the time step is unstable.
    """

    time_step: float = 5e-3
    tolerance: float = 1e-2
    max_beats: int = 200

    def __post_init__(self) -> None:
        if not 0.0 < self.time_step <= STABLE_TIME_STEP:
            raise ValueError(
                f"time_step is {self.time_step} s, expected above 0 and at most {STABLE_TIME_STEP}"
            )
        if not self.tolerance > 0.0:
            raise ValueError(f"tolerance is {self.tolerance} mL, expected above 0")
        if self.max_beats < 1:
            raise ValueError(f"max_beats is {self.max_beats}, expected at least 1")


@dataclass(frozen=True)
class Runs:
    """Outcome of forward runs.

    Attributes
    ----------
    outputs : ndarray, shape (n, 12)
        In the order of `vitolab.kernels.circulation.OUTPUTS`: mL, mmHg, ms. Failed runs too.
    status : ndarray of int, shape (n,)
        Bits, e.g. `vitolab.kernels.circulation.LOW_OUTPUT`.
    beats : ndarray of int, shape (n,)
        Beats computed until the periodic state.
    start : ndarray, shape (n, 12)
        State at the start of the last beat, see `vitolab.kernels.circulation.STATES`.
    """

    outputs: FloatArray
    status: IntArray
    beats: IntArray
    start: FloatArray

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which runs found no periodic state, shape (n,)."""
        failed: NDArray[np.bool_] = (self.status & (kernel.NOT_CONVERGED | kernel.NON_FINITE)) != 0
        return failed


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


def _setup(setup: str) -> int:
    """Give the number of parameters and objectives of a setup."""
    if setup not in SETUPS:
        raise ValueError(f"setup is {setup!r}, expected one of {', '.join(SETUPS)}")
    return SETUPS[setup]


def _known(constants: dict[str, float]) -> dict[str, float]:
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
    setup : {"2p", "3p", "5p", "6p"}
    constants : dict, optional
        Other values, by name and in the units of `vitolab.kernels.circulation.TABLE`.

    Returns
    -------
    ndarray, shape (n, N_CONSTANTS)

    Raises
    ------
    ValueError
        If a name is unknown, a parameter is not finite, an elastance, resistance, compliance or
        time is not positive, or the maximum LV elastance is not above the minimum.
    """
    parameters = PARAMETERS[: _setup(setup)]
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != len(parameters):
        raise ValueError(f"x has shape {x.shape}, expected (n, {len(parameters)}) for {setup}")
    rows = np.tile(kernel.DEFAULTS, (len(x), 1))
    for name, value in _known(constants or {}).items():
        rows[:, kernel.NAMES.index(name)] = value
    wrong = ~np.isfinite(x) | (_POSITIVE[: len(parameters)] & ~(x > 0.0))
    if wrong.any():
        row, i = np.argwhere(wrong)[0]
        raise ValueError(
            f"row {row}: {parameters[i].name} is {x[row, i]:g} {parameters[i].unit}, expected a "
            f"{'positive' if _POSITIVE[i] else 'finite'} number"
        )
    rows[:, _COLUMNS[: len(parameters)]] = x * _FACTORS[: len(parameters)]
    weak = rows[:, kernel.LV_EMAX] <= rows[:, kernel.LV_EMIN]
    if weak.any():
        row = int(np.argmax(weak))
        raise ValueError(
            f"row {row}: lv_emax is {rows[row, kernel.LV_EMAX]:g} mmHg/mL, expected above the "
            f"minimum elastance {rows[row, kernel.LV_EMIN]:g}"
        )
    rows[:, kernel.HEART_PERIOD] = 60.0 / heart_rate(patient)
    return rows


def run(
    x: ArrayLike,
    patient: Patient,
    setup: str = "6p",
    numerics: Numerics = Numerics(),
    **constants: float,
) -> Runs:
    """Forward runs with everything the kernel says about them; see `pack` for the arguments."""
    rows = pack(x, patient, setup, constants)
    return Runs(
        *kernel.simulate(
            rows,
            kernel.initial_states(rows),
            numerics.time_step,
            numerics.tolerance,
            numerics.max_beats,
        )
    )


def curves(
    x: ArrayLike,
    patient: Patient,
    setup: str = "6p",
    numerics: Numerics = Numerics(),
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
    x = np.asarray(x, dtype=np.float64)[np.newaxis]
    runs = run(x, patient, setup, numerics, **constants)
    if runs.failed[0]:
        raise ValueError(f"patient {patient.name!r}: no periodic state for parameters {x[0]}")
    row = pack(x, patient, setup, constants)[0]
    _, _, table = kernel.beat(row, runs.start[0], numerics.time_step)
    return {name: table[:, i].copy() for i, name in enumerate(kernel.CURVES)}


def _outputs(
    x: FloatArray, patient: Patient, setup: str, numerics: Numerics, constants: dict[str, float]
) -> FloatArray:
    """Objectives of a setup, NaN where the run failed or no body could do what it says."""
    runs = run(x, patient, setup, numerics, **constants)
    return answers(runs, pack(x, patient, setup, constants), range(_setup(setup)))


def answers(runs: Runs, rows: FloatArray, columns: Sequence[int] | IntArray) -> FloatArray:
    """Outputs that are answers: NaN, with the cause, where a run failed or a volume is impossible.

    Parameters
    ----------
    runs : Runs
    rows : ndarray, shape (n, N_CONSTANTS)
        What the kernel was given.
    columns : sequence of int
        Which outputs.

    Returns
    -------
    ndarray, shape (n, n_columns)
    """
    y = runs.outputs[:, list(columns)]
    y[runs.failed] = np.nan
    empty = (runs.status & kernel.NO_STRESSED_VOLUME) != 0
    negative = (runs.status & kernel.NEGATIVE_VOLUME) != 0
    stressed = rows[:, _HELD].sum(axis=1) - rows[:, _DEAD].sum(axis=1)
    esv = runs.outputs[:, kernel.OUTPUTS.index("lv_esv")]
    for row in np.flatnonzero((empty | negative) & ~runs.failed).tolist():
        text = f"smallest LV volume is {esv[row]:.4g} mL, expected at least 0"
        if empty[row]:
            text = f"stressed volume is {stressed[row]:.4g} mL, expected above 0"
        explain(row, Kind.NOT_FINITE, text)
        y[row] = np.nan
    return y


def problem(
    setup: str = "6p",
    numerics: Numerics = Numerics(),
    **constants: float,
) -> Problem:
    """Personalise the left heart and the systemic circulation.

    Patients need ``heart_rate`` (beats per minute, 30 to 200) in their data. With the setups 2p
    and 3p, whose dead volume stays at 10 mL, the model cannot reach end-diastolic volumes above
    about 520 and 550 mL.

    Parameters
    ----------
    setup : {"2p", "3p", "5p", "6p"}
        How many parameters and objectives, in the order of the paper's tables.
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
        If the setup or a constant is unknown.
    """
    n = _setup(setup)
    lowest = next(p.lower for p in PARAMETERS if p.name == "lv_emax")
    if _known(constants).get("lv_emin", 0.0) >= lowest:
        raise ValueError(
            f"constant 'lv_emin' is {constants['lv_emin']:g} mmHg/mL, expected below the lower "
            f"bound {lowest:g} of lv_emax"
        )
    version = f"{VERSION}-{source_version(kernel.__file__, Path(__file__))}"
    if constants or numerics != Numerics():
        options = (numerics.time_step, numerics.tolerance, numerics.max_beats, constants)
        version += f"-{digest(*options)[:12]}"
    return Problem(
        name=f"circulation-{setup}",
        version=version,
        parameters=PARAMETERS[:n],
        objectives=OBJECTIVES[:n],
        simulate=partial(_outputs, setup=setup, numerics=numerics, constants=constants),
        features=("heart_rate",),
    )
