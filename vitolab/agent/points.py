"""Points that a walk has met since its start, which tell when it goes in circles."""

from __future__ import annotations

import numpy as np

from vitolab.problem import IntArray


def keys(count: IntArray) -> list[bytes]:
    """Grid points as values that can be looked up, of shape (n, n_parameters)."""
    rows = np.ascontiguousarray(count).view(np.dtype((np.void, count.itemsize * count.shape[1])))
    points: list[bytes] = rows[:, 0].tolist()
    return points


def recurs(met: dict[bytes, int], point: bytes, recurrences: int) -> bool:
    """Whether a walk oscillates if it goes to a point; otherwise it is counted as met once more.

    Parameters
    ----------
    met : dict of bytes to int
        How often the walk met each point; changed in place.
    point : bytes
        Of `keys`.
    recurrences : int
        The recurrence that makes an oscillation, 1 for the first.
    """
    times = met.get(point, 0)
    if times >= recurrences:
        return True
    met[point] = times + 1
    return False
