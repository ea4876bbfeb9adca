"""What the page Policy shows, computed: states, actions, where they lead."""

from __future__ import annotations

import numpy as np
import policy_pages
import pytest

from vitolab.dashboard import load_dashboards
from vitolab.models import rosenbrock
from vitolab.store import Run
from vitolab.store.policies import setups_of

runs = policy_pages.runs

policy = load_dashboards("pages.policy.learned")


@pytest.fixture(scope="module")
def known(runs):
    """The stored policy of the grid study."""
    found, ids = runs
    run = found.run(ids["grid"])
    return policy.learned(run.arrays, run.manifest.problems, "base, free")


def test_the_stored_policy_is_the_one_that_was_learned(runs, known):
    run = Run.load(runs[0].entry(runs[1]["grid"]).info.path)
    assert np.array_equal(known.policy.q, run.arrays["base, free/q"])
    assert known.actions[0] == "x₁ −100 steps"
    assert np.array_equal(known.visits, run.arrays["base, free/visits"])


def test_value_iteration_from_stored_transitions_finds_the_stored_values(known):
    rounds = known.rounds
    assert set(rounds) == {"value iteration", "modified policy iteration, as stored"}
    assert rounds["value iteration"][-1] < 1e-8
    assert len(rounds["value iteration"]) > len(rounds["modified policy iteration, as stored"])


def test_actions_of_a_state_are_listed_best_first(known):
    state = int(np.argmax(known.visits[1:].sum(axis=1))) + 1
    table = policy.action_table(known, state)
    assert table["Q"].is_monotonic_decreasing
    assert table["drawn [%]"].sum() == pytest.approx(100.0, abs=0.6)
    assert table["times seen"].sum() == known.visits[state].sum()
    assert table["action"].iloc[0] == known.actions[int(known.policy.greedy[state])]


def test_successors_are_those_that_were_seen(known):
    state, action = map(int, np.argwhere(known.visits[1:] > 3)[0] + (1, 0))
    reached = policy.successors(known, state, action)
    assert reached["seen"].sum() == known.visits[state, action]
    assert reached["probability"].sum() == pytest.approx(1.0)
    assert reached["seen"].is_monotonic_decreasing


def test_arrows_point_to_the_mean_of_what_was_reached(known):
    ends = policy.drift(known)
    state = int(np.argmax(known.visits[1:].sum(axis=1))) + 1
    reached = policy.successors(known, state, int(known.policy.greedy[state]))
    centroids = known.states.centroids[reached["state"].to_numpy()]
    assert ends[state] == pytest.approx(reached["probability"].to_numpy() @ centroids)


def test_over_parameter_space_the_best_action_is_that_of_the_state(runs, known):
    patients = runs[0].run(runs[1]["grid"]).patients
    points, steps, optimum, name = policy.over_parameters(known, patients, "F003")
    assert name == "F003"
    function = rosenbrock.cohort(3)[2]
    assert optimum == pytest.approx(rosenbrock.optimum(function))
    y = rosenbrock.problem().simulate(points[[40]], function)
    state = int(known.states.quantize(y)[0])
    assert np.array_equal(steps[40], known.problem.actions[known.policy.greedy[state]])


def test_arrays_that_do_not_fit_are_refused(runs):
    run = runs[0].run(runs[1]["grid"])
    arrays = dict(run.arrays)
    arrays["base, free/q"] = arrays["base, free/q"][:, :3]
    with pytest.raises(ValueError, match="do not fit 2 objectives and 12 actions"):
        policy.learned(arrays, run.manifest.problems, "base, free")


@pytest.mark.parametrize(
    ("part", "harm", "why"),
    [
        ("counts_indices", lambda a: np.where(np.arange(len(a)) == 3, 2**31 - 1, a), "successor"),
        ("counts_indices", lambda a: -a - 1, "successor"),
        ("counts_indptr", lambda a: a[::-1], "start"),
        ("counts_indptr", lambda a: a + 1, "start"),
        ("counts_data", lambda a: 0 * a, "counts"),
        ("counts_data", lambda a: a / 2, "whole numbers"),
        ("v", lambda a: a * np.nan, "not finite"),
    ],
)
def test_foreign_arrays_are_refused_before_a_kernel_trusts_them(runs, part, harm, why):
    """An index out of range would end the process, and all sessions with it."""
    found, ids = runs
    run = found.run(ids["grid"])
    setup = setups_of(run.arrays)[0]
    arrays = dict(run.arrays)
    assert f"{setup}/{part}" in arrays
    changed = harm(arrays[f"{setup}/{part}"])
    arrays[f"{setup}/{part}"] = changed.astype(np.int32) if "indices" in part else changed
    with pytest.raises(ValueError, match=why):
        policy.learned(arrays, run.manifest.problems, setup)
