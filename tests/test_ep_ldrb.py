"""Rule-based fibres: exact solutions on slabs, the analytic rule on hearts."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations

import numpy as np
import pytest

from vitolab.models.electrophysiology import ldrb
from vitolab.models.electrophysiology.anatomy import EPI, INTERIOR, LV_ENDO, RV_ENDO
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS

WALL = 12.0


def slab(cells, size):
    """Box with a corner at the origin, cut into cubes of six tetrahedra."""
    axes = [np.linspace(0, s, n + 1) for n, s in zip(cells, size, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    index = np.arange(len(nodes)).reshape([n + 1 for n in cells])
    steps = np.array([index[1, 0, 0], index[0, 1, 0], index[0, 0, 1]]) - index[0, 0, 0]
    paths = [np.cumsum([0, *steps[list(order)]]) for order in permutations(range(3))]
    first = index[:-1, :-1, :-1].ravel()
    return nodes, np.concatenate([first[:, None] + path for path in paths])


@lru_cache
def flat_walls():
    """Walls side by side along y, LV endocardium at x = 0, base at the top.

    A free wall (epicardium at x = WALL) where y > 80, else the septum (RV endocardium there).
    """
    nodes, tets = slab((12, 20, 8), (WALL, 160.0, 80.0))
    surface = np.full(len(nodes), INTERIOR)
    surface[nodes[:, 0] == 0] = LV_ENDO
    surface[nodes[:, 0] == WALL] = np.where(nodes[nodes[:, 0] == WALL, 1] > 80, EPI, RV_ENDO)
    return nodes, tets, surface, nodes[:, 2] == 80


@lru_cache
def heart():
    return generate(PRESETS["normal"])


@lru_cache
def heart_fibres():
    anatomy = heart()
    return ldrb.ldrb(anatomy.nodes, anatomy.tets, anatomy.surface, anatomy.base)


def between(first, second):
    """Angle between directions without a sign, degrees."""
    return np.degrees(np.arccos(np.clip(np.abs((first * second).sum(axis=1)), 0, 1)))


def test_laplace_is_exact_for_linear_solutions_on_a_distorted_mesh():
    nodes, tets = slab((6, 5, 4), (30, 25, 20))
    rng = np.random.default_rng(0)
    boundary = np.any((nodes == 0) | (nodes == (30, 25, 20)), axis=1)
    nodes[~boundary] += rng.uniform(-1, 1, ((~boundary).sum(), 3))
    slope = np.array([0.3, -0.2, 0.5])
    exact = nodes @ slope
    found = ldrb.laplace(nodes, tets, np.where(boundary, exact, np.nan))
    np.testing.assert_allclose(found, exact, atol=1e-6)
    np.testing.assert_allclose(
        ldrb.gradient(nodes, tets, exact), np.tile(slope, (len(nodes), 1)), atol=1e-12
    )


def test_laplace_is_insulated_where_nothing_is_fixed():
    nodes, tets = slab((6, 5, 4), (30, 25, 20))
    fixed = np.full(len(nodes), np.nan)
    fixed[nodes[:, 0] == 0], fixed[nodes[:, 0] == 30] = 2.0, 5.0
    np.testing.assert_allclose(ldrb.laplace(nodes, tets, fixed), 2 + nodes[:, 0] / 10, atol=1e-6)


@pytest.mark.parametrize(("endo", "epi"), [(60.0, -60.0), (40.0, -50.0), (80.0, -80.0)])
def test_helix_angle_falls_linearly_through_free_wall_and_septum(endo, epi):
    nodes, tets, surface, base = flat_walls()
    fibres = ldrb.ldrb(nodes, tets, surface, base, endo, epi)
    depth = np.linspace(0, 1, 13)[:, None]
    # Outwards x and upwards z: the helix angle is measured from +y, right-handed about the axis
    for y, expected in ((152, endo + (epi - endo) * depth), (8, endo * (1 - 2 * depth))):
        column = (nodes[:, 1] == y) & (nodes[:, 2] == 70)
        angle = np.deg2rad(expected)
        rule = np.hstack([0 * depth, np.cos(angle), np.sin(angle)])
        assert np.all(between(fibres[column], rule) < 3)


def test_fibres_of_a_heart_are_unit_vectors_in_the_surface():
    anatomy, fibres = heart(), heart_fibres()
    np.testing.assert_allclose(np.linalg.norm(fibres, axis=1), 1)
    faces = np.sort(
        anatomy.tets[:, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]].reshape(-1, 3), axis=1
    )
    faces, count = np.unique(faces, axis=0, return_counts=True)
    for label in (LV_ENDO, RV_ENDO, EPI):
        face = faces[(count == 1) & (anatomy.surface[faces] == label).all(axis=1)]
        a, b, c = anatomy.nodes[face].transpose(1, 0, 2)
        normal = np.cross(b - a, c - a)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        lean = np.abs((fibres[face] * normal[:, None]).sum(axis=2))
        assert np.median(lean) < 0.05  # flat faces of 3.6 mm on a curved wall
        assert np.quantile(lean, 0.9) < 0.1


def test_fibres_of_a_heart_agree_with_the_analytic_rule():
    anatomy = heart()
    away = (anatomy.apex_base > 0.2) & (anatomy.apex_base < 0.85)
    angle = between(heart_fibres(), anatomy.fibres)
    left, right = angle[away & ~anatomy.right], angle[away & anatomy.right]
    assert np.median(left) < 5
    assert np.quantile(left, 0.95) < 15
    # Here the long axis points to the apex of the LV, in the generator along z
    assert np.median(right) < 12
    assert np.quantile(right, 0.9) < 30


def test_apex_of_a_heart_is_far_from_its_base():
    anatomy = heart()
    assert anatomy.apex_base[ldrb.apex(anatomy.nodes, anatomy.base)] < 0.02


def test_what_cannot_be_solved_is_refused():
    nodes, tets, surface, base = flat_walls()
    with pytest.raises(ValueError, match="no node lies on the RV endocardium"):
        ldrb.ldrb(nodes, tets, np.where(surface == RV_ENDO, EPI, surface), base)
    with pytest.raises(ValueError, match="0 nodes lie on the base"):
        ldrb.ldrb(nodes, tets, surface, base & False)
    with pytest.raises(ValueError, match="only NaN"):
        ldrb.laplace(nodes, tets, np.full(len(nodes), np.nan))
    fixed = np.append(np.where(surface == EPI, 1.0, np.nan), np.nan)
    with pytest.raises(ValueError, match="1 nodes belong to no tetrahedron"):
        ldrb.laplace(np.vstack([nodes, nodes[:1]]), tets, fixed)
