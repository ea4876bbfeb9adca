"""Agents and reference methods from each of many given starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from vitolab.agent import ContinuousVito, Vito
from vitolab.files import digest, stream
from vitolab.guard import personalized
from vitolab.problem import FloatArray, IntArray, Patient, Problem
from vitolab.tables import fit_row, joined_traces, table, trace_columns
from vitolab.trajectories import Personalizer, Trajectories
from vitolab.validation.parts import (
    EPISODE,
    Part,
    PartStore,
    allowed,
    check_patients,
    child_seed,
    recorded_walks,
    work_through,
    workers,
)
from vitolab.validation.references import REFERENCES

_AGENTS = ("vito", "vito-hindsight", "vito-continuous")


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
    agents: Sequence[str] = ("vito",),
    methods: Sequence[str] = (),
    n_compared: int | None = None,
    n_traced: int = 4,
    n_replays: int = 5,
    episode: int = EPISODE,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> None:
    """Personalise each patient from each of the given starts (section 3.1.2).

    ``vito`` and ``vito-hindsight`` neither initialise from data nor, unless asked for, restart.
    ``vito-continuous`` does both as it always does; it has no actions, and stands beside the first
    setup alone.

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
    agents : sequence of {"vito", "vito-hindsight", "vito-continuous"}
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
    unknown = [name for name in agents if name not in _AGENTS]
    if unknown or not agents:
        raise ValueError(f"agents are {list(agents)}, expected some of {', '.join(_AGENTS)}")
    check_patients(patients)
    # nothing by default: parts of earlier studies keep their keys
    replays = n_replays if "vito-hindsight" in agents else 0
    extra = (
        *(() if tuple(agents) == ("vito",) else ("agents", *agents)),
        *(("replays", replays) if replays else ()),
        *(() if episode == EPISODE else ("episode", episode)),
    )
    order = stream("grid starts", seed).permutation(len(starts))
    compared_starts = np.sort(order[:n_compared])
    for setup, problem in problems.items():
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
                for p in patients
            }
            fold = partial(
                _fold,
                problem=problem,
                starts=starts,
                setups={setup + (", restart" if on else ""): on for on in restarts[setup]},
                acting=[
                    name
                    for name in agents
                    if name != "vito-continuous" or setup == next(iter(problems))
                ],
                n_replays=replays,
                compared=methods if setup == next(iter(problems)) and repeat == 0 else (),
                compared_starts=compared_starts,
                traced=order[:n_traced].tolist() if repeat == n_repeats - 1 else [],
                n_states=n_states,
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
                    patients,
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
    setups: Mapping[str, bool],
    acting: Sequence[str],
    n_replays: int,
    compared: Sequence[str],
    compared_starts: IntArray,
    traced: Sequence[int],
    n_states: int,
    n_samples: int,
    max_runs: int,
    repeat: int,
    seed: int,
    child: int,
) -> Part:
    """Learn without the patient, then personalise the patient from each start.

    `setups` tells by name whether the agent restarts; references stand beside the first, and so
    does ``vito-continuous``.
    """
    train = walks.first(n_samples).without(patient.name)
    fold_seed = child_seed(child, "fold", patient.name)
    first = next(iter(setups))
    agents: dict[tuple[str, str], Personalizer] = {}
    used: dict[str, int] = {}
    for name, replays in (("vito", 0), ("vito-hindsight", n_replays)):
        if name in acting:
            n = allowed(n_states, problem, train)
            vito = Vito.learn(problem, train, n, fold_seed, initialize=False, n_replays=replays)
            used[name] = vito.states.n_states
            for setup, restart in setups.items():
                agents[setup, name] = vito.acting(deterministic=False, restart=restart)
    if "vito-continuous" in acting:
        agents[first, "vito-continuous"] = ContinuousVito.learn(problem, train, fold_seed)
    agents |= {(first, name): REFERENCES[name](problem) for name in compared}
    rows, traces = [], []
    for (name, method), agent in agents.items():
        learned = method in _AGENTS
        own = np.arange(len(starts)) if learned else compared_starts
        fits = personalized(
            problem, agent, patient, max_runs=max_runs, seed=child, starts=starts[own]
        )
        for start, fit in zip(own.tolist(), fits, strict=True):
            label = {
                "setup": name,
                "patient": patient.name,
                "method": method,
                "n_states": n_states if method in used else None,
                "n_samples": n_samples if learned else None,
                "repeat": repeat if learned else None,
                "start": start,
                "seed": seed,
            }
            rows.append(label | {"n_states_used": used.get(method)} | fit_row(problem, fit))
            if start in traced:
                traces.append(trace_columns(problem, fit, label))
    return table(rows), joined_traces(traces)
