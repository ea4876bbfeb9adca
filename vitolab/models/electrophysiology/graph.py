"""The graph along whose edges activation travels.

Nodes are joined to the neighbours of their neighbours, too: paths along the edges of a mesh alone
overestimate distances by about a tenth however fine the mesh is. An edge costs its length in the
metric of the fibres, divided by the speed of its class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vitolab.models.electrophysiology.anatomy import (
    EPI,
    INTERIOR,
    LV_ENDO,
    RV_ENDO,
    Anatomy,
    tet_edges,
)
from vitolab.models.electrophysiology.shapes import Distance
from vitolab.problem import BoolArray, FloatArray, IntArray

MYOCARDIUM, LV_LAYER, RV_LAYER = range(3)
OUTSIDE = 0.2  # how far an edge may leave the tissue, share of the mesh's median edge


@dataclass(frozen=True)
class Graph:
    """A graph in rows; each edge is stored in both directions.

    Attributes
    ----------
    start : ndarray of int64, shape (n + 1,)
        The edges of node i are those from start[i] to start[i + 1].
    neighbour : ndarray of int32, shape (e,)
    length : ndarray of float32, shape (e,)
        mm; time is length over the speed of the class.
    speed_class : ndarray of uint8, shape (e,)
        `MYOCARDIUM`, `LV_LAYER` or `RV_LAYER`.
    """

    start: NDArray[np.int64]
    neighbour: NDArray[np.int32]
    length: NDArray[np.float32]
    speed_class: NDArray[np.uint8]


def edges(tets: IntArray) -> IntArray:
    """Edges of tetrahedra (m, 4), each once and with the lower node first, shape (k, 2)."""
    n = int(tets.max()) + 1
    ends = np.sort(tet_edges(tets), axis=1)
    keys = np.unique(ends[:, 0] * n + ends[:, 1])
    return np.stack([keys // n, keys % n], axis=1)


def connect(
    anatomy: Anatomy,
    ratio: float = 0.5,
    rings: int = 2,
    distance: Distance | None = None,
    endo: Literal["replace", "min"] = "replace",
    factor: FloatArray | None = None,
) -> Graph:
    """Join the nodes of an anatomy.

    Parameters
    ----------
    anatomy : Anatomy
    ratio : float
        Speed across over speed along the fibres.
    rings : int
        1: edges of the mesh, 2: neighbours' neighbours, 3: once more.
    distance : callable, optional
        Signed distance of points to the tissue, by which edges beyond the mesh's own are refused
        that leave it. Without it those are refused that join two different surfaces.
    endo : {"replace", "min"}
        Whether edges on an endocardium have its speed only, or the faster way of the two.
    factor : ndarray, shape (n,), optional
        By how much each node slows its edges; an edge takes the mean of its ends.

    Returns
    -------
    Graph

    Raises
    ------
    ValueError
        If an argument is out of range or two neighbours coincide.
    """
    if not 0.0 < ratio <= 1.0:
        raise ValueError(f"ratio is {ratio}, expected above 0 and at most 1")
    if rings not in (1, 2, 3):
        raise ValueError(f"rings is {rings}, expected 1, 2 or 3")
    if endo not in ("replace", "min"):
        raise ValueError(f"endo is {endo!r}, expected 'replace' or 'min'")
    if factor is not None and (factor.shape != (anatomy.n_nodes,) or not np.all(factor > 0.0)):
        raise ValueError(
            f"factor has shape {factor.shape}, expected {anatomy.n_nodes} positive numbers"
        )
    i, j = _pairs(anatomy, rings, distance).T
    step = anatomy.nodes[j] - anatomy.nodes[i]
    square = np.einsum("ij,ij->i", step, step)
    if not np.all(square > 0.0):
        k = int(np.argmin(square))
        raise ValueError(f"nodes {i[k]} and {j[k]} coincide, expected distinct nodes")
    along = 0.5 * sum(np.einsum("ij,ij->i", step, anatomy.fibres[k]) ** 2 for k in (i, j))
    length = np.sqrt(along + (square - along) / ratio**2)
    surface = anatomy.surface
    layer = np.full(len(i), MYOCARDIUM, np.uint8)
    layer[(surface[i] == LV_ENDO) & (surface[j] == LV_ENDO)] = LV_LAYER
    layer[(surface[i] == RV_ENDO) & (surface[j] == RV_ENDO)] = RV_LAYER
    fast = layer != MYOCARDIUM
    if endo == "min":
        i, j = np.concatenate([i, i[fast]]), np.concatenate([j, j[fast]])
        length = np.concatenate([length, np.sqrt(square[fast])])
        layer = np.concatenate([np.full(len(fast), MYOCARDIUM, np.uint8), layer[fast]])
    else:
        length = np.where(fast, np.sqrt(square), length)
    if factor is not None:
        length = length * 0.5 * (factor[i] + factor[j])
    return _rows(anatomy.n_nodes, i, j, length, layer)


def _pairs(anatomy: Anatomy, rings: int, distance: Distance | None) -> IntArray:
    """Nodes to join, each pair once, shape (k, 2)."""
    n = anatomy.n_nodes
    near = edges(anatomy.tets)
    if rings == 1:
        return near
    both = np.concatenate([near, near[:, ::-1]])
    step = csr_array((np.ones(len(both), np.float32), (both[:, 0], both[:, 1])), shape=(n, n))
    reach = step
    for _ in range(rings - 1):
        reach = reach @ step + step
    found = reach.tocoo()
    i, j = found.row.astype(np.int64), found.col.astype(np.int64)
    upper = i < j
    far = np.setdiff1d(i[upper] * n + j[upper], near[:, 0] * n + near[:, 1], assume_unique=True)
    pairs = np.stack([far // n, far % n], axis=1)
    pairs = pairs[_inside(anatomy, near, pairs, rings, distance)]
    return np.concatenate([near, pairs])


def _inside(
    anatomy: Anatomy, near: IntArray, pairs: IntArray, rings: int, distance: Distance | None
) -> BoolArray:
    """Which pairs beyond the mesh's edges stay in the tissue."""
    first, second = np.sort(anatomy.surface[pairs], axis=1).T
    inside: BoolArray = ~((first == RV_ENDO) & (second == EPI))
    if distance is None:
        inside &= (first == INTERIOR) | (first == second)
        return inside
    ends = anatomy.nodes[pairs]
    extent = np.diff(anatomy.nodes[near], axis=1)[:, 0]
    tolerance = OUTSIDE * float(np.median(np.linalg.norm(extent, axis=1)))
    for k in range(1, 2 * rings - 2):
        t = k / (2 * rings - 2)
        inside &= distance((1.0 - t) * ends[:, 0] + t * ends[:, 1]) < tolerance
    return inside


def _rows(n: int, i: IntArray, j: IntArray, length: FloatArray, layer: NDArray[np.uint8]) -> Graph:
    """Sort both directions of each edge by their first node."""
    row, column = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.argsort(row * n + column, kind="stable")
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=n), out=start[1:])
    return Graph(
        start=start,
        neighbour=column[order].astype(np.int32),
        length=np.tile(length, 2)[order].astype(np.float32),
        speed_class=np.tile(layer, 2)[order],
    )
