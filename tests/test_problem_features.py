"""Features of a patient that a problem computes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vitolab.agent.continuous import ContinuousVito
from vitolab.exploration import explore
from vitolab.problem import Patient
from vitolab.saved import write_object
from vitolab.trajectories import Trajectories


def offset(patient):
    """Give the one number in which the patients of the linear problem differ, squared."""
    return np.array([patient.data["offset"] ** 2])


@pytest.fixture
def squared(linear_problem):
    return replace(linear_problem, features=("square",), featuring=offset)


def test_features_that_are_no_data_are_computed_from_them(squared):
    assert squared.featured(Patient("P", {}, {"offset": 3.0, "square": 5.0})) == [9.0]


def test_walks_hold_the_features_that_the_problem_computes(squared, linear_patients):
    walks = explore(squared, linear_patients, n_episodes=2, n_steps=1, seed=0)
    expected = [[patient.data["offset"] ** 2] for patient in linear_patients]
    np.testing.assert_array_equal(walks.features, expected)


def test_a_problem_learns_the_same_from_a_feature_computed_or_in_the_data(
    linear_problem, linear_patients
):
    held = replace(linear_problem, features=("offset",))
    computed = replace(
        linear_problem,
        features=("of",),
        featuring=lambda patient: np.array([patient.data["offset"]]),
    )
    fits = []
    for problem in (held, computed):
        walks = explore(problem, linear_patients[1:], n_episodes=10, n_steps=1, seed=0)
        fits.append(ContinuousVito.learn(problem, walks).personalize(linear_patients[0]))
    np.testing.assert_array_equal(fits[0].trace.x, fits[1].trace.x)
    blind = explore(linear_problem, linear_patients[1:], n_episodes=10, n_steps=1, seed=0)
    other = ContinuousVito.learn(linear_problem, blind).personalize(linear_patients[0])
    assert not np.array_equal(other.trace.x, fits[0].trace.x)


def test_walks_stored_before_the_problem_had_features_teach_it_still(
    linear_problem, linear_patients, tmp_path
):
    """Nothing is known of their patients."""
    before = explore(linear_problem, linear_patients[1:], n_episodes=10, n_steps=1, seed=0)
    empty = {**vars(before), "features": np.empty((len(before.patients), 0))}
    write_object(
        tmp_path / "walks.npz",
        "Trajectories",
        {"patients": list(before.patients), "causes": []},
        {name: v for name, v in empty.items() if name not in ("patients", "causes", "by_scale")},
    )
    walks = Trajectories.load(tmp_path / "walks.npz")
    problem = replace(
        linear_problem,
        features=("offset", "sign"),
        featuring=lambda patient: patient.data["offset"] * np.array([1.0, -1.0]),
    )
    assert walks == before
    assert ContinuousVito.learn(problem, walks).personalize(linear_patients[0]).solved


@pytest.mark.parametrize("answer", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_no_finite_number_is_not_known(linear_problem, answer):
    problem = replace(
        linear_problem, features=("f", "g"), featuring=lambda patient: np.array([1.0, answer])
    )
    np.testing.assert_array_equal(problem.featured(Patient("P", {})), [1.0, np.nan])


def test_features_that_cannot_be_computed_are_not_known_and_walks_go_on(squared, linear_patients):
    unknown = replace(squared, featuring=lambda patient: np.array([patient.data["weight"]]))
    walks = explore(unknown, linear_patients, n_episodes=1, n_steps=1, seed=0)
    assert np.isnan(walks.features).all()
    assert np.isfinite(walks.y).all()


@pytest.mark.parametrize("answer", [[1.0, 2.0], 1.0, [[1.0]]])
def test_another_number_of_features_than_names_is_refused(squared, answer):
    wrong = replace(squared, featuring=lambda patient: np.array(answer))
    with pytest.raises(
        ValueError, match=r"problem 'linear': featuring answers in shape .*, expected \(1,\)"
    ):
        wrong.featured(Patient("P", {}))


def test_features_without_names_are_refused(linear_problem):
    with pytest.raises(ValueError, match="problem 'linear': features is empty, expected names"):
        replace(linear_problem, featuring=offset)


def test_a_problem_with_some_of_its_objectives_keeps_its_features(squared):
    name = squared.objectives[0].name
    part = squared.observing([name])
    assert part.n_objectives == 1
    assert part.featured(Patient("P", {}, {"offset": 3.0})) == [9.0]
