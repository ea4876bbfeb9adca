"""One fold each: what is learned without a patient, and the patients it personalises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

from vitolab.failures import Failure
from vitolab.files import digest
from vitolab.fit import Personalizer
from vitolab.guard import personalized
from vitolab.methods import (
    METHODS,
    POLICY,
    Settings,
    build,
    learn,
    n_states_used,
)
from vitolab.problem import Patient, Problem
from vitolab.store import OpenRun
from vitolab.store.tables import fit_row, joined_traces, trace_columns
from vitolab.store.tables import table as personalization_table
from vitolab.trajectories import Trajectories
from vitolab.validation import child_seed
from vitolab.validation.parts import Part, work_through

#: Training patients left out, and objectives that were measured.
_Group = tuple[tuple[str, ...], tuple[str, ...]]


def measured_objectives(problem: Problem, patient: Patient) -> tuple[str, ...]:
    """Objectives that were measured."""
    return tuple(o.name for o in problem.objectives if o.name in patient.measurements)


def kind_of(acting: Sequence[str]) -> str:
    """First part of the key of a part; parts of the paper's agent are called ``agents``."""
    return "agents" if METHODS[acting[0]].training is POLICY else acting[0]


class Learned:
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


def fold(
    walks: Trajectories,
    patient: Patient,
    group: _Group,
    *,
    problem: Problem,
    learned: Learned,
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
    n_runs = walks.select([name for name in walks.patients if name not in left_out]).n_runs
    return _part(problem, patient, agents, label, training, max_runs, seed, n_runs)


def refer(
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
    n_training_runs: int | None = None,
) -> Part:
    """Personalizations and traces of one patient; NaN for what was not measured."""
    rows, traces, failures = [], [], list[Failure]()
    observed = problem.observed(patient)
    for method, personalizer in personalizers.items():
        fit = personalized(observed, personalizer, patient, max_runs=max_runs, seed=seed)[0]
        failures += fit.failures
        key = {**label, "patient": patient.name, "method": method}
        more = {
            "n_states_used": n_states_used(personalizer),
            "n_training_runs": n_training_runs,
            "training": training,
            "not_measured": "",
        }
        rows.append({**key, **more, **fit_row(problem, fit, observed)})
        traces.append(trace_columns(problem, fit, key, observed))
    return Part(personalization_table(rows), joined_traces(traces), failures)
