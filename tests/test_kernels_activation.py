"""The activation kernel against scipy, slow oracles and the laws of its quantities."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from vitolab.kernels import activation as kernel

SPEEDS = np.array([500.0, 2000.0, 900.0])
NARROW = 1e-4  # ms; of buckets so many that the heap takes over

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def rows(n, i, j, length, speed_class):
    """Graph of edges that are given once."""
    i, j = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.lexsort((j, i))
    return (
        np.concatenate([[0], np.cumsum(np.bincount(i, minlength=n))]),
        j[order].astype(np.int32),
        np.tile(length, 2)[order].astype(np.float32),
        np.tile(speed_class, 2)[order].astype(np.uint8),
    )


def random_graph(rng, n=80, n_edges=250):
    """Some nodes are isolated, most lie in one part."""
    pairs = np.unique(np.sort(rng.integers(n, size=(n_edges, 2))), axis=0)
    i, j = pairs[pairs[:, 0] < pairs[:, 1]].T
    return rows(n, i, j, rng.uniform(0.5, 20.0, len(i)), rng.integers(3, size=len(i)))


def block(n=1500, seed=0):
    """Points in a box of 40 x 30 x 20 mm joined within 6 mm; layers of both other classes."""
    rng = np.random.default_rng(seed)
    nodes = rng.uniform(0, (40, 30, 20), (n, 3))
    i, j = cKDTree(nodes).query_pairs(6.0, output_type="ndarray").T
    lower, upper = nodes[:, 2] < 2, nodes[:, 2] > 18
    speed_class = np.where(lower[i] & lower[j], 1, np.where(upper[i] & upper[j], 2, 0))
    graph = rows(n, i, j, np.linalg.norm(nodes[i] - nodes[j], axis=1), speed_class)
    return graph, rng.uniform(0.5, 2.0, n)


def weights(n, n_leads=2):
    """Of leads whose weights sum to 0."""
    drawn = np.random.default_rng(0).normal(size=(n_leads, n)) * 1e-4
    return drawn - drawn.mean(axis=1, keepdims=True)


def line(n, spacing=2.0):
    i = np.arange(n - 1)
    return rows(n, i, i + 1, np.full(n - 1, spacing), np.zeros(n - 1))


def by_scipy(graph, roots, times, speeds):
    """Dijkstra from a further node that is joined to each root by its time, plus 1 ms."""
    start, neighbour, length, speed_class = graph
    n = len(start) - 1
    cost = length / (speeds / 1000.0)[speed_class]
    earliest = {}
    for root, time in zip(roots, times, strict=True):
        earliest[root] = min(time, earliest.get(root, np.inf))
    extended = csr_array(
        (
            np.concatenate([cost, np.array(list(earliest.values())) + 1.0]),
            np.concatenate([neighbour, list(earliest)]),
            np.append(start, start[-1] + len(earliest)),
        ),
        shape=(n + 1, n + 1),
    )
    return dijkstra(extended, indices=n)[:n] - 1.0


@few
@given(seeds, st.integers(1, 5), st.sampled_from([NARROW, 0.3, 2.0, 50.0]))
def test_times_are_those_of_scipy(seed, n_roots, width):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    roots, times = rng.integers(80, size=n_roots), rng.uniform(0, 30, n_roots)
    speeds = rng.uniform((200, 500, 500), (1000, 5000, 5000))
    tau = kernel.activate(*graph, roots, times, speeds, width)
    expected = by_scipy(graph, roots, times, speeds)
    reached = np.isfinite(expected)
    assert np.array_equal(tau < kernel.UNREACHED, reached)
    np.testing.assert_allclose(tau[reached], expected[reached], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [NARROW, 0.01, 0.5, 7.0, 1e4])
def test_heap_and_queues_of_any_width_give_the_same_bits(width):
    graph, _ = block()
    roots, times = np.array([3, 700]), np.array([0.0, 4.0])
    expected = kernel.activate(*graph, roots, times, SPEEDS)
    assert expected.max() > kernel.N_BUCKETS * NARROW
    np.testing.assert_array_equal(
        kernel.activate(*graph, roots, times, SPEEDS, width), expected, strict=True
    )


def test_roots_may_be_far_apart_in_time():
    graph, roots = line(5), np.array([0, 4])
    times = np.array([0.0, 2.0 * kernel.N_BUCKETS * kernel.WIDTH])
    np.testing.assert_allclose(
        kernel.activate(*graph, roots, times, SPEEDS), 4.0 * np.arange(5), rtol=1e-6
    )
    tau = kernel.activate(*graph, roots[1:], times[1:], SPEEDS)
    np.testing.assert_allclose(tau, times[1] + 4.0 * np.arange(5)[::-1], rtol=1e-6)


def test_a_line_is_activated_at_distance_over_speed():
    tau = kernel.activate(*line(200), np.array([0]), np.array([-3.0]), SPEEDS)
    np.testing.assert_allclose(tau, -3.0 + 4.0 * np.arange(200), rtol=1e-6)


@few
@given(seeds, st.floats(0.1, 10.0))
def test_times_scale_with_the_inverse_of_the_speeds(seed, factor):
    rng = np.random.default_rng(seed)
    graph, roots, start = random_graph(rng), rng.integers(80, size=2), np.zeros(2)
    tau = kernel.activate(*graph, roots, start, SPEEDS)
    scaled = kernel.activate(*graph, roots, start, factor * SPEEDS)
    reached = tau < kernel.UNREACHED
    np.testing.assert_allclose(factor * scaled[reached], tau[reached], rtol=1e-5)
    halved = kernel.activate(*graph, roots, start, 2.0 * SPEEDS)
    np.testing.assert_array_equal(2.0 * halved[reached], tau[reached])


@few
@given(seeds, st.integers(0, 2), st.floats(1.0, 10.0))
def test_a_faster_class_delays_no_node(seed, changed, factor):
    rng = np.random.default_rng(seed)
    graph, roots = random_graph(rng), rng.integers(80, size=2)
    times, faster = rng.uniform(0, 30, 2), SPEEDS.copy()
    faster[changed] *= factor
    before = kernel.activate(*graph, roots, times, SPEEDS)
    assert (kernel.activate(*graph, roots, times, faster) <= before).all()


@few
@given(seeds)
def test_no_edge_takes_longer_than_its_cost(seed):
    rng = np.random.default_rng(seed)
    graph, roots = random_graph(rng), rng.integers(80, size=2)
    start, neighbour, length, speed_class = graph
    tau = kernel.activate(*graph, roots, np.zeros(2), SPEEDS).astype(float)
    origin = np.repeat(np.arange(80), np.diff(start))
    cost = length * (1000.0 / SPEEDS)[speed_class]
    assert (tau[neighbour] <= (tau[origin] + cost) * (1 + 1e-6)).all()


def test_classes_without_speed_do_not_conduct():
    """Of a line of ten nodes the first six are reached; only the share knows of the others."""
    start, neighbour, length, _ = line(10)
    origin = np.repeat(np.arange(10), np.diff(start))
    across = np.where((origin < 6) != (neighbour < 6), 1, 0).astype(np.uint8)
    root, volume, (w_i, w_avf) = (np.array([0]), np.array([5.0])), np.arange(1.0, 11.0), weights(10)
    speeds = np.array([[500.0, v, 500.0] for v in (0.0, -1.0, np.nan)])
    found = kernel.simulate(start, neighbour, length, across, *root, volume, w_i, w_avf, speeds)
    part = kernel.simulate(*line(6), *root, volume[:6], w_i[:6], w_avf[:6], speeds)
    np.testing.assert_array_equal(found[:, :-1], part[:, :-1])
    np.testing.assert_allclose(found[:, -1], volume[6:].sum() / volume.sum())
    np.testing.assert_array_equal(part[:, -1], 0.0)


def test_without_roots_nothing_is_reached():
    none = np.empty(0, np.int64), np.empty(0)
    assert (kernel.activate(*line(4), *none, SPEEDS) == kernel.UNREACHED).all()
    found = kernel.simulate(*line(4), *none, np.ones(4), *weights(4), SPEEDS[np.newaxis])[0]
    np.testing.assert_array_equal(found, [np.nan, np.nan, 0.0, 0.0, 0.0, 1.0])


def star(tau):
    """Nodes that are activated at whatever time (ms, at least 0) after one more at time 0."""
    n = len(tau)
    graph = rows(n + 1, np.full(n, n), np.arange(n), tau, np.zeros(n))
    return *graph, np.array([n]), np.zeros(1)


@few
@given(
    seeds,
    st.integers(1, 400),
    st.sampled_from(["uniform", "ties", "late", "equal"]),
    st.sampled_from(["uniform", "equal", "skewed"]),
)
def test_features_are_those_of_sorted_times(seed, n, times, volumes):
    rng = np.random.default_rng(seed)
    tau = {
        "uniform": rng.uniform(1, 200, n),
        "ties": rng.integers(1, 8, n).astype(float),
        "late": np.append(rng.uniform(1, 2, n - 1), 1e5),
        "equal": np.full(n, 7.0),
    }[times]
    volume = {
        "uniform": rng.uniform(0.5, 2, n + 1),
        "equal": np.full(n + 1, 0.25),
        "skewed": rng.uniform(0, 1, n + 1) ** 20,
    }[volumes]
    w_i, w_avf = weights(n + 1)
    speeds = np.full((1, 3), 1000.0)
    found = kernel.simulate(*star(tau), volume, w_i, w_avf, speeds)[0]

    tau = np.append(tau, 0.0).astype(np.float32).astype(float)
    order = np.argsort(tau)
    active = np.cumsum(volume[order])
    robust = tau[order][np.argmax(active >= 0.995 * active[-1] * (1 - 1e-9))]
    assert found[kernel.QRS_ROBUST] == robust
    assert found[kernel.QRS_SPAN] == tau.max()
    gross = 100 * (np.abs(w_i) + np.abs(w_avf)) @ tau
    np.testing.assert_allclose(found[kernel.AREA_I], -100 * w_i @ tau, atol=1e-12 * gross)
    np.testing.assert_allclose(found[kernel.AREA_AVF], -100 * w_avf @ tau, atol=1e-12 * gross)
    np.testing.assert_allclose(found[kernel.AREA_SCALE], gross, rtol=1e-12)
    assert found[kernel.UNREACHED_SHARE] == 0.0


def test_rows_are_runs_of_their_own():
    graph, volume = block()
    roots = np.array([3, 700]), np.array([0.0, 4.0])
    w_i, w_avf = weights(len(volume))
    speeds = np.random.default_rng(0).uniform((200, 500, 500), (1000, 5000, 5000), (5, 3))
    found = kernel.simulate(*graph, *roots, volume, w_i, w_avf, speeds)
    for row, v in zip(found, speeds, strict=True):
        np.testing.assert_array_equal(
            row, kernel.simulate(*graph, *roots, volume, w_i, w_avf, v[np.newaxis])[0]
        )
        tau = kernel.activate(*graph, *roots, v)
        assert row[kernel.QRS_SPAN] == np.ptp(tau.astype(float))
        assert row[kernel.QRS_ROBUST] < row[kernel.QRS_SPAN]


def test_threads_give_the_same_bits():
    graph, volume = block()
    arguments = *graph, np.array([3, 700]), np.zeros(2), volume, *weights(len(volume))
    speeds = np.random.default_rng(0).uniform((200, 500, 500), (1000, 5000, 5000), (40, 3))
    expected = kernel.simulate(*arguments, speeds)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda v: kernel.simulate(*arguments, v), [speeds] * 6):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("upstroke", [0.0, 0.1, 4.0])
def test_area_of_the_ecg_is_that_of_the_times(upstroke):
    graph, volume = block()
    roots, w = (np.array([3, 700]), np.zeros(2)), weights(len(volume))
    tau = kernel.activate(*graph, *roots, SPEEDS)
    area = kernel.simulate(*graph, *roots, volume, *w, SPEEDS[np.newaxis])[0]
    n_samples = int(4 * (tau.max() + upstroke)) + 20
    leads = kernel.ecg(tau, w, 0.25, n_samples, upstroke)
    assert leads.shape == (2, n_samples)
    found = 0.25 * leads.sum(axis=1)
    np.testing.assert_allclose(found, area[[kernel.AREA_I, kernel.AREA_AVF]], rtol=1e-4)


@pytest.mark.parametrize("upstroke", [0.0, 3.0])
def test_ecg_is_the_sum_of_what_each_node_does(upstroke):
    rng = np.random.default_rng(0)
    tau = np.append(rng.uniform(10, 60, 50), [kernel.UNREACHED, np.nan, 500.0]).astype(np.float32)
    w, dt, n_samples = weights(53, n_leads=12), 0.7, 150
    time = dt * np.arange(n_samples)
    with np.errstate(invalid="ignore"):
        active = np.clip((time - tau[:, np.newaxis].astype(float)) / max(upstroke, dt), 0.0, 1.0)
    active[-3:] = 0.0
    leads = kernel.ecg(tau, w, dt, n_samples, upstroke)
    np.testing.assert_allclose(leads, 100 * w @ active, atol=1e-13)
    # at rest before the first activation, and in one state after the last
    assert (leads[:, time < 10] == 0.0).all()
    w[:, :50] -= w[:, :50].mean(axis=1, keepdims=True)
    after = kernel.ecg(tau, w, dt, n_samples, upstroke)[:, time > 64]
    assert np.abs(after).max() < 1e-14


@pytest.mark.parametrize(("dt", "smoothing"), [(1.0, 5.0), (0.5, 5.0), (0.5, 0.0), (0.3, 4.0)])
def test_duration_of_a_rectangle(dt, smoothing):
    """The window adds its length, the threshold takes its share of both flanks."""
    rms = np.zeros(400)
    rms[100:250] = 3.0
    leads = rms * np.array([[1.0], [-1.0], [np.sqrt(2)], [0.0]])
    window = max(1, round(smoothing / dt))
    for threshold in (0.05, 0.3):
        expected = dt * (150 + window - 2 * threshold * window)
        found = kernel.qrs_duration(leads, dt, threshold, smoothing)
        assert found == pytest.approx(expected, abs=1e-9)
        # also where nothing precedes or follows it
        assert kernel.qrs_duration(leads[:, 100:250].copy(), dt, threshold, smoothing) == (
            pytest.approx(expected, abs=1e-9)
        )
        assert kernel.qrs_duration(-7.0 * leads, dt, threshold, smoothing) == pytest.approx(found)


def test_duration_of_a_triangle_is_no_staircase():
    time = np.arange(201.0)
    for width in np.linspace(80.0, 81.0, 11):
        leads = np.maximum(0.0, 1.0 - np.abs(time - 100.0) / (width / 2))[np.newaxis]
        assert kernel.qrs_duration(leads, 1.0, 0.05, 0.0) == pytest.approx(0.95 * width)


def test_a_flat_ecg_has_no_duration():
    assert np.isnan(kernel.qrs_duration(np.zeros((12, 50)), 1.0))


def test_without_compilation_the_kernel_gives_the_same_numbers(tmp_path):
    rng = np.random.default_rng(5)
    graph, w = random_graph(rng), weights(80)
    given = (*graph, np.array([2, 40]), np.array([0.0, 3.0]))
    volume, speeds = rng.uniform(0.5, 2, 80), np.stack([SPEEDS, 2 * SPEEDS])
    arrays = dict(zip("abcdef", given, strict=True)) | {"v": volume, "w": w, "s": speeds}
    np.savez(tmp_path / "given.npz", **arrays)
    code = (
        "import numpy as np; from vitolab.kernels import activation as k;"
        "assert not hasattr(k.simulate, 'py_func');"
        "z = np.load('given.npz'); g = [z[x] for x in 'abcdef']; w = z['w'];"
        "t = k.activate(*g, z['s'][0]);"
        "h = k.activate(*g, z['s'][0], 1e-4);"
        "o = k.simulate(*g, z['v'], w[0], w[1], z['s']);"
        "e = k.ecg(t, w, 1.0, 200, 4.0);"
        "np.savez('found.npz', t=t, h=h, o=o, e=e, d=k.qrs_duration(e, 1.0))"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
    found = np.load(tmp_path / "found.npz")
    tau = kernel.activate(*given, SPEEDS)
    leads = kernel.ecg(tau, w, 1.0, 200, 4.0)
    np.testing.assert_array_equal(found["t"], tau, strict=True)
    np.testing.assert_array_equal(found["h"], tau, strict=True)
    np.testing.assert_allclose(found["o"], kernel.simulate(*given, volume, *w, speeds), rtol=1e-12)
    np.testing.assert_allclose(found["e"], leads, atol=1e-15)
    assert float(found["d"]) == pytest.approx(kernel.qrs_duration(leads, 1.0))
