"""From misfits to a finite set of states: weighted k-means with a success state (Appendix A)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitolab.kernels import mdp as kernels
from vitolab.objects import Value
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, IntArray

# More iterations lower the mean squared distance to the centroid by less than 0.3 % (600 states,
# 50,000 points in six dimensions).
MAX_ITERATIONS = 30

# Stands for the infinite weight of the inserted points. A free point moves an inserted centroid
# by less than its distance over this weight: below 1e-8 tolerances for a million points
# a thousand tolerances away.
WEIGHT = 1e17


def scaled(values: ArrayLike, tolerance: FloatArray, squared: bool) -> FloatArray:
    """Coordinates in which the distance between states is Euclidean.

    The paper divides squared misfits by ψ (its equation for the distance), so its distance
    depends on units; ``squared`` divides by ψ², which does not.
    """
    result: FloatArray = np.asarray(values) / (tolerance if squared else np.sqrt(tolerance))
    return result


def outside(c: FloatArray, tolerance: FloatArray) -> FloatArray:
    """Misfits that may hold free states: finite, and not within 2ψ in every objective."""
    keep = np.isfinite(c).all(axis=1) & (np.abs(c) >= 2 * tolerance).any(axis=1)
    return c[keep]


@dataclass(frozen=True, eq=False, repr=False)
class StateSpace(Value):
    """Representative states.

    Attributes
    ----------
    centroids : ndarray, shape (n_states, n_objectives)
        Misfits that stand for the states. The first is the origin, state 0, success; the next
        2 n_objectives lie at ±2ψ on the axes and delineate it.
    tolerance : ndarray, shape (n_objectives,)
    squared : bool
        Whether the distance divides by ψ² instead of ψ.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=2, n_steps=20, seed=0)
    >>> states = vl.Vito.learn(problem, walks, n_states=20).states
    >>> states.quantize([[0.0, 0.0]]).tolist()
    [0]
    """

    centroids: FloatArray
    tolerance: FloatArray
    squared: bool = False

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        first = self.centroids[: 2 * len(self.tolerance) + 1]
        return {
            "n_states": f"{self.n_states}, of which {len(first)} at and around success",
            "tolerance": self.tolerance,
            "squared": self.squared,
        }

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.centroids)

    @classmethod
    def learn(
        cls,
        c: FloatArray,
        tolerance: FloatArray,
        n_states: int,
        rng: np.random.Generator,
        *,
        squared: bool = False,
        max_points: int = 50_000,
    ) -> StateSpace:
        """Cluster observed misfits (Appendix A).

        Parameters
        ----------
        c : ndarray, shape (n, n_objectives)
            Observed misfits; failed runs are left out.
        tolerance : ndarray, shape (n_objectives,)
        n_states : int
        rng : numpy.random.Generator
            Chooses the subset to cluster and the initial centroids.
        squared : bool
            Distance in squares of tolerances; the default is the paper's.
        max_points : int
            The clusters are fitted to at most so many points.

        Raises
        ------
        ValueError
            If there are more states than inserted and distinct observed points.
        """
        from sklearn.cluster import KMeans

        n_objectives = len(tolerance)
        inserted = np.zeros((2 * n_objectives + 1, n_objectives))
        for i in range(n_objectives):
            inserted[2 * i + 1, i] = -2 * tolerance[i]
            inserted[2 * i + 2, i] = 2 * tolerance[i]
        n_free = n_states - len(inserted)
        observed = outside(c, tolerance)
        if len(observed) > max_points:
            observed = observed[np.sort(rng.choice(len(observed), max_points, replace=False))]
        distinct = np.unique(observed, axis=0)
        if n_free < 0 or n_free > len(distinct):
            raise ValueError(
                f"n_states is {n_states}, expected from {len(inserted)} (success and its "
                f"neighbours) to {len(inserted) + len(distinct)} (distinct misfits observed)"
            )
        if n_free == 0:
            return cls(inserted, tolerance, squared)
        initial = distinct[rng.choice(len(distinct), n_free, replace=False)]
        points = np.concatenate([inserted, observed])
        weight = np.ones(len(points))
        weight[: len(inserted)] = WEIGHT
        means = KMeans(
            n_states,
            init=scaled(np.concatenate([inserted, initial]), tolerance, squared),
            n_init=1,
            max_iter=MAX_ITERATIONS,
        )
        with one_thread():
            means.fit(scaled(points, tolerance, squared), sample_weight=weight)
        populated = np.bincount(means.labels_, minlength=n_states) > 0
        unit = tolerance if squared else np.sqrt(tolerance)
        return cls(means.cluster_centers_[populated] * unit, tolerance, squared)

    def quantize(self, c: ArrayLike) -> IntArray:
        """State of each misfit vector.

        Success is decided by the tolerances, never by the nearest centroid; every other misfit
        belongs to the nearest of the other centroids.

        Parameters
        ----------
        c : array_like, shape (n, n_objectives)
            Finite misfits.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        c = np.ascontiguousarray(c, dtype=np.float64)
        others = scaled(self.centroids[1:], self.tolerance, self.squared)
        state = 1 + kernels.nearest(scaled(c, self.tolerance, self.squared), others)
        solved = np.all(np.abs(c) < self.tolerance, axis=1)
        return np.where(solved, 0, state)
