"""Personalise the patients of a user's file, and store what came out as a run.

One agent learns from training patients and personalises every patient of the file. A patient
who is among the training patients is personalised by an agent that learned from the others
only (leave-one-out), so that a file may serve as its own training set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from vitolab.files import atomic, digest, is_stream
from vitolab.methods import (
    AGENTS,
    CONTINUOUS_AGENT,
    PAPER,
    Settings,
    by_training,
    find,
    is_agent,
    references,
)
from vitolab.patients import InputError, PatientTable
from vitolab.personalization.folds import (
    explore_and_personalise,
    measured_objectives,
    walks_of,
)
from vitolab.personalization.order import Order
from vitolab.personalization.outcomes import FLOAT_FORMAT, fit_table
from vitolab.personalization.overlap import training_overlap
from vitolab.problem import Patient, Problem
from vitolab.settings import GIVE_UP
from vitolab.store import Run, open_run
from vitolab.store.claims import RunFailed
from vitolab.store.tables import patient_table
from vitolab.validation import budget

STUDY = "personalize"
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
    methods: Sequence[str] | None = None,
    learn_as_you_go: bool = False,
    agent: Path | str | None = None,
    total_runs: int | None = None,
    give_up: float | None = None,
    at_a_time: int = 1,
    seed: int = 0,
    n_jobs: int = 1,
    results_root: Path | str = "results",
    out: Path | str | None = None,
    again: bool = False,
    begins: Callable[[Path], None] | None = None,
) -> pd.DataFrame:
    """Train on some patients, personalise those of a file, store the run, tabulate the outcome.

    What comes out for a patient depends neither on the other patients of the file nor on their
    order, unless they are the training patients. A call that was interrupted goes on where it
    was; one that is complete is read again.

    With ``learn_as_you_go`` nothing is explored, and each patient makes the next one cheaper: in
    the order of the file, which is stored, each is personalised by a method that learned from
    those before. The same call with a larger total goes on where the smaller one ended.

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
        `N_SAMPLES_SHORT` where all agents learn from walks of one step. With ``learn_as_you_go``
        training patients are explored only if it is given.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default the paper's 50 per parameter.
    methods : sequence of str
        Names of agents and reference methods, see `vitolab.methods`; each reference starts once,
        uniformly in Ω. By default the paper's agent; with ``learn_as_you_go`` it is one method
        without states, by default ``vito-continuous``.
    learn_as_you_go : bool
    agent : Path or str, optional
        Folder of an agent, which is loaded if it exists, learns from the patients as well, and is
        saved there in the end; for ``vito-continuous`` with ``learn_as_you_go``. Of a patient whose
        name it knows it leaves out the runs, as long as it is that patient's turn.
    total_runs : int, optional
        Forward runs allowed for the whole file with ``learn_as_you_go``, see
        `vitolab.validation.rounds.one_after_another`.
    give_up : float, optional
        Chance to meet all measurements below which ``vito-continuous`` ends a patient, see
        `vitolab.methods.Settings`; other methods have no such rule. By default 0, which is never,
        and `vitolab.settings.GIVE_UP` with ``learn_as_you_go``.
    at_a_time : int
        Patients of a round, which learns from the rounds before, with ``learn_as_you_go``.
    seed, n_jobs : int
    results_root : Path or str
        Folder of runs and of the walk cache; the run is stored as study ``personalize``.
    out : Path or str, optional
        CSV file to write, whole or not at all; see `fit_table`.
    again : bool
        Recompute a finished run.
    begins : callable, optional
        Is given the folder of the run when there is something to compute.

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
        If a method is not known, two training patients share a name, or something is asked for
        that needs, or excludes, ``learn_as_you_go``.
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
    if methods is None:
        methods = (CONTINUOUS_AGENT,) if learn_as_you_go else (PAPER,)
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
    give_up = (GIVE_UP if learn_as_you_go else 0.0) if give_up is None else give_up
    settings = Settings(n_states=n_states, give_up=give_up)
    order = None
    if learn_as_you_go:
        if len(methods) != 1:
            raise ValueError(f"methods are {list(methods)}, expected one with learn_as_you_go")
        if agent is not None and n_samples is not None:
            raise ValueError(
                f"agent is given with {n_samples} samples to explore, expected one of the two: an "
                "agent goes on from its own runs"
            )
        agent = None if agent is None else Path(agent).absolute()
        order = Order.asked(problem, methods[0], seed, give_up, agent, total_runs, at_a_time)
    elif agent is not None or total_runs is not None or at_a_time != 1:
        name = "agent" if agent is not None else "total_runs" if at_a_time == 1 else "at_a_time"
        raise ValueError(f"{name} is given, which needs learn_as_you_go=True")
    explores = order is None or n_samples is not None
    learning = [method for method in methods if is_agent(method) and explores]
    trainings = by_training(learning) if learning else {}
    if n_samples is None and explores:
        short = trainings and all(trained.episode == 1 for trained in trainings)
        n_samples = N_SAMPLES_SHORT if short else N_SAMPLES
    for patient in table.patients:
        if learning and len(left_out[patient.name]) == len(train_on):
            raise InputError(
                f"{table.path}, patient '{patient.name}': none of the {len(train_on)} training "
                "patients is somebody else with all measurements, expected at least one"
            )
    max_runs = budget(problem) if max_runs is None else max_runs

    parameters = {
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
    }
    if give_up:
        parameters["give_up"] = give_up
    earlier = None
    if order is not None:
        parameters |= order.parameters(table.patients)
        order, earlier = order.resumed(results_root, STUDY, parameters, table.patients, again)
        parameters |= order.parameters(table.patients)
    run = open_run(STUDY, parameters, results=results_root, seed=seed, again=again)
    if run.state == "complete":
        stored = Run.load(run.path)
    else:
        if begins is not None:
            begins(run.path)
        try:
            asked: dict[str, Any] = {"trained_on": trained_on, "max_runs": max_runs}
            asked |= {"n_samples": n_samples, "n_jobs": n_jobs}
            arrays: Mapping[str, NDArray[Any]] | None
            if order is None:
                arrays = explore_and_personalise(
                    *(run, setup, problem, table.patients, train_on, left_out, methods, settings),
                    **asked,
                    seed=seed,
                    cache=results_root,
                )
            else:
                walks = None
                if learning and n_samples is not None:
                    where = (n_jobs, results_root)
                    walks = walks_of(run, setup, problem, train_on, n_samples, 1, seed, *where)
                arrays = order.personalize(
                    *(run, setup, table.patients),
                    earlier=None if again else earlier,
                    walks=walks,
                    left_out=left_out,
                    **asked,
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
            fitted.to_csv(temporary, index=False, float_format=FLOAT_FORMAT, encoding="utf-8")
    if order is not None:
        order.keep(stored, table.patients)
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
