"""Start candidates for a patient, from runs of other patients' models (section 2.6.1, Appendix B).

The model states y of all runs are clustered. The parameters that led to the cluster nearest to
the patient's measurements z are taken as samples of a density; the means of its components are
the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans

from vitolab.density import Mixture, estimate
from vitolab.kernels import mdp as kernels
from vitolab.objects import Value
from vitolab.parallel.threads import one_thread
from vitolab.problem import BoolArray, FloatArray, IntArray, Problem

RADIUS = 180 / np.pi  # of a circle on which one degree of arc has length one


@dataclass(frozen=True, eq=False, repr=False)
class Initializer(Value):
    """Clusters of model states, and the parameters of their members.

    The distance between model states is that of the paper, the sum of squared differences over
    the tolerances ψ, or over ψ² if ``squared``. An angle enters as a point on a circle of radius
    180°/π: small differences count as they are, none is torn apart at ±180°, large ones count as
    the chord (114.6 for 180°), and the mean of angles is the direction of the mean point.

    Attributes
    ----------
    centroids : ndarray, shape (n_clusters, n_objectives)
        Model states that stand for the clusters; a cluster is what is nearest to its centroid.
    start : ndarray of int, shape (n_clusters + 1,)
        Members of cluster k are rows ``start[k]`` to ``start[k + 1]`` of x and y; at least one.
    x : ndarray, shape (n_members, n_parameters)
    y : ndarray, shape (n_members, n_objectives)
    tolerance : ndarray, shape (n_objectives,)
    angular : ndarray of bool, shape (n_objectives,)
    lower, upper : ndarray, shape (n_parameters,)
        Domain Ω.
    squared : bool
        Whether the distance divides by ψ² instead of ψ.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=2, n_steps=20, seed=0)
    >>> starts = vl.Vito.learn(problem, walks, n_states=20).initializer
    >>> starts.candidates(problem.measured(patient)).shape[1]
    2
    """

    centroids: FloatArray
    start: IntArray
    x: FloatArray
    y: FloatArray
    tolerance: FloatArray
    angular: BoolArray
    lower: FloatArray
    upper: FloatArray
    squared: bool = False
    _mixtures: dict[int, Mixture] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        return {
            "clusters": len(self.centroids),
            "members": len(self.x),
            "tolerance": self.tolerance,
            "squared": self.squared,
        }

    @classmethod
    def learn(
        cls,
        x: FloatArray,
        y: FloatArray,
        problem: Problem,
        n_clusters: int,
        rng: np.random.Generator,
        *,
        squared: bool = False,
        max_points: int = 20_000,
        max_members: int = 500,
    ) -> Initializer:
        """Cluster model states by k-means.

        Parameters
        ----------
        x : ndarray, shape (n, n_parameters)
        y : ndarray, shape (n, n_objectives)
            Outputs of x; rows that are not finite are failed runs and left out.
        problem : Problem
        n_clusters : int
            At most so many; the paper takes the number of states. Fewer if there are fewer
            distinct model states.
        rng : numpy.random.Generator
            Chooses the points to fit, the initial centroids, and the members to keep.
        squared : bool
            Distance in squares of tolerances; the default is the paper's.
        max_points : int
            The clusters are fitted to at most so many points; all others are assigned.
        max_members : int
            At most so many members of a cluster are kept, drawn at random.

        Raises
        ------
        ValueError
            If no row of y is finite, shapes do not fit, or a size is below one.
        """
        shapes = (x.shape, y.shape)
        expected = ((len(x), problem.n_parameters), (len(x), problem.n_objectives))
        if shapes != expected:
            raise ValueError(f"initializer: x, y have shapes {shapes}, expected {expected}")
        if min(n_clusters, max_points, max_members) < 1:
            raise ValueError(
                f"initializer: n_clusters, max_points, max_members are {n_clusters}, "
                f"{max_points}, {max_members}, expected at least 1"
            )
        tolerance, angular = problem.tolerance, problem.angular
        rows = np.flatnonzero(np.isfinite(y).all(axis=1))
        if not len(rows):
            raise ValueError("initializer: y has no finite row, expected at least one run")
        # one shuffle serves all draws: points to fit, initial centroids, members to keep
        rows = rng.permutation(rows)
        points = _embedded(y[rows], tolerance, angular, squared)
        fitted = _fit(points[:max_points], n_clusters)
        centroids = _disembedded(fitted, tolerance, angular, squared)
        label = kernels.nearest(points, _embedded(centroids, tolerance, angular, squared))

        size = np.bincount(label, minlength=len(centroids))
        order = np.argsort(label, kind="stable")
        position = np.arange(len(rows)) - np.repeat(np.cumsum(size) - size, size)
        kept = rows[order[position < max_members]]
        populated = size > 0
        size = np.minimum(size[populated], max_members)
        return cls(
            centroids=centroids[populated],
            start=np.concatenate([[0], np.cumsum(size)]),
            x=np.asarray(x[kept], dtype=np.float64),
            y=np.asarray(y[kept], dtype=np.float64),
            tolerance=tolerance,
            angular=angular,
            lower=problem.lower,
            upper=problem.upper,
            squared=squared,
        )

    @property
    def source(self) -> str:
        """Where start candidates come from, in words."""
        return f"from {self.n_clusters} clusters"

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.centroids)

    def nearest(self, z: ArrayLike) -> int:
        """Cluster whose centroid is nearest to measurements z, shape (n_objectives,).

        Raises
        ------
        ValueError
            If z has another shape or is not finite.
        """
        z = np.asarray(z, dtype=np.float64)
        if z.shape != self.tolerance.shape or not np.isfinite(z).all():
            raise ValueError(
                f"initializer: z is {z.tolist()}, expected {len(self.tolerance)} finite numbers"
            )
        return int(kernels.nearest(self._points(z[np.newaxis]), self._points(self.centroids))[0])

    def mixture(self, cluster: int) -> Mixture:
        """Density of the parameters of a cluster's members (eq. of GMM_p in Appendix B).

        Computed when first asked for. It is estimated in the parameters' own units, since the
        estimate goes along with any rescaling of them.
        """
        if cluster not in self._mixtures:
            self._mixtures[cluster] = estimate(self.x[self._members(cluster)])
        return self._mixtures[cluster]

    def candidates(self, z: ArrayLike) -> FloatArray:
        """Start candidates, the most likely first (Appendix B).

        Means of the components of the density, by falling weight. A cluster with too few members
        for their covariance to have full rank gives their mean, then the members themselves, by
        the distance of their model states to z.

        Parameters
        ----------
        z : array_like, shape (n_objectives,)
            Measurements of the patient.

        Returns
        -------
        ndarray, shape (m, n_parameters)
            Distinct, within Ω.

        Raises
        ------
        ValueError
            If z has another shape or is not finite.
        """
        z = np.asarray(z, dtype=np.float64)
        cluster = self.nearest(z)
        members = self._members(cluster)
        x = self.x[members]
        if len(x) > len(self.lower):
            found = self.mixture(cluster).means
        else:
            away = self._points(self.y[members]) - self._points(z[np.newaxis])
            order = np.argsort(np.sum(away**2, axis=1), kind="stable")
            found = np.concatenate([x.mean(axis=0, keepdims=True), x[order]])
        found = np.clip(found, self.lower, self.upper)
        _, first = np.unique(found, axis=0, return_index=True)
        return found[np.sort(first)]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays from which `from_arrays` makes the same initializer."""
        return {
            "centroids": self.centroids,
            "start": self.start,
            "x": self.x,
            "y": self.y,
            "squared": np.array(self.squared),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], problem: Problem) -> Initializer:
        """Read what `to_arrays` gave, for the problem it was learned for.

        Raises
        ------
        ValueError
            If an array is missing or does not fit the problem.
        """
        widths = {
            "centroids": problem.n_objectives,
            "x": problem.n_parameters,
            "y": problem.n_objectives,
        }
        for name in (*widths, "start", "squared"):
            if name not in arrays:
                raise ValueError(f"initializer: array {name!r} is missing")
        for name, width in widths.items():
            if arrays[name].ndim != 2 or arrays[name].shape[1] != width:
                raise ValueError(
                    f"initializer: {name} has shape {arrays[name].shape}, expected {width} columns"
                )
        start, n = arrays["start"], len(arrays["x"])
        ends = (len(start) == len(arrays["centroids"]) + 1 > 1) and start[0] == 0 and start[-1] == n
        if not ends or (np.diff(start) < 1).any() or len(arrays["y"]) != n:
            raise ValueError(
                f"initializer: start does not part {n} members into "
                f"{len(arrays['centroids'])} clusters, expected one or more in each"
            )
        return cls(
            centroids=arrays["centroids"],
            start=arrays["start"],
            x=arrays["x"],
            y=arrays["y"],
            tolerance=problem.tolerance,
            angular=problem.angular,
            lower=problem.lower,
            upper=problem.upper,
            squared=bool(arrays["squared"]),
        )

    def _members(self, cluster: int) -> slice:
        """Rows of a cluster's members."""
        return slice(int(self.start[cluster]), int(self.start[cluster + 1]))

    def _points(self, y: FloatArray) -> FloatArray:
        """Model states where distance is Euclidean."""
        return _embedded(y, self.tolerance, self.angular, self.squared)


def _unit(tolerance: FloatArray, squared: bool) -> FloatArray:
    """What differences are divided by: ψ, or √ψ as in the paper's equation for the distance."""
    return tolerance if squared else np.sqrt(tolerance)


def _embedded(
    y: FloatArray, tolerance: FloatArray, angular: BoolArray, squared: bool
) -> FloatArray:
    """Coordinates with Euclidean distance: an angle's sine beside its cosine, on the circle."""
    unit = _unit(tolerance, squared)
    points = np.empty((len(y), len(unit) + int(angular.sum())))
    points[:, : len(unit)] = y / unit
    angle = np.radians(y[:, angular])
    scale = RADIUS / unit[angular]
    points[:, np.flatnonzero(angular)] = scale * np.cos(angle)
    points[:, len(unit) :] = scale * np.sin(angle)
    return points


def _disembedded(
    points: FloatArray, tolerance: FloatArray, angular: BoolArray, squared: bool
) -> FloatArray:
    """Model states of embedded points; a point off the circle stands for its direction."""
    unit = _unit(tolerance, squared)
    y = points[:, : len(unit)] * unit
    cosine, sine = points[:, np.flatnonzero(angular)], points[:, len(unit) :]
    y[:, angular] = np.degrees(np.arctan2(sine, cosine))
    return y


def _fit(points: FloatArray, n_clusters: int) -> FloatArray:
    """Centroids of k-means that starts from the first distinct points."""
    _, first = np.unique(points, axis=0, return_index=True)
    initial = points[np.sort(first)[:n_clusters]]
    means = KMeans(len(initial), init=initial, n_init=1)
    with one_thread():
        means.fit(points)
    centroids: FloatArray = means.cluster_centers_
    return centroids
