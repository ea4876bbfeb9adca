"""The circulation model as a problem to personalise: forward runs, units, checks.

Paper, section "Personalization of Whole-Body Circulation Model". The model is one of the class
described there (four time-varying elastances, valves with resistance and inertance, three- and
two-element Windkessels), not a reproduction of its authors' code: all constants beside the
personalised ones are our own, see `vitolab.kernels.circulation.TABLE`. Units are those of
`vitolab.models.circulation.parameters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vitolab.failures import Kind, Reason
from vitolab.files import digest, source_version
from vitolab.kernels import circulation as kernel
from vitolab.models.circulation import inputs, parameters
from vitolab.models.circulation.inputs import known, pack, size_of
from vitolab.models.circulation.parameters import OBJECTIVES, PARAMETERS
from vitolab.problem import FloatArray, IntArray, Patient, Problem
from vitolab.running import Answers

VERSION = "1"
STABLE_TIME_STEP = 0.01  # s; the fastest mode of the domain allows 0.0109

# blood in all, and what of it stretches nothing
_HELD = [kernel.INITIAL_VOLUME, kernel.REFERENCE_VOLUME]
_DEAD = [
    kernel.LV_DEAD_VOLUME,
    kernel.RV_DEAD_VOLUME,
    kernel.LA_DEAD_VOLUME,
    kernel.RA_DEAD_VOLUME,
]
_OUTPUTS = kernel.OUTPUTS + kernel.FURTHER_OUTPUTS
_COLUMNS = np.array([_OUTPUTS.index(o.name) for o in OBJECTIVES])


@dataclass(frozen=True)
class Numerics:
    """How exactly the model is solved.

    Attributes
    ----------
    time_step : float
        Longest time step, s. An absolute time: the explicit method is unstable above 0.0109.
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
    outputs : ndarray, shape (n, 12) or (n, 20)
        In the order of `vitolab.kernels.circulation.OUTPUTS`, in 20p followed by
        ``FURTHER_OUTPUTS``: mL, mmHg, ms, mmHg/s. Failed runs too.
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


DEFAULT_NUMERICS = Numerics()


def run(
    x: ArrayLike,
    patient: Patient,
    setup: str = "6p",
    numerics: Numerics = DEFAULT_NUMERICS,
    **constants: float,
) -> Runs:
    """Forward runs with everything the kernel says about them; see `pack` for the arguments."""
    return _run(pack(x, patient, setup, constants), numerics, size_of(setup))


def _run(rows: FloatArray, numerics: Numerics, n_outputs: int = 0) -> Runs:
    """Run rows of constants; the further outputs cost another beat."""
    outputs, status, beats, start = kernel.simulate(
        rows,
        kernel.initial_states(rows),
        numerics.time_step,
        numerics.tolerance,
        numerics.max_beats,
    )
    if n_outputs > kernel.N_OUTPUTS:
        more = kernel.examine(rows, start, numerics.time_step)
        outputs = np.concatenate([outputs, more], axis=1)
    return Runs(outputs, status, beats, start)


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


@dataclass(frozen=True)
class _Outputs:
    """Objectives of a setup, NaN where the run failed or no body could do what it says."""

    setup: str
    numerics: Numerics
    constants: dict[str, float]

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model, shape (n, n_objectives)."""
        return self.answers(x, patient).y

    def answers(self, x: FloatArray, patient: Patient) -> Answers:
        """Run the model, and say which rows no body could do."""
        runs = run(x, patient, self.setup, self.numerics, **self.constants)
        rows = pack(x, patient, self.setup, self.constants)
        return answers(runs, rows, _COLUMNS[: size_of(self.setup)])


def answers(runs: Runs, rows: FloatArray, columns: Sequence[int] | IntArray) -> Answers:
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
    Answers
    """
    reasons: dict[int, Reason] = {}
    y = runs.outputs.take(np.asarray(columns), axis=1)  # row by row in memory
    y[runs.failed] = np.nan
    empty = (runs.status & kernel.NO_STRESSED_VOLUME) != 0
    negative = (runs.status & kernel.NEGATIVE_VOLUME) != 0
    stressed = rows[:, _HELD].sum(axis=1) - rows[:, _DEAD].sum(axis=1)
    esv = runs.outputs[:, kernel.OUTPUTS.index("lv_esv")]
    for row in np.flatnonzero((empty | negative) & ~runs.failed).tolist():
        text = f"smallest LV volume is {esv[row]:.4g} mL, expected at least 0"
        if empty[row]:
            text = f"stressed volume is {stressed[row]:.4g} mL, expected above 0"
        reasons[row] = Reason(Kind.NOT_FINITE, text)
        y[row] = np.nan
    return Answers(y, reasons)


def problem(
    setup: str = "6p",
    numerics: Numerics = DEFAULT_NUMERICS,
    **constants: float,
) -> Problem:
    """Personalise the circulation: left heart and systemic side, from 9p on the right heart too.

    Patients need ``heart_rate`` (beats per minute, 30 to 200) in their data. With the setups 2p
    and 3p, whose dead volume stays at 10 mL, the model cannot reach end-diastolic volumes above
    about 520 and 550 mL. In 20p the measurements leave two to four combinations of parameters
    open, see `vitolab.models.circulation.parameters`; a run costs one beat more.

    Parameters
    ----------
    setup : {"2p", "3p", "5p", "6p", "9p", "12p", "20p"}
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
    n = size_of(setup)
    lowest = next(p.lower for p in PARAMETERS if p.name == "lv_emax")
    if known(constants).get("lv_emin", 0.0) >= lowest:
        raise ValueError(
            f"constant 'lv_emin' is {constants['lv_emin']:g} mmHg/mL, expected below the lower "
            f"bound {lowest:g} of lv_emax"
        )
    # an elastance range is narrowest at this corner, the pulmonary resistance the smallest
    corner = [p.upper if p.name.endswith("emin") else p.lower for p in PARAMETERS[:n]]
    pack(np.array([corner]), Patient("corner", {}, {"heart_rate": 60}), setup, constants)
    sources = (kernel.__file__, parameters.__file__, inputs.__file__, Path(__file__))
    version = f"{VERSION}-{source_version(*sources)}"
    if constants or numerics != DEFAULT_NUMERICS:
        options = (numerics.time_step, numerics.tolerance, numerics.max_beats, constants)
        version += f"-{digest(*options)[:12]}"
    return Problem(
        name=f"circulation-{setup}",
        version=version,
        parameters=PARAMETERS[:n],
        objectives=OBJECTIVES[:n],
        simulate=_Outputs(setup, numerics, constants),
        features=("heart_rate",),
    )
