"""Frame, coordinates and root nodes of a heart whose surfaces are tagged.

Nodes are in mm, shape (n, 3); `tets`, shape (m, 4), `surface` and `base`, shape (n,), are those of
`vitolab.models.electrophysiology.anatomy.Anatomy`; `triangles`, shape (k, 3), are those of the
boundary, their normals pointing out of the tissue.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from vitolab.models.electrophysiology.anatomy import EPI, LV_ENDO, RV_ENDO, nearest_node
from vitolab.models.electrophysiology.ldrb import laplace
from vitolab.models.electrophysiology.surfaces import normals, rim_edges, septal
from vitolab.problem import BoolArray, FloatArray, IntArray

APEX = 0.1  # of the depth of the LV cavity: its deepest part, whose mean is the apex
LV_HEIGHT, RV_HEIGHT = 0.6, 0.3  # of the roots, from apex to base
BAND = 0.08  # half width of the heights searched
WALL = 1.3  # of the local thickness of the RV's free wall: how far its nodes may be from both sides


def heart_frame(
    nodes: FloatArray, triangles: IntArray, surface: IntArray, base: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Axes of the heart and the centre of its base.

    z runs from the LV apex to the middle of the LV rim; the RV lies at -x.

    Parameters
    ----------
    nodes, triangles, surface, base
        See the head of this module.

    Returns
    -------
    frame : ndarray, shape (3, 3)
        Rows: unit vectors along x, y and z in the coordinates of the nodes.
    centre : ndarray, shape (3,)
        Middle of the rim of the LV endocardium, mm.

    Raises
    ------
    ValueError
        If the LV endocardium has no rim on the base.
    """
    middle, area = {}, {}
    for tag in (LV_ENDO, RV_ENDO):
        own = triangles[(surface[triangles] == tag).all(axis=1) & ~base[triangles].all(axis=1)]
        middle[tag], area[tag] = nodes[own].mean(axis=1), normals(nodes, own)[1]
        if tag == LV_ENDO:
            edges = rim_edges(own)
            rim = nodes[edges[base[edges].all(axis=1)]]
    if len(rim) == 0:
        raise ValueError("the LV endocardium has no edge on the base, expected its rim there")
    centre = np.average(
        rim.mean(axis=1), axis=0, weights=np.linalg.norm(rim[:, 1] - rim[:, 0], axis=1)
    )
    left, weight = middle[LV_ENDO], area[LV_ENDO]
    z = centre - np.average(left, axis=0, weights=weight)
    for _ in range(3):
        depth = (centre - left) @ z
        deep = depth > (1.0 - APEX) * depth.max()
        z = centre - np.average(left[deep], axis=0, weights=weight[deep])
        z /= np.linalg.norm(z)
    x = np.average(left, axis=0, weights=weight)
    x -= np.average(middle[RV_ENDO], axis=0, weights=area[RV_ENDO])
    x -= (x @ z) * z
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z]), centre


def coordinates(
    nodes: FloatArray,
    tets: IntArray,
    triangles: IntArray,
    surface: IntArray,
    base: BoolArray,
) -> dict[str, Any]:
    """Frame and coordinates of the nodes, named as in `Anatomy`.

    Parameters
    ----------
    nodes, tets, triangles, surface, base
        See the head of this module.

    Returns
    -------
    dict of str to ndarray
        ``base``, ``transmural``, ``apex_base``, ``rotation`` (radians) and ``right``, of shape
        (n,), and ``frame``, of shape (3, 3).

    Raises
    ------
    ValueError
        As `heart_frame`, and as `vitolab.models.electrophysiology.ldrb.laplace`.
    """
    frame, centre = heart_frame(nodes, triangles, surface, base)
    x, y, z = ((nodes - centre) @ frame.T).T
    septum = septal(nodes, triangles, surface)
    fixed = np.full(len(nodes), np.nan)
    fixed[np.isin(surface, (LV_ENDO, RV_ENDO))] = 0.0
    fixed[(surface == EPI) | septum] = 1.0
    return {
        "base": base,
        "transmural": np.clip(laplace(nodes, tets, fixed), 0.0, 1.0),
        "apex_base": np.clip(1.0 - z / z[surface == LV_ENDO].min(), 0.0, 1.0),
        "rotation": np.arctan2(y, -x),
        "right": free_wall(nodes, surface, septum),
        "frame": frame,
    }


def free_wall(nodes: FloatArray, surface: IntArray, septum: BoolArray) -> BoolArray:
    """Nodes of the free wall of the RV: where epicardium and RV endocardium are near each other.

    Parameters
    ----------
    nodes, surface
        See the head of this module.
    septum : ndarray of bool, shape (n,)
        Right side of the septum.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    lining = nodes[(surface == RV_ENDO) & ~septum]
    epi = cKDTree(nodes[surface == EPI])
    inward, at = cKDTree(lining).query(nodes)
    thickness = epi.query(lining)[0][at]
    wall: BoolArray = (inward + epi.query(nodes)[0] < WALL * thickness) & ~septum
    return wall


def find_roots(
    nodes: FloatArray, triangles: IntArray, surface: IntArray, height: FloatArray
) -> IntArray:
    """Middle of the left side of the septum, and of its right side near the apex.

    The nodes of the LV endocardium and of the right side of the septum that are nearest to the mean
    of the latter at 0.6 and 0.3 of the height.

    Parameters
    ----------
    nodes, triangles, surface
        See the head of this module.
    height : ndarray, shape (n,)
        0 at the apex to 1 at the base.

    Returns
    -------
    ndarray of int, shape (2,)
    """
    septum = np.flatnonzero(septal(nodes, triangles, surface))
    left = np.flatnonzero(surface == LV_ENDO)
    sites = ((left, LV_HEIGHT), (septum, RV_HEIGHT))
    return np.array(
        [nearest_node(nodes, own, _middle(nodes, septum, height, level)) for own, level in sites]
    )


def _middle(nodes: FloatArray, own: IntArray, height: FloatArray, level: float) -> FloatArray:
    """Mean of nodes at a height, shape (3,)."""
    offset = np.abs(height[own] - level)
    middle: FloatArray = nodes[own[offset <= max(BAND, float(offset.min()))]].mean(axis=0)
    return middle
