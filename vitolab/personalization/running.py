"""Personalise the patients of a user's file, and store what came out as a run.

One agent learns from training patients and personalises every patient of the file. A patient
who is among the training patients is personalised by an agent that learned from the others
only (leave-one-out), so that a file may serve as its own training set.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from vitolab.files import atomic, digest, is_stream
from vitolab.methods import (
    AGENTS,
    PAPER,
    POLICY,
    by_training,
    find,
    is_agent,
    references,
)
from vitolab.patients import InputError, PatientTable
from vitolab.personalization.folds import Learned, fold, kind_of, measured_objectives, refer
from vitolab.personalization.outcomes import fit_table
from vitolab.personalization.overlap import training_overlap
from vitolab.problem import Patient, Problem
from vitolab.store import Run, open_run
from vitolab.store.claims import RunFailed
from vitolab.store.tables import patient_table
from vitolab.validation import budget, child_seed, policy_arrays, recorded_walks
from vitolab.validation.parts import work_through

#: Transitions explored per training patient by default, of long walks and of walks of one step.
N_SAMPLES, N_SAMPLES_SHORT = 2_000, 100


def personalize_file(
    problem: Problem,
    table: PatientTable,
    *,
    setup: str,
    train_on: Sequence[Patient],
    trained_on: str = "patients",
    n_states: int,
    n_samples: int | None = None,
    max_runs: int | None = None,
    methods: Sequence[str] = (PAPER,),
    seed: int = 0,
    n_jobs: int = 1,
    results_root: Path | str = "results",
    out: Path | str | None = None,
    again: bool = False,
) -> pd.DataFrame:
    """Train on some patients, personalise those of a file, store the run, tabulate the outcome.

    What comes out for a patient depends neither on the other patients of the file nor on their
    order, unless they are the training patients. A call that was interrupted goes on where it
    was; one that is complete is read again.

    Parameters
    ----------
    problem : Problem
    table : PatientTable
        As read by `vitolab.patients.read_patients`.
    setup : str
        Name of the setup in the stored tables, such as ``6p``.
    train_on : sequence of Patient
        Training patients, each with a name of its own. A patient of the file is left out of the
        own training wherever the name, or data and measurements, are the same.
    trained_on : str
        What the training patients are called in the outcome, such as ``synthetic patients``.
    n_states : int
        Number of states; where fewer distinct misfits were observed, the smaller number is used
        and recorded.
    n_samples : int, optional
        Transitions explored per training patient: of long walks, for agents without states of
        walks of one step, which take two forward runs each; by default `N_SAMPLES`, and
        `N_SAMPLES_SHORT` where all agents learn from walks of one step.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default the paper's 50 per parameter.
    methods : sequence of str
        Names of agents and reference methods, see `vitolab.methods`; each reference starts once,
        uniformly in Ω.
    seed, n_jobs : int
    results_root : Path or str
        Folder of runs and of the walk cache; the run is stored as study ``personalize``.
    out : Path or str, optional
        CSV file to write, whole or not at all; see `fit_table`.
    again : bool
        Recompute a finished run.

    Returns
    -------
    DataFrame
        See `fit_table`.

    Raises
    ------
    InputError
        If no patient of the file can be personalised, `out` is a directory, or nobody is left
        to train on.
    ValueError
        If a method is not known, or two training patients share a name.
    RunFailed
        If the run, which is stored, failed.
    """
    # at once: a model may leave the folder meanwhile
    out = None if out is None else Path(out).absolute()
    results_root = Path(results_root).absolute()
    if out is not None and out.exists() and out.samefile(table.path):
        raise InputError(f"{out}: found the patients' own file, expected another name to write to")
    if out is not None and out.is_dir():
        raise InputError(f"{out}: found a directory, expected a name for the CSV file to write")
    if out is not None and _is_stream(out):
        if not os.access(out, os.W_OK):
            raise InputError(f"{out}: it cannot be written to, expected one that can be")
    elif out is not None and not (out.parent.is_dir() and os.access(out.parent, os.W_OK)):
        raise InputError(f"{out}: expected a name in a folder that exists and can be written to")
    if not table.patients:
        raise InputError(
            f"{table.path}: every patient lacks what the model needs, expected one who does not"
        )
    for method in methods:
        find(method, (*AGENTS, *references(problem)))
    names = [patient.name for patient in train_on]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"training patient {name!r} occurs twice, expected once")
    # by name, so that the order of a training file makes no difference
    train_on = sorted(train_on, key=lambda patient: patient.name)
    # who lacks a measurement is personalised on the others, and nobody learns from them
    train_on = [p for p in train_on if len(measured_objectives(problem, p)) == problem.n_objectives]
    left_out = {p.name: training_overlap(problem.observed(p), p, train_on) for p in table.patients}
    learning = [method for method in methods if is_agent(method)]
    trainings = by_training(learning) if learning else {}
    if n_samples is None:
        short = trainings and all(trained.episode == 1 for trained in trainings)
        n_samples = N_SAMPLES_SHORT if short else N_SAMPLES
    for patient in table.patients:
        if learning and len(left_out[patient.name]) == len(train_on):
            raise InputError(
                f"{table.path}, patient '{patient.name}': none of the {len(train_on)} training "
                "patients is somebody else with all measurements, expected at least one"
            )
    max_runs = budget(problem) if max_runs is None else max_runs

    run = open_run(
        "personalize",
        {
            "setup": setup,
            "problem": problem.name,
            "problem_key": digest(problem.describe()),
            "patients": table.path.name,
            "patients_key": _key(table.patients),
            "training_key": _key(train_on) if learning else "",
            "n_training": len(train_on) if learning else 0,
            "trained_on": trained_on if learning else "",
            "methods": list(methods),
            "n_states": n_states,
            "n_samples": n_samples,
            "max_runs": max_runs,
        },
        results=results_root,
        seed=seed,
        again=again,
    )
    if run.state == "complete":
        stored = Run.load(run.path)
    else:
        try:
            label = {"setup": setup, "repeat": None, "start": None, "seed": seed}
            refer(
                run,
                problem,
                table.patients,
                [method for method in methods if not is_agent(method)],
                label | {"n_states": None, "n_samples": None},
                max_runs,
                n_jobs,
            )
            arrays = None
            child = child_seed(seed, "repeat", 0)  # the studies', so that walks are shared
            cache = Path(results_root)
            groups = {
                p.name: (left_out[p.name], measured_objectives(problem, p)) for p in table.patients
            }
            for trained, acting in trainings.items():
                work_through(
                    run,
                    "learning and personalising",
                    {digest(kind_of(acting), p.name): (p, groups[p.name]) for p in table.patients},
                    partial(
                        fold,
                        problem=problem,
                        learned=Learned(
                            problem,
                            acting,
                            n_states,
                            child,
                            [
                                g
                                for name, g in groups.items()
                                if not run.has_part(digest(kind_of(acting), name))
                            ],
                        ),
                        label=label
                        | {
                            "n_states": n_states if trained.has_states else None,
                            "n_samples": n_samples,
                        },
                        trained_on=trained_on,
                        max_runs=max_runs,
                        seed=seed,
                    ),
                    n_jobs,
                    walks=partial(
                        recorded_walks,
                        run,
                        setup,
                        problem,
                        train_on,
                        n_samples,
                        child,
                        n_jobs,
                        cache,
                        trained.episode,
                    ),
                )
            if POLICY in trainings:
                arrays = policy_arrays(
                    {setup: problem},
                    train_on,
                    n_states={setup: n_states},
                    n_samples={setup: n_samples},
                    seed=seed,
                    n_jobs=n_jobs,
                    cache=cache,
                )
            measured = patient_table({setup: problem}, table.patients)
            stored = run.finish(problems={setup: problem}, patients=measured, arrays=arrays)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            run.close("failed", reason)
            raise RunFailed(f"the run failed: {reason}; see {run.path}") from error
        except BaseException:  # stopped by the user: the next call goes on from here
            run.release()
            raise
    fitted = fit_table(problem, table, stored.personalizations, methods, stored.failures)
    if out is not None:
        with atomic(out) as temporary:
            fitted.to_csv(temporary, index=False, float_format="%.8g", encoding="utf-8")
    return fitted


def _key(patients: Sequence[Patient]) -> str:
    """Key of what is known of some patients, whatever their order."""
    known = sorted((p.name, digest(p.measurements, p.data)) for p in patients)
    return digest(*known)


def _is_stream(out: Path) -> bool:
    """Whether a table is written to a device or a FIFO; what is neither these nor a file is bad."""
    try:
        return is_stream(out)
    except ValueError as error:
        raise InputError(str(error)) from None
