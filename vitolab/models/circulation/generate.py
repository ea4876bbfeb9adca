"""Make the synthetic cohort; run as a module, rewrite its files.

``python -m vitolab.models.circulation.generate`` writes the same files again and prints their
checksums, which `vitolab.models.circulation.frozen` and ``truth`` compare when they load them.

No inverse crime: the patients come from a richer model than the one that is personalised. It has
a pressure loss over the aortic valve, an LV source resistance, an exponential passive LV, a
stiffening aorta and in one of three patients a leaking mitral valve; its activation has another
shape, every constant that personalisation holds fixed is perturbed, and volumes (MRI) and
pressures (catheter) are not taken at the same heart rate and filling. It is solved with other
settings, too.

Patients are accepted and picked on twelve measurements alone, and nobody is dropped later; the
eight that 20p adds were taken afterwards. Most come
from one distribution of heart failure; three from wider tails: the one with the largest
end-diastolic volume, the one with the shortest and the one with the longest ejection time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vitolab.files import stream
from vitolab.kernels import circulation as kernel
from vitolab.models.circulation.measuring import measure, measure_further
from vitolab.models.circulation.model import Numerics
from vitolab.models.circulation.parameters import CONSTANTS, PAPER_PARAMETERS
from vitolab.models.frozen import write_frozen
from vitolab.problem import BoolArray, FloatArray, IntArray

SEED = 0
NUMERICS = Numerics(time_step=2e-3, tolerance=1e-4)
N_POOL, N_TAIL_POOL, BLOCK = 1200, 200, 400
N_STRATA, N_GRID, N_SCOUTING = 36, 17, 8
N_POINTS = 60  # of a measured curve

# Measured ranges of the paper's patients, table wbc_objectives
RANGES = {
    "lv_edv": (129.0, 647.0),
    "lv_esv": (63.0, 529.0),
    "aortic_mean": (68.0, 121.0),
    "aortic_systolic": (83.0, 182.0),
    "aortic_diastolic": (48.0, 99.0),
    "ejection_time": (115.0, 514.0),
}

# Standard deviations of the noise per point of a curve: mL, mmHg
CURVE_NOISE = {"lv_volume": 2.0, "aortic_pressure": 1.0}

# Log-normal spread of the constants that personalisation holds fixed
SPREAD = {
    "lv_emin": 0.20,
    "venous_resistance": 0.25,
    "venous_compliance": 0.25,
    "pulmonary_compliance": 0.25,
    "pulmonary_venous_compliance": 0.25,
    "pulmonary_characteristic_resistance": 0.3,
    "pulmonary_resistance": 0.3,
    "pulmonary_venous_resistance": 0.3,
    "mitral_resistance": 0.3,
    "aortic_valve_resistance": 0.3,
    "tricuspid_resistance": 0.3,
    "pulmonary_valve_resistance": 0.3,
    "reference_volume": 0.1,
    "rv_time_to_emax": 0.1,
}
CHAMBER_SPREAD = 0.2  # of the passive and the active elastance of RV, LA, RA
UNIFORM = {
    "characteristic_share": (0.03, 0.10),
    "aortic_valve_loss": (0.0, 6e-5),
    "lv_source": (0.0, 1e-3),
    "lv_stiffening": (0.0, 0.004),
    "aortic_stiffening": (0.0, 0.3),
    "hill_rise": (1.2, 1.8),
    "hill_fall": (14.0, 28.0),
}
LEAK_SHARE, LEAK_RESISTANCE = 0.35, (4.0, 25.0)  # of patients; mmHg s/mL
MRI_RATE_SPREAD, MRI_VOLUME_CHANGE = 0.06, 20.0  # log-normal; mL, uniform either way


class Pool(NamedTuple):
    """Accepted patients: constants at the catheter and at MRI, last beats, measurements."""

    catheter: FloatArray
    mri: FloatArray
    start: FloatArray
    start_mri: FloatArray
    measured: FloatArray

    def rows(self, index: Sequence[int] | IntArray) -> Pool:
        """Some of the patients."""
        return Pool(*(values[np.asarray(index)] for values in self))


def _column(name: str) -> int:
    """Index of a kernel constant."""
    return kernel.NAMES.index(name)


def _personal(rng: np.random.Generator, n: int, tail: bool) -> dict[str, FloatArray]:
    """Draw the personal parameters, in the paper's units."""
    if tail:
        v0 = rng.uniform(150, 420, n)
        v_init = rng.uniform(600, 990, n)
        emax = np.exp(rng.uniform(np.log(0.25), np.log(3.5), n))
        t_max = rng.uniform(110, 590, n)
    else:
        v0 = np.clip(rng.normal(60, 70, n), -40, 350)
        v_init = rng.normal(480, 140, n) + 0.8 * np.maximum(v0 - 40, 0)
        v_init = np.clip(v_init, 210, 990)
        emax = rng.lognormal(np.log(1.0), 0.55, n)
        t_max = np.clip(rng.normal(310, 80, n), 110, 590)
    return {
        "initial_volume": v_init,
        "lv_emax": emax,
        "aortic_resistance": rng.lognormal(np.log(1250), 0.3, n),
        "aortic_compliance": rng.lognormal(np.log(1.3), 0.4, n),
        "lv_dead_volume": v0,
        "time_to_emax": t_max,
    }


def draw(rng: np.random.Generator, n: int, tail: bool) -> tuple[FloatArray, FloatArray]:
    """Draw candidates.

    Parameters
    ----------
    rng : Generator
    n : int
    tail : bool
        From the wide distribution of large, dilated hearts.

    Returns
    -------
    catheter, mri : ndarray, shape (n, N_CONSTANTS)
        Constants of the kernel at either examination.
    """
    rows = np.tile(kernel.DEFAULTS, (n, 1))
    for parameter, values in _personal(rng, n, tail).items():
        name, factor = CONSTANTS[parameter]
        rows[:, _column(name)] = values * factor
    rows[:, kernel.HEART_PERIOD] = 60.0 / np.clip(rng.normal(74, 13, n), 50, 115)
    for name, spread in SPREAD.items():
        rows[:, _column(name)] *= rng.lognormal(0.0, spread, n)
    for chamber in ("rv", "la", "ra"):
        low, high = _column(f"{chamber}_emin"), _column(f"{chamber}_emax")
        active = (rows[:, high] - rows[:, low]) * rng.lognormal(0.0, CHAMBER_SPREAD, n)
        rows[:, low] *= rng.lognormal(0.0, CHAMBER_SPREAD, n)
        rows[:, high] = rows[:, low] + active
    for name, (lower, upper) in UNIFORM.items():
        rows[:, _column(name)] = rng.uniform(lower, upper, n)
    leaks = rng.random(n) < LEAK_SHARE
    rows[:, kernel.MITRAL_LEAK] = leaks / rng.uniform(*LEAK_RESISTANCE, n)
    mri = rows.copy()
    mri[:, kernel.HEART_PERIOD] /= rng.lognormal(0.0, MRI_RATE_SPREAD, n)
    mri[:, kernel.INITIAL_VOLUME] += rng.uniform(-MRI_VOLUME_CHANGE, MRI_VOLUME_CHANGE, n)
    return rows, mri


def _solve(rows: FloatArray) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Outputs, whether the run succeeded, and start of the periodic beat."""
    outputs, status, _, start = kernel.simulate(
        rows,
        kernel.initial_states(rows),
        NUMERICS.time_step,
        NUMERICS.tolerance,
        NUMERICS.max_beats,
    )
    return outputs, (status & (kernel.NOT_CONVERGED | kernel.NON_FINITE)) == 0, start


def is_plausible(measured: FloatArray, rate: FloatArray) -> BoolArray:
    """Which measurements could be those of the paper's patients, shape (n,).

    Within the paper's ranges; pulse pressure, ejection fraction 10 to 65 %, cardiac output 2.3 to
    9.5 L/min and wedge pressure below 38 mmHg as in patients who can be examined.
    """
    values = dict(zip(kernel.OUTPUTS, measured.T, strict=True))
    kept: BoolArray = np.ones(len(measured), dtype=bool)
    for name, (low, high) in RANGES.items():
        kept &= (values[name] >= low) & (values[name] <= high)
    kept &= values["aortic_systolic"] > values["aortic_mean"] + 5.0
    kept &= values["aortic_diastolic"] < values["aortic_mean"] - 4.0
    stroke = values["lv_edv"] - values["lv_esv"]
    kept &= (stroke > 0.10 * values["lv_edv"]) & (stroke < 0.65 * values["lv_edv"])
    kept &= (stroke * rate > 2300.0) & (stroke * rate < 9500.0)
    kept &= values["la_mean"] < 38.0
    return kept


def pool(rng: np.random.Generator, n: int, tail: bool) -> Pool:
    """Accepted patients, at least n of them, block by block."""
    blocks: list[Pool] = []
    while sum(len(block.measured) for block in blocks) < n:
        catheter, mri = draw(rng, BLOCK, tail)
        out, good, start = _solve(catheter)
        out_mri, good_mri, start_mri = _solve(mri)
        measured = measure(rng, out, out_mri)
        kept = good & good_mri & is_plausible(measured, 60.0 / catheter[:, kernel.HEART_PERIOD])
        blocks.append(Pool(catheter, mri, start, start_mri, measured).rows(np.flatnonzero(kept)))
    return Pool(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def pick(rng: np.random.Generator, base: Pool, tail: Pool) -> tuple[Pool, list[str]]:
    """Pick the cohort by its measurements; say where each patient comes from, in random order."""
    edv = base.measured[:, kernel.EDV]
    strata = np.array_split(np.argsort(edv, kind="stable"), N_STRATA)
    picked = [int(rng.choice(stratum)) for stratum in strata]
    for target in np.geomspace(edv.min(), edv.max(), N_GRID):
        order = np.argsort(np.abs(np.log(edv / target)), kind="stable")
        picked.append(next(int(i) for i in order if i not in picked))
    wide = tail.measured
    extremes = [np.argmax(wide[:, kernel.EDV]), np.argmin(wide[:, kernel.ET])]
    extremes.append(np.argmax(wide[:, kernel.ET]))
    kept = [base.rows(picked), tail.rows([int(i) for i in extremes])]
    patients = Pool(*(np.concatenate(parts) for parts in zip(*kept, strict=True)))
    source = ["base"] * len(picked) + ["tail"] * len(extremes)
    order = rng.permutation(len(source))
    return patients.rows(order), [source[i] for i in order]


def _curve(
    rng: np.random.Generator, row: FloatArray, start: FloatArray, name: str, low: float, high: float
) -> FloatArray:
    """One measured curve over a beat, stretched to the measured extremes, with noise per point."""
    table = kernel.beat(row, start, NUMERICS.time_step)[2]
    phase = table[:, 0] / row[kernel.HEART_PERIOD]
    curve = table[:, kernel.CURVES.index(name)]
    curve = low + (high - low) * (curve - curve.min()) / (curve.max() - curve.min())
    points = np.interp(np.arange(N_POINTS) / N_POINTS, phase, curve)
    noisy: FloatArray = points + rng.normal(0.0, CURVE_NOISE[name], N_POINTS)
    return noisy


def generate(seed: int = SEED) -> dict[str, list[list[str]]]:
    """Rows of the cohort's files, header first, by file name.

    The same seed gives the same patients; across machines the numbers agree to rounding.
    """
    base = pool(stream("circulation cohort", "base", seed), N_POOL, tail=False)
    tail = pool(stream("circulation cohort", "tail", seed), N_TAIL_POOL, tail=True)
    rng = stream("circulation cohort", "pick", seed)
    patients, source = pick(rng, base, tail)
    names = [f"C{i + 1:02d}" for i in range(len(source))]
    scouting = set(rng.permutation(len(source))[:N_SCOUTING].tolist())

    more = measure_further(
        stream("circulation cohort", "further", seed),
        kernel.examine(patients.catheter, patients.start, NUMERICS.time_step),
        kernel.examine(patients.mri, patients.start_mri, NUMERICS.time_step),
    )
    further = [["patient", *kernel.FURTHER_OUTPUTS]]
    further.extend(
        [name, *(f"{value:.1f}" for value in z)] for name, z in zip(names, more, strict=True)
    )
    measured = [["patient", "split", "heart_rate", *kernel.OUTPUTS]]
    curves = [["patient", "phase", *CURVE_NOISE]]
    header = ["patient", "source", *(p.name for p in PAPER_PARAMETERS), "mri_heart_rate"]
    truth = [[*header, "mri_initial_volume", *(f"constant:{name}" for name in kernel.NAMES)]]
    for i, name in enumerate(names):
        row, mri, z = patients.catheter[i], patients.mri[i], patients.measured[i]
        split = "scouting" if i in scouting else "evaluation"
        rate = 60.0 / row[kernel.HEART_PERIOD]
        measured.append([name, split, f"{rate:.1f}", *(f"{value:.1f}" for value in z)])
        personal = [
            row[_column(CONSTANTS[p.name][0])] / CONSTANTS[p.name][1] for p in PAPER_PARAMETERS
        ]
        others = [60.0 / mri[kernel.HEART_PERIOD], mri[kernel.INITIAL_VOLUME], *row]
        truth.append([name, source[i], *(f"{value:.6g}" for value in [*personal, *others])])
        volume = _curve(rng, mri, patients.start_mri[i], "lv_volume", z[kernel.ESV], z[kernel.EDV])
        pressure = _curve(
            rng, row, patients.start[i], "aortic_pressure", z[kernel.EDAP], z[kernel.PSAP]
        )
        curves.extend(
            [name, f"{j / N_POINTS:.4f}", f"{volume[j]:.1f}", f"{pressure[j]:.1f}"]
            for j in range(N_POINTS)
        )
    return {
        "cohort.csv": measured,
        "cohort_further.csv": further,
        "cohort_curves.csv": curves,
        "truth.csv": truth,
    }


def main() -> None:
    """Write the files beside this module and print their checksums."""
    for name, rows in generate().items():
        found = write_frozen(Path(__file__).with_name(name), rows)
        print(f"{name}: {len(rows) - 1} rows, SHA-256 {found}")


if __name__ == "__main__":
    main()
