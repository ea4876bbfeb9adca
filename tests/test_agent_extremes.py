"""Agents on models whose outputs are finite and otherwise hard to compute with."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from vitolab.agent import ContinuousVito, Vito, n_states_at_most
from vitolab.agent.bounded import bounded_step
from vitolab.exploration import explore
from vitolab.identifiability import sensitivity
from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.quantities import LARGEST

NAMES = ("P0", "P1", "P2", "P3")


def problem_of(simulate):
    return Problem(
        "extreme",
        "1",
        (
            Parameter("a", "a", "", 0.0, 10.0, 5.0, 0.1),
            Parameter("b", "b", "", 0.0, 10.0, 5.0, 0.1),
        ),
        (Objective("u", "u", "", 0.3), Objective("w", "w", "", 0.3)),
        simulate,
    )


def patients_of(offset=1.0):
    loads = {name: 1.0 + 0.1 * i * offset for i, name in enumerate(NAMES)}
    return [Patient(n, {"u": 7.0, "w": 2.0 * k}, {"load": k}) for n, k in loads.items()]


def penalty(x, patient):
    """The usual large number where a solver gave up."""
    a, b = x.T
    y = np.column_stack([a + b, a * patient.data["load"]])
    y[a < 1.0] = 1e7
    return y


def scattered(lowest, highest, seed):
    """Outputs of either sign, of all magnitudes between two powers of ten of tolerances."""

    def simulate(x, patient):
        phase = np.sin(x @ np.array([[12.9898, 78.233], [39.346, 11.135]]) + seed)
        wild = np.modf(43758.5453 * phase * patient.data["load"])[0]
        power = lowest + np.abs(wild) * (highest - lowest)
        return 0.3 * np.sign(wild) * np.minimum(10.0**power, LARGEST)

    return simulate


def everybody_ends(problem, patients, seed, n_episodes=10, n_steps=1):
    walks = explore(problem, patients, n_episodes=n_episodes, n_steps=n_steps, seed=seed)
    for patient in patients[:2]:
        train = walks.without(patient.name)
        n_states = min(12, n_states_at_most(problem, train))
        for agent in (
            ContinuousVito.learn(problem, train),
            Vito.learn(problem, train, n_states, seed),
        ):
            fit = agent.personalize(patient, max_runs=15, seed=seed)
            assert np.isfinite(fit.trace.x).all()
            assert fit.n_failed == 0
            assert fit.solved or fit.n_runs == 15
        assert np.isfinite(sensitivity(problem, fit.x, patient).singular_values).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_large_number_where_the_solver_gave_up_ends_nobody(seed):
    everybody_ends(problem_of(penalty), patients_of(), seed, n_episodes=30)


@given(seed=st.integers(0, 10**6), lowest=st.integers(-8, 7), n_steps=st.sampled_from([1, 4]))
@settings(max_examples=15)
def test_finite_outputs_of_any_magnitude_end_nobody(seed, lowest, n_steps):
    everybody_ends(problem_of(scattered(lowest, 7.8, seed)), patients_of(), seed, n_steps=n_steps)


@pytest.mark.parametrize("value", [0.0, 1e-9, 2e7, -2e7])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_a_constant_model_ends_nobody(value, offset):
    problem = problem_of(lambda x, patient: np.full((len(x), 2), value))
    everybody_ends(problem, patients_of(offset), 0)


@given(seed=st.integers(0, 10**6), power=st.floats(-8, 12))
@settings(max_examples=60)
def test_a_step_of_any_steepness_minimises_within_its_bounds(seed, power):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(2, 1)) * 10.0**power
    jacobian = np.concatenate([direction, direction, rng.normal(size=(2, 1))], axis=1)
    c, anchor, u = rng.normal(size=2) * 10.0 ** rng.uniform(-2, 7), np.zeros(3), rng.random(3)
    step = bounded_step(jacobian, c, 10.0, anchor, -u, 1.0 - u)
    rows = np.concatenate([jacobian, np.sqrt(10.0) * np.eye(3)])
    right = np.concatenate([-c, np.zeros(3)])
    best = lsq_linear(rows, right, bounds=(-u, 1.0 - u)).cost
    assert (step >= -u - 1e-9).all()
    assert (step <= 1.0 - u + 1e-9).all()
    assert 0.5 * np.sum((rows @ step - right) ** 2) <= best * (1 + 1e-4) + 1e-9
