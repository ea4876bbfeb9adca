"""A function of one parameter vector, taken for one of a batch, and the other way round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analytic import linear, obstructed

from vitolab.adapters import FunctionModel
from vitolab.exploration import explore
from vitolab.failures import CannotRun
from vitolab.reference import NelderMead


def by_index(x, patient):
    return [x[0] + 0.4 * x[1], 0.8 * x[1] - 0.3 * x[0]]


def unpacked(x, patient):
    a, b = x
    return {"u": a + 0.4 * b, "w": 0.8 * b - 0.3 * a}


@pytest.mark.parametrize("function", [by_index, unpacked])
@pytest.mark.parametrize("n_episodes", [1, 2, 8])  # two rows of two parameters look like a batch
def test_a_function_of_one_vector_is_refused_as_simulate(
    linear_problem, linear_patients, function, n_episodes
):
    problem = replace(linear_problem, simulate=function)
    words = (
        rf"{function.__name__} takes one parameter vector, expected simulate\(x, patient\) with x "
        r"of shape \(n, 2\) and an answer of shape \(n, 2\); give .*FunctionModel\("
    )
    with pytest.raises(CannotRun, match=words):
        explore(problem, linear_patients[:1], n_episodes, 3, seed=0)
    with pytest.raises(CannotRun, match=words):
        NelderMead(problem).personalize(linear_patients[0], max_runs=5)
    observed = problem.observing(["w"])
    with pytest.raises(CannotRun, match=words.replace("answer of shape .n, 2", "answer")):
        explore(observed, linear_patients[:1], n_episodes, 3, seed=0)


def test_the_remedy_that_the_sentence_names_works(linear_problem, linear_patients):
    for function in (by_index, unpacked):
        model = FunctionModel(function, ("u", "w"), n_workers=0)
        walks = explore(replace(linear_problem, simulate=model), linear_patients[:1], 2, 3)
        assert np.isfinite(walks.y).all()


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_function_of_a_batch_is_refused_as_one_of_a_vector(linear_patients, n_workers):
    with (
        FunctionModel(linear, ("u", "w"), n_workers=n_workers) as model,
        pytest.raises(CannotRun, match=r"linear takes a batch of shape \(n, 2\), expected a func"),
    ):
        model(np.zeros((3, 2)), linear_patients[0])


def test_a_batched_model_that_fails_is_not_mistaken_for_one_of_a_vector(
    linear_problem, linear_patients
):
    calls = []

    def failing(x, patient):
        calls.append(np.shape(x))
        if (np.asarray(x)[..., 0] > 0).any():
            raise ValueError("too large")
        return linear(x, patient)

    for simulate in (failing, obstructed):
        problem = replace(linear_problem, simulate=simulate)
        x = np.array([[1.0, 0.0], [-3.0, 0.0], [-3.0, 1.0]])
        y = [problem.run(x, linear_patients[0]).y for _ in range(2)]
        np.testing.assert_array_equal(np.isfinite(y[0]).all(axis=1), [False, True, True])
        np.testing.assert_array_equal(y[0], y[1])
    assert (2,) not in calls  # a row that answers is a batch of one
