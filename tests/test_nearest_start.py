"""The paper's agent that starts at the stored runs nearest to a patient's measurements."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from vitolab.agent import Vito
from vitolab.experience import APART, N_APART, Experience
from vitolab.exploration import explore
from vitolab.files import write_arrays
from vitolab.fit import Event
from vitolab.methods import AGENTS, METHODS, NEAREST, learn
from vitolab.problem import Patient
from vitolab.settings import Settings

FAR = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients):
    return explore(linear_problem, linear_patients[1:], n_episodes=4, n_steps=25, seed=0)


@pytest.fixture(scope="module")
def nearest(linear_problem, walks):
    return Vito.learn(linear_problem, walks, 40, start="nearest")


def slow(problem, walks, patient):
    """Runs by their misfit in tolerances, each as far as it is apart from those before."""
    x, y = walks.x[walks.counted], walks.y[walks.counted]
    away = ((problem.misfit(y, problem.measured(patient)) / problem.tolerance) ** 2).sum(axis=1)
    u = (x - problem.lower) / (problem.upper - problem.lower)
    found: list[int] = []
    for i in np.argsort(away, kind="stable"):
        if all(np.abs(u[i] - u[j]).max() > APART for j in found) and len(found) < N_APART:
            found.append(i)
    return x[found]


def test_the_first_start_is_the_nearest_stored_run(linear_problem, linear_patients, walks, nearest):
    for patient in [*linear_patients, FAR]:
        expected = slow(linear_problem, walks, patient)
        assert len(expected) > 2
        np.testing.assert_allclose(nearest.candidates(patient), expected, atol=1e-12)
        fit = nearest.personalize(patient, max_runs=1, seed=0)
        np.testing.assert_allclose(fit.trace.x[0], expected[0], atol=1e-12)


def test_restarts_go_on_through_the_stored_runs(linear_problem, walks, nearest):
    candidates = slow(linear_problem, walks, FAR)
    fit = nearest.personalize(FAR, max_runs=2000, seed=0)
    restarts = fit.trace.x[fit.trace.event == Event.RESTART]
    assert len(restarts) > len(candidates)
    np.testing.assert_allclose(restarts[: len(candidates) - 1], candidates[1:], atol=1e-12)


def test_the_start_alone_differs_from_the_papers_agent(linear_problem, walks, nearest):
    paper = Vito.learn(linear_problem, walks, 40)
    explicit = Vito.learn(linear_problem, walks, 40, start="data-driven")
    assert np.array_equal(paper.policy.q, nearest.policy.q)
    assert np.array_equal(paper.states.centroids, nearest.states.centroids)
    assert paper == explicit
    assert paper != nearest
    assert "the nearest of 936 runs" in repr(nearest)


def test_an_agent_that_starts_at_runs_can_be_saved(
    linear_problem, linear_patients, nearest, tmp_path
):
    nearest.save(tmp_path / "agent")
    loaded = Vito.load(tmp_path / "agent", linear_problem)
    assert loaded == nearest
    for patient in [*linear_patients, FAR]:
        one = nearest.personalize(patient, max_runs=60, seed=3)
        other = loaded.personalize(patient, max_runs=60, seed=3)
        assert np.array_equal(one.trace.x, other.trace.x)


def test_agents_of_before_start_as_they_did(linear_problem, linear_patients, walks, tmp_path):
    paper = Vito.learn(linear_problem, walks, 40)
    paper.save(tmp_path / "agent")
    description = json.loads((tmp_path / "agent" / "vito.json").read_text())
    assert not {"start", "features"} & set(description)
    loaded = Vito.load(tmp_path / "agent", linear_problem)
    assert np.array_equal(loaded.candidates(FAR), paper.initializer.candidates([50.0, -50.0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": "best"}, r"start is 'best', expected 'nearest'"),
        ({"initializer": True}, r"initializer is True, expected False"),
        ({"features": ["age"]}, r"learned features \['age'\], expected \[\] as the problem"),
    ],
)
def test_a_saved_agent_with_other_fields_is_refused(
    linear_problem, nearest, tmp_path, change, message
):
    nearest.save(tmp_path / "agent")
    file = tmp_path / "agent" / "vito.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        Vito.load(tmp_path / "agent", linear_problem)


def test_a_saved_agent_with_other_runs_is_refused(linear_problem, nearest, tmp_path):
    nearest.save(tmp_path / "agent")
    file = tmp_path / "agent" / "vito.json"
    description = json.loads(file.read_text())
    del description["sha256"]  # as agents of before
    file.write_text(json.dumps(description))
    with np.load(tmp_path / "agent" / "arrays.npz") as found:
        arrays = dict(found)
    write_arrays(tmp_path / "agent" / "arrays.npz", arrays | {"stored/u": arrays["stored/u"] + 9})
    with pytest.raises(ValueError, match=r"stored: u holds 1?[0-9.]+ in row \d+, expected from"):
        Vito.load(tmp_path / "agent", linear_problem)
    del arrays["stored/y"]
    write_arrays(tmp_path / "agent" / "arrays.npz", arrays)
    with pytest.raises(ValueError, match=r"stored: y is missing"):
        Vito.load(tmp_path / "agent", linear_problem)


def test_a_start_that_is_not_known_is_refused(linear_problem, walks):
    with pytest.raises(ValueError, match=r"start is 'best', expected data-driven or nearest"):
        Vito.learn(linear_problem, walks, 40, start="best")
    with pytest.raises(ValueError, match=r"start is \['nearest'\], expected data-driven or"):
        Settings(start=["nearest"])


def test_without_initialisation_no_run_is_kept(linear_problem, walks):
    agent = Vito.learn(linear_problem, walks, 40, initialize=False, start="nearest")
    assert agent.initializer is None


def test_the_method_is_in_the_table(linear_problem, linear_patients, walks, nearest):
    assert "vito-nearest" in AGENTS
    assert METHODS["vito-nearest"].training is NEAREST
    settings = Settings(n_states=40)
    both = learn(["vito", "vito-nearest"], linear_problem, walks, 0, settings)
    for patient in linear_patients:
        found = both["vito-nearest"].personalize(patient, max_runs=60, seed=1)
        assert np.array_equal(
            found.trace.x, nearest.personalize(patient, max_runs=60, seed=1).trace.x
        )


def test_a_single_run_is_the_only_start_and_without_runs_there_is_none(linear_problem, walks):
    stored = Experience.learn(linear_problem, walks)
    few = replace(stored, u=stored.u[:1], y=stored.y[:1], patient=stored.patient[:1])
    np.testing.assert_array_equal(list(few.near(FAR)), stored.u[:1])
    np.testing.assert_allclose(few.candidates(FAR), walks.x[walks.counted][:1])
    none = Experience.none(linear_problem)
    assert none.candidates(FAR).shape == (0, linear_problem.n_parameters)
