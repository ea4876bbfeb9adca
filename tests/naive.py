"""Slow, obvious oracles for the kernels."""

import numpy as np


def nearest(points, centroids):
    """Label each point by trying every centroid."""
    return np.array([np.argmin([np.sum((p - c) ** 2) for c in centroids]) for p in points])


def transition_matrix(state, action, successor, n_states, n_actions):
    """Dense transition function with the uniform rule, shape (n_states, n_actions, n_states)."""
    counts = np.zeros((n_states, n_actions, n_states))
    for s, a, t in zip(state, action, successor, strict=True):
        counts[s, a, t] += 1
    total = counts.sum(axis=2, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1), 1.0 / n_states)


def bellman(matrix, v, discount):
    """Q from a dense transition function; success is state 0, terminal and unpunished."""
    n_states, n_actions, _ = matrix.shape
    q = np.zeros((n_states, n_actions))
    for s in range(1, n_states):
        for a in range(n_actions):
            for t in range(n_states):
                reward = 0.0 if t == 0 else -1.0
                future = 0.0 if t == 0 else discount * v[t]
                q[s, a] += matrix[s, a, t] * (reward + future)
    return q


def first_recurrence(points):
    """Index of the first point that occurred before, or None."""
    for i, point in enumerate(points):
        if any(np.array_equal(point, other) for other in points[:i]):
            return i
    return None
