"""What the errors of the measurements do to the answer of each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from vitolab.asked import checked_seed
from vitolab.failures import Failure
from vitolab.files import digest, stream
from vitolab.fit import budget
from vitolab.guard import personalized
from vitolab.problem import Patient, Problem
from vitolab.store.tables import fit_row, table
from vitolab.uncertainty.methods import Methods, Walks
from vitolab.uncertainty.posterior import deviations
from vitolab.validation.parts import Part, PartStore, child_seed


def perturbed(
    problem: Problem, patient: Patient, deviation: Mapping[str, float], n: int, seed: int = 0
) -> list[Patient]:
    """Measure a patient again and again, each time with new Gaussian errors.

    Parameters
    ----------
    problem : Problem
    patient : Patient
    deviation : mapping of str to float
        Standard deviation of the error of each measurement.
    n : int
    seed : int

    Returns
    -------
    list of Patient
        Of the same name and data; measurements that the problem does not use are kept.

    Raises
    ------
    ValueError
        If a deviation is missing or not positive.
    """
    error, seed = deviations(problem, deviation), checked_seed(seed)
    z = problem.measured(patient)
    again = []
    for k in range(n):
        rng = stream("perturbed", seed, patient.name, k)
        noisy = z + rng.normal(0.0, 1.0, len(z)) * error
        measured = {o.name: float(v) for o, v in zip(problem.objectives, noisy, strict=True)}
        again.append(replace(patient, measurements={**patient.measurements, **measured}))
    return again


def stability(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    deviation: Mapping[str, float],
    methods: Methods,
    n_perturbations: int = 20,
    max_runs: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Personalise each patient again and again with perturbed measurements, by every method.

    Every method sees the same perturbed measurements. Optimisers start at the same parameters
    each time; an agent chooses its start by what was measured, so that its answers spread by the
    choice of the start too, as they would for its user. Agents learned without the patient, once.
    Success is counted against the perturbed measurements. In the personalizations table the
    perturbation is the ``repeat``.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
    deviation : mapping of str to float
        Standard deviation of the error of each measurement.
    methods : Methods
    n_perturbations : int
    max_runs : int, optional
        Forward runs allowed per personalisation; by default `vitolab.validation.budget`.
    seed, n_jobs : int
    cache : Path, optional
        Folder of the walk cache.

    Raises
    ------
    ValueError
        If fewer than two perturbations are asked for, or a deviation is missing or not positive.
    """
    if n_perturbations < 2:
        raise ValueError(f"n_perturbations is {n_perturbations}, expected at least 2")
    for setup, problem in problems.items():
        deviations(problem, deviation)
        work = {
            digest("stability", setup, problem.version, patient.name, seed): (patient,)
            for patient in patients
        }
        fold = partial(
            _fold,
            setup=setup,
            problem=problem,
            deviation=deviation,
            methods=methods,
            n_perturbations=n_perturbations,
            max_runs=budget(problem, max_runs),
            seed=seed,
        )
        methods.work_through(run, setup, "stability", problem, work, fold, seed, n_jobs, cache)


def _fold(
    walks: Walks,
    patient: Patient,
    *,
    setup: str,
    problem: Problem,
    deviation: Mapping[str, float],
    methods: Methods,
    n_perturbations: int,
    max_runs: int,
    seed: int,
) -> Part:
    """Learn once, then personalise with each set of perturbed measurements."""
    rows, failures = [], list[Failure]()
    again = perturbed(problem, patient, deviation, n_perturbations, seed)
    own_seed = child_seed(seed, "stability")
    for method, agent in methods.personalizers(problem, walks, patient, seed).items():
        for k, other in enumerate(again):
            fit = personalized(problem, agent, other, max_runs=max_runs, seed=own_seed)[0]
            failures += fit.failures
            label = methods.label(setup, patient, method, seed, repeat=k)
            rows.append(label | fit_row(problem, fit))
    return Part(table(rows), None, failures)
