"""Make the synthetic cohort; run as a module, rewrite its file.

``python -m vitolab.models.glucose.generate`` writes the same file again and prints its checksum,
which `vitolab.models.glucose.frozen` compares when it loads it.

No inverse crime: the patients come from a richer model than the one that is personalised, solved by
another method. Insulin acts late, from a remote compartment (Bergman, Ider, Bowden & Cobelli 1979),
insulin sensitivity drifts over the year, every constant that personalisation holds fixed is
perturbed, and all measurements carry noise. Doses are 0.3 or 0.5 g/kg, at most 35 g.

Patients are accepted on their measurements alone, in the order in which they are drawn. A search,
least squares from many starts and then the largest misfit, says who can be solved by the model that
is personalised.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from vitolab.files import stream
from vitolab.kernels import glucose as kernel
from vitolab.models.frozen import write_frozen
from vitolab.models.glucose import model
from vitolab.problem import FloatArray, Patient, Problem

SEED = 0
N_PATIENTS, N_SCOUTING = 38, 8
# median and log-normal spread
PERSONAL = {
    "glucose_production": (864.0, 0.15),
    "insulin_sensitivity": (0.55, 0.45),
    "beta_cell_mass": (300.0, 0.4),
    "half_secretion": (20000.0, 0.25),
    "insulin_clearance": (432.0, 0.2),
    "beta_cell_loss": (0.06, 0.08),
}
FIXED = {
    "glucose_effectiveness": 0.2,
    "secretion": 0.1,
    "beta_cell_gain": 0.02,
    "glucose_toxicity": 0.02,
}
REMOTE = (0.03 * model.DAY, 0.3)  # 1/d, rate of the remote compartment, usual in humans; spread
DRIFT = 0.1  # spread of the change of log insulin sensitivity over a year
WEIGHT = (82.0, 0.18)  # kg
DOSES, MOST_GLUCOSE = (0.3, 0.5), 35.0  # g/kg, g
GLUCOSE_NOISE, INSULIN_NOISE = 0.02, 0.05  # coefficients of variation
# mg/dL and μU/mL; of people who may be given glucose
PLAUSIBLE = {
    "fasting_glucose": (65.0, 220.0),
    "fasting_insulin": (2.0, 60.0),
    "glucose_120": (50.0, 450.0),
    "year_glucose": (65.0, 350.0),
}
N_STARTS = 30
POWER = 4  # of the misfits, whose sum is near to the largest of them


def _course(row: FloatArray, remote: float, drift: float) -> FloatArray | None:
    """Glucose and insulin of the richer model at each objective; None if it has no solution."""
    r0, eg0, si, beta, sigma, alpha, k, d0, r1, r2, dose = row.tolist()

    def rates(t: float, y: FloatArray) -> list[float]:
        g, x, i, b = y
        sensitivity = si * np.exp(drift * t / model.YEAR)
        return [
            r0 - (eg0 + sensitivity * x) * g,
            remote * (i - x),
            sigma * np.exp(b) * g * g / (alpha + g * g) - k * i,
            -d0 + r1 * g - r2 * g * g,
        ]

    g, i = kernel.fasting(row)
    times = np.array([time for time, _ in model.SAMPLED])
    start = [g + dose, i, i, np.log(beta)]
    later = np.unique(times[times > 0.0])
    found = solve_ivp(rates, (0.0, model.YEAR), start, "Radau", later, rtol=1e-8, atol=1e-8)
    if not found.success:
        return None
    states = {0.0: (g, i), **dict(zip(later.tolist(), found.y[[0, 2]].T.tolist(), strict=True))}
    return np.array([states[time][state] for time, state in model.SAMPLED])


def _patient(rng: np.random.Generator) -> tuple[dict[str, float], float] | None:
    """Noisy, rounded measurements of one who is drawn, and the dose; None if implausible."""
    row = kernel.DEFAULTS.copy()
    for name, (median, spread) in PERSONAL.items():
        row[kernel.NAMES.index(name)] = median * rng.lognormal(0.0, spread)
    for name, spread in FIXED.items():
        row[kernel.NAMES.index(name)] *= rng.lognormal(0.0, spread)
    remote, drift = REMOTE[0] * rng.lognormal(0.0, REMOTE[1]), rng.normal(0.0, DRIFT)
    weight = WEIGHT[0] * rng.lognormal(0.0, WEIGHT[1])
    dose = round(float(min(rng.choice(DOSES), MOST_GLUCOSE / weight)), 3)
    noise = rng.normal(0.0, 1.0, len(model.OBJECTIVES))
    row[kernel.DOSE] = 1000.0 * dose / model.VOLUME
    y = _course(row, remote, drift)
    if y is None:
        return None
    insulin = np.array([state == 1 for _, state in model.SAMPLED])
    y *= 1.0 + np.where(insulin, INSULIN_NOISE, GLUCOSE_NOISE) * noise
    found = {
        o.name: round(float(value), 1 if is_insulin else 0)
        for o, value, is_insulin in zip(model.OBJECTIVES, y, insulin, strict=True)
    }
    kept = all(low <= found[name] <= high for name, (low, high) in PLAUSIBLE.items())
    return (found, dose) if kept else None


def is_solvable(problem: Problem, patient: Patient, seed: int = SEED) -> bool:
    """Whether a search from many starts meets all measurements of a patient.

    Parameters
    ----------
    problem : Problem
    patient : Patient
    seed : int
        Of the starts.
    """
    rng = stream("glucose search", seed, patient.name)
    z = problem.measured(patient)
    low, high = np.log(problem.lower), np.log(problem.upper)

    def misfit(u: FloatArray, power: int = 1) -> FloatArray:
        c = problem.misfit(problem.run(np.exp(u)[np.newaxis], patient).y[0], z) / problem.tolerance
        bounded: FloatArray = np.clip(np.nan_to_num(c, nan=1e3), -1e3, 1e3)
        signed: FloatArray = np.sign(bounded) * np.abs(bounded) ** power
        return signed

    starts = low + rng.random((N_STARTS, len(low))) * (high - low)
    starts[0] = np.log(problem.default)
    for start in starts:
        u = least_squares(misfit, start, bounds=(low, high)).x
        if np.abs(misfit(u)).max() >= 1.0:
            u = least_squares(misfit, u, bounds=(low, high), args=(POWER,)).x
        if np.abs(misfit(u)).max() < 1.0:
            return True
    return False


def generate(seed: int = SEED) -> list[list[str]]:
    """Rows of the cohort's file, header first.

    The same seed gives the same patients; across machines the numbers agree to rounding.
    """
    rng = stream("glucose cohort", seed)
    names = [o.name for o in model.OBJECTIVES]
    drawn: list[tuple[dict[str, float], float]] = []
    while len(drawn) < N_PATIENTS:
        found = _patient(rng)
        if found is not None:
            drawn.append(found)
    problem = model.problem()
    scouting = set(rng.permutation(N_PATIENTS)[:N_SCOUTING].tolist())
    rows = [["patient", "split", "glucose_dose", *names, "solvable"]]
    for i, (measured, dose) in enumerate(drawn):
        name = f"G{i + 1:02d}"
        patient = Patient(name, measured, {"glucose_dose": dose})
        split = "scouting" if i in scouting else "evaluation"
        solved = str(int(is_solvable(problem, patient)))
        rows.append([name, split, f"{dose:g}", *(f"{measured[n]:g}" for n in names), solved])
    return rows


def main() -> None:
    """Write the file beside this module and print its checksum."""
    rows = generate()
    found = write_frozen(Path(__file__).with_name("cohort.csv"), rows)
    print(f"cohort.csv: {len(rows) - 1} patients, SHA-256 {found}")


if __name__ == "__main__":
    main()
