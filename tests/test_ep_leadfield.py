"""Lead fields against double layers and dipoles in closed form, and the laws of the leads."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import gamma

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vitolab.kernels import activation as kernel
from vitolab.models.electrophysiology import leadfield
from vitolab.models.electrophysiology.graph import connect
from vitolab.models.electrophysiology.leadfield import CONDUCTIVITY_RATIO, LEADS, POSITIONS, prepare
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS
from vitolab.models.electrophysiology.torso import Torso, superellipsoid

RADIUS = 100.0


def slab(cells, size):
    """Box about the origin, cut into cubes of six tetrahedra."""
    axes = [np.linspace(-s / 2, s / 2, n + 1) for n, s in zip(cells, size, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    index = np.arange(len(nodes)).reshape([n + 1 for n in cells])
    steps = np.array([index[1, 0, 0], index[0, 1, 0], index[0, 0, 1]]) - index[0, 0, 0]
    paths = [np.cumsum([0, *steps[list(order)]]) for order in permutations(range(3))]
    first = index[:-1, :-1, :-1].ravel()
    return nodes, np.concatenate([first[:, None] + path for path in paths])


def sphere_points(n, seed):
    points = np.random.default_rng(seed).normal(size=(n, 3))
    return RADIUS * points / np.linalg.norm(points, axis=1, keepdims=True)


def in_leads(phi):
    """The 12 leads by their definition."""
    ra, la, ll, *chest = phi
    goldberger = [ra - (la + ll) / 2, la - (ra + ll) / 2, ll - (ra + la) / 2]
    wilson = (ra + la + ll) / 3
    return np.array([la - ra, ll - ra, ll - la, *goldberger, *(v - wilson for v in chest)])


@lru_cache
def torso_leads():
    return prepare(torso=superellipsoid())


@lru_cache
def normal_heart():
    anatomy = generate(PRESETS["normal"], spacing=5.0)
    return anatomy, (anatomy.nodes - anatomy.centroid) @ leadfield.orient().T


def lead(name, values):
    return values[LEADS.index(name)]


@pytest.mark.parametrize("leads", [prepare, torso_leads], ids=["infinite", "torso"])
def test_weights_add_up_to_nothing_and_leads_obey_einthoven_and_goldberger(leads):
    anatomy, nodes = normal_heart()
    w = leads().weights(nodes, anatomy.tets)
    scale = np.abs(w).sum(axis=1)
    assert np.all(np.abs(w.sum(axis=1)) < 1e-10 * scale)
    tight = {"rtol": 0, "atol": 1e-12 * scale.max()}
    np.testing.assert_allclose(lead("I", w) + lead("III", w), lead("II", w), **tight)
    np.testing.assert_allclose(lead("aVR", w) + lead("aVL", w) + lead("aVF", w), 0, **tight)
    np.testing.assert_allclose(2 * lead("aVF", w), lead("II", w) + lead("III", w), **tight)


def test_turning_heart_electrodes_and_torso_together_changes_nothing():
    nodes, tets = slab((3, 4, 5), (30, 40, 50))
    turn = Rotation.from_euler("xyz", (20, -50, 130), degrees=True).as_matrix()
    still = superellipsoid(n_triangles=320)
    turned = Torso(still.vertices @ turn.T, still.triangles)
    for before, after in ((None, None), (still, turned)):
        np.testing.assert_allclose(
            prepare(POSITIONS @ turn.T, after).weights(nodes @ turn.T, tets),
            prepare(POSITIONS, before).weights(nodes, tets),
            rtol=0,
            atol=1e-9,
        )


def test_far_front_is_a_double_layer():
    side, delta = 10.0, 100.0
    nodes, tets = slab((12, 6, 6), (2 * side, side, side))
    electrodes = 20 * side * sphere_points(9, seed=0) / RADIUS
    excited = np.where(nodes[:, 0] < 0, 30.0, 30.0 - delta)  # the front moves along +x
    found = prepare(electrodes).weights(nodes, tets) @ excited
    front = np.array([-side / 12, 0, 0])  # middle of the cells between the two levels
    distance = np.linalg.norm(electrodes - front, axis=1)
    solid_angle = side**2 * (electrodes - front)[:, 0] / distance**3
    expected = in_leads(CONDUCTIVITY_RATIO * delta * solid_angle / (4 * np.pi))
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("place", [(0.0, 0.0, 0.0), (30.0, -20.0, 20.0)])
def test_dipole_in_a_sphere(place):
    place, moment = np.array(place), np.array([0.3, 0.5, 0.8])
    sphere = superellipsoid((RADIUS,) * 3, (0, 0, 0), exponent=2)
    electrodes = sphere_points(9, seed=1)
    leads = prepare(electrodes, sphere)

    def infinite(points):
        away = points - place
        return away @ moment / np.linalg.norm(away, axis=1) ** 3

    # Gradient at the dipole of the Neumann function 2 / d - ln(R² - r.r0 + R d) / R
    away = electrodes - place
    d = np.linalg.norm(away, axis=1)
    inner = RADIUS**2 - electrodes @ place + RADIUS * d
    slope = 2 * away / d[:, None] ** 3
    slope += (electrodes / RADIUS + away / d[:, None]) / inner[:, None]
    surface = slope @ moment
    if not place.any():
        np.testing.assert_allclose(surface, 3 * infinite(electrodes), rtol=1e-12)
    expected = in_leads(surface)
    found = leads.factors @ infinite(leads.points)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02 * np.abs(expected).max())


def test_normal_heart_in_the_torso_has_a_plausible_ecg():
    anatomy, nodes = normal_heart()
    graph = connect(anatomy)
    tau = kernel.activate(
        graph.start,
        graph.neighbour,
        graph.length,
        graph.speed_class,
        anatomy.roots,
        np.zeros(2),
        np.array([500.0, 2000.0, 2000.0]),
    )
    ecg = kernel.ecg(tau, torso_leads().weights(nodes, anatomy.tets), 1.0, 120)
    high, low = ecg.max(axis=1), ecg.min(axis=1)
    for name in ("I", "V6"):
        assert lead(name, high) > -5 * lead(name, low)
    assert lead("V1", low) < -3 * lead("V1", high)
    limb, chest = np.split(high - low, 2)
    assert 0.5 < limb.max() < 2.0
    assert 1.0 < chest.max() < 4.0


def test_electrode_near_the_heart_is_refused():
    nodes, tets = slab((2, 2, 2), (60, 60, 60))
    near = POSITIONS.copy()
    near[3] = (-49.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"electrode V1 is 19\.0 mm from the heart"):
        prepare(near).weights(nodes, tets)


def test_heart_outside_the_torso_is_refused():
    nodes, tets = slab((2, 2, 2), (60, 60, 60))
    with pytest.raises(ValueError, match="9 of 27 nodes are outside the torso"):
        torso_leads().weights(nodes + np.array([0, -80, 90]), tets)


def test_electrodes_are_snapped_to_the_nearest_point_of_the_torso():
    torso = superellipsoid()
    corner = torso.vertices[torso.triangles]
    grid = np.random.default_rng(2).dirichlet((0.5, 0.5, 0.5), size=200)
    sample = np.einsum("kc,tcd->tkd", grid, corner).reshape(-1, 3)
    snapped = torso_leads().electrodes
    distance = np.linalg.norm(snapped - POSITIONS, axis=1)
    nearest = [np.linalg.norm(sample - point, axis=1).min() for point in POSITIONS]
    assert np.all(distance <= nearest)
    np.testing.assert_allclose(distance, nearest, atol=1.0)
    np.testing.assert_allclose(torso.nearest(snapped)[0], snapped, atol=1e-9)
    on_edges = corner[:9, :2].mean(axis=1)
    assert np.isfinite(prepare(on_edges, torso).factors).all()


def test_torso_is_closed_and_has_the_volume_of_the_superellipsoid():
    axes, p = np.array([175.0, 115.0, 330.0]), 2.6
    torso = superellipsoid(axes, exponent=p)
    corner = torso.vertices[torso.triangles]
    expected = 8 * axes.prod() * gamma(1 + 1 / p) ** 3 / gamma(1 + 3 / p)
    assert np.linalg.det(corner).sum() / 6 == pytest.approx(expected, rel=0.02)
    angles = torso.solid_angles(np.array([(0.0, 0.0, 0.0), (0.0, 0.0, 400.0)])).sum(axis=1)
    np.testing.assert_allclose(angles, (4 * np.pi, 0), atol=1e-9)
    with pytest.raises(ValueError, match="not closed"):
        Torso(torso.vertices, torso.triangles[1:])
    with pytest.raises(ValueError, match="face outwards"):
        Torso(torso.vertices, torso.triangles[:, ::-1])


def test_heart_points_left_forward_and_down_and_turns_as_asked():
    default = leadfield.orient()
    np.testing.assert_allclose(default.T @ default, np.eye(3), atol=1e-12)
    assert np.linalg.det(default) == pytest.approx(1)
    apex, right = -default[:, 2], -default[:, 0]
    assert apex[0] > 0.5
    assert apex[1] < -0.3
    assert apex[2] < -0.3
    assert right[0] < -0.5
    assert right[1] < -0.5

    def height(rotation):
        return np.degrees(np.arcsin(-rotation[2, 2]))

    assert height(leadfield.orient(elevation=9)) - height(default) == pytest.approx(9)
    assert height(leadfield.orient(azimuth=9)) == pytest.approx(height(default))
    np.testing.assert_allclose(leadfield.orient(roll=9)[:, 2], default[:, 2])
    turned = leadfield.orient(azimuth=9)[:2, 2]
    cross = default[0, 2] * turned[1] - default[1, 2] * turned[0]
    assert np.degrees(np.arcsin(cross / (turned @ turned))) == pytest.approx(9)
    assert leadfield.orient(roll=9)[:, 0] @ default[:, 1] == pytest.approx(np.sin(np.deg2rad(9)))


def test_axis_of_the_limb_leads():
    # A dipole in the frontal plane seen by Einthoven's triangle
    degrees = np.array([-150.0, -60.0, 0.0, 45.0, 90.0, 180.0])
    lead_i, lead_iii = (np.cos(np.deg2rad(degrees - at)) for at in (0, 120))
    avf = (lead_i + 2 * lead_iii) / 2
    np.testing.assert_allclose(leadfield.electrical_axis(lead_i, avf), degrees, atol=1e-9)
    assert leadfield.electrical_axis(-1.0, -0.0) == 180.0
