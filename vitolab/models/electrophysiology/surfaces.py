"""Which part of the boundary of a mesh is endocardium, epicardium or base.

Nodes are in mm, shape (n, 3); `triangles`, shape (k, 3), are those of the boundary, their normals
pointing out of the tissue; `surface` and `base`, shape (n,), are those of
`vitolab.models.electrophysiology.anatomy.Anatomy`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from vitolab.models.electrophysiology.anatomy import (
    EPI,
    INTERIOR,
    LV_ENDO,
    RV_ENDO,
    SURFACES,
    sides,
)
from vitolab.problem import BoolArray, FloatArray, IntArray

# Degrees between the normal of a flat base and of its triangles, and their distance from its plane
# as a share of the median edge: while it is searched, and once it is found
SEED, FLAT = (12.0, 0.25), (30.0, 0.75)
UP = 0.5  # cosine of the steepest triangle of a base that is not flat
PIECE = 0.2  # of the area of the largest piece of a base: smaller pieces are none of it
SMALL = 0.02  # of the area of the boundary: smaller parts are not a surface of their own
NEAR = 0.5  # of the median edge: a node of a surface that is given apart is nearer than this
ALIKE = 0.1  # of the median edge: differences of distance that count as none
COVERED = 0.5  # of the points of a surface given apart: share that must lie near the mesh
THIN = 0.25  # quantile of the distance to the epicardium that stands for the free wall


def normals(nodes: FloatArray, triangles: IntArray) -> tuple[FloatArray, FloatArray]:
    """Normals and areas of triangles.

    Parameters
    ----------
    nodes, triangles
        See the head of this module.

    Returns
    -------
    normal : ndarray, shape (k, 3)
        Unit vectors; zero where a triangle is flat.
    area : ndarray, shape (k,)
        mm².
    """
    a, b, c = nodes[triangles].transpose(1, 0, 2)
    cross = np.cross(b - a, c - a)
    length = np.linalg.norm(cross, axis=1)
    return cross / np.where(length > 0.0, length, 1.0)[:, np.newaxis], length / 2.0


def median_edge(nodes: FloatArray, triangles: IntArray) -> float:
    """Median length of the edges of the triangles, mm."""
    corners = nodes[triangles]
    return float(np.median(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)))


def rim_edges(triangles: IntArray) -> IntArray:
    """Edges that belong to one of the triangles only, shape (k, 2)."""
    edges = np.sort(sides(triangles), axis=1)
    edges, count = np.unique(edges, axis=0, return_counts=True)
    rim: IntArray = edges[count == 1]
    return rim


def flat_base(nodes: FloatArray, triangles: IntArray) -> BoolArray:
    """Triangles of the plane that holds the largest part of the boundary.

    Parameters
    ----------
    nodes, triangles
        See the head of this module.

    Returns
    -------
    ndarray of bool, shape (k,)
    """
    normal, area = normals(nodes, triangles)
    centre = nodes[triangles].mean(axis=1)
    edge = median_edge(nodes, triangles)

    def near(axis: FloatArray, point: FloatArray, limits: tuple[float, float]) -> BoolArray:
        close: BoolArray = (normal @ axis > np.cos(np.radians(limits[0]))) & (
            np.abs((centre - point) @ axis) < limits[1] * edge
        )
        return close

    seeds = np.linspace(0, len(triangles) - 1, min(len(triangles), 2000)).astype(np.int64)
    held = [area[near(normal[seed], centre[seed], SEED)].sum() for seed in seeds]
    best = seeds[int(np.argmax(held))]
    base = near(normal[best], centre[best], SEED)
    for limits in (SEED, SEED, FLAT):
        if not area[base].any():
            break
        axis = area[base] @ normal[base]
        point = np.average(centre[base], axis=0, weights=area[base])
        base = near(axis / np.linalg.norm(axis), point, limits)
    return base


def segment(nodes: FloatArray, triangles: IntArray) -> tuple[IntArray, BoolArray]:
    """Tags from the shape alone: a flat base splits the boundary into its three surfaces.

    The two surfaces that enclose a cavity are the endocardia, that of the thicker wall is the LV's.

    Parameters
    ----------
    nodes, triangles
        See the head of this module.

    Returns
    -------
    surface : ndarray of int, shape (n,)
    base : ndarray of bool, shape (n,)

    Raises
    ------
    ValueError
        If the boundary does not split in three, two of them cavities.
    """
    flat = flat_base(nodes, triangles)
    _, area = normals(nodes, triangles)
    walls = triangles[~flat]
    part = connected(walls)
    large = np.flatnonzero(np.bincount(part, weights=area[~flat]) > SMALL * area.sum())
    patches = [walls[part == i] for i in large]
    inside = [patch for patch in patches if enclosed(nodes, patch) < 0.0]
    outside = [patch for patch in patches if enclosed(nodes, patch) >= 0.0]
    if len(inside) != 2 or len(outside) != 1:
        raise ValueError(
            f"beside a flat base the boundary has {len(inside)} cavities and {len(outside)} outer "
            "surfaces, expected two and one; tag the endocardia"
        )
    epi = np.unique(outside[0])
    inside.sort(key=lambda patch: -wall_thickness(nodes[np.unique(patch)], nodes[epi]))
    surface = np.full(len(nodes), INTERIOR)
    for patch, tag in ((epi, EPI), (inside[1], RV_ENDO), (inside[0], LV_ENDO)):
        surface[patch] = tag
    base = np.zeros(len(nodes), dtype=bool)
    base[triangles[flat]] = True
    return surface, base


def match(
    nodes: FloatArray, triangles: IntArray, sheets: Mapping[str, FloatArray]
) -> tuple[NDArray[np.str_], BoolArray | None]:
    """Find the nearest of several surfaces for each node of the boundary.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
    triangles : ndarray of int, shape (k, 3)
    sheets : mapping of str to ndarray, shape (n_points, 3)
        Points of the surfaces; where two are equally near the first counts.

    Returns
    -------
    nearest : ndarray of str, shape (n,)
        Empty where none is nearer than half a median edge; the sheet ``base`` is left out.
    base : ndarray of bool, shape (n,), or None
        Nodes that are as near to the sheet ``base`` as to any other.

    Raises
    ------
    ValueError
        If most of a surface lies away from the mesh.
    """
    outer = np.unique(triangles)
    edge = median_edge(nodes, triangles)
    boundary = cKDTree(nodes[outer])
    distance = {}
    for role, sheet in sheets.items():
        if not len(sheet) or not np.isfinite(sheet).all():
            raise ValueError(f"tags of {role} hold no triangles, expected a surface")
        covered = float(np.mean(boundary.query(sheet)[0] < edge))
        if covered < COVERED:
            raise ValueError(
                f"tags of {role}: {100 * covered:.0f} % of the points lie within {edge:.2g} mm of "
                f"the mesh, expected at least {100 * COVERED:g} %"
            )
        distance[role] = cKDTree(sheet).query(nodes[outer])[0]
    near, alike = NEAR * edge, ALIKE * edge
    of_base = distance.pop("base", None)
    least = np.min([*distance.values(), np.full(len(outer), near)], axis=0)
    nearest = np.full(len(nodes), "", dtype="U7")
    for role in reversed(distance):
        own = (distance[role] <= least) & (distance[role] < near)
        if of_base is not None:
            own &= distance[role] <= of_base + alike
        nearest[outer[own]] = role
    if of_base is None:
        return nearest, None
    base = np.zeros(len(nodes), dtype=bool)
    base[outer] = (of_base <= least + alike) & (of_base < near)
    return nearest, base


def complete(
    nodes: FloatArray, triangles: IntArray, surface: IntArray, base: BoolArray | None
) -> tuple[IntArray, BoolArray, list[str]]:
    """Fill in what tags of the endocardia leave open.

    Tags inside the wall are dropped. Where no epicardium is tagged it is all that is neither
    endocardium nor base. A base that is not given is where tagged surfaces meet, or flat.

    Parameters
    ----------
    nodes : ndarray, shape (n, 3)
    triangles : ndarray of int, shape (k, 3)
    surface : ndarray of int, shape (n,)
    base : ndarray of bool, shape (n,), optional

    Returns
    -------
    surface : ndarray of int, shape (n,)
    base : ndarray of bool, shape (n,)
    repairs : list of str
    """
    repairs = []
    outer = np.zeros(len(nodes), dtype=bool)
    outer[triangles] = True
    inner = int((~outer & (surface != INTERIOR)).sum())
    surface = np.where(outer, surface, INTERIOR)
    if inner:
        repairs.append(f"tags of {inner} nodes inside the wall dropped")
    if base is None:
        if (surface == EPI).any():
            top = _seam(nodes, triangles, surface)
        else:
            top = flat_base(nodes, triangles)
        base = np.zeros(len(nodes), dtype=bool)
        base[triangles[top]] = True
    walls = triangles[~base[triangles].all(axis=1)]
    untagged = np.zeros(len(nodes), dtype=bool)
    untagged[walls] = True
    untagged &= surface == INTERIOR
    if not (surface == EPI).any():
        surface[untagged & ~base] = EPI
        untagged &= base
    if (untagged & ~base).any():
        repairs.append(f"{int((untagged & ~base).sum())} nodes took the tag of their neighbours")
    _spread(walls, surface, untagged)
    return surface, base, repairs


def _spread(triangles: IntArray, surface: IntArray, untagged: BoolArray) -> None:
    """Give untagged nodes the most frequent tag of their neighbours, in place."""
    while untagged.any():
        votes = np.zeros((len(surface), len(SURFACES)))
        for shift in (1, 2):
            np.add.at(votes, (triangles, surface[np.roll(triangles, shift, axis=1)]), 1.0)
        votes[:, INTERIOR] = 0.0
        reached = untagged & votes.any(axis=1)
        if not reached.any():
            return
        surface[reached] = votes[reached].argmax(axis=1)
        untagged = untagged & ~reached


def septal(nodes: FloatArray, triangles: IntArray, surface: IntArray) -> BoolArray:
    """Nodes of the RV endocardium whose wall lies towards the LV: the right side of the septum.

    Parameters
    ----------
    nodes, triangles, surface
        See the head of this module.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    own = (surface[triangles] == RV_ENDO).any(axis=1)
    normal, area = normals(nodes, triangles[own])
    summed = np.zeros_like(nodes)
    np.add.at(summed, triangles[own].ravel(), np.repeat(normal * area[:, np.newaxis], 3, axis=0))
    left = nodes[surface == LV_ENDO]
    away = nodes - left[cKDTree(left).query(nodes)[1]]
    facing: BoolArray = (surface == RV_ENDO) & (np.einsum("ij,ij->i", summed, away) > 0.0)
    return facing


def _seam(nodes: FloatArray, triangles: IntArray, surface: IntArray) -> BoolArray:
    """Triangles between surfaces that face as the opening of the LV does, shape (k,)."""
    normal, area = normals(nodes, triangles)
    tagged = surface[triangles]
    own = (tagged == LV_ENDO).all(axis=1)
    opening = area[own] @ normal[own]  # cancels that of a lid that faces into the cavity
    seam: BoolArray = (tagged != tagged[:, :1]).any(axis=1) | (tagged == INTERIOR).any(axis=1)
    seam &= normal @ opening > UP * np.linalg.norm(opening)
    if seam.any():
        part = connected(triangles[seam])
        size = np.bincount(part, weights=area[seam])
        seam[seam] = size[part] > PIECE * size.max()
    return seam


def connected(triangles: IntArray) -> IntArray:
    """Number of the edge-connected patch of each triangle, shape (k,)."""
    edges = np.sort(sides(triangles), axis=1)
    _, edge = np.unique(edges, axis=0, return_inverse=True)
    n_edges = int(edge.max(initial=-1)) + 1
    owner = np.repeat(np.arange(len(triangles)), 3)
    link = coo_array(
        (np.ones(edge.size), (owner, len(triangles) + edge.ravel())),
        shape=(len(triangles) + n_edges,) * 2,
    )
    _, part = connected_components(link, directed=False)
    return np.unique(part[: len(triangles)], return_inverse=True)[1].ravel()


def enclosed(nodes: FloatArray, triangles: IntArray) -> float:
    """Signed volume of a patch closed by its rim, negative for a cavity."""
    rim = rim_edges(triangles)
    origin = nodes[rim.ravel() if rim.size else triangles.ravel()].mean(axis=0)
    return float(np.linalg.det(nodes[triangles] - origin).sum() / 6.0)


def wall_thickness(endo: FloatArray, epi: FloatArray) -> float:
    """Thickness of the free wall: low quantile of the distance from endocardium to epicardium."""
    return float(np.quantile(cKDTree(epi).query(endo)[0], THIN))
