import csv
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab.kernels import mdp as kernels
from vitolab.mdp import MDP, Policy


def random_transitions(seed, n=400, n_states=7, n_actions=3):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(n_states, size=n),
        rng.integers(n_actions, size=n),
        rng.integers(n_states, size=n),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dimension", [1, 2, 6])
def test_nearest_agrees_with_trying_every_centroid(seed, dimension):
    rng = np.random.default_rng(seed)
    points, centroids = rng.normal(size=(50, dimension)), rng.normal(size=(9, dimension))
    assert np.array_equal(kernels.nearest(points, centroids), naive.nearest(points, centroids))
    assert np.array_equal(
        kernels.nearest.py_func(points, centroids), naive.nearest(points, centroids)
    )


@given(seed=st.integers(0, 1000), n=st.integers(0, 200))
@settings(deadline=None, max_examples=50)
def test_counts_are_the_dense_counts(seed, n):
    s, a, t = random_transitions(seed, n)
    mdp = MDP.count(s, a, t, 7, 3)
    dense = np.zeros((21, 7))
    for row in range(21):
        for i in range(mdp.start[row], mdp.start[row + 1]):
            dense[row, mdp.successor[i]] += mdp.counts[i]
    expected = np.zeros((7, 3, 7))
    np.add.at(expected, (s, a, t), 1)
    assert np.array_equal(dense, expected.reshape(21, 7))
    assert (mdp.counts > 0).all()
    assert mdp.counts.sum() == n


def test_kernels_agree_without_compilation():
    s, a, t = random_transitions(3)
    plain = kernels.count.py_func(s, a, t, 7, 3)
    compiled = kernels.count(s, a, t, 7, 3)
    for one, other in zip(plain, compiled, strict=True):
        assert np.array_equal(one, other)


def test_order_of_the_transitions_does_not_matter():
    s, a, t = random_transitions(5)
    order = np.random.default_rng(0).permutation(len(s))
    one, other = MDP.count(s, a, t, 7, 3), MDP.count(s[order], a[order], t[order], 7, 3)
    assert np.array_equal(one.successor, other.successor)
    assert np.array_equal(one.counts, other.counts)
    assert np.array_equal(one.solve().q, other.solve().q)


@pytest.mark.parametrize("n", [0, 20, 400])
def test_backup_is_the_bellman_equation_with_the_uniform_rule(n):
    s, a, t = random_transitions(11, n)
    mdp = MDP.count(s, a, t, 7, 3)
    v = np.random.default_rng(1).normal(size=7)
    v[0] = 0.0
    matrix = naive.transition_matrix(s, a, t, 7, 3)
    np.testing.assert_allclose(mdp.action_values(v), naive.bellman(matrix, v, 0.99), atol=1e-12)


@pytest.mark.parametrize("method", ["policy-iteration", "value-iteration"])
def test_the_solution_satisfies_the_bellman_equation(method):
    s, a, t = random_transitions(2)
    matrix = naive.transition_matrix(s, a, t, 7, 3)
    policy = MDP.count(s, a, t, 7, 3).solve(method)
    np.testing.assert_allclose(policy.v, policy.q.max(axis=1), atol=1e-12)
    np.testing.assert_allclose(
        naive.bellman(matrix, policy.v, 0.99).max(axis=1), policy.v, atol=1e-8
    )
    assert policy.v[0] == 0.0


@given(seed=st.integers(0, 1000), n=st.integers(0, 300))
@settings(deadline=None, max_examples=30)
def test_both_ways_to_solve_agree(seed, n):
    mdp = MDP.count(*random_transitions(seed, n), 7, 3)
    fast, slow = mdp.solve("policy-iteration"), mdp.solve("value-iteration")
    np.testing.assert_allclose(fast.v, slow.v, rtol=0, atol=2e-8)


def test_the_corridor_has_the_value_of_its_length():
    # state k steps to k - 1 or k + 1 for sure; success pays nothing, each other arrival -1
    n = 8
    s = np.repeat(np.arange(1, n), 2)
    a = np.tile([0, 1], n - 1)
    t = np.where(a == 0, s - 1, np.minimum(s + 1, n - 1))
    policy = MDP.count(s, a, t, n, 2, discount=0.9).solve()
    steps = np.arange(n)
    expected = -(1 - 0.9 ** np.maximum(steps - 1, 0)) / 0.1
    np.testing.assert_allclose(policy.v, expected, atol=1e-7)
    assert (policy.greedy[1:] == 0).all()


DIGITS = 5.1e-11  # the published values have ten decimals
METHODS = ("policy-iteration", "value-iteration")


def a_corridor(n, discount, stay=3):
    """Steps to either side succeed once in `stay` + 1 times; values in closed form."""
    s = np.repeat(np.arange(1, n), 2)
    a = np.tile([0, 1], n - 1)
    t = np.where(a == 0, s - 1, np.minimum(s + 1, n - 1))
    mdp = MDP.count(
        np.tile(s, stay + 1),
        np.tile(a, stay + 1),
        np.concatenate([t, *[s] * stay]),
        n,
        2,
        discount=discount,
    )
    # v(k) = p w(k - 1) + (1 - p) w(k), the worth of arriving w = γ v - 1 but 0 at success
    p, v = 1 / (stay + 1), np.zeros(n)
    worth = 0.0
    for k in range(1, n):
        v[k] = (p * worth - (1 - p)) / (1 - (1 - p) * discount)
        worth = discount * v[k] - 1
    return mdp, v


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99, 0.999])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-8])
def test_values_are_within_the_tolerance(method, discount, tolerance):
    mdp, expected = a_corridor(30, discount, stay=20)
    found = mdp.solve(method, tolerance=tolerance, max_rounds=100_000).v
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_a_tolerance_below_rounding_is_raised_to_it():
    mdp, expected = a_corridor(30, 0.9999)
    found = mdp.solve(tolerance=1e-14).v
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15 / (1 - 0.9999) ** 2)


def read_gridworld(folder, name, goal):
    """Published transitions as counts, with the goal as state 0, and the number of states."""
    swap = {goal: 0, 0: goal}
    with (folder / "gymnasium_mdp_transitions.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["mdp"] == name]
    n_states = 1 + max(int(row["state"]) for row in rows)
    s, a, t = [], [], []
    for row in rows:
        times = round(6 * float(row["probability"]))
        s += times * [int(row["state"])]
        a += times * [int(row["action"])]
        t += times * [int(row["next_state"])]
    for lost in set(range(n_states)) - set(s) - {goal}:
        # an episode that ends without success goes nowhere for ever
        s += 4 * [lost]
        a += [0, 1, 2, 3]
        t += 4 * [lost]
    exchange = np.array([swap.get(i, i) for i in range(n_states)])
    return exchange, MDP.count(exchange[s], a, exchange[t], n_states, 4)


def published_values(folder, name, discount):
    with (folder / "gymnasium_mdp_optimal_values.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if r["mdp"] == name]
    rows = [r for r in rows if float(r["gamma"]) == discount]
    return np.array([float(r["V_star"]) for r in sorted(rows, key=lambda r: int(r["state"]))])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("discount", [0.9, 0.99])
@pytest.mark.parametrize("kind", ["deterministic", "slippery"])
def test_published_values_of_the_frozen_lake(reference_data, kind, discount, method):
    """The lake pays 1 on arrival: V* = E[γ^(T-1)]; -1 per step before is (V* - 1)/(1 - γ)."""
    name = f"FrozenLake4x4_{kind}"
    exchange, mdp = read_gridworld(reference_data, name, goal=15)
    found = replace(mdp, discount=discount).solve(method).v[exchange]
    expected = (published_values(reference_data, name, discount) - 1) / (1 - discount)
    expected[15] = 0.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=DIGITS / (1 - discount) + 1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_published_values_of_the_cliff(reference_data, discount, method):
    """The cliff pays -1 on arrival too: one step more than ours; nobody jumps down on purpose."""
    exchange, mdp = read_gridworld(reference_data, "CliffWalking", goal=47)
    found = replace(mdp, discount=discount).solve(method).v[exchange]
    expected = published_values(reference_data, "CliffWalking", discount)
    reachable = np.arange(48) < 37
    np.testing.assert_allclose(
        discount * found[reachable] - 1, expected[reachable], rtol=0, atol=DIGITS + 1e-8
    )


def test_candidates_are_those_of_the_paper():
    q = np.array([[0.0, 0.0, 0.0, 0.0], [-10.0, -1.0, -2.0, 0.0]])
    policy = Policy(q, q.max(axis=1))
    np.testing.assert_allclose(policy.probabilities[0], 0.25)
    # normalised 0, 0.9, 0.8, 1: all but the first reach 4/5
    np.testing.assert_allclose(policy.probabilities[1], np.array([0, 0.9, 0.8, 1]) / 2.7)
    assert policy.greedy[1] == 3


def test_draws_follow_the_probabilities():
    rng = np.random.default_rng(0)
    q = rng.normal(size=(2, 6))
    policy = Policy(q, q.max(axis=1), epsilon=0.3)
    drawn = policy.sample(np.ones(20_000, dtype=int), rng.random(20_000))
    share = np.bincount(drawn, minlength=6) / 20_000
    np.testing.assert_allclose(share, policy.probabilities[1], atol=0.015)
    assert set(policy.sample([1, 1], [0.0, np.nextafter(1.0, 0.0)])) <= set(
        np.flatnonzero(policy.probabilities[1])
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([0], [0], [5], 5, 2), "successor holds 5 to 5, expected in"),
        (([0], [2], [0], 5, 2), "action holds 2 to 2, expected in"),
        (([0, 1], [0], [0], 5, 2), "of one length"),
        (([0], [0], [0], 5, 2, 1.0), "discount is 1.0"),
    ],
)
def test_bad_transitions_are_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        MDP.count(*arguments)


def test_an_unreached_residual_is_an_error():
    with pytest.raises(RuntimeError, match="Bellman residual"):
        MDP.count(*random_transitions(0), 7, 3).solve("value-iteration", max_rounds=3)
