"""Fit before, forecast after: what a personalised model is worth on measurements it did not see.

Each subject is personalised to stroke volume and pressures before a fluid bolus. After it, the
initial volume alone is refitted to the new stroke volume, at the new heart rate; the model then
tells the three pressures. Two forecasts are read from it:

``model``
    the pressures of the refitted model;
``model's change``
    the pressures measured before, plus how much the model's pressures change when its own stroke
    volume changes as much as the measured one. What the fit left over cancels.

Both stand beside ``no change``, the pressures measured before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vitolab.failures import Failure
from vitolab.files import digest
from vitolab.fit import budget
from vitolab.guard import personalized
from vitolab.models.bolus import PRESSURES
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.store.tables import fit_row, table
from vitolab.uncertainty.bolus import Bolus
from vitolab.uncertainty.methods import Methods, Walks
from vitolab.validation.parts import Part, PartStore, child_seed

N_GRID = 41
N_ROUNDS = 3  # 800 mL / 40 / 20 / 20: to 0.05 mL


class Refit(NamedTuple):
    """Model with another initial volume.

    Attributes
    ----------
    volume : float
        Initial volume, mL.
    y : ndarray, shape (n_objectives,)
        Outputs there; NaN where every run failed.
    n_runs : int
    """

    volume: float
    y: FloatArray
    n_runs: int
    failures: tuple[Failure, ...] = ()


def refit_volume(problem: Problem, x: FloatArray, patient: Patient, stroke_volume: float) -> Refit:
    """Change the initial volume alone until the stroke volume is as near as it gets.

    Parameters
    ----------
    problem : Problem
        With the parameter ``initial_volume`` and the objective ``stroke_volume``.
    x : ndarray, shape (n_parameters,)
    patient : Patient
        Whose data (heart rate) the model runs with.
    stroke_volume : float
        Target, mL. Where the domain of the initial volume does not reach it, its nearer end.

    Returns
    -------
    Refit
    """
    i = [p.name for p in problem.parameters].index("initial_volume")
    j = [o.name for o in problem.objectives].index("stroke_volume")
    low, high = float(problem.lower[i]), float(problem.upper[i])
    best = Refit(float(x[i]), np.full(problem.n_objectives, np.nan), 0)
    for _ in range(N_ROUNDS):
        rows = np.tile(x, (N_GRID, 1))
        rows[:, i] = np.linspace(low, high, N_GRID)
        runs = problem.run(rows, patient)
        y = runs.y
        distance = np.where(np.isfinite(y).all(axis=1), np.abs(y[:, j] - stroke_volume), np.inf)
        k = int(np.argmin(distance))
        if np.isfinite(distance[k]):
            best = best._replace(volume=float(rows[k, i]), y=y[k])
        best = best._replace(n_runs=best.n_runs + N_GRID, failures=best.failures + runs.failures)
        low, high = float(rows[max(k - 1, 0), i]), float(rows[min(k + 1, N_GRID - 1), i])
    return best


def forecasts(
    run: PartStore,
    problem: Problem,
    subjects: Sequence[Bolus],
    *,
    methods: Methods,
    setup: str = "bolus",
    max_runs: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Personalise each subject before the bolus by each method, and forecast the pressures after.

    The personalizations table receives the personalisation before, with the columns
    ``refitted_volume``, ``refit_runs``, ``modelled_stroke_volume`` (after the refit) and, per
    pressure, ``before:``, ``after:`` (measured), ``model:`` and ``model's change:`` (forecast).

    Parameters
    ----------
    run : PartStore
        Receives one part per subject.
    problem : Problem
        `vitolab.models.bolus.problem`.
    subjects : sequence of Bolus
    methods : Methods
    setup : str
        Name in the tables.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default `vitolab.validation.budget`.
    seed, n_jobs : int
    cache : Path, optional
        Folder of the walk cache.

    Raises
    ------
    ValueError
        If a measurement is missing, or no forward run is allowed.
    """
    work = {
        digest("forecast", setup, problem.version, subject.before.name, _known(subject), seed): (
            subject,
        )
        for subject in subjects
    }
    fold = partial(
        _fold,
        setup=setup,
        problem=problem,
        methods=methods,
        max_runs=budget(problem, max_runs),
        seed=seed,
    )
    methods.work_through(run, setup, "forecast", problem, work, fold, seed, n_jobs, cache)


def _known(subject: Bolus) -> list[Any]:
    """All that is known of a subject, as plain data."""
    return [[dict(p.measurements), dict(p.data)] for p in (subject.before, subject.after)]


def _fold(
    walks: Walks,
    subject: Bolus,
    *,
    setup: str,
    problem: Problem,
    methods: Methods,
    max_runs: int,
    seed: int,
) -> Part:
    """Personalise before, refit, forecast."""
    before, after = subject.before, subject.after
    rows, failures = [], list[Failure]()
    for method, agent in methods.personalizers(problem, walks, before, seed).items():
        own_seed = child_seed(seed, "forecast")
        fit = personalized(problem, agent, before, max_runs=max_runs, seed=own_seed)[0]
        label = methods.label(setup, before, method, seed)
        row, further = _forecast(problem, fit.x, fit.y, before, after)
        rows.append(label | fit_row(problem, fit) | row)
        failures += [*fit.failures, *further]
    return Part(table(rows), None, failures)


def _forecast(
    problem: Problem, x: FloatArray, y: FloatArray, before: Patient, after: Patient
) -> tuple[dict[str, float], tuple[Failure, ...]]:
    """Columns of the forecasts from a fit, parameters x with outputs y, and failed refits."""
    z, z_after = problem.measured(before), problem.measured(after)
    names = [o.name for o in problem.objectives]
    j = names.index("stroke_volume")
    refit = refit_volume(problem, x, after, float(z_after[j]))
    # as if the measured change had happened to the model as it is
    shifted = refit_volume(problem, x, after, float(y[j] + z_after[j] - z[j]))
    row = {
        "refitted_volume": refit.volume,
        "refit_runs": float(refit.n_runs + shifted.n_runs),
        "modelled_stroke_volume": float(refit.y[j]),
    }
    for name in PRESSURES:
        i = names.index(name)
        row |= {
            f"before:{name}": float(z[i]),
            f"after:{name}": float(z_after[i]),
            f"model:{name}": float(refit.y[i]),
            f"model's change:{name}": float(z[i] + shifted.y[i] - y[i]),
        }
    return row, refit.failures + shifted.failures
