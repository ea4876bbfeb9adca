"""Cohorts in random orders, each patient personalised by a method that knows only those before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from vitolab.asked import checked_chance, checked_count, checked_seed
from vitolab.experience import Experience
from vitolab.failures import Failure
from vitolab.files import digest, stream
from vitolab.fit import budget
from vitolab.methods import AGENTS, METHODS, Settings, find
from vitolab.problem import Patient, Problem
from vitolab.store.tables import fit_row, joined_traces, table, trace_columns
from vitolab.validation.continuing import Continuing, can_continue
from vitolab.validation.parts import Part, PartStore, child_seed, given, work_through, workers


def order_of_patients(patients: Sequence[Patient], repeat: int, seed: int = 0) -> list[Patient]:
    """Random order of a cohort: the same for every method and setup.

    Parameters
    ----------
    patients : sequence of Patient
        In whatever order: it makes no difference.
    repeat : int
        Which of the orders.
    seed : int
    """
    ordered = sorted(patients, key=lambda patient: patient.name)
    drawn = stream("order of patients", checked_seed(seed), repeat).permutation(len(ordered))
    return [ordered[i] for i in drawn]


def from_nothing(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    methods: Sequence[str],
    n_orders: int = 5,
    max_runs: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    give_up: float = 0.0,
) -> None:
    """Personalise a cohort without exploration: each patient by what those before have taught.

    The forward runs with which a method begins, while it knows none, count as all others do. In
    the personalizations table the order is the ``repeat``, and ``position`` is the patient's place
    in it, from 1. The personalisations of the first order are traced.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup, method and order.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
        Nobody learns from a patient who lacks a measurement.
    methods : sequence of str
        Those that learn from single runs, and reference methods, which learn nothing.
    n_orders : int
        Random orders, the same for every method and setup; see `order_of_patients`.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default `budget`.
    seed, n_jobs : int
    give_up : float
        See `vitolab.settings.Settings`; 0 for never, as methods without such a rule.

    Raises
    ------
    ValueError
        If a method cannot continue or needs what a problem lacks, the share is none below 1, or no
        order is asked for.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import vitolab as vl
    >>> from vitolab.store.tables import patient_table
    >>> from vitolab.validation import from_nothing
    >>> problems = {"rosenbrock": vl.models.rosenbrock.problem()}
    >>> patients = vl.models.rosenbrock.cohort(4)
    >>> with TemporaryDirectory() as results:
    ...     run = vl.store.open_run("example", {}, results=results, seed=0)
    ...     from_nothing(run, problems, patients, methods=["vito-continuous"], n_orders=2)
    ...     known = patient_table(problems, patients)
    ...     stored = run.finish(problems=problems, patients=known)
    ...     sorted(stored.personalizations["position"])
    [1, 1, 2, 2, 3, 3, 4, 4]
    """
    n_orders, seed = checked_count("n_orders", n_orders), checked_seed(seed)
    give_up = checked_chance("give_up", give_up)
    known = [name for name in METHODS if can_continue(name)]
    for setup, problem in problems.items():
        for method in methods:
            if not find(method, known).applies_to(problem):
                needed = ", ".join(METHODS[method].needs)
                raise ValueError(f"{setup}: {method} needs {needed}, expected a problem with all")
    kind = ("from nothing", *given(max_runs), *(("gives up", give_up) if give_up else ()))
    for setup, problem in problems.items():
        work: dict[str, tuple[Any, ...]] = {}
        for repeat in range(n_orders):
            ordered = order_of_patients(patients, repeat, seed)
            names = [patient.name for patient in ordered]
            for method in methods:
                key = digest(*kind, setup, problem.version, method, repeat, names, seed)
                work[key] = (method, repeat, *ordered)
        fold = partial(
            _order,
            setup=setup,
            problem=problem,
            max_runs=budget(problem, max_runs),
            seed=seed,
            settings=Settings(give_up=give_up),
        )
        work_through(run, f"{setup}, from nothing", work, fold, n_jobs, prefer=workers(problem))


def _order(
    method: str,
    repeat: int,
    *patients: Patient,
    setup: str,
    problem: Problem,
    max_runs: int,
    seed: int,
    settings: Settings,
) -> Part:
    """Personalise the patients one after the other."""
    rows, traces, failures = [], [], list[Failure]()
    child = child_seed(seed, "order", repeat)
    learner = Continuing(problem, method, Experience.none(problem), settings, child)
    after = zip(patients, learner.one_by_one(patients, max_runs=max_runs), strict=True)
    for position, (patient, (fit, taught)) in enumerate(after, start=1):
        label = {
            "setup": setup,
            "patient": patient.name,
            "method": method,
            "n_states": None,
            "n_samples": None,
            "repeat": repeat,
            "start": None,
            "seed": seed,
        }
        observed = problem.observed(patient)
        failures += fit.failures
        n_known = learner.experience.n_runs if method in AGENTS else None
        learner = taught
        own = {"position": position, "n_states_used": None, "n_training_runs": n_known}
        own |= {"max_runs": max_runs}
        rows.append(label | own | fit_row(problem, fit, observed))
        if repeat == 0:
            traces.append(trace_columns(problem, fit, label, observed))
    return Part(table(rows), joined_traces(traces), failures)
