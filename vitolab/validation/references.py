"""Methods that do not learn, each from several starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from vitolab.files import digest
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference import (
    BobyqaCascade,
    BobyqaSimple,
    LeastSquares,
    NelderMead,
    StartOnly,
    random_start,
)
from vitolab.tables import fit_row, joined_traces, table, trace_columns
from vitolab.trajectories import Personalizer
from vitolab.validation.parts import Part, PartStore, budget, child_seed, given, work_through

REFERENCES: dict[str, Callable[[Problem], Personalizer]] = {
    "nelder-mead": NelderMead,
    "nelder-mead-unweighted": lambda problem: NelderMead(problem, weighted=False),
    "nelder-mead-wide": lambda problem: NelderMead(problem, width=0.1),
    "least-squares": LeastSquares,
    "least-squares-multistart": lambda problem: LeastSquares(problem, multistart=True),
    "bobyqa-simple": BobyqaSimple,
    "bobyqa-cascade": BobyqaCascade,
    "bobyqa-cascade-stable": lambda problem: BobyqaCascade(problem, until_stable=True),
}
# the stages of a cascade name parameters of electrophysiology
FOR_ANY_PROBLEM = tuple(name for name in REFERENCES if "cascade" not in name)


def _label(setup: str, patient: Patient, method: str, start: int, seed: int) -> dict[str, Any]:
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
    methods: Sequence[str] = FOR_ANY_PROBLEM,
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
    methods : sequence of str
        Names in `REFERENCES`.
    n_starts : int
        Random starts; start k is the same point for every method and patient.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default `budget`.
    seed, n_jobs : int
    """
    if n_starts < 1:
        raise ValueError(f"n_starts is {n_starts}, expected at least 1")
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
        runs = budget(problem) if max_runs is None else max_runs

        def fold(
            key: str,
            work: Mapping[str, tuple[str, Patient]] = work,
            setup: str = setup,
            problem: Problem = problem,
            runs: int = runs,
        ) -> Part:
            method, patient = work[key]
            rows, traces = [], []
            for start in range(n_starts):
                label = _label(setup, patient, method, start, seed)
                fit = REFERENCES[method](problem).personalize(
                    patient, max_runs=runs, seed=child_seed(seed, "start", start)
                )
                rows.append(label | {"n_states_used": None} | fit_row(problem, fit))
                if start == 0:
                    traces.append(trace_columns(problem, fit, label))
            return table(rows), joined_traces(traces)

        missing = [key for key in work if not run.has_part(key)]
        # short steps of plain Python between the runs, which threads would take in turns
        stage = f"{setup}, reference methods"
        work_through(run, stage, missing, fold, n_jobs, len(work), prefer="processes")


def fixed_errors(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    starts: FloatArray,
    *,
    seed: int = 0,
    n_jobs: int = 1,
) -> None:
    """Run each patient's model once at each of the given starts, as method ``fixed``.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
    starts : ndarray, shape (n_starts, n_parameters)
        For all problems; see `reference_starts`.
    seed, n_jobs : int
        The seed is recorded, nothing is drawn.
    """
    for setup, problem in problems.items():
        work = {
            digest("fixed", setup, problem.version, starts, patient.name, seed): patient
            for patient in patients
        }

        def fold(
            key: str,
            work: Mapping[str, Patient] = work,
            setup: str = setup,
            problem: Problem = problem,
            starts: FloatArray = starts,
        ) -> Part:
            patient = work[key]
            rows = []
            for start, fit in enumerate(StartOnly(problem).personalize_from(patient, starts)):
                label = _label(setup, patient, "fixed", start, seed)
                rows.append(label | {"n_states_used": None} | fit_row(problem, fit))
            return table(rows), None

        missing = [key for key in work if not run.has_part(key)]
        work_through(run, f"{setup}, fixed starts", missing, fold, n_jobs, len(work))
