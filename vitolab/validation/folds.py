"""Agents that learned from all patients but one, acting on that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from vitolab.agent import n_states_allowed
from vitolab.failures import Failure
from vitolab.files import digest, stream
from vitolab.fit import Personalizer, budget
from vitolab.guard import Unlearned, attempted, personalized
from vitolab.initialization import Initializer
from vitolab.methods import (
    EPISODE,
    HINDSIGHT_REPLAYS,
    PAPER,
    Settings,
    by_training,
    learn,
    n_states_used,
)
from vitolab.problem import Patient, Problem
from vitolab.reference import StartOnly
from vitolab.store.tables import fit_row, joined_traces, table, trace_columns
from vitolab.trajectories import Trajectories
from vitolab.validation.parts import (
    Part,
    PartStore,
    check_patients,
    child_seed,
    given,
    learned_from,
    recorded_walks,
    training,
    unlike_the_paper,
    work_through,
)

_BOTH = (PAPER, "vito-deterministic")  # parts of earlier runs do not name them in their keys


def leave_one_out(
    run: PartStore,
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    n_samples: Mapping[str, Sequence[int]],
    n_states: Mapping[str, Sequence[int]] | None = None,
    methods: Sequence[str] = _BOTH,
    n_replays: int = HINDSIGHT_REPLAYS,
    episode: int | Mapping[str, int] = EPISODE,
    n_repeats: int = 1,
    max_runs: int | None = None,
    epsilon: float = Settings.epsilon,
    recurrences: int = Settings.recurrences,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Personalise each patient by agents that learned from all others.

    Whatever an agent learns in a fold is learned without the held-out patient. One learning acts
    twice: as ``vito`` (stochastic policy) and ``vito-deterministic``.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup, way of learning, size, repeat and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
        Who lacks a measurement is personalised on the others, by agents that learned from the
        same walks; nobody learns from them.
    n_samples : mapping of setup name to sequence of int
        Training transitions per patient to go through.
    n_states : mapping of setup name to sequence of int, optional
        Numbers of states to go through, for agents that have states.
        Where fewer distinct misfits were observed than states asked for, the smaller number is
        used and recorded in ``n_states_used``.
    methods : sequence of str
        Names in `AGENTS`. The results of one do not depend on the others.
    n_replays : int
        Of each walk, for ``vito-hindsight``.
    episode : int or mapping of str to int
        Transitions per episode of the training walks, of all methods or by method (a hundred for
        those not named): 1 gives walks of one step from random starts, which take two forward
        runs per transition.
    n_repeats : int
        Repeats with fresh training walks.
    max_runs : int, optional
        Forward runs allowed per personalisation; by default `budget`.
    epsilon, recurrences
        Of agents with states, see `vitolab.settings.Settings`; by default the paper's.
    seed : int
    n_jobs : int
        Folds at the same time.
    cache : Path, optional
        Folder of the walk cache.

    Raises
    ------
    ValueError
        If a method is unknown, none is named, or one needs numbers of states and there are none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import vitolab as vl
    >>> from vitolab.store.tables import patient_table
    >>> problems = {"2p": vl.models.rosenbrock.problem()}
    >>> patients = vl.models.rosenbrock.cohort(3)
    >>> sizes = {"n_samples": {"2p": [100]}, "n_states": {"2p": [20]}}
    >>> with TemporaryDirectory() as results:
    ...     run = vl.store.open_run("example", {}, results=results, seed=0)
    ...     vl.leave_one_out(run, problems, patients, **sizes, methods=["vito"], max_runs=10)
    ...     known = patient_table(problems, patients)
    ...     stored = run.finish(problems=problems, patients=known)
    ...     list(stored.personalizations["patient"])
    ['F001', 'F002', 'F003']
    """
    for trained, acting in by_training(methods).items():
        if trained.has_states and n_states is None:
            raise ValueError(f"{acting[0]}: n_states is missing, expected numbers of states")
        replays = n_replays if trained.has_replays else 0
        n_steps = episode if isinstance(episode, int) else episode.get(acting[0], EPISODE)
        settings = Settings(n_replays=replays, epsilon=epsilon, recurrences=recurrences)
        _folds(
            run,
            problems,
            patients,
            kind=(
                "fold",
                *given(max_runs),
                *(() if acting == _BOTH else acting),
                *(("replays", replays) if replays else ()),
                *(() if n_steps == EPISODE else ("episode", n_steps)),
                *(unlike_the_paper(settings) if trained.has_states else ()),
            ),
            act=partial(_fold, methods=acting, settings=settings, max_runs=max_runs),
            n_states=n_states if trained.has_states else None,
            n_samples=n_samples,
            n_repeats=n_repeats,
            episode=n_steps,
            seed=seed,
            n_jobs=n_jobs,
            cache=cache,
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
        episode=EPISODE,
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
    n_states: Mapping[str, Sequence[int]] | None,
    n_samples: Mapping[str, Sequence[int]],
    n_repeats: int,
    episode: int,
    seed: int,
    n_jobs: int,
    cache: Path | None,
) -> None:
    """Leave each patient out and act; see `leave_one_out`.

    Without ``n_states`` the number of states is null. The keys of the parts begin with ``kind``;
    ``act`` is called as `_initial_fold` is.
    """
    check_patients(patients)
    for setup, problem in problems.items():
        whole = learned_from(problem, patients)
        check_patients(whole, "patients with all measurements")
        largest = max(n_samples[setup])
        sizes: Sequence[int | None] = [None] if n_states is None else n_states[setup]
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
                for states, samples, patient in product(sizes, n_samples[setup], patients)
            }
            work_through(
                run,
                f"{setup}, repeat {repeat + 1} of {n_repeats}",
                work,
                partial(act, problem=problem, seed=child),
                n_jobs,
                walks=partial(
                    recorded_walks,
                    run,
                    setup,
                    problem,
                    whole,
                    largest,
                    child,
                    n_jobs,
                    cache,
                    episode,
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
    methods: Sequence[str],
    settings: Settings,
    max_runs: int | None,
) -> Part:
    """Learn without the patient, then personalise the patient."""
    train = training(walks.first(key["n_samples"]), problem, patient)
    observed = problem.observed(patient)
    runs = budget(problem, max_runs)
    child = child_seed(seed, "fold", patient.name)
    own = replace(settings, n_states=key["n_states"])
    agents = learn(methods, observed, train, child, own)
    rows, traces, failures = [], [], list[Failure]()
    for method, agent in agents.items():
        fit = personalized(observed, agent, patient, max_runs=runs, seed=seed)[0]
        failures += fit.failures
        label = key | {"method": method, "start": None}
        row = fit_row(problem, fit, observed) | {"max_runs": runs}
        learned = {"n_states_used": n_states_used(agent), "n_training_runs": train.n_runs}
        rows.append(label | learned | row)
        if traced:
            traces.append(trace_columns(problem, fit, label, observed))
    return Part(table(rows), joined_traces(traces), failures)


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
    train = training(walks.first(key["n_samples"]), problem, patient)
    observed = problem.observed(patient)
    used = n_states_allowed(key["n_states"], observed, train)
    counted = train.counted
    # as in Vito.learn, of which nothing else is needed here
    initializer = attempted(
        partial(
            Initializer.learn,
            train.x[counted],
            train.y[counted],
            observed,
            used,
            stream("initializer", problem.name, child_seed(seed, "fold", patient.name)),
        )
    )
    acting: Personalizer = StartOnly(observed)
    first, n_clusters = None, None
    if isinstance(initializer, Unlearned):
        acting = initializer
    else:
        first = initializer.candidates(observed.measured(patient))[:1]
        n_clusters = initializer.n_clusters
    fit = personalized(observed, acting, patient, max_runs=1, seed=seed, starts=first)[0]
    label = key | {"method": "vito-initial", "start": None}
    row = label | {"n_states_used": n_clusters} | fit_row(problem, fit, observed)
    return Part(table([row | {"max_runs": 1}]), None, fit.failures)
