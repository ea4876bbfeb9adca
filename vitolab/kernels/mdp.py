"""Inner loops of the decision process: labelling, counting, Bellman backups.

Transitions are kept as counts in compressed rows, one row per (state, action) pair:
row ``s * n_actions + a`` holds the successor states ``successor[start[row]:start[row + 1]]``
and how often each was seen. A row without counts stands for the uniform distribution.
State 0 is success: terminal, of value 0, and the only one reached without punishment.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Shorts = NDArray[np.int32]


@njit(cache=True, nogil=True)
def nearest(points: Floats, centroids: Floats) -> Shorts:
    """Index of the centroid nearest to each point in the Euclidean sense; ties to the first.

    points (n, d), centroids (k, d) -> int32 (n,).
    """
    n, d = points.shape
    k = centroids.shape[0]
    columns = np.ascontiguousarray(centroids.T)
    distance = np.empty(k)
    label = np.empty(n, dtype=np.int32)
    for i in range(n):
        # coordinate by coordinate over all centroids: a loop the compiler can vectorise
        value = points[i, 0]
        for j in range(k):
            difference = value - columns[0, j]
            distance[j] = difference * difference
        for m in range(1, d):
            value = points[i, m]
            for j in range(k):
                difference = value - columns[m, j]
                distance[j] += difference * difference
        best = 0
        smallest = distance[0]
        for j in range(1, k):
            if distance[j] < smallest:
                smallest = distance[j]
                best = j
        label[i] = best
    return label


@njit(cache=True, nogil=True)
def count(
    state: Indices, action: Indices, successor: Indices, n_states: int, n_actions: int
) -> tuple[Indices, Shorts, Indices]:
    """Count transitions into compressed rows: (start, successor, count).

    Two stable counting sorts, by successor and then by row: linear time.
    """
    n = state.shape[0]
    by_successor = np.empty(n, dtype=np.int64)
    position = np.zeros(n_states + 1, dtype=np.int64)
    for i in range(n):
        position[successor[i] + 1] += 1
    for j in range(n_states):
        position[j + 1] += position[j]
    for i in range(n):
        by_successor[position[successor[i]]] = i
        position[successor[i]] += 1

    n_rows = n_states * n_actions
    position = np.zeros(n_rows + 1, dtype=np.int64)
    for i in range(n):
        position[state[i] * n_actions + action[i] + 1] += 1
    for j in range(n_rows):
        position[j + 1] += position[j]
    end = position.copy()
    ordered = np.empty(n, dtype=np.int32)
    for j in range(n):
        i = by_successor[j]
        row = state[i] * n_actions + action[i]
        ordered[end[row]] = successor[i]
        end[row] += 1

    start = np.zeros(n_rows + 1, dtype=np.int64)
    target = np.empty(n, dtype=np.int32)
    counts = np.empty(n, dtype=np.int64)
    kept = 0
    for row in range(n_rows):
        for i in range(position[row], position[row + 1]):
            if i > position[row] and ordered[i] == target[kept - 1]:
                counts[kept - 1] += 1
            else:
                target[kept] = ordered[i]
                counts[kept] = 1
                kept += 1
        start[row + 1] = kept
    return start, target[:kept].copy(), counts[:kept].copy()


@njit(cache=True, nogil=True)
def _worth(v: Floats, discount: float) -> tuple[Floats, float]:
    """What arriving in each state is worth, and the mean of it: reward plus discounted value."""
    worth = discount * v - 1.0
    worth[0] = 0.0
    return worth, worth.mean()


@njit(cache=True, nogil=True)
def _row_value(
    row: int,
    start: Indices,
    successor: Shorts,
    probability: Floats,
    worth: Floats,
    uniform: float,
) -> float:
    """Expected worth of the successors of one (state, action) row."""
    if start[row] == start[row + 1]:
        return uniform
    # Four sums that do not wait for one another, and unsigned indices that need no check for
    # counting from the end.
    a = b = c = d = 0.0
    i, last = np.uint64(start[row]), np.uint64(start[row + 1])
    one, four = np.uint64(1), np.uint64(4)
    two, three = np.uint64(2), np.uint64(3)
    while i + four <= last:
        a += probability[i] * worth[np.uint32(successor[i])]
        b += probability[i + one] * worth[np.uint32(successor[i + one])]
        c += probability[i + two] * worth[np.uint32(successor[i + two])]
        d += probability[i + three] * worth[np.uint32(successor[i + three])]
        i += four
    while i < last:
        a += probability[i] * worth[np.uint32(successor[i])]
        i += one
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def action_values(
    start: Indices,
    successor: Shorts,
    probability: Floats,
    n_actions: int,
    v: Floats,
    discount: float,
) -> Floats:
    """One backup of every state and action: Q of shape (n_states, n_actions)."""
    n_states = v.shape[0]
    worth, uniform = _worth(v, discount)
    q = np.zeros((n_states, n_actions))
    for s in range(1, n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            q[s, a] = _row_value(row, start, successor, probability, worth, uniform)
    return q


@njit(cache=True, nogil=True)
def iterate(
    start: Indices,
    successor: Shorts,
    probability: Floats,
    n_states: int,
    n_actions: int,
    discount: float,
    residual: float,
    n_inner: int,
    most: int,
) -> tuple[Floats, Floats, Floats]:
    """Solve by modified policy iteration; `n_inner` = 0 is value iteration.

    Each round backs up all actions, keeps the greedy ones, and repeats their backup
    `n_inner` times. Returns v, Q, and the Bellman residual of each round.
    """
    v = np.zeros(n_states)
    greedy = np.zeros(n_states, dtype=np.int64)
    own_start = np.zeros(n_states + 1, dtype=np.int64)
    own_successor = np.empty_like(successor)
    own_probability = np.empty_like(probability)
    residuals = np.empty(most)
    rounds = 0
    q = np.zeros((n_states, n_actions))
    while rounds < most:
        q = action_values(start, successor, probability, n_actions, v, discount)
        worst = 0.0
        for s in range(1, n_states):
            best = 0
            for a in range(1, n_actions):
                if q[s, a] > q[s, best]:
                    best = a
            greedy[s] = s * n_actions + best
            worst = max(worst, abs(q[s, best] - v[s]))
            v[s] = q[s, best]
        residuals[rounds] = worst
        rounds += 1
        if worst < residual:
            break
        if n_inner > 0:
            # the greedy rows side by side, where a sweep finds them in cache
            kept = 0
            for s in range(1, n_states):
                first, last = start[greedy[s]], start[greedy[s] + 1]
                own_successor[kept : kept + last - first] = successor[first:last]
                own_probability[kept : kept + last - first] = probability[first:last]
                kept += last - first
                own_start[s + 1] = kept
        for _ in range(n_inner):
            worth, uniform = _worth(v, discount)
            for s in range(1, n_states):
                v[s] = _row_value(s, own_start, own_successor, own_probability, worth, uniform)
    return v, q, residuals[:rounds].copy()
