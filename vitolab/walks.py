"""Walks to learn from, checked."""

from __future__ import annotations

import numpy as np

from vitolab.asked import shown
from vitolab.problem import BoolArray, FloatArray, Problem
from vitolab.quantities import BEYOND
from vitolab.trajectories import Trajectories

ROUNDING = 1e-6  # share of Ω by which a run may lie outside, as where walks were stored as text


def reach(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Least and largest parameters of walks: Ω, or beyond where they may leave it.

    Returns
    -------
    lower, upper : ndarray, shape (n_parameters,)
    """
    width = problem.upper - problem.lower
    room = width * (BEYOND if problem.border == "free" else ROUNDING)
    return problem.lower - room, problem.upper + room


def checked_runs(problem: Problem, walks: Trajectories) -> BoolArray:
    """Runs to learn from, see `Trajectories.counted`.

    Raises
    ------
    TypeError
        If the walks are something else.
    ValueError
        If they are those of another problem, a run lies outside the domain, or there is no run.
    """
    if not isinstance(walks, Trajectories):
        raise TypeError(f"walks is {shown(walks)}, expected Trajectories, as vitolab.explore gives")
    for name, n in (("x", problem.n_parameters), ("y", problem.n_objectives)):
        found = getattr(walks, name).shape[-1]
        if found != n:
            raise ValueError(
                f"walks: {name} has {found} columns, expected {n} as problem {problem.name!r}"
            )
    if walks.action.size and walks.action.max() >= problem.n_actions:
        raise ValueError(
            f"walks: action holds {walks.action.max()}, expected below the {problem.n_actions} "
            f"actions of problem {problem.name!r}"
        )
    counted = walks.counted
    if not counted.any():
        raise ValueError(
            f"problem {problem.name!r}: none of the {counted.size} runs of the walks to learn "
            "from gave finite outputs, expected at least one"
        )
    x, (lower, upper) = walks.x[counted], reach(problem)
    outside = np.argwhere((x < lower) | (x > upper))
    if len(outside):
        row, i = outside[0]
        p = problem.parameters[i]
        raise ValueError(
            f"walks: x holds {x[row, i]:.6g} of {p.name!r}, expected from {p.lower:g} to "
            f"{p.upper:g}, which walks of this problem do not leave"
        )
    return counted
