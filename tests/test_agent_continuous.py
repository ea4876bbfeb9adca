"""The agent with continuous actions: what must hold of each step, and what it is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from vitolab.agent import ContinuousVito
from vitolab.agent.local import UnitCube, damped_step
from vitolab.exploration import explore
from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.tables import trace_table
from vitolab.trajectories import Event, StopReason


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients):
    return explore(linear_problem, linear_patients, n_episodes=3, n_steps=1, seed=0)


@pytest.fixture(scope="module")
def agent(linear_problem, linear_patients, walks):
    return ContinuousVito.learn(linear_problem, walks.without("P0"), patients=linear_patients)


def banana(x: np.ndarray, patient: Patient) -> np.ndarray:
    """Model that is far from linear, and fails in a corner of its domain."""
    a, b = x.T
    y = np.column_stack([a, b - a**2 + patient.data["bend"] * a])
    y[(a > 1.5) & (b > 3)] = np.nan
    return y


@pytest.fixture(scope="module")
def curved():
    problem = Problem(
        "banana",
        "1",
        (
            Parameter("a", "a", "", -2.0, 2.0, 0.0, 0.01),
            Parameter("b", "b", "", -1.0, 4.0, 0.0, 0.01),
        ),
        (Objective("u", "u", "", 0.02), Objective("w", "w", "", 0.02)),
        banana,
    )
    rng = np.random.default_rng(1)
    patients = []
    for i in range(12):
        blank = Patient(f"B{i}", {}, {"bend": float(rng.uniform(-1, 1)), "sex": "f"})
        u, w = banana(rng.uniform([-1.4, -0.5], [1.4, 2.5], (1, 2)), blank)[0]
        patients.append(replace(blank, measurements={"u": float(u), "w": float(w)}))
    return problem, patients


def test_where_the_model_is_linear_the_first_run_solves(linear_problem, linear_patients, walks):
    """What is known of a patient, the offset, is part of the regression."""
    for patient in linear_patients:
        agent = ContinuousVito.learn(
            linear_problem, walks.without(patient.name), patients=linear_patients
        )
        fit = agent.personalize(patient)
        assert fit.solved
        assert fit.n_runs == 1
        assert fit.trace.expected == pytest.approx(fit.trace.misfits, abs=0.2)


def test_a_model_that_is_not_linear_and_fails_in_places(curved):
    problem, patients = curved
    walks = explore(problem, patients, n_episodes=2, n_steps=1, seed=3)
    n_runs = []
    for patient in patients:
        agent = ContinuousVito.learn(problem, walks.without(patient.name), patients=patients)
        fit = agent.personalize(patient, max_runs=100)
        assert fit.solved
        assert problem.is_solved(fit.misfits)
        n_runs.append(fit.n_runs)
    assert np.mean(n_runs) < 12


def test_failed_runs_are_counted_and_left(curved):
    problem, patients = curved
    walks = explore(problem, patients, n_episodes=2, n_steps=1, seed=3)
    agent = ContinuousVito.learn(problem, walks.without("B0"), patients=patients)
    (fit,) = agent.personalize_from(patients[0], np.array([[1.9, 3.9]]), max_runs=60)
    assert not np.isfinite(fit.trace.y[0]).any()
    assert fit.trace.event[1] == Event.RESTART
    assert fit.solved
    nowhere = replace(problem, simulate=lambda x, patient: np.full((len(x), 2), np.nan))
    lost = replace(agent, problem=nowhere).personalize(patients[0], max_runs=30)
    assert (lost.solved, lost.n_runs, lost.stop_reason) == (False, 30, StopReason.BUDGET)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_step_is_the_bounded_one(seed):
    """Against another solver: within the cube, and no step there is better."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6), rng.integers(1, 7)
    place, misfit, jacobian = rng.random(n), rng.normal(size=m), rng.normal(size=(m, n))
    damping = float(10 ** rng.uniform(-2, 1))
    step = damped_step(place, misfit, jacobian, damping)
    assert np.all((place + step >= -1e-12) & (place + step <= 1 + 1e-12))
    rows = np.vstack([jacobian, np.sqrt(damping) * np.eye(n)])
    goal = np.concatenate([-misfit, np.zeros(n)])

    def cost(s):
        return float(np.sum((rows @ s - goal) ** 2))

    best = lsq_linear(rows, goal, bounds=(-place, 1 - place), tol=1e-12, max_iter=500)
    assert cost(step) == pytest.approx(2 * best.cost, rel=1e-6, abs=1e-9)


def test_runs_stay_in_the_domain_and_begin_where_they_are_told(curved):
    problem, patients = curved
    walks = explore(problem, patients, n_episodes=1, n_steps=1, seed=0)
    agent = ContinuousVito.learn(problem, walks.without("B1"))
    starts = problem.draw(np.random.default_rng(0), 8)
    fits = agent.personalize_from(patients[1], starts, max_runs=40, seed=5)
    for start, fit in zip(starts, fits, strict=True):
        assert np.array_equal(fit.trace.x[0], start)
        assert np.all((fit.trace.x >= problem.lower) & (fit.trace.x <= problem.upper))
        assert fit.trace.event[0] == Event.START
    again = agent.personalize_from(patients[1], starts[:3], max_runs=40, seed=5)
    for one, other in zip(fits, again, strict=False):
        assert np.array_equal(one.trace.x, other.trace.x)


def test_parameters_that_act_by_ratio_are_moved_by_ratio():
    problem = Problem(
        "speeds",
        "1",
        (Parameter("v", "v", "mm/s", 10.0, 1000.0, 100.0, 1.0, scale="log"),),
        (Objective("t", "t", "ms", 1.0),),
        lambda x, patient: 1000.0 / x,
    )
    cube = UnitCube(problem)
    assert cube.place(np.array([100.0])) == pytest.approx([0.5])
    assert cube.parameters(np.array([0.25])) == pytest.approx([10**1.5])
    x = problem.draw(np.random.default_rng(0), 50)
    assert cube.parameters(cube.place(x)) == pytest.approx(x)


def test_the_patient_left_out_leaves_no_trace(linear_problem, linear_patients, walks):
    """Other measurements and data of the held-out patient do not change the agent."""
    without = walks.without("P3")
    agent = ContinuousVito.learn(linear_problem, without, patients=linear_patients)
    other = [replace(p, data={"offset": 99.0}) if p.name == "P3" else p for p in linear_patients]
    same = ContinuousVito.learn(linear_problem, without, patients=other)
    assert np.array_equal(agent.data, same.data)
    assert np.array_equal(agent.x, same.x)
    assert not np.isin(walks.select(["P3"]).x[:, 0, 0], agent.x[:, 0]).any()


def test_same_seed_same_bits_and_saved_is_loaded(agent, linear_patients, linear_problem, tmp_path):
    agent.save(tmp_path / "agent")
    loaded = ContinuousVito.load(tmp_path / "agent", linear_problem)
    first, second = (
        a.personalize(linear_patients[0], max_runs=30, seed=4).trace for a in (agent, loaded)
    )
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.expected, second.expected)
    with pytest.raises(FileExistsError):
        agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="another problem"):
        ContinuousVito.load(tmp_path / "agent", replace(linear_problem, version="2"))


def test_the_trace_tells_what_was_expected(agent, linear_patients, linear_problem):
    fit = agent.personalize(linear_patients[0])
    label = dict.fromkeys(("setup", "patient", "method"), "-")
    label |= dict.fromkeys(("n_states", "n_samples", "repeat", "start"))
    rows = trace_table(linear_problem, fit, label)
    assert rows["e:u"].to_numpy() == pytest.approx(fit.trace.expected[:, 0])
    assert (rows["action"] == -1).all()


def test_what_it_cannot_do_is_refused(agent, linear_problem, linear_patients, walks):
    with pytest.raises(ValueError, match="max_runs is 0"):
        agent.personalize(linear_patients[0], max_runs=0)
    with pytest.raises(ValueError, match="offset is None"):
        agent.personalize(replace(linear_patients[0], data={}))
    with pytest.raises(ValueError, match="not among the patients"):
        ContinuousVito.learn(linear_problem, walks, patients=linear_patients[:3])
    failed = replace(walks, y=np.full_like(walks.y, np.nan))
    with pytest.raises(ValueError, match="none of the 60 runs"):
        ContinuousVito.learn(linear_problem, failed)


def test_two_runs_are_enough_to_begin(linear_problem, linear_patients):
    walks = explore(linear_problem, linear_patients[1:2], n_episodes=1, n_steps=1, seed=0)
    agent = ContinuousVito.learn(linear_problem, walks)
    fit = agent.personalize(linear_patients[0], max_runs=60)
    assert fit.solved
