import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from vitolab.models.electrophysiology.anatomy import EPI, INTERIOR, LV_ENDO, RV_ENDO, boundary
from vitolab.models.electrophysiology.fibres import helix
from vitolab.models.electrophysiology.graph import edges
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS, Shape, gradient

NORMAL = PRESETS["normal"]


@pytest.fixture(scope="module")
def normal():
    return generate(NORMAL)


def monte_carlo(shape, n=400_000):
    """Volume of a shape by quasi-random points in a box, mm³."""
    low, high = np.array([-95.0, -60.0, -110.0]), np.array([60.0, 60.0, 0.0])
    steps = np.array([0.8191725133961645, 0.6710436067037893, 0.5497004779019703])
    points = low + (high - low) * ((np.arange(1, n + 1)[:, None] * steps) % 1.0)
    return (shape.distance(points) < 0.0).mean() * np.prod(high - low)


def is_sphere(tets):
    """Whether the boundary is one closed surface without pinches, by walking around each node."""
    triangles = boundary(tets).tolist()
    link = {}
    for a, b, c in triangles:
        for node, one, two in ((a, b, c), (b, c, a), (c, a, b)):
            around = link.setdefault(node, {})
            if one in around:
                return False  # two triangles leave the same edge on the same side
            around[one] = two
    for around in link.values():
        first = node = next(iter(around))
        for _ in range(len(around)):
            node = around.pop(node, None)
            if node == first:
                break
        if around:
            return False  # open, or more than one fan of triangles
    edges = {frozenset(side) for a, b, c in triangles for side in ((a, b), (b, c), (c, a))}
    return len(link) - len(edges) + len(triangles) == 2


def random_shape(rng):
    """A shape as in the synthetic cohort: normal, dilated, hypertrophic or with a wide RV."""
    kind = rng.integers(4)
    mean = [(25, 76, 9.8), (31, 86, 8.7), (20, 70, 14), (25, 76, 9.8)][kind]
    a, length, wall = mean * (1.0 + np.clip(rng.normal(0.0, [0.1, 0.065, 0.12]), -0.2, 0.2))
    wide = 1.25 if kind == 3 else 1.0
    return Shape(
        lv_radius=a,
        lv_radius_ratio=rng.normal(1.0, 0.05),
        lv_length=length,
        lv_wall=wall,
        septal_thickening=0.15 if kind == 2 else 0.0,
        bump=rng.uniform(0.0, 0.1),
        bump_angle=rng.uniform(0.0, 6.0),
        rv_radius_x=wide * (0.9 * a + 9.0 + rng.normal(0.0, 2.0)),
        rv_radius_y=wide * (0.9 * a + 7.0 + rng.normal(0.0, 2.0)),
        rv_wall=rng.uniform(3.2, 5.5),
        rv_offset=-(a + 0.2 * wall) + rng.normal(0.0, 1.5),
    )


def check(shape, anatomy):
    """One body without holes, of the shape's volume, with its tags on the boundary."""
    assert anatomy.volumes.min() > 0.0
    assert anatomy.volumes.sum() == pytest.approx(monte_carlo(shape), rel=0.015)
    assert is_sphere(anatomy.tets)
    on_boundary = np.zeros(anatomy.n_nodes, bool)
    on_boundary[np.unique(boundary(anatomy.tets))] = True
    np.testing.assert_array_equal(on_boundary, (anatomy.surface != INTERIOR) | anatomy.base)
    ends = edges(anatomy.tets)
    ones = np.ones(len(ends))
    graph = coo_array((ones, ends.T), shape=(anatomy.n_nodes, anatomy.n_nodes))
    assert connected_components(graph, directed=False)[0] == 1


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_single_bodies_of_the_volume_of_their_shape(name):
    anatomy = generate(PRESETS[name])
    check(PRESETS[name], anatomy)
    assert 4000 < anatomy.n_nodes < 6500


@pytest.mark.parametrize("seed", range(4))
def test_random_shapes_are_single_bodies(seed):
    shape = random_shape(np.random.default_rng(seed))
    check(shape, generate(shape, spacing=5.0 if seed == 3 else 3.8, seed=seed))


def test_fine_mesh_has_twenty_thousand_nodes():
    anatomy = generate(NORMAL, spacing=2.1)
    assert 18_000 < anatomy.n_nodes < 22_000
    assert anatomy.volumes.sum() == pytest.approx(monte_carlo(NORMAL), rel=0.005)


def test_same_seed_same_mesh(normal):
    again, other = generate(NORMAL), generate(NORMAL, seed=1)
    np.testing.assert_array_equal(again.nodes, normal.nodes)
    np.testing.assert_array_equal(again.tets, normal.tets)
    assert abs(other.n_nodes / normal.n_nodes - 1.0) < 0.03
    assert not np.isin(other.nodes[:, 0], normal.nodes[:, 0]).any()


def test_boundary_triangles_enclose_the_volume(normal):
    a, b, c = (normal.nodes[corner] for corner in boundary(normal.tets).T)
    enclosed = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0  # divergence theorem
    assert enclosed == pytest.approx(normal.volumes.sum(), rel=1e-9)


def test_tagged_nodes_lie_on_their_ellipsoids(normal):
    gap = {name: np.abs(NORMAL.surface(name, normal.nodes)) for name in NORMAL.ellipsoids}
    near = {
        LV_ENDO: gap["lv_endo"],
        RV_ENDO: np.minimum(gap["rv_endo"], gap["lv_epi"]),
        EPI: np.minimum(gap["rv_epi"], gap["lv_epi"]),
    }
    for tag, distance in near.items():
        assert np.mean(distance[normal.surface == tag] < 0.01) > 0.99
    rim = normal.base & (normal.surface != INTERIOR)
    assert max(near[tag][rim & (normal.surface == tag)].max() for tag in near) < 0.01


def test_both_sides_of_the_right_ventricle_are_its_endocardium(normal):
    septal = (normal.surface == RV_ENDO) & ~normal.right
    free = (normal.surface == RV_ENDO) & normal.right
    assert 0.3 < septal.sum() / free.sum() < 1.0
    assert np.mean(normal.transmural[septal] > 0.99) > 0.99
    assert np.mean(normal.transmural[free] < 0.01) > 0.99
    assert np.all(np.abs(normal.rotation[septal]) < np.pi / 2)


def test_roots_are_septal_endocardium(normal):
    assert list(normal.surface[normal.roots]) == [LV_ENDO, RV_ENDO]
    lv, rv = normal.nodes[normal.roots]
    np.testing.assert_allclose(lv, [-23.2, 0.0, -28.0], atol=3.0)
    np.testing.assert_allclose(rv, [-27.8, 0.0, -49.0], atol=3.0)
    assert not normal.right[normal.roots].any()


def wall_angle(normal):
    """Helix angle in a band of the LV around its widest place, degrees."""
    chosen = ~normal.right & (np.abs(normal.nodes[:, 2] + 14.0) < 4.0)
    nodes, fibres = normal.nodes[chosen], normal.fibres[chosen]
    outward = nodes * [1.0, 1.0, 0.0] / np.hypot(nodes[:, 0], nodes[:, 1])[:, None]
    around = np.cross([0.0, 0.0, 1.0], outward)
    angle = np.arctan2(fibres[:, 2], np.einsum("ij,ij->i", fibres, around))
    return normal.transmural[chosen], np.rad2deg((angle + np.pi / 2) % np.pi - np.pi / 2)


def test_helix_angle_falls_from_60_to_minus_60_through_the_wall(normal):
    depth, angle = wall_angle(normal)
    np.testing.assert_allclose(angle, 60.0 - 120.0 * depth, atol=2.0)


def test_subendocardial_fibres_form_a_right_handed_helix(normal):
    # (cos t, sin t, t) is right-handed: whoever turns counter-clockwise about z rises along z
    inner = ~normal.right & (normal.transmural < 0.2) & (normal.apex_base > 0.2)
    (x, y, _), (u, v, w) = normal.nodes[inner].T, normal.fibres[inner].T
    assert np.all((x * v - y * u) * w > 0.0)


def test_fibres_are_unit_and_tangential(normal):
    np.testing.assert_allclose(np.linalg.norm(normal.fibres, axis=1), 1.0, atol=1e-12)
    triangles = boundary(normal.tets)
    a, b, c = (normal.nodes[corner] for corner in triangles.T)
    facing = np.zeros_like(normal.nodes)
    for corner in triangles.T:
        np.add.at(facing, corner, np.cross(b - a, c - a))
    for tag, name in ((LV_ENDO, "lv_endo"), (EPI, "lv_epi")):
        on = (normal.surface == tag) & ~normal.base
        on &= np.abs(NORMAL.surface(name, normal.nodes)) < 0.01
        exact = gradient(lambda p, name=name: NORMAL.surface(name, p), normal.nodes[on])
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        across = np.abs(np.einsum("ij,ij->i", normal.fibres[on], exact))
        assert np.mean(across < 0.1) > 0.99
        facets = facing[on] / np.linalg.norm(facing[on], axis=1, keepdims=True)
        assert np.mean(np.abs(np.einsum("ij,ij->i", normal.fibres[on], facets)) < 0.2) > 0.9


def test_fibres_at_the_apex_are_tangents():
    fibres = helix(np.array([0.0, 0.0, 1.0]), np.array([[0.0, 0.0, -2.0]]), np.array([0.3]))
    np.testing.assert_allclose(np.linalg.norm(fibres), 1.0)
    np.testing.assert_allclose(fibres[0, 2], 0.0, atol=1e-12)


def test_fibres_do_not_depend_on_the_sign_of_the_long_axis():
    rng = np.random.default_rng(0)
    axis, outward, depth = rng.normal(size=3), rng.normal(size=(20, 3)), rng.random(20)
    one, two = helix(axis, outward, depth), helix(-axis, outward, depth)
    np.testing.assert_allclose(one, -two, atol=1e-12)


def test_septal_thickening_moves_wall_from_the_free_wall_to_the_septum():
    plain, thick = Shape(), Shape(septal_thickening=0.2)
    point = np.array([[-34.0, 0.0, 0.0], [34.0, 0.0, 0.0]])
    change = thick.surface("lv_epi", point) - plain.surface("lv_epi", point)
    np.testing.assert_allclose(change, [-2.0, 2.0], atol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shape(lv_wall=0.0), "lv_wall is 0.0, expected a positive"),
        (lambda: Shape(rv_length=10.0), "rv_length is 10 mm, expected more than 14"),
        (lambda: Shape(bump=1.0), "expected less than 0.9 together"),
        (lambda: Shape(rv_offset=5.0), "right ventricle ends at x = -27 mm"),
        (lambda: generate(NORMAL, spacing=0.0), "spacing is 0.0 mm, expected above 0"),
        (lambda: generate(NORMAL, spacing=14.0), "spacing is 14.0 mm, .* LV wall's 10"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
