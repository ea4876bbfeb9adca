"""Explored walks replayed towards what they reached (hindsight experience replay).

Whatever a walk was after, its runs tell what its actions do to the misfit from any target, since
c = y − z holds for any z. Replayed towards a target near a point that it visited, a walk that
never came near its patient's measurements passes through success, without one more forward run
(Andrychowicz et al. 2017; the paper's own outlook).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitolab.asked import checked_count
from vitolab.files import stream
from vitolab.problem import FloatArray, Problem
from vitolab.trajectories import Trajectories


def replayed(
    problem: Problem, walks: Trajectories, n_replays: int, seed: int = 0
) -> Iterator[FloatArray]:
    """Misfits of all points to one new target per walk, replay by replay.

    A target is one point of the walk, drawn uniformly among those that count and did not fail,
    moved by up to half a tolerance in every objective. The point is thus a success of its replay.
    A walk all of whose runs failed has no target: its misfits are NaN.

    Parameters
    ----------
    problem : Problem
    walks : Trajectories
    n_replays : int
    seed : int
        A replay of a patient's walk depends neither on how many there are of either, nor on the
        other patients.

    Yields
    ------
    ndarray, shape (n, T + 1, n_objectives)
        Misfits as `Trajectories.misfits` gives them to the measurements.

    Raises
    ------
    ValueError
        If the number of replays is below zero.
    """
    n_replays = checked_count("n_replays", n_replays, 0)
    counted = walks.counted
    n_points = counted.sum(axis=1)
    walk = np.arange(len(counted))
    n_walks = np.bincount(walks.patient, minlength=len(walks.patients)).tolist()
    for replay in range(n_replays):
        drawn = [
            stream("hindsight", problem.name, seed, replay, name).random(
                (n, 1 + problem.n_objectives)
            )
            for name, n in zip(walks.patients, n_walks, strict=True)
        ]
        chance, *moved = np.concatenate(drawn).T
        shift = np.column_stack(moved) - 0.5
        # position of the drawn one among the points that count
        nth = np.floor(chance * n_points).astype(np.int64)
        point = np.argmax(counted & (np.cumsum(counted, axis=1) == nth[:, np.newaxis] + 1), axis=1)
        z = walks.y[walk, point] + shift * problem.tolerance
        z[n_points == 0] = np.nan
        yield problem.misfit(walks.y, z[:, np.newaxis])
