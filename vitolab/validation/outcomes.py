"""The part of one patient: what methods found, as rows of the stored tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vitolab.failures import Failure
from vitolab.fit import Personalizer
from vitolab.guard import personalized
from vitolab.methods import n_states_used
from vitolab.problem import Patient, Problem
from vitolab.running import Runs
from vitolab.store.tables import fit_row, joined_traces, table, trace_columns
from vitolab.validation.parts import Part


def patient_part(
    problem: Problem,
    patient: Patient,
    personalizers: Mapping[str, Personalizer],
    label: Mapping[str, Any],
    training: str,
    max_runs: int,
    seed: int,
    n_training_runs: int | None = None,
    further: Mapping[str, Any] | None = None,
    watch: Callable[[Runs], None] | None = None,
) -> Part:
    """Personalizations and traces of one patient; NaN for what was not measured.

    Parameters
    ----------
    problem : Problem
    patient : Patient
    personalizers : mapping of method name to Personalizer
    label : mapping of str to value
        Keys of the stored tables but for patient and method.
    training : str
        Whom the methods learned from, in words.
    max_runs, seed : int
    n_training_runs : int, optional
    further : mapping of str to value, optional
        Further columns of the personalizations.
    watch : callable, optional
        See `vitolab.guard.personalized`.
    """
    rows, traces, failures = [], [], list[Failure]()
    observed = problem.observed(patient)
    for method, personalizer in personalizers.items():
        (fit,) = personalized(
            observed, personalizer, patient, max_runs=max_runs, seed=seed, watch=watch
        )
        failures += fit.failures
        key = {**label, "patient": patient.name, "method": method}
        more = {
            "n_states_used": n_states_used(personalizer),
            "n_training_runs": n_training_runs,
            "training": training,
            "not_measured": "",
            **(further or {}),
        }
        rows.append({**key, **more, **fit_row(problem, fit, observed)})
        traces.append(trace_columns(problem, fit, key, observed))
    return Part(table(rows), joined_traces(traces), failures)
