"""Agents that learned from all patients but one, acting on that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vitolab.agent import ContinuousVito, Vito
from vitolab.files import digest, stream
from vitolab.initialization import Initializer
from vitolab.problem import Patient, Problem
from vitolab.reference import StartOnly
from vitolab.tables import fit_row, joined_traces, table, trace_columns, trace_table
from vitolab.trajectories import Trajectories
from vitolab.validation.parts import (
    EPISODE,
    Part,
    PartStore,
    allowed,
    budget,
    check_patients,
    child_seed,
    given,
    walks_for,
    work_through,
)


def leave_one_out(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    n_states: Mapping[str, Sequence[int]],
    n_samples: Mapping[str, Sequence[int]],
    n_repeats: int = 1,
    n_replays: int = 0,
    max_runs: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Personalise each patient by agents that learned from all others.

    States, transitions and start candidates of a fold are learned without the held-out patient.
    Each learning acts twice: as ``vito`` (stochastic policy) and ``vito-deterministic``.
    With replays another agent learns from the same walks, ``vito-hindsight``.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup, size, repeat and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
    n_states, n_samples : mapping of setup name to sequence of int
        Numbers of states, and of training transitions per patient, to go through. Where fewer
        distinct misfits were observed than states asked for, the smaller number is used and
        recorded in ``n_states_used``.
    n_repeats : int
        Repeats with fresh training walks.
    n_replays : int
        Replays of each walk from which ``vito-hindsight`` learns; 0 leaves it out.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default `budget`.
    seed : int
    n_jobs : int
        Folds at the same time.
    cache : Path, optional
        Folder of the walk cache.
    """
    _folds(
        run,
        problems,
        patients,
        kind=("fold", *given(max_runs), *(("replays", n_replays) if n_replays else ())),
        act=partial(_fold, max_runs=max_runs, n_replays=n_replays),
        n_states=n_states,
        n_samples=n_samples,
        n_repeats=n_repeats,
        seed=seed,
        n_jobs=n_jobs,
        cache=cache,
    )


def leave_one_out_continuous(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    n_samples: Mapping[str, Sequence[int]],
    n_repeats: int = 1,
    max_runs: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Personalise each patient by a `ContinuousVito` that learned from all others.

    It learns from walks of one step from random starts: they tell it more than long walks do.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup, size, repeat and patient.
    problems, patients, n_repeats, max_runs, seed, n_jobs, cache
        As in `leave_one_out`.
    n_samples : mapping of setup name to sequence of int
        Forward runs to learn from, per patient; each walk has two, so odd numbers are rounded up.
    """
    _folds(
        run,
        problems,
        patients,
        kind=("continuous", *given(max_runs)),
        act=partial(_continuous_fold, patients=tuple(patients), max_runs=max_runs),
        n_states=dict.fromkeys(problems, (None,)),
        n_samples=n_samples,
        n_repeats=n_repeats,
        seed=seed,
        n_jobs=n_jobs,
        cache=cache,
        episode=1,
    )


def initial_errors(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    n_states: Mapping[str, Sequence[int]],
    n_samples: Mapping[str, Sequence[int]],
    n_repeats: int = 1,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Run each patient's model once, at the most likely start candidate (section 3.2.5).

    Start candidates are learned from all other patients' walks. The run, method
    ``vito-initial``, is the first one of ``vito`` in `leave_one_out` with the same numbers; no
    policy is learned for it.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup, size, repeat and patient.
    problems, patients, n_states, n_samples, n_repeats, seed, n_jobs, cache
        As in `leave_one_out`; the number of states is the number of clusters.
    """
    _folds(
        run,
        problems,
        patients,
        kind=("initial",),
        act=_initial_fold,
        n_states=n_states,
        n_samples=n_samples,
        n_repeats=n_repeats,
        seed=seed,
        n_jobs=n_jobs,
        cache=cache,
    )


def _folds(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    kind: tuple[Any, ...],
    act: Callable[..., Part],
    n_states: Mapping[str, Sequence[int | None]],
    n_samples: Mapping[str, Sequence[int]],
    n_repeats: int,
    seed: int,
    n_jobs: int,
    cache: Path | None,
    episode: int = EPISODE,
) -> None:
    """Leave each patient out and act; see `leave_one_out`.

    The keys of the parts begin with ``kind``; ``act`` is called as `_initial_fold` is.
    """
    check_patients(patients)
    for setup, problem in problems.items():
        largest = max(n_samples[setup])
        explored = largest if episode > 1 else _walks_of(largest)
        for repeat in range(n_repeats):
            child = child_seed(seed, "repeat", repeat)
            work = {
                digest(
                    *kind, setup, problem.version, states, samples, repeat, patient.name, seed
                ): (
                    {
                        "setup": setup,
                        "patient": patient.name,
                        "n_states": states,
                        "n_samples": samples,
                        "repeat": repeat,
                        "seed": seed,
                    },
                    patient,
                    samples == largest and repeat == n_repeats - 1,
                )
                for states, samples, patient in product(n_states[setup], n_samples[setup], patients)
            }
            work_through(
                run,
                f"{setup}, repeat {repeat + 1} of {n_repeats}",
                work,
                partial(act, problem=problem, seed=child),
                n_jobs,
                walks=partial(
                    walks_for, problem, patients, explored, child, n_jobs, cache, episode
                ),
            )


def _fold(
    walks: Trajectories,
    key: dict[str, Any],
    patient: Patient,
    traced: bool,
    *,
    problem: Problem,
    seed: int,
    max_runs: int | None,
    n_replays: int,
) -> Part:
    """Learn without the patient, then personalise the patient."""
    train = walks.first(key["n_samples"]).without(patient.name)
    used = allowed(key["n_states"], problem, train)
    runs = budget(problem) if max_runs is None else max_runs
    child = child_seed(seed, "fold", patient.name)
    vito = Vito.learn(problem, train, used, child)
    agents = {"vito": vito, "vito-deterministic": vito.acting(deterministic=True)}
    if n_replays:
        agents["vito-hindsight"] = Vito.learn(problem, train, used, child, n_replays=n_replays)
    rows, traces = [], []
    for method, agent in agents.items():
        fit = agent.personalize(patient, max_runs=runs, seed=seed)
        label = key | {"method": method, "start": None}
        rows.append(label | {"n_states_used": vito.states.n_states} | fit_row(problem, fit))
        if traced:
            traces.append(trace_columns(problem, fit, label))
    return table(rows), joined_traces(traces)


def _continuous_fold(
    walks: Trajectories,
    key: dict[str, Any],
    patient: Patient,
    traced: bool,
    *,
    problem: Problem,
    seed: int,
    patients: tuple[Patient, ...],
    max_runs: int | None,
) -> Part:
    """Learn without the patient, then personalise the patient."""
    train = walks.first(_walks_of(key["n_samples"])).without(patient.name)
    others = [other for other in patients if other.name != patient.name]
    agent = ContinuousVito.learn(problem, train, patients=others)
    runs = budget(problem) if max_runs is None else max_runs
    fit = agent.personalize(patient, max_runs=runs, seed=seed)
    label = key | {"method": "vito-continuous", "start": None}
    rows = table([label | {"n_states_used": None} | fit_row(problem, fit)])
    return rows, trace_table(problem, fit, label) if traced else None


def _walks_of(n_runs: int) -> int:
    """Walks of one step, thus two forward runs, that make up so many forward runs."""
    return -(-n_runs // 2)


def _initial_fold(
    walks: Trajectories,
    key: dict[str, Any],
    patient: Patient,
    _traced: bool,
    *,
    problem: Problem,
    seed: int,
) -> Part:
    """Learn start candidates without the patient, then run the patient's model at the first."""
    train = walks.first(key["n_samples"]).without(patient.name)
    used = allowed(key["n_states"], problem, train)
    counted = train.counted
    # as in Vito.learn, of which nothing else is needed here
    initializer = Initializer.learn(
        train.x[counted],
        train.y[counted],
        problem,
        used,
        stream("initializer", problem.name, child_seed(seed, "fold", patient.name)),
    )
    candidates = initializer.candidates(problem.measured(patient))
    fit = StartOnly(problem).personalize_from(patient, candidates[:1])[0]
    label = key | {"method": "vito-initial", "start": None}
    return table([label | {"n_states_used": initializer.n_clusters} | fit_row(problem, fit)]), None


def policy_arrays(
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    n_states: Mapping[str, int],
    n_samples: Mapping[str, int],
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> dict[str, NDArray[Any]]:
    """Arrays of the policy learned from all patients, per setup, to be looked at."""
    arrays: dict[str, NDArray[Any]] = {}
    child = child_seed(seed, "repeat", 0)
    for setup, problem in problems.items():
        samples = n_samples[setup]
        walks = walks_for(problem, patients, samples, child, n_jobs, cache).first(samples)
        used = allowed(n_states[setup], problem, walks)
        vito = Vito.learn(problem, walks, used, child, initialize=False)
        arrays |= {
            f"{setup}/centroids": vito.states.centroids,
            f"{setup}/q": vito.policy.q,
            f"{setup}/v": vito.policy.v,
            f"{setup}/residuals": vito.policy.residuals,
            f"{setup}/visits": vito.mdp.visits,
            f"{setup}/counts_indptr": vito.mdp.start,
            f"{setup}/counts_indices": vito.mdp.successor,
            f"{setup}/counts_data": vito.mdp.counts,
        }
    return arrays
