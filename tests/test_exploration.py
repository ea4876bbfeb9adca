from dataclasses import replace

import numpy as np
import pytest

from vitolab.exploration import explore
from vitolab.trajectories import Trajectories


def equal(one: Trajectories, other: Trajectories) -> bool:
    names = ("x", "y", "action", "length", "patient", "z")
    return all(np.array_equal(getattr(one, n), getattr(other, n), equal_nan=True) for n in names)


def test_walks_take_one_action_at_a_time(linear_problem, linear_patients):
    walks = explore(linear_problem, linear_patients, n_episodes=3, n_steps=20, seed=1)
    assert walks.x.shape == (30, 21, 2)
    steps = linear_problem.actions[walks.action] * linear_problem.step
    moved = np.diff(walks.x, axis=1)
    clipped = (walks.x[:, 1:] == linear_problem.lower) | (walks.x[:, 1:] == linear_problem.upper)
    left = (walks.x[:, :-1] == linear_problem.lower) | (walks.x[:, :-1] == linear_problem.upper)
    np.testing.assert_allclose(np.where(clipped | left, 0, moved - steps), 0, atol=1e-12)
    assert set(walks.action.ravel()) == set(range(linear_problem.n_actions))


def test_outputs_are_those_of_the_model(linear_problem, linear_patients):
    walks = explore(linear_problem, linear_patients[:2], n_episodes=2, n_steps=5)
    for i, patient in enumerate([0, 0, 1, 1]):
        y = linear_problem.simulate(walks.x[i], linear_patients[patient])
        np.testing.assert_allclose(walks.y[i], y, atol=1e-12)


def test_same_bits_for_any_workers_order_and_cache(linear_problem, linear_patients, tmp_path):
    one = explore(linear_problem, linear_patients, 4, 10, seed=3)
    assert equal(one, explore(linear_problem, linear_patients, 4, 10, seed=3, n_jobs=2))
    shuffled = explore(linear_problem, linear_patients[::-1], 4, 10, seed=3)
    for patient in linear_patients:
        assert equal(one.select([patient.name]), shuffled.select([patient.name]))
    # a cache that is extended gives what one long exploration gives
    explore(linear_problem, linear_patients, 1, 10, seed=3, cache=tmp_path)
    assert equal(one, explore(linear_problem, linear_patients, 4, 10, seed=3, cache=tmp_path))
    assert equal(one, explore(linear_problem, linear_patients, 4, 10, seed=3, cache=tmp_path))


def test_the_cache_does_not_mix_problems(linear_problem, linear_patients, tmp_path):
    clip = explore(linear_problem, linear_patients, 2, 30, cache=tmp_path)
    free = replace(linear_problem, border="free")
    assert not equal(clip, explore(free, linear_patients, 2, 30, cache=tmp_path))
    assert equal(
        explore(free, linear_patients, 2, 30), explore(free, linear_patients, 2, 30, cache=tmp_path)
    )


def test_a_prefix_is_the_same_as_fewer_samples(linear_problem, linear_patients):
    walks = explore(linear_problem, linear_patients, n_episodes=4, n_steps=10)
    part = walks.first(25)
    assert (part.n_samples == 25).all()
    assert part.transitions.sum() == 250
    assert np.array_equal(part.x[:2], walks.x[:2])
    assert part.length[:3].tolist() == [10, 10, 5]
    assert walks.first(40).x.shape == walks.x.shape
    assert walks.first(3).x.shape == (10, 4, 2)
    with pytest.raises(ValueError, match="has 40 samples, expected at least 41"):
        walks.first(41)


def test_leaving_one_out_leaves_nothing_of_it(linear_problem, linear_patients):
    walks = explore(linear_problem, linear_patients, n_episodes=2, n_steps=10)
    rest = walks.without("P3")
    assert "P3" not in rest.patients
    assert len(rest.x) == 18
    gone = walks.select(["P3"])
    assert not np.isin(gone.y, rest.y).any()
    assert not np.isin(gone.z, rest.z).any()


def test_failed_runs_are_data_but_never_transitions(linear_problem, linear_patients):
    def failing(x, patient):
        y = linear_problem.simulate(x, patient)
        y[x[:, 0] > 2.0] = np.nan
        return y

    problem = replace(linear_problem, simulate=failing)
    walks = explore(problem, linear_patients, n_episodes=3, n_steps=60)
    failed = ~np.isfinite(walks.y).all(axis=2)
    assert failed.any()
    # after a failed run the walk jumps to a fresh start
    assert (walks.action[failed[:, :-1]] == -1).all()
    assert ((walks.action == -1) == failed[:, :-1]).all()
    kept = walks.transitions
    assert not kept[failed[:, :-1]].any()
    assert not kept[failed[:, 1:]].any()
    assert np.array_equal(kept, ~failed[:, :-1] & ~failed[:, 1:])
    assert (walks.n_samples == 180).all()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"patients": []}, "patients is empty"),
        ({"n_steps": 0}, "n_steps is 0, expected at least 1"),
        ({"twice": True}, "same name"),
    ],
)
def test_bad_arguments_are_named(linear_problem, linear_patients, arguments, says):
    patients = arguments.pop("patients", linear_patients)
    if arguments.pop("twice", False):
        patients = [*linear_patients, linear_patients[0]]
    with pytest.raises(ValueError, match=says):
        explore(linear_problem, patients, **arguments)


@pytest.mark.parametrize("answer", [lambda x, p: x[:, 0], lambda x, p: None])
def test_a_simulator_that_answers_in_another_shape_is_named(
    linear_problem, linear_patients, answer
):
    problem = replace(linear_problem, simulate=answer)
    with pytest.raises(ValueError, match=r"'linear': all .* wrong shape: .* expected \(1, 2\)"):
        explore(problem, linear_patients)


def test_a_simulator_may_change_its_argument(linear_problem, linear_patients):
    def careless(x, patient):
        y = linear_problem.simulate(x, patient)
        x[:] = 0.0
        return y

    problem = replace(linear_problem, simulate=careless)
    assert equal(explore(problem, linear_patients, 2), explore(linear_problem, linear_patients, 2))
