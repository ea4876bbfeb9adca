"""Cutting a tissue out of a Delaunay triangulation so that its boundary is one closed surface."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay

from vitolab.models.electrophysiology.anatomy import boundary, sides, tet_edges, tet_volumes
from vitolab.models.electrophysiology.shapes import Distance
from vitolab.problem import BoolArray, FloatArray, IntArray

OUTSIDE = 0.25  # how far the middle of an edge may lie outside the tissue, share of the spacing
LONGEST = 2.6  # edge, share of the spacing
FLAT = 1e-4  # volume of a flat tetrahedron, share of the cubed spacing
ROUNDS = 8


def carve(distance: Distance, h: float, points: FloatArray) -> IntArray:
    """Tetrahedra of the tissue.

    Parameters
    ----------
    distance : callable
        Signed distance of points to the tissue, mm.
    h : float
        Spacing of the points, mm.
    points : ndarray, shape (n, 3)
        mm.

    Returns
    -------
    ndarray of int, shape (m, 4)
        Positively oriented; their boundary is a sphere, topologically. Empty if it could not be
        made one.
    """
    mesh = Delaunay(points)
    tets, neighbours = mesh.simplices.astype(np.int64), mesh.neighbors.astype(np.int64)
    volume = tet_volumes(points, tets)
    flip = volume < 0.0
    tets[flip] = tets[flip][:, [0, 1, 3, 2]]
    neighbours[flip] = neighbours[flip][:, [0, 1, 3, 2]]
    volume = np.abs(volume)
    short, inside = _judge(distance, h, points, tets)
    sound = short & (volume > FLAT * h**3)
    chosen = _largest(sound & inside, neighbours)
    gain = np.where(sound, volume, np.inf)
    for _ in range(ROUNDS):
        wrong = singular(tets[chosen])
        if not len(wrong):
            break
        for vertex in wrong:
            _mend(vertex, tets, neighbours, gain, volume, chosen)
        chosen = _largest(chosen, neighbours)
    kept: IntArray = tets[chosen]
    return kept if not len(singular(kept)) and euler(kept) == 2 else kept[:0]


def euler(tets: IntArray) -> int:
    """Euler characteristic of the boundary of tetrahedra (m, 4): 2 for a sphere."""
    triangles = boundary(tets)
    n = int(tets.max(initial=0)) + 1
    ends = np.sort(sides(triangles), axis=1)
    edges = np.unique(ends[:, 0] * n + ends[:, 1])
    return len(np.unique(triangles)) - len(edges) + len(triangles)


def singular(tets: IntArray) -> IntArray:
    """Nodes where the boundary is not a disc.

    Parameters
    ----------
    tets : ndarray of int, shape (m, 4)
        Positively oriented.

    Returns
    -------
    ndarray of int, shape (k,)
        In ascending order; empty if the boundary is a closed surface without pinches.
    """
    triangles = boundary(tets)
    n = int(tets.max(initial=0)) + 1
    ends, corners = sides(triangles), sides(np.arange(3 * len(triangles)).reshape(-1, 3))
    swap = ends[:, 0] > ends[:, 1]
    ends[swap], corners[swap] = ends[swap][:, ::-1], corners[swap][:, ::-1]
    key = ends[:, 0] * n + ends[:, 1]
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    paired = first[count == 2]
    one, two = corners[order[paired]].ravel(), corners[order[paired + 1]].ravel()
    size = 3 * len(triangles)
    fans, fan = connected_components(
        coo_array((np.ones(len(one), np.bool_), (one, two)), shape=(size, size)), directed=False
    )
    owner = np.empty(fans, np.int64)
    owner[fan] = triangles.ravel()
    pinched = np.flatnonzero(np.bincount(owner, minlength=n) > 1)
    loose = ends[order[first[count != 2]]]
    found: IntArray = np.union1d(pinched, loose)
    return found


def _judge(
    distance: Distance, h: float, points: FloatArray, tets: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Which tetrahedra have short edges only, and which of all lie in the tissue."""
    n = len(points)
    ends = np.sort(tet_edges(tets), axis=1)
    keys, edge = np.unique(ends[:, 0] * n + ends[:, 1], return_inverse=True)
    edge = edge.reshape(-1, 6)
    first, second = points[keys // n], points[keys % n]
    fits = np.linalg.norm(second - first, axis=1) < LONGEST * h
    short = fits[edge].all(axis=1)
    fits[fits] = distance(0.5 * (first + second)[fits]) < OUTSIDE * h
    inside = fits[edge].all(axis=1)
    inside[inside] = distance(points[tets[inside]].mean(axis=1)) < 0.0
    return short, inside


def _largest(chosen: BoolArray, neighbours: IntArray) -> BoolArray:
    """The largest part that is connected through faces."""
    one, side = np.nonzero(chosen[:, None] & (neighbours >= 0) & chosen[neighbours])
    two = neighbours[one, side]
    graph = coo_array((np.ones(len(one), np.bool_), (one, two)), shape=(len(chosen), len(chosen)))
    _, part = connected_components(graph, directed=False)
    largest: BoolArray = chosen & (part == np.bincount(part[chosen]).argmax())
    return largest


def _mend(
    vertex: int,
    tets: IntArray,
    neighbours: IntArray,
    gain: FloatArray,
    loss: FloatArray,
    chosen: BoolArray,
) -> None:
    """Make the tetrahedra around a node, and those left out, one fan each.

    All but the largest fan change sides, the cheapest first; fans towards the outside of the
    triangulation, or with tetrahedra of infinite `gain`, cannot be added.
    """
    star = np.flatnonzero((tets == vertex).any(axis=1))
    for _ in range(len(star)):
        fans = _fans(vertex, star, tets, neighbours, chosen)
        spare: list[tuple[float, IntArray]] = []
        for cost, wanted in ((loss, True), (gain, False)):
            side = [
                (np.inf if open_ else float(cost[fan].sum()), fan)
                for fan, open_ in fans
                if chosen[fan[0]] == wanted
            ]
            side.sort(key=lambda item: item[0])
            spare += side[:-1]
        if not spare:
            return
        cost_, fan = min(spare, key=lambda item: item[0])
        if not np.isfinite(cost_):
            return
        chosen[fan] = ~chosen[fan]


def _fans(
    vertex: int, star: IntArray, tets: IntArray, neighbours: IntArray, chosen: BoolArray
) -> list[tuple[IntArray, bool]]:
    """Tetrahedra around a node in groups on one side that share faces; whether each is open.

    All groups left out that reach the hull of the triangulation are one, through its outside.
    """
    position = {int(t): k for k, t in enumerate(star)}
    hull = len(star)
    one, two = [], []
    for k, t in enumerate(star):
        for corner, other in zip(tets[t], neighbours[t], strict=True):
            if corner == vertex:
                continue
            if other < 0 and not chosen[t]:
                one.append(k)
                two.append(hull)
            elif other >= 0 and chosen[other] == chosen[t]:
                one.append(k)
                two.append(position[int(other)])
    graph = coo_array((np.ones(len(one), np.bool_), (one, two)), shape=(hull + 1, hull + 1))
    n, part = connected_components(graph, directed=False)
    groups = [(star[part[:-1] == p], bool(p == part[-1])) for p in range(n)]
    return [group for group in groups if len(group[0])]
