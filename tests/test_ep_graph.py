from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import Delaunay

from vitolab.models.electrophysiology.anatomy import EPI, INTERIOR, LV_ENDO, RV_ENDO, Anatomy
from vitolab.models.electrophysiology.graph import (
    LV_LAYER,
    MYOCARDIUM,
    RV_LAYER,
    connect,
    edges,
)
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS

NORMAL = PRESETS["normal"]


def anatomy_of(nodes, tets, surface=None, fibre=(1.0, 0.0, 0.0)):
    n = len(nodes)
    return Anatomy(
        nodes=np.asarray(nodes, float),
        tets=np.asarray(tets),
        surface=np.full(n, INTERIOR) if surface is None else np.asarray(surface),
        base=np.zeros(n, bool),
        transmural=np.zeros(n),
        apex_base=np.zeros(n),
        rotation=np.zeros(n),
        right=np.zeros(n, bool),
        fibres=np.tile(np.asarray(fibre, float), (n, 1)),
        roots=np.array([0, 0]),
        frame=np.eye(3),
    )


def slab(angle, h=3.0):
    """Block of 60 × 60 × 12 mm around a jittered body-centred lattice, uniform fibres."""
    rng = np.random.default_rng(0)
    size, cell = np.array([60.0, 60.0, 12.0]), h / np.sqrt(0.75)
    counts = np.round(size / cell).astype(int)
    corner = np.stack(np.meshgrid(*[np.arange(c + 1) for c in counts], indexing="ij"), -1)
    corner = corner.reshape(-1, 3).astype(float)
    centre = corner[(corner < counts).all(axis=1)] + 0.5
    inside = (corner > 0) & (corner < counts)
    corner += inside * rng.uniform(-0.16, 0.16, corner.shape)
    centre += rng.uniform(-0.16, 0.16, centre.shape)
    nodes = np.concatenate([corner, centre]) * size / counts
    tets = Delaunay(nodes).simplices.astype(np.int64)
    edge = nodes[tets[:, 1:]] - nodes[tets[:, :1]]
    volume = np.linalg.det(edge)
    tets = tets[np.abs(volume) > 1e-6]
    radians = np.deg2rad(angle)
    return anatomy_of(nodes, tets, fibre=(np.cos(radians), np.sin(radians), 0.0))


def distances(graph, source, speeds=(1.0, 1.0, 1.0)):
    """Shortest times from a node by scipy."""
    n = len(graph.start) - 1
    cost = graph.length / np.asarray(speeds)[graph.speed_class]
    return dijkstra(csr_array((cost, graph.neighbour, graph.start), shape=(n, n)), indices=source)


def rows(graph):
    return np.repeat(np.arange(len(graph.start) - 1), np.diff(graph.start))


@pytest.mark.parametrize(
    ("angle", "ratio", "rings", "highest"),
    [
        (0.0, 1.0, 2, 0.03),
        (30.0, 0.5, 2, 0.05),
        (30.0, 0.5, 3, 0.025),
    ],
)
def test_times_on_a_slab_are_near_and_never_below_the_exact_ones(angle, ratio, rings, highest):
    block = slab(angle)
    source = int(np.argmin(np.linalg.norm(block.nodes - [30.0, 30.0, 0.0], axis=1)))
    found = distances(connect(block, ratio, rings), source)
    step = block.nodes - block.nodes[source]
    along = step @ block.fibres[0]
    exact = np.sqrt(along**2 + ((step**2).sum(axis=1) - along**2) / ratio**2)
    far = np.linalg.norm(step, axis=1) > 15.0
    assert np.all(found >= exact * (1.0 - 1e-5))
    assert np.mean(found[far] / exact[far] - 1.0) < highest


def test_more_rings_shorten_every_path():
    block = slab(30.0)
    one, two, three = (distances(connect(block, rings=r), 0) for r in (1, 2, 3))
    assert np.all(two <= one * (1 + 1e-6))
    assert np.all(three <= two * (1 + 1e-6))
    assert np.mean(two) < 0.95 * np.mean(one)


def test_edge_lengths_follow_the_metric_of_the_fibres():
    # tetrahedron with one edge along the fibres and two across
    corner = [[0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 1]]
    graph = connect(anatomy_of(corner, [[0, 1, 2, 3]]), ratio=0.5, rings=1)
    np.testing.assert_array_equal(graph.start, [0, 3, 6, 9, 12])
    np.testing.assert_array_equal(graph.neighbour, [1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2])
    a, b, c = np.sqrt(9 + 16), np.sqrt(9 + 4), np.sqrt(16 + 4)
    expected = [3, 4, 2, 3, a, b, 4, a, c, 2, b, c]
    np.testing.assert_allclose(graph.length, expected, rtol=1e-6)


def test_edges_take_the_mean_square_of_both_fibres_and_ignore_their_sign():
    body = anatomy_of([[0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]], [[0, 1, 2, 3]])
    body.fibres[1] = [0.0, 1.0, 0.0]
    turned = replace(body, fibres=body.fibres * np.array([[1.0], [-1.0], [1.0], [-1.0]]))
    length = connect(body, ratio=0.5, rings=1).length
    np.testing.assert_allclose(length[0], np.sqrt(2 + 2 / 0.25))
    np.testing.assert_array_equal(length, connect(turned, ratio=0.5, rings=1).length)


def test_mesh_edges_are_exact_along_themselves():
    block = slab(0.0)
    graph = connect(block, ratio=1.0, rings=1)
    i, j = rows(graph), graph.neighbour
    exact = np.linalg.norm(block.nodes[i] - block.nodes[j], axis=1)
    np.testing.assert_allclose(graph.length, exact, rtol=1e-6)
    sample = np.random.default_rng(0).choice(len(i), 200)
    reached = distances(graph, i[sample])[np.arange(200), j[sample]]
    np.testing.assert_allclose(reached, exact[sample], rtol=1e-6)


@pytest.fixture(scope="module")
def heart():
    return generate(NORMAL)


@pytest.mark.parametrize("rings", [2, 3])
@pytest.mark.parametrize("distance", [None, NORMAL.distance])
def test_only_edges_of_the_mesh_cross_the_wall_of_the_right_ventricle(heart, rings, distance):
    graph = connect(heart, rings=rings, distance=distance)
    i, j = rows(graph), graph.neighbour
    crossing = (heart.surface[i] == RV_ENDO) & (heart.surface[j] == EPI)
    mesh = edges(heart.tets)
    near = set((mesh[:, 0] * heart.n_nodes + mesh[:, 1]).tolist())
    low, high = np.minimum(i, j)[crossing], np.maximum(i, j)[crossing]
    assert set((low * heart.n_nodes + high).tolist()) <= near


@pytest.mark.parametrize("rings", [2, 3])
def test_edges_stay_in_the_tissue(heart, rings):
    graph = connect(heart, rings=rings, distance=NORMAL.distance)
    i, j = rows(graph), graph.neighbour
    assert NORMAL.distance(0.5 * (heart.nodes[i] + heart.nodes[j])).max() < 0.3 * 3.6


def test_both_directions_are_stored_and_all_nodes_reached(heart):
    graph = connect(heart, distance=NORMAL.distance)
    n = heart.n_nodes
    matrix = csr_array((graph.length, graph.neighbour, graph.start), shape=(n, n))
    assert abs(matrix - matrix.T).max() == 0.0
    assert not np.any(rows(graph) == graph.neighbour)
    assert np.isfinite(distances(graph, heart.roots[0])).all()
    assert graph.start.dtype == np.int64
    assert graph.neighbour.dtype == np.int32
    assert graph.length.dtype == np.float32
    assert graph.speed_class.dtype == np.uint8


def test_endocardial_edges_have_their_own_speed_and_plain_length(heart):
    graph = connect(heart, distance=NORMAL.distance)
    i, j = rows(graph), graph.neighbour
    plain = np.linalg.norm(heart.nodes[i] - heart.nodes[j], axis=1)
    for tag, layer in ((LV_ENDO, LV_LAYER), (RV_ENDO, RV_LAYER)):
        on = (heart.surface[i] == tag) & (heart.surface[j] == tag)
        np.testing.assert_array_equal(graph.speed_class == layer, on)
        np.testing.assert_allclose(graph.length[on], plain[on], rtol=1e-6)


def test_slow_endocardium_can_be_bypassed_only_if_asked():
    corner = [[0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 1]]
    body = anatomy_of(corner, [[0, 1, 2, 3]], surface=[LV_ENDO] * 4)
    slow, fast = (1.0, 0.5, 1.0), (1.0, 4.0, 1.0)
    replaced, least = connect(body, rings=1), connect(body, rings=1, endo="min")
    assert set(least.speed_class) == {MYOCARDIUM, LV_LAYER}
    np.testing.assert_allclose(distances(replaced, 0, slow)[:2], [0.0, 6.0])
    table = {
        speeds: min(
            (least.length / np.array(speeds)[least.speed_class])[
                (rows(least) == 0) & (least.neighbour == 1)
            ]
        )
        for speeds in (slow, fast)
    }
    assert table == pytest.approx({slow: 3.0, fast: 0.75})


def test_factor_slows_the_edges_of_a_node():
    block = slab(30.0)
    factor = np.ones(len(block.nodes))
    factor[7] = 3.0
    plain, slowed = connect(block), connect(block, factor=factor)
    touched = (rows(plain) == 7) | (plain.neighbour == 7)
    np.testing.assert_allclose(slowed.length / plain.length, np.where(touched, 2.0, 1.0), rtol=1e-6)


def test_refusals():
    body = anatomy_of(np.eye(4, 3), [[0, 1, 2, 3]])
    with pytest.raises(ValueError, match="ratio is 0"):
        connect(body, ratio=0.0)
    with pytest.raises(ValueError, match="rings is 4, expected 1, 2 or 3"):
        connect(body, rings=4)
    with pytest.raises(ValueError, match="endo is 'max'"):
        connect(body, endo="max")
    with pytest.raises(ValueError, match="expected 4 positive numbers"):
        connect(body, factor=np.zeros(4))
    double = anatomy_of(np.array([[0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]), [[0, 1, 2, 3]])
    with pytest.raises(ValueError, match="nodes 0 and 1 coincide"):
        connect(double)
