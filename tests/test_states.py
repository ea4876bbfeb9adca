import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab.states import StateSpace, outside

TOLERANCE = np.array([5.0, 10.0])


def misfits(seed=0, n=2000, spread=8.0):
    return np.random.default_rng(seed).standard_t(3, size=(n, 2)) * TOLERANCE * spread


def learn(c, n_states=40, **options):
    return StateSpace.learn(c, TOLERANCE, n_states, np.random.default_rng(1), **options)


@pytest.mark.parametrize("spread", [0.5, 8.0, 500.0])
def test_the_inserted_centroids_do_not_move(spread):
    states = learn(misfits(spread=spread), n_states=12)
    expected = [[0, 0], [-2, 0], [2, 0], [0, -2], [0, 2]]
    np.testing.assert_allclose(states.centroids[:5] / TOLERANCE, expected, atol=1e-6)


@given(seed=st.integers(0, 1000), squared=st.booleans())
@settings(deadline=None, max_examples=20)
def test_success_is_the_box_of_the_tolerances_and_nothing_else(seed, squared):
    states = learn(misfits(seed, 300), n_states=20, squared=squared)
    c = np.random.default_rng(seed).uniform(-3, 3, size=(500, 2)) * TOLERANCE
    inside = (np.abs(c) < TOLERANCE).all(axis=1)
    assert np.array_equal(states.quantize(c) == 0, inside)


@pytest.mark.parametrize("squared", [False, True])
def test_other_misfits_belong_to_the_nearest_other_centroid(squared):
    states = learn(misfits(), squared=squared)
    c = misfits(5, 200)
    c = c[(np.abs(c) >= TOLERANCE).any(axis=1)]
    unit = TOLERANCE if squared else np.sqrt(TOLERANCE)
    expected = 1 + naive.nearest(c / unit, states.centroids[1:] / unit)
    assert np.array_equal(states.quantize(c), expected)


def test_no_free_state_lies_within_twice_the_tolerances():
    states = learn(misfits(), n_states=80)
    assert len(outside(states.centroids[5:], TOLERANCE)) == states.n_states - 5


def test_every_state_is_populated():
    c = misfits()
    states = learn(c, n_states=200)
    populated = np.unique(states.quantize(outside(c, TOLERANCE)))
    assert set(range(5, states.n_states)) <= set(populated)


def test_the_squared_distance_does_not_depend_on_units():
    c = misfits()
    factor = np.array([1000.0, 0.001])
    one = learn(c, squared=True)
    other = StateSpace.learn(
        c * factor, TOLERANCE * factor, 40, np.random.default_rng(1), squared=True
    )
    assert np.array_equal(one.quantize(c), other.quantize(c * factor))


def test_same_seed_same_bits():
    assert np.array_equal(learn(misfits()).centroids, learn(misfits()).centroids)


def test_failed_runs_are_not_clustered():
    c = misfits()
    c[::7] = np.nan
    assert np.isfinite(learn(c).centroids).all()


def test_the_fit_may_use_a_subset():
    # a cluster of its own, too small to be drawn
    c = np.concatenate([misfits(n=5000), np.full((1, 2), 1e7)])
    assert np.abs(learn(c, n_states=200).centroids).max() > 1e6
    assert np.abs(learn(c, n_states=200, max_points=300).centroids).max() < 1e6


def test_more_states_than_misfits_is_refused():
    with pytest.raises(ValueError, match=r"n_states is 40, expected from 5 .* to 8"):
        learn(np.tile([[100.0, 0.0], [0.0, 100.0], [50.0, 50.0]], (20, 1)))


def test_fewest_states_are_the_inserted_ones():
    assert learn(misfits(), n_states=5).n_states == 5
