"""Random walks through parameter space, from which an agent learns (section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.failures import all_failed, collected, from_json, to_json
from vitolab.files import ArrayCache, digest, source_version, stream
from vitolab.problem import Patient, Problem
from vitolab.trajectories import Trajectories
from vitolab.workers import parallel

HOPELESS = 50  # failed runs of a patient, without one that answers, after which others decide
_FAILURES = "failures"  # name of their record among the arrays of stored walks
_SOURCES = ("exploration.py", "problem.py", "failures.py", "files.py")


def explore(
    problem: Problem,
    patients: Sequence[Patient],
    n_episodes: int = 10,
    n_steps: int = 100,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
) -> Trajectories:
    """Walk at random through Ω with the models of many patients.

    Every episode starts uniformly in Ω and takes actions drawn uniformly (section 2.3).
    After a failed run the walk goes on from a fresh start. The walks of one patient advance
    in lock-step: one call of ``simulate`` per step.

    Parameters
    ----------
    problem : Problem
    patients : sequence of Patient
        Their measurements are not used for walking, only kept for learning.
    n_episodes : int
        Episodes per patient; more of them extend the same sequence.
    n_steps : int
        Transitions per episode.
    seed : int
    n_jobs : int
        Patients explored at the same time, see `vitolab.workers.parallel`.
    cache : Path, optional
        Folder in whose ``walks`` explored walks are kept and looked up.

    Returns
    -------
    Trajectories

    Raises
    ------
    ValueError
        If there is no patient, two share a name, a size is below one, or no run answers: after
        `HOPELESS` runs of each patient, with the first cause.
    """
    if not patients:
        raise ValueError("explore: patients is empty, expected at least one")
    names = tuple(patient.name for patient in patients)
    if len(set(names)) < len(names):
        raise ValueError("explore: two patients have the same name")
    if n_episodes < 1 or n_steps < 1:
        raise ValueError(
            f"explore: {n_episodes} episodes of {n_steps} steps, expected at least one of each"
        )
    z = np.array([problem.measured(patient) for patient in patients])
    walks = _of_all(problem, patients, n_episodes, n_steps, seed, n_jobs, cache)
    n = len(patients) * n_episodes
    return Trajectories(
        patients=names,
        z=z,
        patient=np.repeat(np.arange(len(patients)), n_episodes),
        x=np.concatenate([walk["x"] for walk in walks]),
        y=np.concatenate([walk["y"] for walk in walks]),
        action=np.concatenate([walk["action"] for walk in walks]),
        length=np.full(n, n_steps),
        features=np.array([problem.featured(patient) for patient in patients]),
        failures=tuple(f for walk in walks for f in from_json(str(walk[_FAILURES]))),
    )


def _of_all(
    problem: Problem,
    patients: Sequence[Patient],
    n_episodes: int,
    n_steps: int,
    seed: int,
    n_jobs: int,
    cache: Path | None,
) -> list[dict[str, NDArray[Any]]]:
    """Walks of each patient; those without an answer are gone through only if others have some."""
    sizes = (n_episodes, n_steps, seed, n_jobs, cache)
    walks = _stored_walks(problem, patients, *sizes, patience=False)
    if not any(np.isfinite(walk["y"]).all(axis=-1).any() for walk in walks):
        failures = [f for walk in walks for f in from_json(str(walk[_FAILURES]))]
        raise all_failed(
            f"problem {problem.name!r}", failures, [p.name for p in problem.parameters]
        )
    given_up = [i for i, walk in enumerate(walks) if _is_given_up(walk, n_steps)]
    again = _stored_walks(problem, [patients[i] for i in given_up], *sizes, patience=True)
    for i, walk in zip(given_up, again, strict=True):
        walks[i] = walk
    return walks


def _stored_walks(
    problem: Problem,
    patients: Sequence[Patient],
    n_episodes: int,
    n_steps: int,
    seed: int,
    n_jobs: int,
    cache: Path | None,
    *,
    patience: bool,
) -> list[dict[str, NDArray[Any]]]:
    """Walks of each patient: those in the cache, and the further ones that are asked for."""
    walks: list[dict[str, NDArray[Any]]] = [{} for _ in patients]
    store = None if cache is None else ArrayCache(cache / "walks")
    keys: list[tuple[str, str]] = []
    if store is not None:
        shared = _key(problem, n_steps, seed)
        keys = [(shared, digest(patient.name, patient.data)) for patient in patients]
        walks = [store.load(*key) or {} for key in keys]
    items = []
    for i, (patient, known) in enumerate(zip(patients, walks, strict=True)):
        n_known = len(known["x"]) if known else 0
        if n_known < n_episodes:
            episodes = range(n_known, n_episodes)
            items.append((i, patient, episodes, n_steps, seed, patience or n_known > 0))
    for i, found in parallel(_walks_of, problem, items, n_jobs):
        if walks[i]:
            found = {name: _continued(name, walks[i][name], found[name]) for name in found}
        if store is not None and not _is_given_up(found, n_steps):
            problem_key, patient_key = keys[i]
            store.store(problem_key, patient_key, found)
        walks[i] = found
    return [
        {name: v if name == _FAILURES else v[:n_episodes] for name, v in known.items()}
        for known in walks
    ]


def _key(problem: Problem, n_steps: int, seed: int) -> str:
    """Key of all that walks depend on but the patient."""
    folder = Path(__file__).parent
    return digest(
        source_version(*(folder / name for name in _SOURCES)),
        problem.name,
        problem.version,
        problem.lower,
        problem.upper,
        problem.step,
        problem.multipliers,
        problem.border,
        n_steps,
        seed,
    )


def _is_given_up(walk: dict[str, NDArray[Any]], n_steps: int) -> bool:
    """Whether walks ended early, see `_walks`; they are not worth keeping."""
    return int(walk["y"].shape[1]) <= n_steps


def _continued(name: str, known: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """What is known and what came after it; failures as one list."""
    if name == _FAILURES:
        return np.array(to_json([*from_json(str(known)), *from_json(str(more))]))
    return np.concatenate([known, more])


def _walks_of(problem: Problem, i: int, *given: Any) -> tuple[int, dict[str, NDArray[Any]]]:
    """Explore, and tell of whom."""
    return i, _walks(problem, *given)


def _walks(
    problem: Problem, patient: Patient, episodes: range, n_steps: int, seed: int, patience: bool
) -> dict[str, NDArray[Any]]:
    """Explore some episodes of one patient in lock-step.

    Without patience they end early, with fewer points, once `HOPELESS` runs have failed and none
    has answered.
    """
    streams = [stream("explore", problem.name, seed, patient.name, e) for e in episodes]
    n = len(streams)
    start = np.concatenate([problem.draw(rng) for rng in streams])
    action = np.array([rng.integers(problem.n_actions, size=n_steps) for rng in streams])
    count = np.zeros((n, problem.n_parameters), dtype=np.int64)
    x = np.empty((n, n_steps + 1, problem.n_parameters))
    y = np.empty((n, n_steps + 1, problem.n_objectives))
    x[:, 0] = start
    made = n_steps + 1
    with collected() as record:
        y[:, 0] = problem.run(start, patient)
        for t in range(n_steps):
            hopeless = not patience and n * (t + 1) >= HOPELESS
            if hopeless and not np.isfinite(y[:, : t + 1]).all(axis=-1).any():
                made = t + 1
                break
            count = problem.move(start, count, action[:, t])
            for i in np.flatnonzero(~np.isfinite(y[:, t]).all(axis=1)):
                action[i, t] = -1
                start[i] = problem.draw(streams[i])[0]
                count[i] = 0
            x[:, t + 1] = problem.at(start, count)
            y[:, t + 1] = problem.run(x[:, t + 1], patient)
    walks = {"x": x[:, :made], "y": y[:, :made], "action": action[:, : made - 1]}
    return walks | {_FAILURES: np.array(to_json(record.failures))}
