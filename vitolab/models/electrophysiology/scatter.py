"""Points from which idealised ventricles are meshed."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.spatial import cKDTree

from vitolab.models.electrophysiology.anatomy import EPI, INTERIOR, LV_ENDO, RV_ENDO
from vitolab.models.electrophysiology.shapes import Distance, Shape, gradient
from vitolab.problem import FloatArray, IntArray

THIN = 0.78  # least distance of points, share of the spacing
DEPTH = 0.45  # least depth of inner points below the surface, share of the spacing
GOLDEN = np.pi * (3.0 - np.sqrt(5.0))


def scatter(shape: Shape, h: float, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Points at a distance of about h.

    Curves come first: the rims of the surfaces in the base plane and the creases along which the
    right ventricle meets the left. Surfaces and base plane follow, then a lattice between them.
    Points of different surfaces may come closer, for the sake of thin walls.

    Parameters
    ----------
    shape : Shape
    h : float
        mm.
    rng : Generator
        Of the jitter.

    Returns
    -------
    points : ndarray, shape (n, 3)
        mm.
    label : ndarray of int, shape (n,)
        The surface each was placed on, or `INTERIOR`.
    """
    lv, epi, rv, rvo = (partial(shape.surface, name) for name in shape.ellipsoids)
    on_lv, on_epi, on_rv, on_rvo = (_cloud(shape, name, h, rng) for name in shape.ellipsoids)
    on_epi = _project(on_epi, (epi,))
    creases = [
        (_project(cloud[np.abs(epi(cloud)) < 0.5 * h], (edge, epi)), tag, (edge, epi))
        for cloud, tag, edge in ((on_rv, RV_ENDO, rv), (on_rvo, EPI, rvo))
    ]
    sheets: list[tuple[FloatArray, int, tuple[Distance, ...]]] = [
        (on_lv, LV_ENDO, (lv,)),
        (on_epi[rv(on_epi) < 0.0], RV_ENDO, (epi,)),
        (on_rv[epi(on_rv) > 0.0], RV_ENDO, (rv,)),
        (on_epi[rvo(on_epi) > 0.0], EPI, (epi,)),
        (on_rvo[epi(on_rvo) > 0.0], EPI, (rvo,)),
    ]
    points, label = np.empty((0, 3)), np.empty(0, np.int64)

    def add(candidates: FloatArray, tag: int, fixed: FloatArray) -> None:
        nonlocal points, label
        new = _thin(candidates, fixed, THIN * h)
        points = np.concatenate([points, new])
        label = np.concatenate([label, np.full(len(new), tag)])

    # candidates in order along their curve end up evenly spaced
    for cloud, tag, surfaces in creases + sheets:
        rim = cloud[cloud[:, 2] > -0.5 * h] * [1.0, 1.0, 0.0]
        rim = _project(rim, surfaces, planar=True)
        angle = np.arctan2(rim[:, 1], rim[:, 0] - rim[:, 0].mean())
        add(rim[np.argsort(angle, kind="stable")], tag, points)
    for cloud, tag, _ in creases:
        crease = cloud[cloud[:, 2] < 0.0]
        angle = np.arctan2(crease[:, 1], -crease[:, 2])
        add(crease[np.argsort(angle, kind="stable")], tag, points)
    curves = points
    for cloud, tag, _ in sheets:
        add(cloud[cloud[:, 2] < 0.0], tag, curves)
    flat = _hexagonal(shape, h, rng)
    add(flat[shape.wall(flat) < -DEPTH * h], INTERIOR, points)
    inner = _lattice(shape, h, rng)
    add(inner[shape.distance(inner) < -DEPTH * h], INTERIOR, points)
    return points, label


def _cloud(shape: Shape, name: str, h: float, rng: np.random.Generator) -> FloatArray:
    """Dense points on an ellipsoid below z = h/2, in random order."""
    centre, radii = shape.ellipsoids[name]
    widest = np.sort(radii)[1:].prod()
    n = int(4.0 * np.pi * widest / (0.4 * h) ** 2)
    height = 1.0 - (2.0 * np.arange(n) + 1.0) / n
    angle = GOLDEN * np.arange(n) + rng.uniform(0.0, 2.0 * np.pi)
    ring = np.sqrt(1.0 - height**2)
    points = centre + radii * np.stack([ring * np.cos(angle), ring * np.sin(angle), height], 1)
    points = rng.permutation(points)
    return points[points[:, 2] < 0.5 * h]


def _project(
    points: FloatArray, surfaces: tuple[Distance, ...], planar: bool = False
) -> FloatArray:
    """Move points onto the surfaces, or their intersection, by Newton steps."""
    for _ in range(3 if len(surfaces) == 1 else 8):
        for distance in surfaces:
            slope = gradient(distance, points)
            if planar:
                slope[:, 2] = 0.0
            square = np.einsum("ij,ij->i", slope, slope)
            points = points - (distance(points) / square)[:, None] * slope
    return points


def _thin(candidates: FloatArray, fixed: FloatArray, radius: float) -> FloatArray:
    """Keep candidates, the first ones first, that are not within radius of a kept or fixed one."""
    if len(fixed) and len(candidates):
        gap, _ = cKDTree(fixed).query(candidates, distance_upper_bound=radius)
        candidates = candidates[gap >= radius]
    pairs = cKDTree(candidates).query_pairs(radius, output_type="ndarray")
    undecided = np.ones(len(candidates), np.bool_)
    kept = np.zeros(len(candidates), np.bool_)
    while undecided.any():
        waiting = np.zeros(len(candidates), np.bool_)
        waiting[pairs[:, 1]] = True
        chosen = undecided & ~waiting
        kept |= chosen
        undecided &= ~chosen
        undecided[pairs[chosen[pairs[:, 0]], 1]] = False
        pairs = pairs[undecided[pairs].all(axis=1)]
    return candidates[kept]


def _box(shape: Shape) -> tuple[FloatArray, FloatArray]:
    """Corners of a box around the shape."""
    centres, radii = (np.array(part) for part in zip(*shape.ellipsoids.values(), strict=True))
    high = (centres + 1.6 * radii).max(axis=0)
    high[2] = 0.0
    return (centres - 1.6 * radii).min(axis=0), high


def _hexagonal(shape: Shape, h: float, rng: np.random.Generator) -> FloatArray:
    """Jittered triangular lattice in the base plane."""
    low, high = _box(shape)
    n = np.ceil((high - low)[:2] / (h * np.array([1.0, np.sqrt(0.75)]))).astype(int) + 1
    column, row = (index.ravel() for index in np.meshgrid(np.arange(n[0]), np.arange(n[1])))
    points = np.zeros((len(row), 3))
    points[:, 0] = low[0] + h * (column + 0.5 * (row % 2))
    points[:, 1] = low[1] + h * np.sqrt(0.75) * row
    points[:, :2] += rng.uniform(-0.15 * h, 0.15 * h, (len(points), 2))
    return points


def _lattice(shape: Shape, h: float, rng: np.random.Generator) -> FloatArray:
    """Jittered body-centred cubic lattice with neighbours at distance h."""
    low, high = _box(shape)
    cell = h / np.sqrt(0.75)
    axes = [np.arange(a, b, cell) for a, b in zip(low, high, strict=True)]
    corners = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    points = np.concatenate([corners, corners + 0.5 * cell])
    return points + rng.uniform(-0.18 * h, 0.18 * h, points.shape)
