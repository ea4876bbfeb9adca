"""Answers with their uncertainty, patient by patient: the set of solutions and the posterior.

Patients whose true parameters are known show whether the posterior keeps its promise: a
region that holds a share α of the probability must hold the truth of a share α of the patients,
within binomial error, if they come from the prior and from the personalised model itself. On
patients of a richer model it need not, and shows how far the model is off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vitolab.asked import checked_seed
from vitolab.failures import Failure
from vitolab.files import digest, stream
from vitolab.fit import budget
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.store.tables import KEYS, Columns, fit_row, joined_traces, table
from vitolab.uncertainty.methods import Methods, Walks
from vitolab.uncertainty.posterior import LogProbability, Posterior, deviations, sample_posterior
from vitolab.uncertainty.solutions import solution_set
from vitolab.uncertainty.summary import POSTERIOR
from vitolab.validation.parts import Part, PartStore

ATTEMPTS = 1000


def simulated_patients(
    problem: Problem,
    like: Sequence[Patient],
    n: int,
    deviation: Mapping[str, float],
    seed: int = 0,
) -> tuple[list[Patient], dict[str, FloatArray]]:
    """Draw patients from the prior and the personalised model itself, with measurement errors.

    Parameters
    ----------
    problem : Problem
    like : sequence of Patient
        Whose data (heart rate, anatomy) the simulated patients have, in turns.
    n : int
    deviation : mapping of str to float
        Standard deviation of the error of each measurement.
    seed : int

    Returns
    -------
    patients : list of Patient
        ``M001`` and so on.
    truth : dict of str to ndarray, shape (n_parameters,)
        True parameters by name. Draws at which the model fails are drawn again.

    Raises
    ------
    ValueError
        If a deviation is missing or not positive, or the model fails at a thousand draws for one
        patient.
    """
    error, seed = deviations(problem, deviation), checked_seed(seed)
    patients, truth = [], {}
    for i in range(n):
        rng = stream("simulated patient", problem.name, seed, i)
        data = like[i % len(like)].data
        name = f"M{i + 1:03d}"
        for _ in range(ATTEMPTS):
            x = problem.draw(rng)
            y = problem.exact(x, Patient(name, {}, data)).y[0]
            if np.isfinite(y).all():
                break
        else:
            raise ValueError(f"patient {name!r}: the model failed at each of {ATTEMPTS} draws")
        z = y + rng.normal(0.0, error)
        measurements = {o.name: float(v) for o, v in zip(problem.objectives, z, strict=True)}
        patients.append(Patient(name, measurements, data))
        truth[name] = x[0]
    return patients, truth


def posteriors(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    deviation: Mapping[str, float],
    methods: Methods,
    truth: Mapping[str, Any] | None = None,
    n_starts: int = 50,
    max_runs: int | None = None,
    n_walkers: int = 32,
    n_steps: int = 1000,
    n_burn: int = 500,
    n_ensembles: int = 2,
    n_draws: int = 400,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Find each patient's set of solutions, and the posterior from there.

    The personalizations table receives one row per method and start; and one row of the method
    ``posterior``, the most probable draw, with the columns ``acceptance``, ``autocorrelation``
    (of the worst parameter, in steps), ``n_effective``, ``n_failed`` and, where the truth is
    known, ``level`` (see `Posterior.level`) and ``rank:<parameter>`` (`Posterior.rank`). The
    traces table receives `n_draws` draws of each posterior.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
    deviation : mapping of str to float
        Standard deviation of the error of each measurement.
    methods : Methods
        The solutions of all of them are where the walkers start.
    truth : mapping of str to array_like or mapping, optional
        True parameters by patient, in order or by name. Used after the sampling alone, to tell
        where they fall.
    n_starts, max_runs : int
        As in `solution_set`; by default 50 runs per parameter.
    n_walkers, n_steps, n_burn, n_ensembles : int
        As in `sample_posterior`.
    n_draws : int
        Draws to keep, evenly spaced.
    seed, n_jobs : int
    cache : Path, optional
        Folder of the walk cache.

    Raises
    ------
    ValueError
        If a deviation is missing or not positive, a size of the sampler is too small, no start is
        asked for, or the model fails wherever a patient's walkers start.
    """
    for setup, problem in problems.items():
        deviations(problem, deviation)
        work = {
            digest("posterior", setup, problem.version, patient.name, seed): (patient,)
            for patient in patients
        }
        fold = partial(
            _fold,
            setup=setup,
            problem=problem,
            deviation=deviation,
            methods=methods,
            truth=truth,
            n_starts=n_starts,
            max_runs=budget(problem, max_runs),
            sizes={
                "n_walkers": n_walkers,
                "n_steps": n_steps,
                "n_burn": n_burn,
                "n_ensembles": n_ensembles,
            },
            n_draws=n_draws,
            seed=seed,
        )
        methods.work_through(run, setup, "posterior", problem, work, fold, seed, n_jobs, cache)


def _fold(
    walks: Walks,
    patient: Patient,
    *,
    setup: str,
    problem: Problem,
    deviation: Mapping[str, float],
    methods: Methods,
    truth: Mapping[str, Any] | None,
    n_starts: int,
    max_runs: int,
    sizes: Mapping[str, int],
    n_draws: int,
    seed: int,
) -> Part:
    """Solutions by each method, then the posterior."""
    rows, starts, failures = [], [], list[Failure]()
    for method, agent in methods.personalizers(problem, walks, patient, seed).items():
        found = solution_set(
            problem, agent, patient, n_starts=n_starts, max_runs=max_runs, seed=seed
        )
        starts.append(found)
        failures += [failure for fit in found.fits for failure in fit.failures]
        rows += [
            methods.label(setup, patient, method, seed, start=start) | fit_row(problem, fit)
            for start, fit in enumerate(found.fits)
        ]
    found_x = np.concatenate([found.x for found in starts])
    if not len(found_x):
        found_x = np.concatenate([found.nearest for found in starts])
    posterior = sample_posterior(problem, patient, deviation, found_x, seed=seed, **sizes)
    failures += posterior.failures
    label = methods.label(setup, patient, POSTERIOR, seed)
    row = posterior_row(problem, patient, posterior)
    if truth is not None:
        target = LogProbability(problem, patient, deviation)
        row |= _placed(problem, posterior, target, truth[patient.name])
        failures += target.record.failures
    rows.append(label | row)
    trace, failed = _draws(problem, patient, posterior.thinned(n_draws), label)
    return Part(table(rows), joined_traces([trace]), [*failures, *failed])


def posterior_row(problem: Problem, patient: Patient, posterior: Posterior) -> dict[str, Any]:
    """Columns of the most probable draw, and how well the sampler did.

    A sampler neither restarts nor stops for a reason: these two are null.
    """
    best = posterior.flat[int(np.argmax(posterior.log_probability))]
    y = problem.exact(best[np.newaxis], patient).y[0]
    c = problem.misfit(y, problem.measured(patient))
    row: dict[str, Any] = {
        "solved": bool(problem.is_solved(c)),
        "n_runs": posterior.n_runs,
        "n_restarts": None,
        "stop_reason": None,
        "n_failed": posterior.n_failed,
        "acceptance": posterior.acceptance,
        "autocorrelation": float(np.max(posterior.autocorrelation)),
        "n_effective": posterior.n_effective,
        "r_hat": float(np.max(posterior.r_hat)),
    }
    names = [p.name for p in problem.parameters]
    row |= {f"width:{n}": v for n, v in zip(names, posterior.width(0.9).tolist(), strict=True)}
    row |= {f"misfit:{o.name}": v for o, v in zip(problem.objectives, c.tolist(), strict=True)}
    for what, values in (("x", best), ("last", posterior.flat[-1])):
        names = [f"{what}:{p.name}" for p in problem.parameters]
        row |= dict(zip(names, values.tolist(), strict=True))
    return row


def _placed(
    problem: Problem, posterior: Posterior, target: LogProbability, truth: Any
) -> dict[str, float]:
    """Where the true parameters fall in the posterior."""
    names = [p.name for p in problem.parameters]
    x = np.array([truth[n] for n in names] if isinstance(truth, Mapping) else truth, dtype=float)
    placed = {"level": posterior.level(float(target(x[np.newaxis])[0]))}
    ranks = posterior.rank(x).tolist()
    return placed | {f"rank:{name}": rank for name, rank in zip(names, ranks, strict=True)}


def _draws(
    problem: Problem, patient: Patient, x: FloatArray, label: Mapping[str, Any]
) -> tuple[Columns, tuple[Failure, ...]]:
    """Columns of the traces table for draws of a posterior, and failed runs of these."""
    runs = problem.exact(x, patient)
    y = runs.y
    c = problem.misfit(y, problem.measured(patient))
    columns: Columns = {name: np.full(len(x), label[name], dtype=object) for name in KEYS}
    columns |= {
        "iteration": np.arange(len(x)),
        "event": np.full(len(x), "draw", dtype=object),
        "action": np.full(len(x), -1),
        "state": np.full(len(x), -1),
    }
    columns |= {f"x:{p.name}": x[:, i] for i, p in enumerate(problem.parameters)}
    columns |= {f"y:{o.name}": y[:, i] for i, o in enumerate(problem.objectives)}
    columns |= {f"c:{o.name}": c[:, i] for i, o in enumerate(problem.objectives)}
    return columns, runs.failures
