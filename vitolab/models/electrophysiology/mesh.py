"""Tetrahedral meshes of idealised ventricles.

Points on the surfaces and a jittered body-centred lattice between them are joined by a Delaunay
triangulation, from which what lies outside the myocardium is removed.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from vitolab.models.electrophysiology.anatomy import (
    EPI,
    INTERIOR,
    LV_ENDO,
    RV_ENDO,
    Anatomy,
    boundary,
    nearest_node,
)
from vitolab.models.electrophysiology.carve import carve
from vitolab.models.electrophysiology.fibres import helix
from vitolab.models.electrophysiology.scatter import scatter
from vitolab.models.electrophysiology.shapes import Distance, Shape, gradient
from vitolab.problem import BoolArray, FloatArray, IntArray

ATTEMPTS = 20  # with new points, should a thin wall come out with holes


def generate(
    shape: Shape, spacing: float = 3.6, seed: int = 0, angles: tuple[float, float] = (60.0, -60.0)
) -> Anatomy:
    """Mesh a shape.

    Parameters
    ----------
    shape : Shape
    spacing : float
        Distance of neighbouring nodes, mm; 3.6 gives about 4,500 nodes, 2.1 about 20,000.
    seed : int
        Of the jitter.
    angles : (float, float)
        Helix angles at endocardium and epicardium, degrees.

    Returns
    -------
    Anatomy
        In the heart frame, with the helix rule's fibres.

    Raises
    ------
    ValueError
        If the spacing is not positive or too coarse for the shape.
    """
    if not 0.0 < spacing <= shape.lv_wall:
        raise ValueError(
            f"spacing is {spacing} mm, expected above 0 and at most the LV wall's {shape.lv_wall:g}"
        )
    rng = np.random.default_rng(seed)
    for _ in range(ATTEMPTS):
        points, label = scatter(shape, spacing, rng)
        tets = carve(shape.distance, spacing, points)
        if len(tets):
            break
    else:
        raise ValueError(
            f"spacing is {spacing} mm, expected finer: the mesh of this shape is not one body"
        )
    used = np.unique(tets)
    used = used[_morton(points[used])]
    renumber = np.empty(len(points), np.int64)
    renumber[used] = np.arange(len(used))
    return _describe(shape, points[used], renumber[tets], label[used], angles)


def _morton(points: FloatArray) -> IntArray:
    """Order of the points along a Morton curve."""
    scaled = (points - points.min(axis=0)) / np.ptp(points, axis=0).max()
    cell = (scaled * 1023.0).astype(np.int64)
    code = np.zeros(len(points), np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")


def _describe(
    shape: Shape,
    nodes: FloatArray,
    tets: IntArray,
    label: IntArray,
    angles: tuple[float, float],
) -> Anatomy:
    """Tags, coordinates, fibres and roots of a mesh."""
    lv, epi, rv, rvo = (partial(shape.surface, name) for name in shape.ellipsoids)
    base = nodes[:, 2] == 0.0
    surface = _tags(shape, nodes, label, np.unique(boundary(tets)), base)
    right = epi(nodes) > 1e-3
    inner = np.where(right, rv(nodes), lv(nodes))
    outer = np.where(right, rvo(nodes), epi(nodes))
    transmural = np.clip(inner / (inner - outer), 0.0, 1.0)
    outward = np.where(
        right[:, None], _blend(rv, rvo, nodes, transmural), _blend(lv, epi, nodes, transmural)
    )
    a, length = shape.lv_radius, shape.lv_length
    sites = (
        (LV_ENDO, [-a, 0.0, -0.4 * length]),
        (RV_ENDO, [-0.7 * a - shape.lv_wall, 0.0, -0.7 * length]),
    )
    return Anatomy(
        nodes=nodes,
        tets=tets,
        surface=surface,
        base=base,
        transmural=transmural,
        apex_base=np.clip(1.0 + nodes[:, 2] / length, 0.0, 1.0),
        rotation=np.arctan2(nodes[:, 1], -nodes[:, 0]),
        right=right,
        fibres=helix(np.array([0.0, 0.0, 1.0]), outward, transmural, *angles),
        roots=np.array(
            [nearest_node(nodes, np.flatnonzero(surface == tag), site) for tag, site in sites]
        ),
        frame=np.eye(3),
    )


def _tags(
    shape: Shape, nodes: FloatArray, label: IntArray, outer: IntArray, base: BoolArray
) -> IntArray:
    """Surface of each node: as placed if on the boundary, else the nearest if exposed."""
    surface = np.full(len(nodes), INTERIOR)
    surface[outer] = label[outer]
    bare = outer[(label[outer] == INTERIOR) & ~base[outer]]
    gaps = {name: np.abs(shape.surface(name, nodes[bare])) for name in shape.ellipsoids}
    tags = {name: np.full(len(bare), EPI) for name in gaps}
    tags["lv_endo"][:] = LV_ENDO
    tags["rv_endo"][:] = RV_ENDO
    tags["lv_epi"][shape.surface("rv_endo", nodes[bare]) < 0.0] = RV_ENDO
    nearest = np.argmin(list(gaps.values()), axis=0)
    surface[bare] = np.array(list(tags.values()))[nearest, np.arange(len(bare))]
    return surface


def _blend(inner: Distance, outer: Distance, nodes: FloatArray, share: FloatArray) -> FloatArray:
    """Outward direction between two surfaces."""
    slopes = gradient(inner, nodes), gradient(outer, nodes)
    direction: FloatArray = slopes[0] + share[:, None] * (slopes[1] - slopes[0])
    return direction
