"""The kernel density estimate against closed forms, quadrature, slow oracles and other programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import gaussian_kde, multivariate_normal

from vitolab.density import Mixture, bandwidth, estimate, kernel_density
from vitolab.kernels import density as kernels

CENTRES = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 5.0, 1.0]])
NARROW = 0.5  # standard deviation of the clusters around them


@pytest.fixture(scope="module")
def three_clusters():
    """300 points of each of three round clusters in three dimensions."""
    rng = np.random.default_rng(3)
    return np.repeat(CENTRES, 300, axis=0) + NARROW * rng.normal(size=(900, 3))


def normal_scale(covariance, n):
    """Covariance of the kernels that is best for n points of a normal distribution."""
    d = len(covariance)
    return covariance * (4 / ((d + 2) * n)) ** (2 / (d + 4))


def overlap(p, q):
    """∫ p q of two mixtures, in closed form."""
    total = 0.0
    for weight, mean, covariance in zip(p.weights, p.means, p.covariances, strict=True):
        both = q.covariances + covariance
        away = q.means - mean
        m = np.einsum("ni,ni->n", away, np.linalg.solve(both, away[..., np.newaxis])[..., 0])
        total += weight * np.sum(q.weights * np.exp(-m / 2) / np.sqrt(np.linalg.det(both)))
    return total / (2 * np.pi) ** (p.means.shape[1] / 2)


def squared_error(p, q):
    """∫ (p - q)² of two mixtures."""
    return overlap(p, p) - 2 * overlap(p, q) + overlap(q, q)


def hellinger_oracle(x):
    """Distance of unit kernels to their one Gaussian, each sigma point evaluated by scipy."""
    n, d = x.shape
    k = max(0, 3 - d)
    mean, covariance = x.mean(axis=0), np.cov(x.T, bias=True).reshape(d, d) + np.eye(d)
    components = [(0.5 / n, centre, np.eye(d)) for centre in x] + [(0.5, mean, covariance)]
    total = 0.0
    for weight, centre, spread in components:
        root = np.sqrt(d + k) * np.linalg.cholesky(spread)
        offsets = [root[:, j] for j in range(d)] + [-root[:, j] for j in range(d)]
        shares = [0.5 / (d + k)] * (2 * d)
        if k > 0:
            offsets.append(np.zeros(d))
            shares.append(k / (d + k))
        for share, offset in zip(shares, offsets, strict=True):
            at = centre + offset
            p = np.mean([multivariate_normal.pdf(at, c, np.eye(d)) for c in x])
            q = multivariate_normal.pdf(at, mean, covariance)
            total += weight * share * (np.sqrt(p) - np.sqrt(q)) ** 2 / (0.5 * (p + q))
    return np.sqrt(0.5 * total)


# Evaluation


def test_density_equals_the_published_one(reference_data):
    table = np.genfromtxt(reference_data / "kde_gaussian_reference.csv", delimiter=",", names=True)
    covariance = [[table["bandwidth_silverman"][0] ** 2]]
    found = kernel_density(table["sample_x"][:, np.newaxis], covariance)
    density = found.density(table["support"][:, np.newaxis])
    np.testing.assert_allclose(density, table["gaussian_density_stata"], rtol=5e-5)


def test_density_equals_scipys_at_scipys_bandwidth():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)) @ np.array([[1, 0.5, 0], [0, 2, 0.1], [0, 0, 0.3]])
    other = gaussian_kde(x.T)
    at = rng.normal(size=(50, 3))
    found = kernel_density(x, other.covariance).density(at)
    np.testing.assert_allclose(found, other(at.T), rtol=1e-10)


def test_density_of_one_normal_cloud_is_near_the_truth_and_scipys():
    rng = np.random.default_rng(1)
    covariance = np.array([[2.0, 0.8], [0.8, 1.0]])
    x = rng.multivariate_normal([1, -1], covariance, size=500)
    truth = Mixture(np.ones(1), np.array([[1.0, -1.0]]), covariance[np.newaxis])
    other = kernel_density(x, gaussian_kde(x.T).covariance)
    ours = estimate(x)
    assert len(ours.weights) == 1
    assert squared_error(ours, truth) < 0.05 * overlap(truth, truth)
    assert squared_error(ours, other) < 0.05 * overlap(truth, truth)


def test_density_integrates_to_one():
    rng = np.random.default_rng(2)
    found = estimate(np.concatenate([rng.normal(size=(60, 2)), 4 + rng.normal(size=(30, 2))]))
    axis = np.linspace(-8, 12, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert found.density(grid).sum() * (axis[1] - axis[0]) ** 2 == pytest.approx(1, abs=1e-9)


# Bandwidth


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("n", [100, 500])
def test_bandwidth_of_normal_data_is_the_known_optimum(n, d):
    ratios = []
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=(n, d))
        found, best = bandwidth(x), normal_scale(np.cov(x.T, bias=True).reshape(d, d), n)
        ratios.append(np.sqrt(np.trace(found) / np.trace(best)))
    assert np.mean(ratios) == pytest.approx(1, abs=0.08)


def test_roughness_equals_quadrature():
    """The estimate is ∫ (Δp)² of the kernel density of covariance pilot² I / 2."""
    rng = np.random.default_rng(4)
    x, pilot = rng.normal(size=(12, 2)) * [1, 0.6], 0.9
    axis = np.linspace(-7, 7, 281)
    at = np.stack(np.meshgrid(axis, axis), axis=-1)[:, :, np.newaxis]
    square, variance = np.sum((at - x) ** 2, axis=-1), pilot**2 / 2
    each = np.exp(-square / (2 * variance)) / (2 * np.pi * variance)
    laplacian = np.mean(each * (square / variance - 2) / variance, axis=-1)
    integral = np.sum(laplacian**2) * (axis[1] - axis[0]) ** 2
    assert kernels.roughness(x, pilot) == pytest.approx(integral, rel=1e-9)


def test_bandwidth_of_clusters_lies_between_cross_validation_and_the_normal_rule(three_clusters):
    """Widths, as geometric means over the axes: the rule's is far wider than the validated one.

    The plug-in follows the shape of the whole, so it cannot reach three free widths.
    """
    other = pytest.importorskip("statsmodels.nonparametric.kernel_density")
    x = three_clusters[::6]
    validated = np.prod(other.KDEMultivariate(x, "ccc", bw="cv_ml").bw) ** (1 / 3)
    ours = np.linalg.det(bandwidth(x)) ** (1 / 6)
    rule = np.linalg.det(normal_scale(np.cov(x.T), len(x))) ** (1 / 6)
    assert rule > 1.6 * validated
    assert validated < ours < 0.8 * rule


# Compression


@pytest.mark.parametrize(("n", "d"), [(1, 2), (5, 1), (8, 2), (8, 3), (6, 4)])
def test_hellinger_distance_equals_the_slow_oracle(n, d):
    x = 2 * np.random.default_rng(n * d).normal(size=(n, d))
    x[0] += 30  # far enough that the kernel passes pairs over
    assert kernels.hellinger(x) == pytest.approx(hellinger_oracle(x), abs=1e-9)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (10, 1), (50, 2), (100, 3), (100, 6)])
def test_hellinger_distance_is_near_the_integral(n, d):
    """Sigma points stand for the integral, here by sampling, to about two fifths."""
    rng = np.random.default_rng(d)
    x = np.array([[-1.5], [1.5]]) if n == 2 else 2 * rng.normal(size=(n, d))
    covariance = np.cov(x.T, bias=True).reshape(1, d, d) + np.eye(d)
    p = kernel_density(x, np.eye(d))
    q = Mixture(np.ones(1), x.mean(axis=0, keepdims=True), covariance)
    at = np.concatenate(
        [
            x[rng.integers(n, size=10_000)] + rng.normal(size=(10_000, d)),
            rng.multivariate_normal(q.means[0], covariance[0], size=10_000),
        ]
    )
    p, q = p.density(at), q.density(at)
    integral = np.sqrt(np.mean((np.sqrt(p) - np.sqrt(q)) ** 2 / (p + q)))
    assert integral / 1.4 < kernels.hellinger(x) < 1.4 * integral


def test_kernels_on_one_place_are_their_gaussian():
    assert kernels.hellinger(np.full((5, 3), 1.7)) < 1e-7


def test_three_clusters_become_three_components(three_clusters):
    found = estimate(three_clusters)
    np.testing.assert_allclose(found.weights, 1 / 3, atol=0.01)
    for centre in CENTRES:
        nearest = np.min(np.linalg.norm(found.means - centre, axis=1))
        assert nearest < 4 * NARROW / np.sqrt(300)


def test_a_gaussian_mixture_chosen_by_bic_agrees(three_clusters):
    mixture = pytest.importorskip("sklearn.mixture").GaussianMixture
    fits = [mixture(k, random_state=0).fit(three_clusters) for k in range(1, 6)]
    best = min(fits, key=lambda fit: fit.bic(three_clusters))
    found = estimate(three_clusters)
    assert best.n_components == len(found.weights)
    for mean in found.means:
        assert np.min(np.linalg.norm(best.means_ - mean, axis=1)) < 0.05


def test_clusters_are_estimated_better_than_by_the_normal_rule(three_clusters):
    """Squared error and held-out likelihood against scipy's estimate, whose scale is Scott's."""
    spread = np.broadcast_to(NARROW**2 * np.eye(3), (3, 3, 3))
    truth = Mixture(np.full(3, 1 / 3), CENTRES, spread)
    other = kernel_density(three_clusters, gaussian_kde(three_clusters.T).covariance)
    for ours in (
        estimate(three_clusters),
        kernel_density(three_clusters, bandwidth(three_clusters)),
    ):
        assert squared_error(ours, truth) < 0.6 * squared_error(other, truth)
        rng = np.random.default_rng(5)
        unseen = CENTRES[rng.integers(3, size=2000)] + NARROW * rng.normal(size=(2000, 3))
        gain = np.log(ours.density(unseen)) - np.log(other.density(unseen))
        assert gain.mean() > 0.2


def test_compressing_loses_little(three_clusters):
    full = kernel_density(three_clusters, bandwidth(three_clusters))
    at = three_clusters[::9]
    found, expected = np.log(estimate(three_clusters).density(at)), np.log(full.density(at))
    assert abs(logsumexp(found) - logsumexp(expected)) < 0.05
    assert np.corrcoef(found, expected)[0, 1] > 0.95


clouds = st.builds(
    lambda seed, d, n, gap: (
        np.random.default_rng(seed).normal(size=(n + 3 * d, d))
        + gap * np.random.default_rng(seed + 1).integers(3, size=(n + 3 * d, 1))
    ),
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.integers(0, 60),
    st.sampled_from([0.0, 3.0, 10.0]),
)


@settings(deadline=None, max_examples=40)
@given(clouds, st.sampled_from([0.0, 0.05, 0.1, 0.3, 1.0]))
def test_weights_mean_and_covariance_are_kept(x, threshold):
    found = estimate(x, threshold=threshold)
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    assert np.all(np.diff(found.weights) <= 0)
    mean = found.weights @ found.means
    np.testing.assert_allclose(mean, x.mean(axis=0), atol=1e-10)
    away = found.means - mean
    covariance = np.einsum("m,mij->ij", found.weights, found.covariances)
    covariance += np.einsum("m,mi,mj->ij", found.weights, away, away)
    expected = np.cov(x.T, bias=True) + bandwidth(x)
    np.testing.assert_allclose(covariance, expected.reshape(covariance.shape), atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(clouds, st.integers(0, 10_000))
def test_an_affine_map_of_the_points_maps_the_mixture(x, seed):
    rng = np.random.default_rng(seed)
    d = x.shape[1]
    left, right = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    matrix = (left * rng.uniform(0.1, 10, size=d)) @ right  # rotates, stretches, shears ...
    matrix *= 10.0 ** rng.integers(-3, 4, size=(d, 1))  # ... and changes units
    shift = 100 * rng.normal(size=d) * np.abs(matrix).max(axis=1)
    before, after = estimate(x), estimate(x @ matrix.T + shift)
    np.testing.assert_allclose(after.weights, before.weights)
    unit = np.abs(matrix).max(axis=1)
    expected = before.means @ matrix.T + shift
    np.testing.assert_allclose(after.means / unit, expected / unit, atol=1e-6)
    expected = matrix @ before.covariances @ matrix.T
    scale = np.multiply.outer(unit, unit)
    np.testing.assert_allclose(after.covariances / scale, expected / scale, atol=1e-6)


def test_the_threshold_runs_from_every_point_to_one_component():
    x = np.random.default_rng(6).normal(size=(40, 2))
    assert len(estimate(x, threshold=0.0).weights) == 40
    assert len(estimate(x, threshold=1.0).weights) == 1


# Points that do not spread in all directions


def test_a_parameter_that_never_varies_is_left_out():
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.normal(size=(100, 2)), 9 + rng.normal(size=(80, 2))])
    flat = np.insert(x, 1, -0.3, axis=1)
    found, expected = estimate(flat), estimate(x)
    np.testing.assert_allclose(found.means[:, [0, 2]], expected.means, atol=1e-12)
    np.testing.assert_allclose(found.means[:, 1], -0.3, atol=1e-12)
    assert not found.covariances[:, 1].any()
    with pytest.raises(ValueError, match="singular"):
        found.density(flat)


def test_points_on_a_plane_give_means_on_that_plane():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(200, 3))
    x[:, 2] = 1 + 2 * x[:, 0] - x[:, 1]
    found = estimate(x)
    normal = np.array([2.0, -1.0, -1.0])
    np.testing.assert_allclose(found.means @ normal, -1, atol=1e-9)
    np.testing.assert_allclose(found.covariances @ normal, 0, atol=1e-9)
    with pytest.raises(ValueError, match="singular"):
        found.density(x)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_equal_points_are_one_component(n):
    found = estimate(np.full((n, 3), 0.1))
    np.testing.assert_array_equal(found.weights, [1])
    np.testing.assert_allclose(found.means, [[0.1] * 3])
    assert not found.covariances.any()
    assert not bandwidth(np.full((n, 3), 0.1)).any()


def test_two_far_groups_of_equal_points_are_two_components():
    x = np.repeat([[0.0, 0.0], [1.0, 2.0]], [30, 10], axis=0)
    found = estimate(x)
    np.testing.assert_allclose(found.weights, [0.75, 0.25])
    np.testing.assert_allclose(found.means, [[0, 0], [1, 2]], atol=1e-12)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((0, 2)), r"shape \(0, 2\)"),
        (np.zeros(3), r"shape \(3,\)"),
        ([[0.0, 1.0], [np.nan, 1.0]], "point 1 is"),
    ],
)
def test_what_is_not_a_cloud_of_points_is_refused(x, message):
    for function in (estimate, bandwidth, lambda x: kernel_density(x, np.eye(2))):
        with pytest.raises(ValueError, match=message):
            function(x)


def test_a_threshold_beyond_the_distance_is_refused():
    with pytest.raises(ValueError, match="threshold is 2"):
        estimate(np.eye(3), threshold=2)
