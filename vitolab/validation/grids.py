"""Agents and reference methods from each of many given starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from vitolab.agent import Vito
from vitolab.asked import checked_seed
from vitolab.failures import Failure
from vitolab.files import digest, stream
from vitolab.fit import Personalizer
from vitolab.guard import personalized
from vitolab.methods import (
    EPISODE,
    HINDSIGHT_REPLAYS,
    PAPER,
    Settings,
    build,
    by_training,
    check_agents,
    is_agent,
    learn,
    n_states_used,
)
from vitolab.problem import FloatArray, IntArray, Patient, Problem
from vitolab.store.tables import fit_row, joined_traces, table, trace_columns
from vitolab.trajectories import Trajectories
from vitolab.validation.parts import (
    Part,
    PartStore,
    check_patients,
    child_seed,
    learned_from,
    recorded_walks,
    training,
    unlike_the_paper,
    work_through,
    workers,
)


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
    max_runs_restart: int | None = None,
    evaluated: Sequence[Patient] | None = None,
    epsilon: float = Settings.epsilon,
    recurrences: int = Settings.recurrences,
    n_repeats: int = 1,
    agents: Sequence[str] = (PAPER,),
    methods: Sequence[str] = (),
    n_compared: int | None = None,
    n_traced: int = 4,
    n_replays: int = HINDSIGHT_REPLAYS,
    episode: int = EPISODE,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Personalise each patient from each of the given starts (section 3.1.2).

    Agents with states neither initialise from data nor, unless asked for, restart. One without
    does both as it always does; it has no actions, and stands beside the first setup alone.

    Parameters
    ----------
    run : PartStore
        Receives one part per setup, repeat and patient.
    problems : mapping of setup name to Problem
    patients : sequence of Patient
        Nobody learns from a patient who lacks a measurement.
    starts : ndarray, shape (n_starts, n_parameters)
    restarts : mapping of setup name to sequence of bool
        With restarts (uniform in Ω, on oscillation) the setup's name ends in ``, restart``.
    n_states, n_samples, max_runs, n_repeats : int
    max_runs_restart : int, optional
        Forward runs allowed where the agent restarts; by default `max_runs`.
    evaluated : sequence of Patient, optional
        Who is personalised, among the patients; all by default. Agents learn from all others.
    epsilon, recurrences
        Of agents with states, see `vitolab.settings.Settings`; by default the paper's.
    agents : sequence of str
        Names of agents, see `vitolab.methods`.
    n_replays : int
        Of each walk, for ``vito-hindsight``.
    episode : int
        Transitions per episode of the training walks.
    methods : sequence of str
        Reference methods to run from the same starts, beside the first setup.
    n_compared : int, optional
        References run from so many of the starts, drawn once; by default from all.
    n_traced : int
        Traces are kept for so many starts, drawn once.
    seed, n_jobs : int
    cache : Path, optional
    """
    check_agents(agents, "agents")
    check_patients(patients)
    evaluated = patients if evaluated is None else evaluated
    if unknown := {p.name for p in evaluated} - {p.name for p in patients}:
        raise ValueError(
            f"evaluated holds {min(unknown)!r}, expected names of the {len(patients)} patients"
        )
    restarting = max_runs if max_runs_restart is None else max_runs_restart
    # nothing by default: parts of earlier studies keep their keys
    ways = by_training(agents)
    replays = n_replays if any(trained.has_replays for trained in ways) else 0
    stateful = {name for trained, names in ways.items() if trained.has_states for name in names}
    settings = Settings(
        n_states=n_states,
        n_replays=replays,
        initialize=False,
        epsilon=epsilon,
        recurrences=recurrences,
    )
    extra = (
        *(() if tuple(agents) == (PAPER,) else ("agents", *agents)),
        *(("replays", replays) if replays else ()),
        *(() if episode == EPISODE else ("episode", episode)),
        *(() if restarting == max_runs else ("restarting", restarting)),
        *unlike_the_paper(settings),
    )
    order = stream("grid starts", checked_seed(seed)).permutation(len(starts))
    compared_starts = np.sort(order[:n_compared])
    for setup, problem in problems.items():
        whole = learned_from(problem, patients)
        check_patients(whole, "patients with all measurements")
        for repeat in range(n_repeats):
            child = child_seed(seed, "repeat", repeat)
            work = {
                digest(
                    "grid",
                    *extra,
                    setup,
                    problem.version,
                    n_states,
                    n_samples,
                    repeat,
                    p.name,
                    seed,
                ): (p,)
                for p in evaluated
            }
            fold = partial(
                _fold,
                problem=problem,
                starts=starts,
                setups={
                    setup + (", restart" if on else ""): (on, restarting if on else max_runs)
                    for on in restarts[setup]
                },
                acting=[n for n in agents if n in stateful or setup == next(iter(problems))],
                settings=settings,
                compared=methods if setup == next(iter(problems)) and repeat == 0 else (),
                compared_starts=compared_starts,
                traced=order[:n_traced].tolist() if repeat == n_repeats - 1 else [],
                n_samples=n_samples,
                max_runs=max_runs,
                repeat=repeat,
                seed=seed,
                child=child,
            )
            work_through(
                run,
                f"{setup}, repeat {repeat + 1} of {n_repeats}",
                work,
                fold,
                n_jobs,
                walks=partial(
                    recorded_walks,
                    run,
                    setup,
                    problem,
                    whole,
                    n_samples,
                    child,
                    n_jobs,
                    cache,
                    episode,
                ),
                # many short steps of plain Python, which threads would take in turns
                prefer=workers(problem),
            )


def _fold(
    walks: Trajectories,
    patient: Patient,
    *,
    problem: Problem,
    starts: FloatArray,
    setups: Mapping[str, tuple[bool, int]],
    acting: Sequence[str],
    settings: Settings,
    compared: Sequence[str],
    compared_starts: IntArray,
    traced: Sequence[int],
    n_samples: int,
    max_runs: int,
    repeat: int,
    seed: int,
    child: int,
) -> Part:
    """Learn without the patient, then personalise the patient from each start.

    `setups` tells by name whether the agent restarts, and how many forward runs it may make;
    references stand beside the first, and so do agents without states.
    """
    train = training(walks.first(n_samples), problem, patient)
    observed = problem.observed(patient)
    fold_seed = child_seed(child, "fold", patient.name)
    first = next(iter(setups))
    agents: dict[tuple[str, str], Personalizer] = {}
    learned = learn(acting, observed, train, fold_seed, settings) if acting else {}
    for name, agent in learned.items():
        if isinstance(agent, Vito):
            agents |= {(s, name): agent.acting(restart=on) for s, (on, _) in setups.items()}
        else:
            agents[first, name] = agent
    agents |= {(first, name): build(name, observed) for name in compared}
    rows, traces, failures = [], [], list[Failure]()
    for (name, method), agent in agents.items():
        trained = is_agent(method)
        used = n_states_used(agent)
        own = np.arange(len(starts)) if trained else compared_starts
        # an agent without states restarts, but stands beside the others of the first setup
        allowed = setups[name][1] if used is not None else max_runs
        fits = personalized(
            observed, agent, patient, max_runs=allowed, seed=child, starts=starts[own]
        )
        for start, fit in zip(own.tolist(), fits, strict=True):
            failures += fit.failures
            label = {
                "setup": name,
                "patient": patient.name,
                "method": method,
                "n_states": None if used is None else settings.n_states,
                "n_samples": n_samples if trained else None,
                "repeat": repeat if trained else None,
                "start": start,
                "seed": seed,
            }
            numbers = {
                "n_states_used": used,
                "n_training_runs": train.n_runs if trained else None,
                "max_runs": allowed,
            }
            rows.append(label | numbers | fit_row(problem, fit, observed))
            if start in traced:
                traces.append(trace_columns(problem, fit, label, observed))
    return Part(table(rows), joined_traces(traces), failures)
