"""Fibres of any bi-ventricular mesh from solutions of Laplace's equation.

Bayer et al. 2012 (Laplace-Dirichlet rule-based method). Three solutions sum to 1: `phi_lv`,
`phi_rv` and `phi_epi`, each 1 on its own surface and 0 on the other two; `psi` runs from 0 at the
apex to 1 on the base. Their gradients give local axes; fibres turn about the transmural one, and
frames of neighbouring walls are blended as rotations without regard to sign (bislerp).

Two choices differ from the publication. Both frames of a blend are turned by the angle that the
depth in the wall asks for: its own angles differ by `endo - epi` near the epicardium, and beyond
90 degrees bislerp would turn the short way through the long axis. And the transmural direction is
kept, the long axis made orthogonal to it, so that fibres are tangential.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import cg
from scipy.spatial.transform import Rotation

from vitolab.models.electrophysiology.anatomy import (
    EPI,
    LV_ENDO,
    RV_ENDO,
    SURFACES,
    tet_volumes,
)
from vitolab.problem import BoolArray, FloatArray, IntArray

_TOLERANCE = 1e-8  # relative residual of the linear solves


def laplace(nodes: FloatArray, tets: IntArray, fixed: FloatArray) -> FloatArray:
    """Solve Laplace's equation with linear elements, insulated where nothing is fixed.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
    tets : ndarray of int, shape (m, 4)
    fixed : ndarray, shape (n,)
        Given values; NaN where the solution is sought.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If no value is given, a node belongs to no tetrahedron, or the solve does not converge.
    """
    given = ~np.isnan(fixed)
    if not given.any():
        raise ValueError("fixed has only NaN, expected a value at one node at least")
    values = np.where(given, fixed, 0.0)
    if given.all():
        return values
    stiffness = _stiffness(nodes, tets)
    rows = stiffness[~given]
    inner = rows[:, ~given]
    right = -(rows[:, given] @ values[given])
    diagonal = inner.diagonal()
    if not (diagonal > 0.0).all():
        raise ValueError(
            f"{(~(diagonal > 0.0)).sum()} nodes belong to no tetrahedron with a volume, expected "
            "none"
        )
    found, failed = cg(inner, right, rtol=_TOLERANCE, maxiter=5000, M=diags_array(1.0 / diagonal))
    if failed:
        raise ValueError("Laplace's equation: no solution in 5000 iterations, expected convergence")
    values[~given] = found
    return values


def gradient(nodes: FloatArray, tets: IntArray, values: FloatArray) -> FloatArray:
    """Gradient of a field at the nodes: mean over the tetrahedra around, weighted with volume.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
    tets : ndarray of int, shape (m, 4)
    values : ndarray, shape (n,)
        The field, linear in each tetrahedron.

    Returns
    -------
    ndarray, shape (n, 3)
        In the unit of the values per unit of the nodes; zero at nodes of no tetrahedron.
    """
    volumes = np.abs(tet_volumes(nodes, tets))
    scaled = (_shape_gradients(nodes, tets) * values[tets][:, :, None]).sum(axis=1)
    scaled *= volumes[:, None]
    n = len(nodes)
    corners = tets.ravel()
    total = np.bincount(corners, weights=np.repeat(volumes, 4), minlength=n)
    mean = [
        np.bincount(corners, weights=np.repeat(component, 4), minlength=n) for component in scaled.T
    ]
    result: FloatArray = np.column_stack(mean) / np.maximum(total, np.finfo(float).tiny)[:, None]
    return result


def apex(nodes: FloatArray, base: BoolArray) -> int:
    """Node that lies farthest from the plane through the base.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
    base : ndarray of bool, shape (n,)

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the base has less than three nodes.
    """
    if base.sum() < 3:
        raise ValueError(f"{base.sum()} nodes lie on the base, expected 3 at least")
    centre = nodes[base].mean(axis=0)
    normal = np.linalg.svd(nodes[base] - centre, full_matrices=False)[2][2]
    return int(np.argmax(np.abs((nodes - centre) @ normal)))


def ldrb(
    nodes: FloatArray,
    tets: IntArray,
    surface: IntArray,
    base: BoolArray,
    endo: float = 60.0,
    epi: float = -60.0,
) -> FloatArray:
    """Fibre directions at the nodes.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
    tets : ndarray of int, shape (m, 4)
    surface : ndarray of int, shape (n,)
    base : ndarray of bool, shape (n,)
        As in `vitolab.models.electrophysiology.anatomy.Anatomy`.
    endo, epi : float
        Helix angles on endocardium and epicardium, degrees; the right side of the septum has
        minus the endocardial one, as in the publication.

    Returns
    -------
    ndarray, shape (n, 3)
        Unit vectors; the sign has no meaning.

    Raises
    ------
    ValueError
        If a surface has no node, or the base has less than three.
    """
    phi_lv, phi_rv, phi_epi = phi = _between(nodes, tets, surface)
    to_lv, to_rv, to_epi = (gradient(nodes, tets, values) for values in phi)
    ends = np.where(base, 1.0, np.nan)
    ends[apex(nodes, base)] = 0.0
    upwards = gradient(nodes, tets, laplace(nodes, tets, ends))
    endocardial = phi_lv + phi_rv
    right = np.divide(phi_rv, endocardial, out=np.zeros_like(phi_rv), where=endocardial > 1e-9)
    angle = np.deg2rad(endo * (1.0 - phi_epi) + epi * phi_epi)
    # Towards the epicardium or the right ventricle; inwards in the RV wall, where the angle, too,
    # has the opposite sign
    of_lv = _axes(upwards, -to_lv, angle * (1.0 - 2.0 * right))
    of_rv = _axes(upwards, to_rv, angle * (1.0 - 2.0 * right))
    of_epi = _axes(upwards, to_epi, angle)
    inside = _bislerp(of_lv, of_rv, right)
    fibres = _bislerp(inside, of_epi, phi_epi)[:, :, 0]
    return _unit(fibres, fibres)


def _between(nodes: FloatArray, tets: IntArray, surface: IntArray) -> FloatArray:
    """`phi_lv`, `phi_rv` and `phi_epi`, shape (3, n)."""
    for label in (LV_ENDO, RV_ENDO, EPI):
        if not (surface == label).any():
            raise ValueError(f"no node lies on the {SURFACES[label]}, expected some")
    on_surface = np.isin(surface, (LV_ENDO, RV_ENDO, EPI))
    phi_lv, phi_rv = (
        laplace(nodes, tets, np.where(on_surface, surface == label, np.nan))
        for label in (LV_ENDO, RV_ENDO)
    )
    phi: FloatArray = np.clip([phi_lv, phi_rv, 1.0 - phi_lv - phi_rv], 0.0, 1.0)
    return phi


def _axes(upwards: FloatArray, across: FloatArray, angle: FloatArray) -> FloatArray:
    """Frames with columns fibre, in-plane normal and transmural, shape (n, 3, 3)."""
    t = _unit(across, np.broadcast_to([0.0, 0.0, 1.0], across.shape))
    spare = np.eye(3)[np.argmin(np.abs(t), axis=1)]
    spare = spare - (spare * t).sum(axis=1)[:, None] * t
    up = _unit(upwards, spare)
    up = _unit(up - (up * t).sum(axis=1)[:, None] * t, spare)
    c = np.cross(up, t)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    return np.stack([cos * c + sin * up, cos * up - sin * c, t], axis=2)


def _unit(vectors: FloatArray, spare: FloatArray) -> FloatArray:
    """Vectors of length 1, from `spare` where they have none."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = np.where(length > 1e-9, vectors, spare)
    result: FloatArray = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    return result


def _bislerp(first: FloatArray, second: FloatArray, share: FloatArray) -> FloatArray:
    """Frames between two sets of frames, whose axes have no sign, along the shortest rotation."""
    flips = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)], dtype=np.float64)
    overlap = np.einsum("nij,nij,kj->nk", first, second, flips)
    first = first * flips[np.argmax(overlap, axis=1)][:, None, :]
    turn = Rotation.from_matrix(np.swapaxes(first, 1, 2) @ second).as_rotvec()
    result: FloatArray = first @ Rotation.from_rotvec(share[:, None] * turn).as_matrix()
    return result


def _shape_gradients(nodes: FloatArray, tets: IntArray) -> FloatArray:
    """Gradients of the four linear shape functions, shape (m, 4, 3)."""
    edges = nodes[tets[:, 1:]] - nodes[tets[:, :1]]
    inverse = np.swapaxes(np.linalg.inv(edges), 1, 2)
    return np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)


def _stiffness(nodes: FloatArray, tets: IntArray) -> csr_array:
    """Linear stiffness matrix, shape (n, n)."""
    slopes = _shape_gradients(nodes, tets)
    local = np.abs(tet_volumes(nodes, tets))[:, None, None] * (slopes @ np.swapaxes(slopes, 1, 2))
    row, column = np.repeat(tets, 4, axis=1).ravel(), np.tile(tets, (1, 4)).ravel()
    return coo_array((local.ravel(), (row, column)), shape=(len(nodes),) * 2).tocsr()
