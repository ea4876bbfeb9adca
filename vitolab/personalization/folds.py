"""One fold each: what is learned without a patient, and the patients it personalises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from numpy.typing import NDArray

from vitolab.files import digest
from vitolab.fit import Personalizer
from vitolab.methods import (
    METHODS,
    POLICY,
    Settings,
    build,
    by_training,
    is_agent,
    learn,
)
from vitolab.problem import Patient, Problem
from vitolab.store import OpenRun
from vitolab.trajectories import Trajectories
from vitolab.validation import child_seed, policy_arrays, recorded_walks
from vitolab.validation.outcomes import patient_part
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
    give_up : float
        See `Settings`.
    """

    def __init__(
        self,
        problem: Problem,
        acting: Sequence[str],
        n_states: int,
        seed: int,
        uses: Iterable[_Group],
        give_up: float = 0.0,
    ) -> None:
        self.problem, self.acting, self.seed = problem, acting, seed
        self.settings = Settings(n_states=n_states, give_up=give_up)
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
        return learn(self.acting, observed, train, seed, self.settings)


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
    return patient_part(problem, patient, agents, label, training, max_runs, seed, n_runs)


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
    return patient_part(problem, patient, optimisers, label, "", max_runs, seed)


def walks_of(
    run: OpenRun,
    setup: str,
    problem: Problem,
    train_on: Sequence[Patient],
    n_samples: int,
    episode: int,
    seed: int,
    n_jobs: int,
    cache: Path,
) -> Callable[[], Trajectories]:
    """Walks of training patients, which are explored when they are asked for."""
    child = child_seed(seed, "repeat", 0)  # the studies', so that walks are shared
    return partial(
        recorded_walks, run, setup, problem, train_on, n_samples, child, n_jobs, cache, episode
    )


def explore_and_personalise(
    run: OpenRun,
    setup: str,
    problem: Problem,
    patients: Sequence[Patient],
    train_on: Sequence[Patient],
    left_out: Mapping[str, tuple[str, ...]],
    methods: Sequence[str],
    settings: Settings,
    *,
    trained_on: str,
    n_samples: int,
    max_runs: int,
    seed: int,
    n_jobs: int,
    cache: Path,
) -> dict[str, NDArray[Any]] | None:
    """Explore training patients, learn from them, and personalise patients.

    Parameters
    ----------
    run : OpenRun
    setup : str
    problem : Problem
    patients, train_on : sequence of Patient
    left_out : mapping of patient name to tuple of str
        Training patients from whom a patient's agent does not learn.
    methods : sequence of str
    settings : Settings
        With a number of states.
    trained_on, n_samples, max_runs, seed, n_jobs
        See `vitolab.personalization.personalize_file`.
    cache : Path
        Folder of the walk cache.

    Returns
    -------
    dict of str to ndarray, or None
        Policy of the paper's agent; None if it does not take part.
    """
    label = {"setup": setup, "repeat": None, "start": None, "seed": seed}
    no_size = {"n_states": None, "n_samples": None}
    optimisers = [method for method in methods if not is_agent(method)]
    refer(run, problem, patients, optimisers, label | no_size, max_runs, n_jobs)
    n_states = settings.n_states
    assert n_states is not None
    child = child_seed(seed, "repeat", 0)
    groups = {p.name: (left_out[p.name], measured_objectives(problem, p)) for p in patients}
    learning = [method for method in methods if is_agent(method)]
    trainings = by_training(learning) if learning else {}
    for trained, acting in trainings.items():
        keys = {p.name: digest(kind_of(acting), p.name) for p in patients}
        uses = [g for name, g in groups.items() if not run.has_part(keys[name])]
        size = {"n_states": n_states if trained.has_states else None, "n_samples": n_samples}
        work_through(
            run,
            "learning and personalising",
            {keys[p.name]: (p, groups[p.name]) for p in patients},
            partial(
                fold,
                problem=problem,
                learned=Learned(problem, acting, n_states, child, uses, settings.give_up),
                label=label | size,
                trained_on=trained_on,
                max_runs=max_runs,
                seed=seed,
            ),
            n_jobs,
            walks=walks_of(
                run, setup, problem, train_on, n_samples, trained.episode, seed, n_jobs, cache
            ),
        )
    if POLICY not in trainings:
        return None
    return policy_arrays(
        {setup: problem},
        train_on,
        n_states={setup: n_states},
        n_samples={setup: n_samples},
        seed=seed,
        n_jobs=n_jobs,
        cache=cache,
    )
