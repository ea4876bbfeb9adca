"""Make the synthetic bolus measurements; run as a module, rewrite the file.

``python -m vitolab.models.bolus.generate`` writes the same file again and prints its checksum.

As the heart-failure cohort they come from the richer model of
`vitolab.models.circulation.generate`, not from the one that is personalised; the personal
parameters are those of people without heart failure, and no valve leaks. The bolus adds 50 to
350 mL of blood that stays in the vessels; systemic resistance, contractility and heart rate answer
at random, by 8, 5 and 3 %, which no personalisation before the bolus can know. Noise: 3 % of the
stroke volume, 2 mmHg of each pressure, 1 mmHg of the central venous pressure. The columns are those
of a published table of surgical patients; nothing but the form and the plausible ranges is taken
from it, and no error of a forecast here says anything about real patients.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitolab.files import stream
from vitolab.kernels import circulation as kernel
from vitolab.models.circulation import generate as circulation
from vitolab.models.circulation.parameters import CONSTANTS
from vitolab.models.frozen import write_frozen
from vitolab.problem import FloatArray

SEED = 0
N_SUBJECTS = 24
NUMERICS = circulation.NUMERICS
# mean or median, spread, and whether the distribution is log-normal
PERSONAL = {
    "initial_volume": (420.0, 70.0, False),
    "lv_emax": (2.2, 0.3, True),
    "aortic_resistance": (1050.0, 0.25, True),
    "aortic_compliance": (1.2, 0.3, True),
    "lv_dead_volume": (10.0, 8.0, False),
    "time_to_emax": (300.0, 30.0, False),
}
HEART_RATE = (68.0, 13.0, 45.0, 100.0)  # mean, spread, lowest, highest
BOLUS = (50.0, 350.0)  # mL
ANSWER = {"aortic_resistance": 0.08, "lv_emax": 0.05}  # log-normal spread of the change
RATE_ANSWER = 0.03
VOLUME_NOISE, PRESSURE_NOISE, VENOUS_NOISE = 0.03, 2.0, 1.0
PLAUSIBLE = {"SV": (30.0, 130.0), "MAP": (50.0, 110.0), "SAP": (70.0, 170.0), "CVP": (0.0, 20.0)}
QUANTITIES = ("SV_mL", "SVI_mL_m2", "CI_L_min_m2", "MAP_mmHg", "SAP_mmHg", "DAP_mmHg", "CVP_mmHg")


def _subject(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Constants of the kernel before and after the bolus."""
    row = circulation.draw(rng, 1, tail=False)[0][0]
    for parameter, (centre, spread, is_ratio) in PERSONAL.items():
        name, factor = CONSTANTS[parameter]
        value = rng.lognormal(np.log(centre), spread) if is_ratio else rng.normal(centre, spread)
        row[kernel.NAMES.index(name)] = value * factor
    mean, spread, lowest, highest = HEART_RATE
    row[kernel.HEART_PERIOD] = 60.0 / np.clip(rng.normal(mean, spread), lowest, highest)
    row[kernel.MITRAL_LEAK] = 0.0
    after = row.copy()
    after[kernel.INITIAL_VOLUME] += rng.uniform(*BOLUS)
    after[kernel.HEART_PERIOD] *= rng.lognormal(0.0, RATE_ANSWER)
    for parameter, spread in ANSWER.items():
        after[kernel.NAMES.index(CONSTANTS[parameter][0])] *= rng.lognormal(0.0, spread)
    return row, after


def _measure(rng: np.random.Generator, row: FloatArray) -> dict[str, float] | None:
    """Noisy measurements of one examination; None where the run fails."""
    rows = row[np.newaxis]
    outputs, status, _, start = kernel.simulate(
        rows,
        kernel.initial_states(rows),
        NUMERICS.time_step,
        NUMERICS.tolerance,
        NUMERICS.max_beats,
    )
    if status[0] & (kernel.NOT_CONVERGED | kernel.NON_FINITE):
        return None
    y = dict(zip(kernel.OUTPUTS, outputs[0].tolist(), strict=True))
    beat = kernel.beat(row, start[0], NUMERICS.time_step)[2]
    time, pressure = beat[:, 0], beat[:, kernel.CURVES.index("ra_pressure")]
    venous = float(np.trapezoid(pressure, time) / (time[-1] - time[0]))
    noise = rng.normal(0.0, 1.0, 5)
    return {
        "SV": (y["lv_edv"] - y["lv_esv"]) * (1.0 + VOLUME_NOISE * noise[0]),
        "MAP": y["aortic_mean"] + PRESSURE_NOISE * noise[1],
        "SAP": y["aortic_systolic"] + PRESSURE_NOISE * noise[2],
        "DAP": y["aortic_diastolic"] + PRESSURE_NOISE * noise[3],
        "CVP": venous + VENOUS_NOISE * noise[4],
        "rate": 60.0 / row[kernel.HEART_PERIOD],
    }


def _is_plausible(found: dict[str, float]) -> bool:
    """Whether measurements could be those of a patient during surgery."""
    return (
        all(low <= found[name] <= high for name, (low, high) in PLAUSIBLE.items())
        and found["DAP"] < found["MAP"] - 4.0
        and found["MAP"] < found["SAP"] - 5.0
    )


def _cells(found: dict[str, float], area: float) -> list[str]:
    """Columns of one examination, rounded as monitors round."""
    index = found["SV"] / area
    values = (found["SV"], index, index * found["rate"] / 1000.0)
    pressures = (found[name] for name in ("MAP", "SAP", "DAP", "CVP"))
    return [f"{v:.1f}" for v in values] + [f"{v:.0f}" for v in pressures]


def generate(seed: int = SEED) -> list[list[str]]:
    """Rows of the file, header first.

    The same seed gives the same subjects; across machines the numbers agree to rounding.
    """
    header = ["subject", *(f"{q}_{when}" for when in ("pre", "post") for q in QUANTITIES)]
    rows = [[*header, "HR_protocol_mean_bpm", "HR_from_CI_SVI_pre_bpm", "HR_from_CI_SVI_post_bpm"]]
    rng = stream("bolus subjects", seed)
    while len(rows) <= N_SUBJECTS:
        constants = _subject(rng)
        area = float(np.clip(rng.normal(1.9, 0.2), 1.4, 2.5))  # m², body surface
        before, after = (_measure(rng, row) for row in constants)
        if before is None or after is None or not (_is_plausible(before) and _is_plausible(after)):
            continue
        rates = (before["rate"], after["rate"])
        beats = [f"{sum(rates) / 2:.3f}", *(f"{rate:.1f}" for rate in rates)]
        rows.append([str(len(rows)), *_cells(before, area), *_cells(after, area), *beats])
    return rows


def main() -> None:
    """Write the file beside this module and print its checksum."""
    rows = generate()
    found = write_frozen(Path(__file__).with_name("synthetic.csv"), rows)
    print(f"synthetic.csv: {len(rows) - 1} subjects, SHA-256 {found}")


if __name__ == "__main__":
    main()
