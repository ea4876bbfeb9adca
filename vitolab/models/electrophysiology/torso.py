"""The torso as a closed surface of triangles.

Torso frame: LPS, x to the patient's left, y to the back, z to the head; mm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from vitolab.problem import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Torso:
    """A closed surface of triangles, insulated outside, homogeneous inside.

    Attributes
    ----------
    vertices : ndarray, shape (v, 3)
        Torso frame, mm.
    triangles : ndarray of int, shape (t, 3)
        Counter-clockwise seen from outside.

    Raises
    ------
    ValueError
        If the surface is open or turned inside out.
    """

    vertices: FloatArray
    triangles: IntArray

    def __post_init__(self) -> None:
        corner = self.vertices[self.triangles]
        edges = self.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
        forward, backward = (np.unique(e, axis=0) for e in (edges, edges[:, ::-1]))
        if len(forward) < len(edges) or not np.array_equal(forward, backward):
            raise ValueError(
                "torso: the surface is not closed, expected each edge in two triangles"
            )
        volume = np.linalg.det(corner).sum() / 6.0
        if not volume > 0.0:
            raise ValueError(
                f"torso: the surface encloses {volume:g} mm³, expected triangles that face outwards"
            )

    @property
    def centroids(self) -> FloatArray:
        """Centres of the triangles, shape (t, 3)."""
        centroids: FloatArray = self.vertices[self.triangles].mean(axis=1)
        return centroids

    def outside(self, points: FloatArray) -> BoolArray:
        """Tell which points lie beyond the plane of the triangle whose centre is nearest.

        Parameters
        ----------
        points : ndarray, shape (n, 3)
            Torso frame, mm.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        a, b, c = self.vertices[self.triangles].transpose(1, 0, 2)
        nearest = cKDTree(self.centroids).query(points)[1]
        beyond = points - a[nearest]
        outside: BoolArray = (beyond * np.cross(b - a, c - a)[nearest]).sum(axis=1) > 0.0
        return outside

    def nearest(self, points: ArrayLike) -> tuple[FloatArray, IntArray]:
        """Find the nearest points of the surface.

        Parameters
        ----------
        points : array_like, shape (n, 3)
            Torso frame, mm.

        Returns
        -------
        foot : ndarray, shape (n, 3)
            mm.
        triangle : ndarray of int, shape (n,)
            In which each lies.
        """
        points = np.asarray(points, dtype=np.float64)
        corner = self.vertices[self.triangles]
        a, b, c = corner.transpose(1, 0, 2)
        normal = np.cross(b - a, c - a)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        foot = np.empty((len(points), 3))
        triangle = np.empty(len(points), dtype=np.int64)
        for i, point in enumerate(points):
            candidates = [point - ((point - a) * normal).sum(axis=1)[:, None] * normal]
            beside = np.zeros(len(corner), dtype=bool)
            for start, end in ((a, b), (b, c), (c, a)):
                edge = end - start
                share = ((point - start) * edge).sum(axis=1) / (edge * edge).sum(axis=1)
                candidates.append(start + np.clip(share, 0.0, 1.0)[:, None] * edge)
                inward = np.cross(normal, edge)
                beside |= ((candidates[0] - start) * inward).sum(axis=1) < 0.0
            distance = np.linalg.norm(np.array(candidates) - point, axis=2)
            distance[0, beside] = np.inf
            which, triangle[i] = np.unravel_index(np.argmin(distance), distance.shape)
            foot[i] = candidates[which][triangle[i]]
        return foot, triangle

    def solid_angles(self, points: FloatArray) -> FloatArray:
        """Solid angles of the triangles seen from points (van Oosterom and Strackee 1983).

        Positive from inside, where they add up to 4 pi. Undefined in the triangle itself.

        Parameters
        ----------
        points : ndarray, shape (n, 3)
            Torso frame, mm.

        Returns
        -------
        ndarray, shape (n, t)
            Steradians.
        """
        corner = self.vertices[self.triangles]
        a, b, c = corner.transpose(1, 0, 2)
        distance = cdist(points, self.vertices)
        ra, rb, rc = (distance[:, k] for k in self.triangles.T)
        # Triple product of the corners seen from a point, and products of their distances
        area = np.cross(b - a, c - a)
        above = (a * area).sum(axis=1) - points @ area.T
        opposite = [((end - start) ** 2).sum(axis=1) for start, end in ((b, c), (c, a), (a, b))]
        below = ra * rb * rc
        for r, r1, r2, side in zip((ra, rb, rc), (rb, rc, ra), (rc, ra, rb), opposite, strict=True):
            below += 0.5 * r * (r1 * r1 + r2 * r2 - side)
        angles: FloatArray = 2.0 * np.arctan2(above, below)
        return angles


def superellipsoid(
    half_axes: ArrayLike = (175.0, 115.0, 330.0),
    centre: ArrayLike = (-20.0, 20.0, -40.0),
    exponent: float = 2.6,
    n_triangles: int = 1280,
) -> Torso:
    """Torso |x/a|^p + |y/b|^p + |z/c|^p = 1 about a centre.

    Parameters
    ----------
    half_axes, centre : array_like, shape (3,)
        mm, torso frame.
    exponent : float
        2 is an ellipsoid, more is boxier.
    n_triangles : int
        20, 80, 320, 1280 or 5120.

    Returns
    -------
    Torso

    Raises
    ------
    ValueError
        If the number of triangles is another one.
    """
    counts = [20 * 4**k for k in range(5)]
    if n_triangles not in counts:
        raise ValueError(
            f"n_triangles is {n_triangles}, expected one of {', '.join(map(str, counts))}"
        )
    vertices, triangles = _icosphere(counts.index(n_triangles))
    norm = (np.abs(vertices) ** exponent).sum(axis=1) ** (1.0 / exponent)
    return Torso(np.asarray(half_axes) * vertices / norm[:, None] + np.asarray(centre), triangles)


def _icosphere(rounds: int) -> tuple[FloatArray, IntArray]:
    """Unit sphere from an icosahedron whose triangles are split in four so many times."""
    g = (1.0 + np.sqrt(5.0)) / 2.0
    signs = np.array([(-1.0, -g), (-1.0, g), (1.0, -g), (1.0, g)])
    zero = np.zeros(4)
    vertices = np.concatenate([np.roll([zero, *signs.T], k, axis=0).T for k in range(3)])
    distance = np.linalg.norm(vertices[:, None] - vertices, axis=2)
    near = np.abs(distance - 2.0) < 1e-9
    triangles = np.array(
        [
            (i, j, k)
            for i in range(12)
            for j in range(i)
            for k in range(j)
            if near[i, j] and near[j, k] and near[k, i]
        ]
    )
    inwards = np.linalg.det(vertices[triangles]) < 0.0
    triangles[inwards] = triangles[inwards][:, ::-1]
    for _ in range(rounds):
        edges = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        pairs, of_edge = np.unique(edges, axis=0, return_inverse=True)
        middle = len(vertices) + of_edge.reshape(-1, 3)
        vertices = np.concatenate([vertices, vertices[pairs].mean(axis=1)])
        a, b, c = triangles.T
        ab, bc, ca = middle.T
        parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        triangles = np.concatenate([np.column_stack(part) for part in parts])
    vertices /= np.linalg.norm(vertices, axis=1, keepdims=True)
    return vertices, triangles
