"""Leave-one-out studies: every method on every patient, in parts that survive an interruption.

A part is one fold: everything that was personalised for one patient with one setting. Parts
that a run already holds are skipped, so the same call goes on where an earlier one was stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from vitolab.agent import Vito, n_states_at_most
from vitolab.exploration import explore
from vitolab.files import digest, stream
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference import LeastSquares, NelderMead
from vitolab.tables import fit_row, joined_traces, table, trace_columns
from vitolab.trajectories import Personalizer, Trajectories

EPISODE = 100

REFERENCES: dict[str, Callable[[Problem], Personalizer]] = {
    "nelder-mead": NelderMead,
    "nelder-mead-unweighted": lambda problem: NelderMead(problem, weighted=False),
    "nelder-mead-wide": lambda problem: NelderMead(problem, width=0.1),
    "least-squares": LeastSquares,
    "least-squares-multistart": lambda problem: LeastSquares(problem, multistart=True),
}


class PartStore(Protocol):
    """Where finished parts are kept."""

    def has_part(self, key: str) -> bool:
        """Whether the part is there, whole."""
        ...

    def write_part(
        self, key: str, personalizations: pd.DataFrame, traces: pd.DataFrame | None = None
    ) -> None:
        """Keep a part."""
        ...

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell how far the study is."""
        ...


Part = tuple[pd.DataFrame, pd.DataFrame | None]


def child_seed(*parts: Any) -> int:
    """Derive a seed from a key: the same for any order of work."""
    return int(digest("seed", *parts)[:8], 16)


def budget(problem: Problem) -> int:
    """Forward runs allowed per personalisation: the paper's 50 per parameter (section 3.3.3)."""
    return 50 * problem.n_parameters


def walks_for(
    problem: Problem,
    patients: Sequence[Patient],
    n_samples: int,
    seed: int,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> Trajectories:
    """Explore as many episodes as `n_samples` transitions per patient take.

    The walks come in the order of the patients' names, so that what is learned from them does
    not depend on the order of the patients.
    """
    n_episodes = math.ceil(n_samples / EPISODE)
    ordered = sorted(patients, key=lambda patient: patient.name)
    return explore(problem, ordered, n_episodes, EPISODE, seed, n_jobs, cache)


def leave_one_out(
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
    """Personalise each patient by agents that learned from all others.

    States, transitions and start candidates of a fold are learned without the held-out patient.
    Each learning acts twice: as ``vito`` (stochastic policy) and ``vito-deterministic``.

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
    seed : int
    n_jobs : int
        Folds at the same time.
    cache : Path, optional
        Folder of the walk cache.
    """
    _check_patients(patients)
    for setup, problem in problems.items():
        largest = max(n_samples[setup])
        for repeat in range(n_repeats):
            child = child_seed(seed, "repeat", repeat)
            settings = list(product(n_states[setup], n_samples[setup], patients))
            work = {}
            for states, samples, patient in settings:
                key = digest(
                    "fold", setup, problem.version, states, samples, repeat, patient.name, seed
                )
                work[key] = (states, samples, patient)
            stage = f"{setup}, repeat {repeat + 1} of {n_repeats}"
            missing = [key for key in work if not run.has_part(key)]
            if not missing:
                continue
            run.progress(f"{stage}: exploring", 0, len(patients))
            walks = walks_for(problem, patients, largest, child, n_jobs, cache)
            prefixes = {samples: walks.first(samples) for samples in n_samples[setup]}

            def fold(
                key: str,
                work: Mapping[str, tuple[int, int, Patient]] = work,
                setup: str = setup,
                problem: Problem = problem,
                prefixes: Mapping[int, Trajectories] = prefixes,
                repeat: int = repeat,
                child: int = child,
                largest: int = largest,
            ) -> Part:
                states, samples, patient = work[key]
                return _fold(
                    {
                        "setup": setup,
                        "patient": patient.name,
                        "n_states": states,
                        "n_samples": samples,
                        "repeat": repeat,
                        "seed": seed,
                    },
                    problem,
                    prefixes[samples].without(patient.name),
                    patient,
                    child,
                    traced=samples == largest and repeat == n_repeats - 1,
                )

            _work(run, stage, missing, fold, n_jobs, len(work))


def _check_patients(patients: Sequence[Patient]) -> None:
    """Refuse too few patients to leave one out."""
    if len(patients) < 2:
        raise ValueError(f"{len(patients)} patients, expected at least 2 to leave one out")


def _fold(
    key: dict[str, Any],
    problem: Problem,
    train: Trajectories,
    patient: Patient,
    seed: int,
    *,
    traced: bool,
) -> Part:
    """Learn without the patient, then personalise the patient."""
    used = min(key["n_states"], n_states_at_most(problem, train))
    vito = Vito.learn(problem, train, used, child_seed(seed, "fold", patient.name))
    agents = {"vito": vito, "vito-deterministic": vito.acting(deterministic=True)}
    rows, traces = [], []
    for method, agent in agents.items():
        fit = agent.personalize(patient, max_runs=budget(problem), seed=seed)
        label = key | {"method": method, "start": None}
        rows.append(label | {"n_states_used": vito.states.n_states} | fit_row(problem, fit))
        if traced:
            traces.append(trace_columns(problem, fit, label))
    return table(rows), joined_traces(traces)


def reference_runs(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    methods: Sequence[str] = tuple(REFERENCES),
    n_starts: int = 10,
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
    seed, n_jobs : int
    """
    if n_starts < 1:
        raise ValueError(f"n_starts is {n_starts}, expected at least 1")
    for setup, problem in problems.items():
        work = {
            digest("reference", setup, problem.version, method, n_starts, p.name, seed): (method, p)
            for method, p in product(methods, patients)
        }

        def fold(
            key: str,
            work: Mapping[str, tuple[str, Patient]] = work,
            setup: str = setup,
            problem: Problem = problem,
        ) -> Part:
            method, patient = work[key]
            rows, traces = [], []
            for start in range(n_starts):
                label = {
                    "setup": setup,
                    "patient": patient.name,
                    "method": method,
                    "n_states": None,
                    "n_samples": None,
                    "repeat": None,
                    "start": start,
                    "seed": seed,
                }
                fit = REFERENCES[method](problem).personalize(
                    patient, max_runs=budget(problem), seed=child_seed(seed, "start", start)
                )
                rows.append(label | {"n_states_used": None} | fit_row(problem, fit))
                if start == 0:
                    traces.append(trace_columns(problem, fit, label))
            return table(rows), joined_traces(traces)

        missing = [key for key in work if not run.has_part(key)]
        # short steps of plain Python between the runs, which threads would take in turns
        stage = f"{setup}, reference methods"
        _work(run, stage, missing, fold, n_jobs, len(work), prefer="processes")


def grid(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    starts: FloatArray,
    *,
    restarts: Mapping[str, Sequence[bool]],
    n_states: int,
    n_samples: int,
    max_runs: int,
    n_repeats: int = 1,
    methods: Sequence[str] = (),
    n_compared: int | None = None,
    n_traced: int = 4,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Personalise each patient from each of the given starts (section 3.1.2).

    The agents neither initialise from data nor, unless asked for, restart.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup, repeat and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
    starts : ndarray, shape (n_starts, n_parameters)
    restarts : mapping of setup name to sequence of bool
        With restarts (uniform in Ω, on oscillation) the setup's name ends in ``, restart``.
    n_states, n_samples, max_runs, n_repeats : int
    methods : sequence of str
        Reference methods to run from the same starts, beside the first setup.
    n_compared : int, optional
        References run from so many of the starts, drawn once; by default from all.
    n_traced : int
        Traces are kept for so many starts, drawn once.
    seed, n_jobs : int
    cache : Path, optional
    """
    _check_patients(patients)
    order = stream("grid starts", seed).permutation(len(starts))
    traced = set(order[:n_traced].tolist())
    compared_starts = np.sort(order[:n_compared])
    for setup, problem in problems.items():
        for repeat in range(n_repeats):
            child = child_seed(seed, "repeat", repeat)
            work = {
                digest("grid", setup, problem.version, n_states, n_samples, repeat, p.name, seed): p
                for p in patients
            }
            missing = [key for key in work if not run.has_part(key)]
            if not missing:
                continue
            stage = f"{setup}, repeat {repeat + 1} of {n_repeats}"
            run.progress(f"{stage}: exploring", 0, len(patients))
            walks = walks_for(problem, patients, n_samples, child, n_jobs, cache)
            compared = methods if setup == next(iter(problems)) and repeat == 0 else ()

            def fold(
                key: str,
                work: Mapping[str, Patient] = work,
                setup: str = setup,
                problem: Problem = problem,
                walks: Trajectories = walks,
                repeat: int = repeat,
                child: int = child,
                compared: Sequence[str] = compared,
            ) -> Part:
                patient = work[key]
                train = walks.without(patient.name)
                used = min(n_states, n_states_at_most(problem, train))
                fold_seed = child_seed(child, "fold", patient.name)
                vito = Vito.learn(problem, train, used, fold_seed, initialize=False)
                agents: dict[tuple[str, str], Personalizer] = {
                    (setup + (", restart" if restart else ""), "vito"): vito.acting(
                        deterministic=False, restart=restart
                    )
                    for restart in restarts[setup]
                }
                first = next(name for name, _ in agents)
                agents |= {(first, name): REFERENCES[name](problem) for name in compared}
                rows, traces = [], []
                for (name, method), agent in agents.items():
                    learned = method == "vito"
                    own = np.arange(len(starts)) if learned else compared_starts
                    fits = agent.personalize_from(
                        patient, starts[own], max_runs=max_runs, seed=child
                    )
                    for start, fit in zip(own.tolist(), fits, strict=True):
                        label = {
                            "setup": name,
                            "patient": patient.name,
                            "method": method,
                            "n_states": n_states if learned else None,
                            "n_samples": n_samples if learned else None,
                            "repeat": repeat if learned else None,
                            "start": start,
                            "seed": seed,
                        }
                        n_used = vito.states.n_states if learned else None
                        rows.append(label | {"n_states_used": n_used} | fit_row(problem, fit))
                        if start in traced and repeat == n_repeats - 1:
                            traces.append(trace_columns(problem, fit, label))
                return table(rows), joined_traces(traces)

            # many short steps of plain Python, which threads would take in turns
            _work(run, stage, missing, fold, n_jobs, len(work), prefer="processes")


def _work(
    run: PartStore,
    stage: str,
    missing: Sequence[str],
    fold: Callable[[str], Part],
    n_jobs: int,
    total: int,
    prefer: Literal["threads", "processes"] = "threads",
) -> None:
    """Compute the missing parts and keep each as soon as it is finished."""

    def compute(key: str) -> tuple[str, Part]:
        return key, fold(key)

    done = total - len(missing)
    run.progress(stage, done, total)
    # k-means sums in another order with another number of threads of its own
    with threadpool_limits(1):
        for key, (personalizations, traces) in Parallel(
            n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered"
        )(delayed(compute)(key) for key in missing):
            run.write_part(key, personalizations, traces)
            done += 1
            run.progress(stage, done, total)


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
        used = min(n_states[setup], n_states_at_most(problem, walks))
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
