"""The agent with continuous actions beside a region in which the model fails."""

import re

import numpy as np
import pytest

from vitolab.agent import ContinuousVito
from vitolab.agent.failing import held, nearest_answer
from vitolab.fit import StopReason
from vitolab.problem import Objective, Parameter, Patient, Problem

N = 8
MIX = np.random.default_rng(3).normal(size=(N, N)) / np.sqrt(N)


def cornered(x, patient):
    """Outputs of all parameters; a corner of the domain fails."""
    y = 10.0 * np.exp(1.5 * x @ MIX.T)
    y[x.mean(axis=1) > 0.62] = np.nan
    return y


PROBLEM = Problem(
    "corner",
    "1",
    tuple(Parameter(f"p{i}", f"p{i}", "", 0.0, 1.0, 0.4, 0.01) for i in range(N)),
    tuple(Objective(f"y{i}", f"y{i}", "", 1.0) for i in range(N)),
    cornered,
)


def beside_the_corner():
    """Patients with a solution in the domain, not far from the corner."""
    rng, patients = np.random.default_rng(0), []
    while len(patients) < 12:
        x = rng.uniform(0.25, 0.95, (1, N))
        if 0.5 <= x.mean() <= 0.6:
            y = {f"y{i}": float(v) for i, v in enumerate(cornered(x, None)[0])}
            patients.append(Patient(f"K{len(patients)}", y, {}))
    return patients


@pytest.mark.parametrize("position", [5, 9])
def test_nobody_is_sent_into_a_corner_that_fails_again_and_again(position):
    """An emulator of few runs finds no better compromise than in the corner: it knows no failure.

    Before, 33 and 38 runs of these patients failed.
    """
    patient = beside_the_corner()[position]
    fit = ContinuousVito.learn(PROBLEM).personalize(patient, max_runs=100)
    assert fit.solved
    assert np.isnan(fit.trace.y).any(axis=1).sum() <= 10
    assert fit.n_runs <= 30


def test_a_step_into_a_failed_region_is_halved_and_others_are_whole():
    base, failed = np.array([0.2, 0.5]), np.array([[0.8, 0.5]])
    np.testing.assert_allclose(held(failed[0], base, failed), [0.5, 0.5])
    beyond = held(np.array([1.0, 0.5]), base, failed)
    np.testing.assert_allclose(beyond, [0.5, 0.5])
    for free in ([0.45, 0.9], [0.0, 0.5], [0.2, 0.5]):
        assert np.array_equal(held(np.array(free), base, failed), free)


def test_a_held_plan_is_never_nearer_to_a_failed_run_than_to_its_base():
    rng = np.random.default_rng(0)
    for _ in range(200):
        failed, base, u = rng.random((5, 6)), rng.random(6), rng.random(6)
        stop = held(u, base, failed)
        near = np.linalg.norm(failed - stop, axis=1).min()
        assert np.linalg.norm(stop - base) <= near + 1e-9
        # no farther from the base than planned, and on the way
        share = np.linalg.norm(stop - base) / np.linalg.norm(u - base)
        np.testing.assert_allclose(stop, base + share * (u - base), atol=1e-9)


def test_a_run_of_another_patient_counts_unless_the_own_one_failed_there():
    answered, failed = np.array([[0.5, 0.5], [0.9, 0.9]]), np.array([[0.5, 0.5]])
    u = np.array([0.6, 0.6])
    assert np.array_equal(nearest_answer(u, answered, failed), answered[1])
    assert np.array_equal(nearest_answer(u, answered, failed + 0.2), answered[0])
    assert nearest_answer(u, answered[:1], failed) is None


def test_what_only_a_failing_corner_would_meet_is_out_of_reach():
    """A chance in a region that fails is none: the verdict is that of the plan that may be run."""
    x = np.random.default_rng(1).uniform(0.75, 0.95, (1, N))
    y = 10.0 * np.exp(1.5 * x @ MIX.T)[0]
    patient = Patient("B", {f"y{i}": float(v) for i, v in enumerate(y)}, {})
    fit = ContinuousVito.learn(PROBLEM, give_up=1e-3).personalize(patient, max_runs=60)
    assert fit.stop_reason is StopReason.UNREACHABLE
    assert fit.n_runs <= 30
    power = re.search(r"chance below 1e(-\d+)", fit.note)
    assert power is not None
    assert int(power[1]) <= -3
