"""A bi-ventricular mesh and what activation and ECG need to know of it.

Heart frame: z along the long axis from apex to base, the base plane at z = 0 in generated hearts;
the right ventricle lies at -x; y completes a right-handed frame. Torso frame: LPS, x to the
patient's left, y to the back, z to the head. All lengths in mm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vitolab.problem import BoolArray, FloatArray, IntArray

INTERIOR, LV_ENDO, RV_ENDO, EPI = range(4)
SURFACES = ("interior", "LV endocardium", "RV endocardium", "epicardium")


@dataclass(frozen=True)
class Anatomy:
    """A bi-ventricular tetrahedral mesh.

    Attributes
    ----------
    nodes : ndarray, shape (n, 3)
        mm.
    tets : ndarray of int, shape (m, 4)
        Positively oriented.
    surface : ndarray of int, shape (n,)
        `INTERIOR`, `LV_ENDO`, `RV_ENDO` (free wall and right side of the septum) or `EPI`; the
        base is none of these unless it belongs to one of the other surfaces, too.
    base : ndarray of bool, shape (n,)
        Nodes of the base plane.
    transmural : ndarray, shape (n,)
        0 on the endocardium to 1 on the epicardium of the wall that owns the node.
    apex_base : ndarray, shape (n,)
        0 at the apex to 1 at the base.
    rotation : ndarray, shape (n,)
        Angle about the long axis, radians in (-pi, pi], 0 at mid-septum (-x), rising to +y.
    right : ndarray of bool, shape (n,)
        Nodes of the free wall of the right ventricle; the septum belongs to the left one.
    fibres : ndarray, shape (n, 3)
        Unit vectors; the sign has no meaning.
    roots : ndarray of int, shape (2,)
        Where activation starts: a node of the LV and one of the RV endocardium.
    frame : ndarray, shape (3, 3)
        Rows: x, y and z axis of the heart frame in the coordinates of the nodes.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """

    nodes: FloatArray
    tets: IntArray
    surface: IntArray
    base: BoolArray
    transmural: FloatArray
    apex_base: FloatArray
    rotation: FloatArray
    right: BoolArray
    fibres: FloatArray
    roots: IntArray
    frame: FloatArray

    def __post_init__(self) -> None:
        n = len(self.nodes)
        expected = {
            "nodes": (n, 3),
            "tets": (len(self.tets), 4),
            "fibres": (n, 3),
            "roots": (2,),
            "frame": (3, 3),
        }
        for name in ("surface", "base", "transmural", "apex_base", "rotation", "right"):
            expected[name] = (n,)
        for name, shape in expected.items():
            found = getattr(self, name).shape
            if found != shape:
                raise ValueError(f"anatomy: {name} has shape {found}, expected {shape}")

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def volumes(self) -> FloatArray:
        """Volume of each tetrahedron, mm³, shape (m,)."""
        return tet_volumes(self.nodes, self.tets)

    @property
    def lumped(self) -> FloatArray:
        """A quarter of the volume of each tetrahedron at its nodes, mm³, shape (n,)."""
        share = np.repeat(self.volumes / 4.0, 4)
        summed = np.bincount(self.tets.ravel(), weights=share, minlength=self.n_nodes)
        return summed.astype(np.float64)

    @property
    def centroid(self) -> FloatArray:
        """Centre of the myocardium, shape (3,)."""
        weight = self.lumped
        centre: FloatArray = weight @ self.nodes / weight.sum()
        return centre


def tet_volumes(nodes: FloatArray, tets: IntArray) -> FloatArray:
    """Signed volumes of tetrahedra.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
    tets : ndarray of int, shape (m, 4)

    Returns
    -------
    ndarray, shape (m,)
        In the cubed unit of the nodes; negative where a tetrahedron is inverted.
    """
    corner = nodes[tets]
    edges = corner[:, 1:] - corner[:, :1]
    volumes: FloatArray = np.linalg.det(edges) / 6.0
    return volumes


def tet_edges(tets: IntArray) -> IntArray:
    """Six edges of each tetrahedron in turn, shape (6 m, 2); those of neighbours repeat."""
    ends: IntArray = tets[:, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]].reshape(-1, 2)
    return ends


def sides(triangles: IntArray) -> IntArray:
    """Three edges of each triangle in turn, in its direction, shape (3 k, 2)."""
    ends: IntArray = triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    return ends


def nearest_node(nodes: FloatArray, allowed: IntArray, site: ArrayLike) -> int:
    """Find the node nearest to a site.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
    allowed : ndarray of int, shape (k,)
        Nodes to choose from; of equally near ones the first counts.
    site : array_like, shape (3,)

    Returns
    -------
    int
    """
    distance = np.linalg.norm(nodes[allowed] - np.asarray(site, np.float64), axis=1)
    return int(allowed[np.argmin(distance)])


def boundary(tets: IntArray) -> IntArray:
    """Triangles that belong to one tetrahedron only.

    Parameters
    ----------
    tets : ndarray of int, shape (m, 4)
        Positively oriented.

    Returns
    -------
    ndarray of int, shape (k, 3)
        Turning counter-clockwise when seen from outside.
    """
    faces = tets[:, [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]].reshape(-1, 3)
    low, middle, high = np.sort(faces, axis=1).T
    n = int(tets.max(initial=0)) + 1
    _, first, count = np.unique(
        (low * n + middle) * n + high, return_index=True, return_counts=True
    )
    triangles: IntArray = faces[np.sort(first[count == 1])]
    return triangles
