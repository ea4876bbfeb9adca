"""Random walks through parameter space, from which an agent learns (section 2.3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.asked import checked_count, checked_seed
from vitolab.failures import HOPELESS, all_failed
from vitolab.files import ArrayCache, digest, stream
from vitolab.parallel.workers import parallel
from vitolab.problem import BoolArray, IntArray, Patient, Problem
from vitolab.scale import Scale
from vitolab.trajectories import Cause, Trajectories, tallied
from vitolab.version import reached_version

_CAUSES = "causes"  # name of their list among the arrays of stored walks


def explore(
    problem: Problem,
    patients: Sequence[Patient],
    n_episodes: int = 10,
    n_steps: int = 100,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
    *,
    by_scale: bool = False,
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
        Patients explored at the same time, see `vitolab.parallel.workers.parallel`.
    cache : Path, optional
        Folder in whose ``walks`` explored walks are kept and looked up.
    by_scale : bool
        Whether starts are drawn by ratio in each parameter whose scale is logarithmic, as methods
        that learn from single runs want them; uniformly in Ω by default, as in the paper.

    Returns
    -------
    Trajectories

    Raises
    ------
    ValueError
        If there is no patient, two share a name, a size is below one, or no run answers: after
        `HOPELESS` runs of each patient, with the first cause: `vitolab.failures.NothingAnswers`,
        which holds all causes.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=2, n_steps=20, seed=0)
    >>> walks
    Trajectories
      patients             3: F002, F003, F004
      walks                6
      samples per patient  40
      runs                 126, of which 0 failed
      parameters           2
      objectives           2
    """
    if not patients:
        raise ValueError("explore: patients is empty, expected at least one")
    names = tuple(patient.name for patient in patients)
    if len(set(names)) < len(names):
        raise ValueError("explore: two patients have the same name")
    n_episodes = checked_count("explore: n_episodes", n_episodes)
    n_steps = checked_count("explore: n_steps", n_steps)
    seed = checked_seed(seed)
    z = np.array([problem.measured(patient) for patient in patients])
    by_scale = by_scale and Scale(problem).is_by_ratio
    walks = _of_all(problem, patients, n_episodes, n_steps, seed, by_scale, n_jobs, cache)
    n = len(patients) * n_episodes
    cause, causes = _numbered([(walk["cause"], _causes(walk)) for walk in walks])
    return Trajectories(
        patients=names,
        z=z,
        patient=np.repeat(np.arange(len(patients)), n_episodes),
        x=np.concatenate([walk["x"] for walk in walks]),
        y=np.concatenate([walk["y"] for walk in walks]),
        action=np.concatenate([walk["action"] for walk in walks]),
        length=np.full(n, n_steps),
        features=np.array([problem.featured(patient) for patient in patients]),
        cause=cause,
        causes=tuple(causes),
        by_scale=by_scale,
    )


def _of_all(
    problem: Problem,
    patients: Sequence[Patient],
    n_episodes: int,
    n_steps: int,
    seed: int,
    by_scale: bool,
    n_jobs: int,
    cache: Path | None,
) -> list[dict[str, NDArray[Any]]]:
    """Walks of each patient; those without an answer are gone through only if others have some."""
    sizes = (n_episodes, n_steps, seed, by_scale, n_jobs, cache)
    walks = _stored_walks(problem, patients, *sizes, patience=False)
    if not any(_answered(walk).any() for walk in walks):
        failures = [
            failure
            for patient, walk in zip(patients, walks, strict=True)
            for failure in tallied(patient.name, walk["x"], walk["cause"], _causes(walk))
        ]
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
    by_scale: bool,
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
        shared = _key(problem, n_steps, seed, by_scale)
        keys = [(shared, digest(patient.name, patient.data)) for patient in patients]
        walks = [store.load(*key) or {} for key in keys]
    items = []
    for i, (patient, known) in enumerate(zip(patients, walks, strict=True)):
        n_known = len(known["x"]) if known else 0
        if n_known < n_episodes:
            episodes = range(n_known, n_episodes)
            items.append((i, patient, episodes, n_steps, seed, by_scale, patience or n_known > 0))
    for i, found in parallel(_walks_of, problem, items, n_jobs):
        whole = _continued(walks[i], found) if walks[i] else found
        # of which no run answers may do so another time
        if store is not None and _answered(found).any() and not _is_given_up(found, n_steps):
            problem_key, patient_key = keys[i]
            store.store(problem_key, patient_key, whole)
        walks[i] = whole
    return [
        {name: v if name == _CAUSES else v[:n_episodes] for name, v in known.items()}
        for known in walks
    ]


def _key(problem: Problem, n_steps: int, seed: int, by_scale: bool) -> str:
    """Key of all that walks depend on but the patient."""
    return digest(
        reached_version([__name__]),
        problem.name,
        problem.version,
        [p.name for p in problem.parameters],
        [o.name for o in problem.objectives],
        problem.lower,
        problem.upper,
        problem.step,
        problem.multipliers,
        problem.border,
        n_steps,
        seed,
        *(("by scale",) if by_scale else ()),
    )


def _is_given_up(walk: dict[str, NDArray[Any]], n_steps: int) -> bool:
    """Whether walks ended early, see `_walks`; they are not worth keeping."""
    return int(walk["y"].shape[1]) <= n_steps


def _answered(walk: dict[str, NDArray[Any]]) -> BoolArray:
    """Which runs gave an answer, shape (n, T + 1)."""
    answered: BoolArray = np.isfinite(walk["y"]).all(axis=-1)
    return answered


def _causes(walk: dict[str, NDArray[Any]]) -> list[Cause]:
    """Causes that ``cause`` points to."""
    return [(kind, text, n) for kind, text, n in json.loads(str(walk[_CAUSES]))]


def _numbered(walks: Sequence[tuple[IntArray, Sequence[Cause]]]) -> tuple[IntArray, list[Cause]]:
    """Causes of several walks by the positions in one list, whose order is that of the texts."""
    known = sorted({cause for _, causes in walks for cause in causes})
    position = {cause: i for i, cause in enumerate(known)}
    # the last is what -1 points to
    numbers = [np.array([*(position[c] for c in causes), -1])[cause] for cause, causes in walks]
    return np.concatenate(numbers), known


def _continued(
    known: dict[str, NDArray[Any]], more: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """What is known and what came after it."""
    cause, causes = _numbered([(walk["cause"], _causes(walk)) for walk in (known, more)])
    plain = {name: np.concatenate([known[name], more[name]]) for name in ("x", "y", "action")}
    return plain | {"cause": cause, _CAUSES: np.array(json.dumps(causes))}


def _walks_of(problem: Problem, i: int, *given: Any) -> tuple[int, dict[str, NDArray[Any]]]:
    """Explore, and tell of whom."""
    return i, _walks(problem, *given)


def _walks(
    problem: Problem,
    patient: Patient,
    episodes: range,
    n_steps: int,
    seed: int,
    by_scale: bool,
    patience: bool,
) -> dict[str, NDArray[Any]]:
    """Explore some episodes of one patient in lock-step.

    Without patience they end early, with fewer points, once `HOPELESS` runs have failed and none
    has answered.
    """
    streams = [stream("explore", problem.name, seed, patient.name, e) for e in episodes]
    n = len(streams)
    draw = Scale(problem).draw if by_scale else problem.draw
    start = np.concatenate([draw(rng) for rng in streams])
    action = np.array([rng.integers(problem.n_actions, size=n_steps) for rng in streams])
    count = np.zeros((n, problem.n_parameters), dtype=np.int64)
    x = np.empty((n, n_steps + 1, problem.n_parameters))
    y = np.empty((n, n_steps + 1, problem.n_objectives))
    x[:, 0] = start
    cause = np.full((n, n_steps + 1), -1)
    causes: dict[Cause, int] = {}
    made = n_steps + 1

    def run(t: int) -> None:
        """Run a point of all episodes; and number the causes of rows that fail."""
        runs = problem.run(x[:, t], patient)
        y[:, t] = runs.y
        for row, failure in zip(np.flatnonzero(runs.failed), runs.failures, strict=True):
            why = (str(failure.kind), failure.text, failure.n_retries)
            cause[row, t] = causes.setdefault(why, len(causes))

    run(0)
    for t in range(n_steps):
        hopeless = not patience and n * (t + 1) >= HOPELESS
        if hopeless and (cause[:, : t + 1] >= 0).all():
            made = t + 1
            break
        count = problem.move(start, count, action[:, t])
        for i in np.flatnonzero(cause[:, t] >= 0):
            action[i, t] = -1
            start[i] = draw(streams[i])[0]
            count[i] = 0
        x[:, t + 1] = problem.at(start, count)
        run(t + 1)
    cause, known = _numbered([(cause[:, :made], list(causes))])
    walks = {"x": x[:, :made], "y": y[:, :made], "action": action[:, : made - 1], "cause": cause}
    return walks | {_CAUSES: np.array(json.dumps(known))}
