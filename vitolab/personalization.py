"""Personalise the patients of a user's file, and store what came out as a run.

One agent learns from training patients and personalises every patient of the file. A patient
who is among the training patients is personalised by an agent that learned from the others
only (leave-one-out), so that a file may serve as its own training set.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd

from vitolab.files import atomic, digest, is_stream
from vitolab.guard import personalized
from vitolab.methods import (
    AGENTS,
    METHODS,
    POLICY,
    Settings,
    build,
    by_training,
    find,
    is_agent,
    learn,
    n_states_used,
    references,
)
from vitolab.patients import InputError, PatientTable, headed
from vitolab.problem import Patient, Problem
from vitolab.store import OpenRun, Run, open_run
from vitolab.store.claims import RunFailed
from vitolab.store.tables import fit_row, joined_traces, patient_table, trace_columns
from vitolab.store.tables import table as personalization_table
from vitolab.trajectories import Personalizer, StopReason, Trajectories
from vitolab.validation import budget, child_seed, policy_arrays, recorded_walks
from vitolab.validation.parts import Part, work_through

#: Training patients left out, and objectives that were measured.
_Group = tuple[tuple[str, ...], tuple[str, ...]]
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
    train_on = [p for p in train_on if len(_measured(problem, p)) == problem.n_objectives]
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
            _refer(
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
            groups = {p.name: (left_out[p.name], _measured(problem, p)) for p in table.patients}
            for trained, acting in trainings.items():
                work_through(
                    run,
                    "learning and personalising",
                    {digest(_kind(acting), p.name): (p, groups[p.name]) for p in table.patients},
                    partial(
                        _fold,
                        problem=problem,
                        learned=_Learned(problem, acting, n_states, child, groups.values()),
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
    further = table.extra.set_axis(
        _own_names([str(name) for name in table.extra.columns], columns), axis=1
    )
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


def _own_names(names: list[str], taken: list[str]) -> list[str]:
    """Names of further columns, ``(file)`` added until nothing else is called so."""
    used = {*taken, *names}
    found = []
    for name in names:
        own = name
        while own in taken or (own != name and own in used):
            own += " (file)"
        used.add(own)
        found.append(own)
    return found


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


def _kind(acting: Sequence[str]) -> str:
    """First part of the key of a part; parts of the paper's agent are called ``agents``."""
    return "agents" if METHODS[acting[0]].training is POLICY else acting[0]


class _Learned:
    """Agents by who was left out and what was measured, each learned once and kept while needed.

    Folds on threads share it; a worker of its own learns for itself.

    Parameters
    ----------
    problem : Problem
    acting : sequence of str
        Agents that share one learning.
    n_states : int
    seed : int
    uses : iterable of group
        One for each patient.
    """

    def __init__(
        self,
        problem: Problem,
        acting: Sequence[str],
        n_states: int,
        seed: int,
        uses: Iterable[_Group],
    ) -> None:
        self.problem, self.acting, self.n_states, self.seed = problem, acting, n_states, seed
        self._left = Counter(uses)
        self._agents: dict[_Group, dict[str, Personalizer]] = {}
        self._locks: dict[_Group, Lock] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_agents": {}, "_locks": None}

    def agents(self, walks: Trajectories, group: _Group) -> dict[str, Personalizer]:
        """Agents of a group, learned when they are first asked for."""
        with _LOCK:
            self._locks = self._locks or {}
            lock = self._locks.setdefault(group, Lock())
        with lock:
            if group not in self._agents:
                self._agents[group] = self._learn(walks, group)
            agents = self._agents[group]
            self._left[group] -= 1
            if self._left[group] <= 0:
                del self._agents[group]
        return agents

    def _learn(self, walks: Trajectories, group: _Group) -> dict[str, Personalizer]:
        left_out, names = group
        whole = [o.name for o in self.problem.objectives]
        train = walks.select([name for name in walks.patients if name not in left_out])
        train = train.observing([whole.index(name) for name in names])
        seed = child_seed(self.seed, "without", *left_out)
        observed = self.problem.observing(names)
        return learn(self.acting, observed, train, seed, Settings(n_states=self.n_states))


_LOCK = Lock()  # of the locks themselves


def _fold(
    walks: Trajectories,
    patient: Patient,
    group: _Group,
    *,
    problem: Problem,
    learned: _Learned,
    label: Mapping[str, Any],
    trained_on: str,
    max_runs: int,
    seed: int,
) -> Part:
    """Learn from all training patients who are somebody else, then personalise the patient."""
    left_out, _ = group
    training = f"{len(walks.patients) - len(left_out)} {trained_on}"
    if left_out:
        training += f", without {' and '.join(left_out)}"
    agents = learned.agents(walks, group)
    return _part(problem, patient, agents, label, training, max_runs, seed)


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
    if methods:
        work_through(
            run,
            "reference methods",
            {digest("references", patient.name): (patient,) for patient in patients},
            partial(
                _reference_fold, problem=problem, methods=methods, label=label, max_runs=max_runs
            ),
            n_jobs,
        )


def _reference_fold(
    patient: Patient,
    *,
    problem: Problem,
    methods: Sequence[str],
    label: Mapping[str, Any],
    max_runs: int,
) -> Part:
    observed = problem.observed(patient)
    optimisers = {method: build(method, observed) for method in methods}
    seed = child_seed(label["seed"], "start", 0)
    return _part(problem, patient, optimisers, label, "", max_runs, seed)


def _part(
    problem: Problem,
    patient: Patient,
    personalizers: Mapping[str, Personalizer],
    label: Mapping[str, Any],
    training: str,
    max_runs: int,
    seed: int,
) -> Part:
    """Personalizations and traces of one patient; NaN for what was not measured."""
    rows, traces = [], []
    observed = problem.observed(patient)
    for method, personalizer in personalizers.items():
        fit = personalized(observed, personalizer, patient, max_runs=max_runs, seed=seed)[0]
        key = {**label, "patient": patient.name, "method": method}
        more = {
            "n_states_used": n_states_used(personalizer),
            "training": training,
            "not_measured": "",
        }
        rows.append({**key, **more, **fit_row(problem, fit, observed)})
        traces.append(trace_columns(problem, fit, key, observed))
    return personalization_table(rows), joined_traces(traces)


def _key(patients: Sequence[Patient]) -> str:
    """Key of what is known of some patients, whatever their order."""
    known = sorted((p.name, digest(p.measurements, p.data)) for p in patients)
    return digest(*known)


def _same(a: Any, b: Any) -> bool:
    """Whether two data are the same, numbers to 1e-9."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-9)
    return digest(a) == digest(b)


def _is_stream(out: Path) -> bool:
    """Whether a table is written to a device or a FIFO; what is neither these nor a file is bad."""
    try:
        return is_stream(out)
    except ValueError as error:
        raise InputError(str(error)) from None
