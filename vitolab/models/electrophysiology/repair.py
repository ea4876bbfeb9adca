"""Tetrahedral meshes of unknown origin made fit to compute with.

Every function names what is wrong in one sentence, without the file, or repairs it and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from vitolab.models.electrophysiology.anatomy import boundary, tet_volumes
from vitolab.models.electrophysiology.graph import edges
from vitolab.problem import FloatArray, IntArray

UNITS = {"mm": 1.0, "cm": 10.0, "m": 1000.0}
DIAGONAL = (80.0, 220.0)  # mm, of the bounding box of a human heart without atria
FAR = 1e6  # in any unit: coordinates beyond are errors
SAME = 1e-6  # of the diagonal: nodes nearer than this are one
FLAT = 1e-12  # of the diagonal cubed: tetrahedra smaller than this are flat
SMALL_PIECE = 0.05  # of the triangles of the largest piece of the surface
LARGEST_FRAGMENT = 0.005  # of the volume
ROUNDING = 1e-12  # deviation from length 1 that is none
LARGEST_BAD = 0.5  # share of nodes without a fibre


def scale(points: FloatArray, units: str | None) -> float:
    """Factor to mm.

    Parameters
    ----------
    points : ndarray, shape (n, 3)
    units : {"mm", "cm", "m"}, optional
        Guessed from the diagonal of the bounding box if absent.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the unit is unknown, or the heart is no human one in it.
    """
    if units is not None and units not in UNITS:
        raise ValueError(f"units is {units!r}, expected one of {', '.join(UNITS)}")
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0)))
    low, high = DIAGONAL
    fitting = [name for name, factor in UNITS.items() if low <= diagonal * factor <= high]
    if units is None and fitting:
        return UNITS[fitting[0]]
    if units in fitting:
        return UNITS[units]
    if units is None:
        expected = ", ".join(f"{low / f:g} to {high / f:g} {name}" for name, f in UNITS.items())
    else:
        expected = f"{low / UNITS[units]:g} to {high / UNITS[units]:g}"
        expected += f" (which fits {fitting[0]})" if fitting else ""
    raise ValueError(
        f"the diagonal of the bounding box is {diagonal:.4g} {units or ''}".rstrip()
        + f", expected {expected}"
    )


@dataclass(frozen=True)
class Cleaned:
    """A mesh after repair.

    Attributes
    ----------
    nodes : ndarray, shape (n, 3)
        mm.
    tets : ndarray of int, shape (m, 4)
        Positively oriented, one piece, none flat.
    triangles : ndarray of int, shape (k, 3)
        Boundary, its normals pointing out of the tissue.
    node_of : ndarray of int, shape (n_points,)
        Node that each point of the file became, -1 if none.
    cell_of : ndarray of int, shape (m,)
        Row of each tetrahedron in the file.
    factor : float
        From the unit of the file to mm.
    repairs : tuple of str
        What was done.
    """

    nodes: FloatArray
    tets: IntArray
    triangles: IntArray
    node_of: IntArray
    cell_of: IntArray
    factor: float
    repairs: tuple[str, ...]


def neighbours(tets: IntArray, n: int) -> csr_array:
    """Which nodes share a tetrahedron.

    Parameters
    ----------
    tets : ndarray of int, shape (m, 4)
    n : int
        Number of nodes.

    Returns
    -------
    csr_array, shape (n, n)
        Ones, zero on the diagonal.
    """
    i, j = edges(tets).T
    upper = coo_array((np.ones(len(i)), (i, j)), shape=(n, n))
    return csr_array(upper + upper.T)


def clean(points: FloatArray, tets: IntArray, units: str | None = None) -> Cleaned:
    """Merge, orient, drop and convert until the mesh is one heart in mm.

    Parameters
    ----------
    points : ndarray, shape (n_points, 3)
    tets : ndarray of int, shape (n_cells, 4)
    units : {"mm", "cm", "m"}, optional
        Of the points, see `scale`.

    Returns
    -------
    Cleaned

    Raises
    ------
    ValueError
        If that cannot be done without guessing.
    """
    used = _used(points, tets)
    repairs = []

    def count(n: int, what: str) -> None:
        if n:
            repairs.append(f"{n} {what}")

    count(len(points) - used.size, "nodes of no tetrahedron dropped")
    diagonal = float(np.linalg.norm(np.ptp(points[used], axis=0)))
    same = np.arange(len(points))
    same[used] = used[_first_of_equals(points[used], SAME * diagonal)]
    count(int((same != np.arange(len(points))).sum()), "duplicate nodes merged")

    cell_of = _distinct(same[tets])
    count(len(tets) - len(cell_of), "repeated or collapsed tetrahedra dropped")
    tets = same[tets[cell_of]]
    volumes = tet_volumes(points, tets)
    inverted = volumes < 0.0
    count(int(inverted.sum()), "inverted tetrahedra turned")
    tets = np.where(inverted[:, np.newaxis], tets[:, [0, 2, 1, 3]], tets)
    _refuse_overlaps(tets)
    triangles = boundary(tets)  # before flat tetrahedra leave cracks

    solid = np.abs(volumes) > FLAT * diagonal**3
    if not solid.any():
        raise ValueError("all tetrahedra are flat, expected a mesh of the myocardium")
    count(int((~solid).sum()), "flat tetrahedra dropped")
    part, share = _parts(tets, np.where(solid, np.abs(volumes), 0.0), len(points))
    fragments = np.delete(share, share.argmax())
    if fragments.max(initial=0.0) > LARGEST_FRAGMENT:
        raise ValueError(
            f"{len(share)} parts are not connected and the second holds "
            f"{100 * fragments.max():.1f} % of the volume, expected one part"
        )
    count(len(fragments), f"fragments with {100 * fragments.sum():.2g} % of the volume dropped")
    solid &= part == share.argmax()

    tets, cell_of = tets[solid], cell_of[solid]
    used = np.unique(tets)
    index = np.full(len(points), -1)
    index[used] = np.arange(used.size)
    triangles = index[triangles]
    triangles = triangles[(triangles >= 0).all(axis=1)]
    _refuse_holes(triangles, used.size)
    factor = scale(points[used], units)
    return Cleaned(
        points[used] * factor,
        index[tets],
        triangles,
        index[same],
        cell_of,
        factor,
        tuple(repairs),
    )


def _refuse_holes(triangles: IntArray, n: int) -> None:
    """Refuse a mesh with gaps inside the wall, whose sides would pass for endocardium.

    Cavities that are closed at the base are large pieces of the surface, gaps are small ones.
    """
    ends = np.concatenate([triangles[:, :2], triangles[:, 1:]])
    link = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    _, piece = connected_components(link, directed=False)
    size = np.bincount(piece[triangles[:, 0]])
    size = size[size > 0]
    holes = int((size < SMALL_PIECE * size.max()).sum())
    if holes:
        raise ValueError(
            f"the wall has {holes} hole{'s' if holes > 1 else ''} inside, expected a mesh without "
            "missing tetrahedra"
        )


def _used(points: FloatArray, tets: IntArray) -> IntArray:
    """Points of the tetrahedra, which must all be in the file and have coordinates."""
    if len(tets) == 0:
        raise ValueError("it holds no tetrahedra, expected a mesh of the myocardium")
    if tets.min() < 0 or tets.max() >= len(points):
        raise ValueError(
            f"tetrahedra name nodes {int(tets.min())} to {int(tets.max())}, expected "
            f"0 to {len(points) - 1}"
        )
    used = np.unique(tets)
    wrong = used[~(np.abs(points[used]) < FAR).all(axis=1)]
    if wrong.size:
        raise ValueError(
            f"{wrong.size} nodes (the first is {wrong[0]}) have coordinates {points[wrong[0]]}, "
            f"expected numbers below {FAR:g}"
        )
    return used


def _first_of_equals(points: FloatArray, tolerance: float) -> IntArray:
    """For each point the first that is within the tolerance, maybe by way of others, shape (n,)."""
    pairs = cKDTree(points).query_pairs(tolerance, output_type="ndarray")
    link = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(points),) * 2)
    _, group = connected_components(link, directed=False)
    first: IntArray = np.unique(group, return_index=True)[1][group]
    return first


def _distinct(tets: IntArray) -> IntArray:
    """Rows with four different nodes, each set of nodes once, in their order."""
    ordered = np.sort(tets, axis=1)
    proper = np.flatnonzero((np.diff(ordered, axis=1) > 0).all(axis=1))
    return np.sort(proper[np.unique(ordered[proper], axis=0, return_index=True)[1]])


def _refuse_overlaps(tets: IntArray) -> None:
    """Refuse faces that belong to more than two tetrahedra."""
    faces = np.sort(tets, axis=1)[:, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]].reshape(-1, 3)
    count = np.unique(faces, axis=0, return_counts=True)[1]
    if (count > 2).any():
        raise ValueError(
            f"{int((count > 2).sum())} faces belong to more than two tetrahedra, expected at most "
            "two"
        )


def _parts(tets: IntArray, volumes: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """Connected part of each tetrahedron, shape (m,), and the share of volume of each part."""
    _, label = connected_components(neighbours(tets, n), directed=False)
    part = np.unique(label[tets[:, 0]], return_inverse=True)[1].ravel()
    return part, np.bincount(part, weights=volumes) / volumes.sum()


def node_fibres(fibres: FloatArray, tets: IntArray, volumes: FloatArray, n: int) -> FloatArray:
    """Average fibres of tetrahedra at the nodes, weighted with volume, whatever their signs.

    Parameters
    ----------
    fibres : ndarray, shape (m, 3)
        Zero or NaN where unknown.
    tets : ndarray of int, shape (m, 4)
    volumes : ndarray, shape (m,)
        Weights, in any unit.
    n : int
        Number of nodes.

    Returns
    -------
    ndarray, shape (n, 3)
        Unit vectors, zero where no tetrahedron has a fibre.
    """
    tensors = _tensors(fibres) * volumes[:, np.newaxis]
    rows, columns = tets.ravel(), np.repeat(np.arange(len(tets)), 4)
    gather = csr_array(coo_array((np.ones(rows.size), (rows, columns)), shape=(n, len(tets))))
    return _principal(gather @ tensors)


def mend_fibres(fibres: FloatArray, tets: IntArray) -> tuple[FloatArray, int]:
    """Unit fibres; zero and NaN ones become the mean of their neighbours.

    Parameters
    ----------
    fibres : ndarray, shape (n, 3)
        Of any length and sign.
    tets : ndarray of int, shape (m, 4)

    Returns
    -------
    fibres : ndarray, shape (n, 3)
        Unit vectors.
    n_mended : int

    Raises
    ------
    ValueError
        If most of them are unknown.
    """
    length = np.linalg.norm(fibres, axis=1)
    good = np.isfinite(length) & (length > 0.0)
    n_bad = int((~good).sum())
    if n_bad > LARGEST_BAD * len(fibres):
        raise ValueError(
            f"fibres are zero or no number at {n_bad} of {len(fibres)} nodes, expected at most "
            f"{100 * LARGEST_BAD:g} %"
        )
    length[np.abs(length - 1.0) < ROUNDING] = 1.0
    unit = np.zeros_like(fibres)
    unit[good] = fibres[good] / length[good, np.newaxis]
    around = neighbours(tets, len(fibres))
    while not good.all():
        reached = ~good & (around @ good.astype(np.float64) > 0.0)
        unit[reached] = _principal(around[reached] @ _tensors(unit))
        good |= reached
    return unit, n_bad


def _tensors(fibres: FloatArray) -> FloatArray:
    """F fᵀ of unit f, zero where f is zero or NaN, shape (n, 9)."""
    length = np.linalg.norm(fibres, axis=1)
    good = np.isfinite(length) & (length > 0.0)
    unit = np.zeros_like(fibres)
    unit[good] = fibres[good] / length[good, np.newaxis]
    tensors: FloatArray = (unit[:, :, np.newaxis] * unit[:, np.newaxis, :]).reshape(-1, 9)
    return tensors


def _principal(tensors: FloatArray) -> FloatArray:
    """Main axis of each tensor, zero where the tensor is zero, shape (n, 3)."""
    _, axes = np.linalg.eigh(tensors.reshape(-1, 3, 3))
    axis: FloatArray = np.where((tensors != 0.0).any(axis=1)[:, np.newaxis], axes[:, :, 2], 0.0)
    return axis
