"""Methods that do not learn, each from several starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from vitolab.asked import checked_count, checked_seed
from vitolab.failures import Failure
from vitolab.files import digest
from vitolab.fit import budget
from vitolab.guard import personalized
from vitolab.methods import METHODS, REFERENCES, build, find, references
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference import StartOnly, random_start
from vitolab.store.tables import fit_row, joined_traces, table, trace_columns
from vitolab.validation.parts import (
    Part,
    PartStore,
    child_seed,
    given,
    work_through,
    workers,
)


def _label(
    setup: str, patient: Patient, method: str, start: int | None, seed: int
) -> dict[str, Any]:
    """Keys of a row of a method that did not learn."""
    return {
        "setup": setup,
        "patient": patient.name,
        "method": method,
        "n_states": None,
        "n_samples": None,
        "repeat": None,
        "start": start,
        "seed": seed,
    }


def reference_starts(problem: Problem, n_starts: int, seed: int = 0) -> FloatArray:
    """Random starts of `reference_runs`, shape (n_starts, n_parameters)."""
    return np.array(
        [random_start(problem, child_seed(seed, "start", start)) for start in range(n_starts)]
    )


def reference_runs(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    methods: Sequence[str] | None = None,
    n_starts: int = 10,
    max_runs: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> None:
    """Personalise each patient by reference methods from several random starts.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup, method and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
    methods : sequence of str, optional
        Names of reference methods, see `vitolab.methods`; by default all that any problem can
        take.
    n_starts : int
        Random starts; start k is the same point for every method and patient. Methods with
        nothing random about them have one.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default `budget`.
    seed, n_jobs : int

    Raises
    ------
    ValueError
        If a method is unknown, or no start is asked for.
    """
    n_starts, seed = checked_count("n_starts", n_starts), checked_seed(seed)
    methods = references() if methods is None else methods
    for method in methods:
        find(method, REFERENCES)
    for setup, problem in problems.items():
        work = {
            digest(
                "reference",
                *given(max_runs),
                setup,
                problem.version,
                method,
                n_starts,
                p.name,
                seed,
            ): (method, p)
            for method, p in product(methods, patients)
        }
        fold = partial(
            _reference_fold,
            setup=setup,
            problem=problem,
            n_starts=n_starts,
            max_runs=budget(problem, max_runs),
            seed=seed,
        )
        # short steps of plain Python between the runs, which threads would take in turns
        work_through(
            run, f"{setup}, reference methods", work, fold, n_jobs, prefer=workers(problem)
        )


def _reference_fold(
    method: str,
    patient: Patient,
    *,
    setup: str,
    problem: Problem,
    n_starts: int,
    max_runs: int,
    seed: int,
) -> Part:
    """Personalise the patient by one method from each start; the first is traced."""
    rows, traces, failures = [], [], list[Failure]()
    observed = problem.observed(patient)
    for start in range(1 if METHODS[method].one_start else n_starts):
        label = _label(setup, patient, method, start, seed)
        fit = personalized(
            observed,
            build(method, observed),
            patient,
            max_runs=max_runs,
            seed=child_seed(seed, "start", start),
        )[0]
        failures += fit.failures
        more = {"n_states_used": None, "max_runs": max_runs}
        rows.append(label | more | fit_row(problem, fit, observed))
        if start == 0:
            traces.append(trace_columns(problem, fit, label, observed))
    return Part(table(rows), joined_traces(traces), failures)


def fixed_errors(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    starts: Mapping[str, FloatArray],
    *,
    seed: int = 0,
    n_jobs: int = 1,
) -> None:
    """Run each patient's model once at each of the given points.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
    starts : mapping of method name to ndarray, shape (n_parameters,)
        For all problems and patients; the row of each is recorded under its method name.
    seed, n_jobs : int
        The seed is recorded, nothing is drawn.

    Raises
    ------
    ValueError
        If a point has another shape.
    """
    for setup, problem in problems.items():
        for method, start in starts.items():
            if np.shape(start) != (problem.n_parameters,):
                raise ValueError(
                    f"start {method!r} has shape {np.shape(start)}, expected "
                    f"({problem.n_parameters},), the number of parameters of {setup}"
                )
        work = {
            digest("fixed", setup, problem.version, starts, patient.name, seed): (patient,)
            for patient in patients
        }
        fold = partial(_fixed_fold, setup=setup, problem=problem, starts=starts, seed=seed)
        work_through(run, f"{setup}, fixed starts", work, fold, n_jobs)


def _fixed_fold(
    patient: Patient,
    *,
    setup: str,
    problem: Problem,
    starts: Mapping[str, FloatArray],
    seed: int,
) -> Part:
    """Run the patient's model at each point."""
    observed = problem.observed(patient)
    fits = StartOnly(observed).personalize_from(patient, np.array(list(starts.values())))
    more = {"n_states_used": None, "max_runs": 1}
    rows = [
        _label(setup, patient, method, None, seed) | more | fit_row(problem, fit, observed)
        for method, fit in zip(starts, fits, strict=True)
    ]
    return Part(table(rows), None, [failure for fit in fits for failure in fit.failures])
