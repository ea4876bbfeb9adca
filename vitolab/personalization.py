"""Personalise the patients of a user's file, and store what came out as a run.

One agent learns from training patients and personalises every patient of the file. A patient
who is among the training patients is personalised by an agent that learned from the others
only (leave-one-out), so that a file may serve as its own training set.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from vitolab.agent import ContinuousVito, Vito, n_states_at_most
from vitolab.claims import RunFailed
from vitolab.failures import collected
from vitolab.files import atomic, digest
from vitolab.guard import personalized
from vitolab.patients import InputError, PatientTable, headed
from vitolab.problem import Patient, Problem
from vitolab.store import OpenRun, Run, open_run
from vitolab.tables import fit_row, joined_traces, patient_table, trace_columns
from vitolab.tables import table as personalization_table
from vitolab.threads import one_thread
from vitolab.trajectories import Personalizer, StopReason, Trajectories
from vitolab.validation import (
    AGENTS,
    EPISODE,
    FOR_ANY_PROBLEM,
    LEARNING,
    REFERENCES,
    Judge,
    budget,
    child_seed,
    policy_arrays,
    recorded_walks,
    write_with_failures,
)

CONTINUOUS, HINDSIGHT = "vito-continuous", "vito-hindsight"
#: Training patients left out, and objectives that were measured.
_Group = tuple[tuple[str, ...], tuple[str, ...]]
N_REPLAYS = 5  # of each walk in hindsight, as in the studies


def personalize_file(
    problem: Problem,
    table: PatientTable,
    *,
    setup: str,
    train_on: Sequence[Patient],
    trained_on: str = "patients",
    n_states: int,
    n_samples: int = 2_000,
    max_runs: int | None = None,
    methods: Sequence[str] = ("vito",),
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
    n_samples : int
        Transitions explored per training patient: of long walks, for ``vito-continuous`` of walks
        of one step, which take two forward runs each.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default the paper's 50 per parameter.
    methods : sequence of str
        ``vito``, ``vito-deterministic``, ``vito-continuous``, and reference methods by name, each
        of which starts once, uniformly in Ω.
    seed, n_jobs : int
    results_root : Path or str
        Folder of runs and of the walk cache; the run is stored as study ``personalize``.
    out : Path or str, optional
        CSV file to write, whole or not at all; see `fit_table`.
    again : bool
        Compute anew what is complete.

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
    out = None if out is None else Path(out)
    if out is not None and out.exists() and out.samefile(table.path):
        raise InputError(f"{out}: found the patients' own file, expected another name to write to")
    if out is not None and out.is_dir():
        raise InputError(f"{out}: found a directory, expected a name for the CSV file to write")
    if out is not None and not (out.parent.is_dir() and os.access(out.parent, os.W_OK)):
        raise InputError(f"{out}: expected a name in a folder that exists and can be written to")
    if not table.patients:
        raise InputError(
            f"{table.path}: every patient lacks what the model needs, expected one who does not"
        )
    # the stages of a cascade are those of electrophysiology
    staged = problem.name.startswith("electrophysiology")
    known = (*AGENTS, *(REFERENCES if staged else FOR_ANY_PROBLEM))
    for method in methods:
        if method not in known:
            raise ValueError(f"method is {method!r}, expected one of {', '.join(known)}")
    names = [patient.name for patient in train_on]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"training patient {name!r} occurs twice, expected once")
    # by name, so that the order of a training file makes no difference
    train_on = sorted(train_on, key=lambda patient: patient.name)
    # who lacks a measurement is personalised on the others, and nobody learns from them
    train_on = [p for p in train_on if len(_measured(problem, p)) == problem.n_objectives]
    left_out = {p.name: training_overlap(problem.observed(p), p, train_on) for p in table.patients}
    learning = [method for method in methods if method in AGENTS]
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
    if run.folder.state == "complete":
        stored = Run.load(run.path)
    else:
        try:
            label = {"setup": setup, "repeat": None, "start": None, "seed": seed}
            untrained = label | {"n_states": None, "n_samples": None}
            references = [method for method in methods if method in REFERENCES]
            _refer(run, problem, table.patients, references, untrained, max_runs, n_jobs)
            arrays = None
            if learning:
                child = child_seed(seed, "repeat", 0)  # the studies', so that walks are shared
                cache = Path(results_root)
                groups: dict[_Group, list[Patient]] = {}
                for patient in table.patients:
                    group = (left_out[patient.name], _measured(problem, patient))
                    groups.setdefault(group, []).append(patient)
                for together in LEARNING:
                    acting = [method for method in learning if method in together]
                    if not acting:
                        continue
                    # the continuous one has no states, and learns most from walks of one step
                    states, episode = (n_states, EPISODE) if CONTINUOUS not in acting else (None, 1)
                    run.progress("exploring", 0, len(train_on))
                    walks = recorded_walks(
                        run, setup, problem, train_on, n_samples, child, n_jobs, cache, episode
                    ).first(n_samples)
                    trained = label | {"n_states": states, "n_samples": n_samples}
                    _learn(
                        run,
                        problem,
                        groups,
                        walks,
                        acting,
                        trained,
                        trained_on,
                        max_runs,
                        child,
                        n_jobs,
                    )
            if any(method in LEARNING[0] for method in learning):
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
            run.folder.finish("failed", reason)
            raise RunFailed(f"the run failed: {reason}; see {run.path}") from error
        except BaseException:  # stopped by the user: the next call goes on from here
            run.folder.release()
            raise
    fitted = fit_table(problem, table, stored.personalizations, methods)
    if out is not None:
        with atomic(out) as temporary:
            fitted.to_csv(temporary, index=False, float_format="%.8g", encoding="utf-8")
    return fitted


def training_overlap(
    problem: Problem, patient: Patient, train_on: Sequence[Patient]
) -> tuple[str, ...]:
    """Names of the training patients who are, or may be, this patient.

    Parameters
    ----------
    problem : Problem
    patient : Patient
    train_on : sequence of Patient

    Returns
    -------
    tuple of str
        Those with the same name, and those with the same measurements (of this problem) and
        the same data, to 1e-9: a conversion of units may have changed the last digit. Angles are
        the same a whole turn apart.
    """
    z = problem.measured(patient)

    def is_same(other: Patient) -> bool:
        y = problem.measured(other)
        return bool(
            np.all(np.abs(problem.misfit(y, z)) <= 1e-9 * np.maximum(np.abs(y), np.abs(z)))
            and _known(other).keys() == _known(patient).keys()
            and all(_same(value, _known(patient)[name]) for name, value in _known(other).items())
        )

    return tuple(p.name for p in train_on if p.name == patient.name or is_same(p))


def _measured(problem: Problem, patient: Patient) -> tuple[str, ...]:
    """Objectives that were measured."""
    return tuple(o.name for o in problem.objectives if o.name in patient.measurements)


def _known(patient: Patient) -> dict[str, Any]:
    """Data of a patient, a mesh by its content whatever its name."""
    content = "mesh_checksum" in patient.data
    return {k: v for k, v in patient.data.items() if not (content and k == "anatomy")}


def fit_table(
    problem: Problem,
    table: PatientTable,
    personalizations: pd.DataFrame,
    methods: Sequence[str],
) -> pd.DataFrame:
    """Tabulate outcomes for reading, one row per patient and method, in the order of the file.

    Parameters
    ----------
    problem : Problem
    table : PatientTable
    personalizations : DataFrame
        Of the stored run.
    methods : sequence of str

    Returns
    -------
    DataFrame
        Columns ``patient``, ``method``, ``solved``, ``stop_reason`` (a sentence), ``n_runs``,
        ``n_failed`` (of them), ``n_restarts``, ``training`` (how many patients the agent learned
        from, and who was left out), ``not_measured`` (objectives that the patient was personalised
        without); each parameter with its unit; each objective as measured, as modelled (angles in
        (-180, 180]), and the misfit; then the further columns of the file. A patient of the file
        who was skipped has one row with the reason and no numbers.
    """
    keys = zip(personalizations["patient"], personalizations["method"], strict=True)
    outcomes = dict(zip(keys, personalizations.to_dict("records"), strict=True))
    patients = {patient.name: patient for patient in table.patients}
    skipped = dict(table.skipped)
    columns = ["patient", "method", "solved", "stop_reason", "n_runs", "n_failed", "n_restarts"]
    columns += ["training", "not_measured"]
    columns += [headed(p.name, p.unit) for p in problem.parameters]
    columns += [
        headed(f"{o.name}_{what}", o.unit)
        for o in problem.objectives
        for what in ("measured", "modelled", "misfit")
    ]
    # a further column may be called as one of ours, for instance when a table is read again
    further = table.extra.rename(columns={n: f"{n} (file)" for n in table.extra if n in columns})
    rows = []
    for name in further.index:
        kept = further.loc[name].to_dict()
        if name in skipped:
            rows.append({"patient": name, "stop_reason": f"Left out: {skipped[name]}.", **kept})
            continue
        for method in methods:
            outcome = outcomes[name, method]
            values = _values(problem, patients[name], outcome)
            rows.append({"patient": name, "method": method, **values, **kept})
    frame = pd.DataFrame(rows, columns=[*columns, *further.columns])
    counts = dict.fromkeys(("n_runs", "n_failed", "n_restarts"), "Int64")
    return frame.astype({"solved": "boolean", **counts})


def _values(problem: Problem, patient: Patient, outcome: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Columns of one personalisation."""
    names = ("solved", "n_runs", "n_failed", "n_restarts", "training", "not_measured")
    values = {name: outcome[name] for name in names}
    values["stop_reason"] = StopReason(outcome["stop_reason"]).sentence
    for p in problem.parameters:
        values[headed(p.name, p.unit)] = outcome[f"x:{p.name}"]
    z = np.array([patient.measurements.get(o.name, np.nan) for o in problem.objectives])
    c = np.array([outcome[f"misfit:{o.name}"] for o in problem.objectives])
    y = problem.misfit(z + c, 0.0)  # which wraps angles
    for i, o in enumerate(problem.objectives):
        values[headed(f"{o.name}_measured", o.unit)] = z[i]
        values[headed(f"{o.name}_modelled", o.unit)] = y[i]
        values[headed(f"{o.name}_misfit", o.unit)] = c[i]
    return values


def _learn(
    run: OpenRun,
    problem: Problem,
    groups: Mapping[_Group, Sequence[Patient]],
    walks: Trajectories,
    methods: Sequence[str],
    label: Mapping[str, Any],
    trained_on: str,
    max_runs: int,
    seed: int,
    n_jobs: int,
) -> None:
    """For each set of patients left out and of measurements, learn from the others; personalise.

    All learn from the same walks; those who lack a measurement from a part of their outputs.
    """
    kind = "agents" if methods[0] in LEARNING[0] else methods[0]
    keep = _keeper(run, Judge("learning and personalising", ()))  # the walks hold answers
    whole = [o.name for o in problem.objectives]

    def work(group: _Group) -> None:
        missing = [p for p in groups[group] if not run.has_part(digest(kind, p.name))]
        if not missing:
            return
        left_out, names = group
        observed = problem.observing(names)
        train = walks.select([name for name in walks.patients if name not in left_out])
        train = train.observing([whole.index(name) for name in names])
        agents: dict[str, Personalizer] = {}
        used = None
        if kind == CONTINUOUS:
            agents[CONTINUOUS] = ContinuousVito.learn(observed, train)
        else:
            most = min(label["n_states"], n_states_at_most(observed, train))
            n_replays = N_REPLAYS if kind == HINDSIGHT else 0
            fold_seed = child_seed(seed, "without", *left_out)
            vito = Vito.learn(observed, train, most, fold_seed, n_replays=n_replays)
            used = vito.states.n_states
            for method in methods:
                agents[method] = vito.acting(deterministic=method == "vito-deterministic")
        training = f"{len(train.patients)} {trained_on}"
        if left_out:
            training += f", without {' and '.join(left_out)}"
        more = {"n_states_used": used, "training": training}
        for patient in missing:
            key = digest(kind, patient.name)
            keep(key, problem, patient, agents, label, more, max_runs, seed)

    _each(run, "learning and personalising", work, list(groups), n_jobs)


def _refer(
    run: OpenRun,
    problem: Problem,
    patients: Sequence[Patient],
    methods: Sequence[str],
    label: Mapping[str, Any],
    max_runs: int,
    n_jobs: int,
) -> None:
    """Personalise by reference methods, each from the first start of the studies."""
    more = {"n_states_used": None, "training": ""}
    seed = child_seed(label["seed"], "start", 0)
    keep = _keeper(run, Judge("reference methods", (patient.name for patient in patients)))

    def work(patient: Patient) -> None:
        key = digest("references", patient.name)
        if not run.has_part(key):
            observed = problem.observed(patient)
            optimisers = {method: REFERENCES[method](observed) for method in methods}
            keep(key, problem, patient, optimisers, label, more, max_runs, seed)

    if methods:
        _each(run, "reference methods", work, patients, n_jobs)


def _keeper(run: OpenRun, judge: Judge) -> Callable[..., None]:
    """Give what computes a part (the arguments of `_part`) and keeps it, with its failed runs."""

    def keep(key: str, problem: Problem, *arguments: Any) -> None:
        with collected() as record:
            personalizations, traces = _part(problem, *arguments)
        write_with_failures(run, key, personalizations, traces, record.failures)
        judge.hear(personalizations, record.failures)

    return keep


def _part(
    problem: Problem,
    patient: Patient,
    personalizers: Mapping[str, Personalizer],
    label: Mapping[str, Any],
    more: Mapping[str, Any],
    max_runs: int,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Personalizations and traces of one patient; NaN for what was not measured."""
    rows, traces = [], []
    observed = problem.observed(patient)
    more = {**more, "not_measured": ""}
    for method, personalizer in personalizers.items():
        fit = personalized(observed, personalizer, patient, max_runs=max_runs, seed=seed)[0]
        key = {**label, "patient": patient.name, "method": method}
        rows.append({**key, **more, **fit_row(problem, fit, observed)})
        traces.append(trace_columns(problem, fit, key, observed))
    return personalization_table(rows), joined_traces(traces)


def _each(
    run: OpenRun, stage: str, work: Callable[[Any], None], items: Sequence[Any], n_jobs: int
) -> None:
    """Do the work for each item and tell how far it is."""
    run.progress(stage, 0, len(items))
    # k-means sums in another order with another number of threads of its own
    with one_thread():
        finished = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")(
            delayed(work)(item) for item in items
        )
        for done, _ in enumerate(finished, start=1):
            run.progress(stage, done, len(items))


def _key(patients: Sequence[Patient]) -> str:
    """Key of what is known of some patients, whatever their order."""
    known = sorted((p.name, digest(p.measurements, p.data)) for p in patients)
    return digest(*known)


def _same(a: Any, b: Any) -> bool:
    """Whether two data are the same, numbers to 1e-9."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-9)
    return digest(a) == digest(b)
