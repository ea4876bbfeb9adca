"""Start candidates: near the measurements, within the domain, the same whenever asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab.files import read_arrays, write_arrays
from vitolab.initialization import Initializer
from vitolab.problem import Objective, Parameter, Problem

MATRIX = np.array([[1.0, 0.3, -0.2], [-0.4, 0.9, 0.1], [0.2, -0.1, 0.7]])


def _linear(x, patient):
    return x @ MATRIX.T


def _angle(x, patient):
    """An angle and a length: the parameters are a point of the plane."""
    return np.stack([np.degrees(np.arctan2(x[:, 1], x[:, 0])), np.hypot(x[:, 0], x[:, 1])], axis=1)


@pytest.fixture(scope="module")
def linear():
    return Problem(
        "linear",
        "1",
        tuple(Parameter(name, name, "mL", -5, 5, 0, 0.05) for name in "abc"),
        tuple(Objective(name, name, "mL", 0.2) for name in "uvw"),
        _linear,
    )


@pytest.fixture(scope="module")
def polar():
    return Problem(
        "polar",
        "1",
        tuple(Parameter(name, name, "mV", -2, 2, 0, 0.05) for name in ("x1", "x2")),
        (Objective("axis", "axis", "°", 5, "angle"), Objective("size", "size", "mV", 0.1)),
        _angle,
    )


def runs(problem, n, seed):
    """Forward runs drawn uniformly in the domain."""
    x = problem.draw(np.random.default_rng(seed), n)
    return x, problem.simulate(x, None)


def learned(problem, n, n_clusters, **options):
    x, y = runs(problem, n, seed=1)
    return Initializer.learn(x, y, problem, n_clusters, np.random.default_rng(2), **options)


def measurements(problem, n):
    """What n unseen patients with known parameters within the inner half of Ω measure."""
    return problem.simulate(0.5 * problem.draw(np.random.default_rng(3), n), None)


# Candidates


def test_candidates_of_a_linear_model_lie_in_the_cluster_of_the_measurements(linear):
    """Cells of k-means are convex and the model is linear, so means of members stay inside."""
    initializer = learned(linear, 4000, 60)
    for z in measurements(linear, 20):
        candidates = initializer.candidates(z)
        assert len(candidates) > 0
        for y in linear.simulate(candidates, None):
            assert initializer.nearest(y) == initializer.nearest(z)


def test_more_runs_start_nearer_to_the_measurements(linear):
    """Median over patients of the worst misfit, in tolerances, at the first candidate."""

    def misfit(n, n_clusters):
        initializer = learned(linear, n, n_clusters)
        z = measurements(linear, 40)
        first = np.array([initializer.candidates(one)[0] for one in z])
        worst = np.abs(linear.simulate(first, None) - z) / linear.tolerance
        return np.median(worst.max(axis=1))

    few, some, many = misfit(20, 5), misfit(1000, 60), misfit(20_000, 600)
    assert few > 1.5 * some > 2.25 * many


def test_two_ways_to_the_same_output_become_two_leading_candidates():
    """y = (|x1|, x2): the members of a cluster are two clouds, mirrored."""
    problem = Problem(
        "folded",
        "1",
        tuple(Parameter(name, name, "mL", -4, 4, 0, 0.05) for name in ("x1", "x2")),
        tuple(Objective(name, name, "mL", 0.2) for name in ("t1", "t2")),
        lambda x, patient: np.stack([np.abs(x[:, 0]), x[:, 1]], axis=1),
    )
    initializer = learned(problem, 5000, 30)
    for z in ([2.5, 0.5], [3.0, -2.0]):
        first, second = initializer.candidates(z)[:2]
        assert first[0] * second[0] < 0
        np.testing.assert_allclose(np.abs([first[0], second[0]]), z[0], atol=1.0)
        found = initializer.mixture(initializer.nearest(z))
        assert found.weights[found.means[:, 0] > 0].sum() == pytest.approx(0.5, abs=0.1)


@settings(deadline=None, max_examples=30)
@given(st.tuples(*[st.floats(-20, 20)] * 3))
def test_candidates_are_distinct_and_within_the_domain(linear, z):
    x, y = runs(linear, 1500, seed=1)
    wide = Initializer.learn(2 * x, 2 * y, linear, 40, np.random.default_rng(0))
    candidates = wide.candidates(z)
    assert np.all((candidates >= linear.lower) & (candidates <= linear.upper))
    assert len(np.unique(candidates, axis=0)) == len(candidates)


def test_candidates_follow_the_weights(linear):
    initializer = learned(linear, 3000, 20)
    z = measurements(linear, 1)[0]
    found = initializer.mixture(initializer.nearest(z))
    assert np.all(np.diff(found.weights) <= 0)
    expected = np.clip(found.means, linear.lower, linear.upper)
    np.testing.assert_array_equal(initializer.candidates(z), expected)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_small_cluster_gives_its_mean_then_its_members_from_the_nearest(linear, n):
    x, y = runs(linear, n, seed=1)
    initializer = Initializer.learn(x, y, linear, 1, np.random.default_rng(2))
    z = np.array([0.3, -0.2, 0.1])
    order = np.argsort(np.sum((y - z) ** 2, axis=1))
    expected = np.concatenate([x.mean(axis=0, keepdims=True), x[order]])
    if n == 1:
        expected = x
    np.testing.assert_allclose(initializer.candidates(z), expected, rtol=1e-15)


# Angles


def test_clusters_do_not_end_at_the_seam(polar):
    """Candidates for 179° and -179° come from both sides, and their outputs are near."""
    initializer = learned(polar, 6000, 80)
    for axis in (179.0, -179.0):
        z = np.array([axis, 1.5])
        c = polar.misfit(polar.simulate(initializer.candidates(z), None), z)
        assert np.all(np.abs(c[:, 0]) < 20)
        assert np.median(np.abs(c[:, 0])) < 8
    near_seam = [initializer.nearest([axis, 1.5]) for axis in np.linspace(170, 190, 41) - 360]
    members = [initializer.y[initializer.start[k] : initializer.start[k + 1], 0] for k in near_seam]
    assert any(np.min(angle) < -175 and np.max(angle) > 175 for angle in members)


def test_turning_all_angles_changes_nothing(polar):
    x, y = runs(polar, 3000, seed=1)
    turned = y.copy()
    turned[:, 0] = 180 - np.mod(180 - (y[:, 0] + 73), 360)
    before = Initializer.learn(x, y, polar, 40, np.random.default_rng(0))
    after = Initializer.learn(x, turned, polar, 40, np.random.default_rng(0))
    for axis in np.linspace(-170, 170, 18):
        np.testing.assert_allclose(
            after.candidates([axis + 73, 1.0]), before.candidates([axis, 1.0]), atol=1e-9
        )


def test_small_angles_count_as_their_difference_in_degrees(polar):
    """The nearer of two centroids is the same whether 8° lie in the middle or at the seam."""
    linear = replace(
        polar,
        objectives=(Objective("axis", "axis", "°", 5), Objective("size", "size", "mV", 0.1)),
    )
    for middle, problem in ((0.0, linear), (0.0, polar), (180.0, polar)):
        y = np.array([[middle - 4, 1.0], [middle + 4, 1.0]])
        y[:, 0] = np.where(y[:, 0] > 180, y[:, 0] - 360, y[:, 0])
        initializer = Initializer.learn(np.eye(2), y, problem, 2, np.random.default_rng(0))
        for size in (1.0, 1.3):
            below = initializer.nearest([middle - 0.01, size])
            above = initializer.nearest([middle + 0.01, size])
            assert initializer.x[below].tolist() == [1, 0]
            assert initializer.x[above].tolist() == [0, 1]


# Clusters


def test_members_are_nearest_to_their_centroid_and_no_cluster_is_empty(linear):
    initializer = learned(linear, 3000, 50, max_points=400)
    assert np.all(np.diff(initializer.start) > 0)
    assert initializer.start[-1] == len(initializer.x) == 3000
    away = initializer.y[:, np.newaxis] - initializer.centroids
    distance = np.sum(away**2 / linear.tolerance, axis=2)
    label = np.repeat(np.arange(initializer.n_clusters), np.diff(initializer.start))
    np.testing.assert_array_equal(np.argmin(distance, axis=1), label)
    np.testing.assert_array_equal(initializer.y, linear.simulate(initializer.x, None))


def test_only_so_many_members_are_kept_and_all_of_a_smaller_cluster(linear):
    full, capped = learned(linear, 3000, 50), learned(linear, 3000, 50, max_members=30)
    expected = np.minimum(np.diff(full.start), 30)
    np.testing.assert_array_equal(np.diff(capped.start), expected)
    assert {tuple(row) for row in capped.x} <= {tuple(row) for row in full.x}


def test_more_clusters_than_distinct_states_are_as_many_as_there_are(linear):
    x, y = runs(linear, 7, seed=1)
    x, y = np.repeat(x, 3, axis=0), np.repeat(y, 3, axis=0)
    initializer = Initializer.learn(x, y, linear, 600, np.random.default_rng(0))
    assert initializer.n_clusters == 7
    np.testing.assert_array_equal(np.diff(initializer.start), 3)


def test_squared_distances_do_not_depend_on_units_and_the_papers_do(linear):
    x, y = runs(linear, 2000, seed=1)
    unit = np.array([1000.0, 1.0, 1.0])
    other = replace(
        linear,
        objectives=(Objective("u", "u", "µL", 200.0), *linear.objectives[1:]),
    )
    z = measurements(linear, 10)

    def candidates(squared):
        a = Initializer.learn(x, y, linear, 40, np.random.default_rng(0), squared=squared)
        b = Initializer.learn(x, y * unit, other, 40, np.random.default_rng(0), squared=squared)
        return [(a.candidates(one), b.candidates(one * unit)) for one in z]

    for first, second in candidates(squared=True):
        np.testing.assert_allclose(second, first, atol=1e-9)
    assert any(
        len(first) != len(second) or not np.allclose(first, second, atol=1e-3)
        for first, second in candidates(squared=False)
    )


# The same answers


def test_failed_runs_make_no_difference(linear):
    x, y = runs(linear, 1200, seed=1)
    at = np.arange(0, 1200, 7)
    holes = np.insert(y, at, [np.nan, 1.0, 1.0], axis=0)
    holes[np.flatnonzero(np.isnan(holes[:, 0]))[::2]] = np.inf
    with_failed = Initializer.learn(
        np.insert(x, at, 0.0, axis=0), holes, linear, 30, np.random.default_rng(4)
    )
    without = Initializer.learn(x, y, linear, 30, np.random.default_rng(4))
    for z in measurements(linear, 10):
        np.testing.assert_array_equal(with_failed.candidates(z), without.candidates(z))


def test_the_same_seed_gives_the_same_bits_and_another_another_draw(linear):
    x, y = runs(linear, 2000, seed=1)
    a, b, c = (
        Initializer.learn(x, y, linear, 30, np.random.default_rng(seed)).to_arrays()
        for seed in (0, 0, 1)
    )
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not np.array_equal(a["centroids"], c["centroids"])


def test_the_order_of_questions_does_not_matter(linear):
    z = measurements(linear, 12)
    forwards, backwards = (learned(linear, 4000, 20, max_members=60) for _ in range(2))
    first = [forwards.candidates(one) for one in z]
    second = [backwards.candidates(one) for one in z[::-1]][::-1]
    again = [forwards.candidates(one) for one in z]
    for one, other, third in zip(first, second, again, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


@pytest.mark.parametrize("squared", [False, True])
def test_an_initializer_read_from_a_file_gives_the_same_bits(polar, tmp_path, squared):
    initializer = learned(polar, 2000, 40, squared=squared)
    write_arrays(tmp_path / "arrays.npz", initializer.to_arrays())
    stored = Initializer.from_arrays(read_arrays(tmp_path / "arrays.npz"), polar)
    for z in measurements(polar, 20):
        np.testing.assert_array_equal(stored.candidates(z), initializer.candidates(z))


# Refusals


def test_bad_arguments_are_named(linear, polar):
    x, y = runs(linear, 10, seed=1)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="no finite row"):
        Initializer.learn(x, np.full_like(y, np.nan), linear, 3, rng)
    with pytest.raises(ValueError, match=r"shapes \(\(10, 3\), \(9, 3\)\)"):
        Initializer.learn(x, y[:9], linear, 3, rng)
    with pytest.raises(ValueError, match="n_clusters, max_points, max_members are 0,"):
        Initializer.learn(x, y, linear, 0, rng)
    initializer = Initializer.learn(x, y, linear, 3, rng)
    for z in ([1.0, 2.0], [1.0, 2.0, np.nan]):
        with pytest.raises(ValueError, match="expected 3 finite numbers"):
            initializer.candidates(z)
    arrays = initializer.to_arrays()
    with pytest.raises(ValueError, match=r"centroids has shape \(3, 3\), expected 2 columns"):
        Initializer.from_arrays(arrays, polar)
    del arrays["start"]
    with pytest.raises(ValueError, match="array 'start' is missing"):
        Initializer.from_arrays(arrays, linear)
