"""What an agent learned is written and read by one module, runs of before included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vitolab.agent import Vito
from vitolab.explain import knowledge, sentences
from vitolab.exploration import explore
from vitolab.problem import Problem
from vitolab.store.policies import Knowledge, knowledge_arrays, read_knowledge, setups_of
from vitolab.store.tables import trace_table

Arrays = dict[str, np.ndarray[Any, Any]]


def learned(
    problem: Problem, patients: list[Any], *, squared: bool = False, epsilon: float = 0.8
) -> Vito:
    """An agent of few states, near or far by either scale of distances."""
    walks = explore(problem, patients, n_episodes=5, n_steps=40, seed=1)
    return Vito.learn(problem, walks, 12, 0, squared=squared, epsilon=epsilon, initialize=False)


def stored(vito: Vito) -> Arrays:
    return knowledge_arrays("s", vito.states, vito.policy, vito.mdp)


@pytest.mark.parametrize("squared", [False, True])
def test_a_stored_policy_acts_as_the_one_that_was_learned(linear_problem, linear_patients, squared):
    vito = learned(linear_problem, linear_patients, squared=squared, epsilon=0.5 + 0.3 * squared)
    arrays = stored(vito)
    assert setups_of(arrays) == ["s"]
    found = read_knowledge(arrays, "s", linear_problem)
    assert found.states.squared is squared
    assert found.policy.epsilon == vito.policy.epsilon
    c = np.random.default_rng(2).normal(size=(500, linear_problem.n_objectives))
    c *= 20 * linear_problem.tolerance
    np.testing.assert_array_equal(found.states.quantize(c), vito.states.quantize(c))
    np.testing.assert_array_equal(found.policy.probabilities, vito.policy.probabilities)
    np.testing.assert_array_equal(found.policy.residuals, vito.policy.residuals)
    np.testing.assert_array_equal(found.visits, vito.mdp.visits)
    assert found.mdp is not None
    np.testing.assert_array_equal(found.mdp.counts, vito.mdp.counts)


def test_the_scale_of_distances_decides_the_state():
    """Else the test above could not fail: the two scales part space otherwise."""
    from vitolab.states import StateSpace

    centroids, tolerance = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 40.0]]), np.array([1.0, 100.0])
    c = np.array([[2.0, 30.0]])
    plain, squared = (StateSpace(centroids, tolerance, s).quantize(c)[0] for s in (False, True))
    assert plain != squared


def test_runs_of_before_used_the_papers_scale(linear_problem, linear_patients):
    arrays = stored(learned(linear_problem, linear_patients))
    del arrays["s/squared"], arrays["s/epsilon"]
    earlier = read_knowledge(arrays, "s", linear_problem)
    assert (earlier.states.squared, earlier.policy.epsilon) == (False, 0.8)


def test_a_run_without_transitions_or_visits_is_read(linear_problem, linear_patients):
    arrays = stored(learned(linear_problem, linear_patients))
    for name in ("counts_indptr", "counts_indices", "counts_data"):
        del arrays[f"s/{name}"]
    found = read_knowledge(arrays, "s", linear_problem)
    assert found.mdp is None
    np.testing.assert_array_equal(found.visits, arrays["s/visits"])
    del arrays["s/visits"]
    assert read_knowledge(arrays, "s", linear_problem).visits is None
    assert knowledge(arrays, "s", linear_problem) is None


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("q", None, "stored no q"),
        ("q", np.zeros((3, 1)), r"q \(3, 1\)"),
        ("v", np.full(12, np.nan), "do not fit|not finite"),
        ("squared", np.zeros(2, dtype=bool), r"squared has shape \(2,\)"),
        ("squared", np.array(1.0), "squared has shape .* float64"),
        ("epsilon", np.array(1.5), "epsilon is array.1.5., expected one number from 0 to 1"),
        ("epsilon", np.array([0.5]), "epsilon is array.*, expected one number from 0 to 1"),
    ],
)
def test_damaged_arrays_are_refused(linear_problem, linear_patients, name, array, says):
    arrays = stored(learned(linear_problem, linear_patients))
    arrays.pop(f"s/{name}")
    if array is not None:
        arrays[f"s/{name}"] = array
    with pytest.raises(ValueError, match=says):
        read_knowledge(arrays, "s", linear_problem)
    assert knowledge(arrays, "s, restart", linear_problem) is None


def test_a_fit_is_explained_run_by_run_in_python(linear_problem, linear_patients):
    vito = learned(linear_problem, linear_patients[1:])
    (fit,) = vito.personalize_from(
        linear_patients[0], linear_problem.lower[np.newaxis], max_runs=30
    )
    label = dict.fromkeys(
        ("setup", "patient", "method", "n_states", "n_samples", "repeat", "start")
    )
    trace = trace_table(linear_problem, fit, label)
    found = sentences(trace, linear_problem)
    assert len(found) == fit.n_runs
    assert found[0].startswith("Run 1: the start")
    assert all(text.startswith(f"Run {i}: ") for i, text in enumerate(found, 1))
    assert any(", because in state" in text for text in found)
    assert isinstance(knowledge(stored(vito), "s", linear_problem), Knowledge)
