"""The agent with continuous actions: what it learns of the model, and its coordinates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from vitolab.agent import ContinuousVito
from vitolab.agent.bounded import bounded_step
from vitolab.experience import Experience
from vitolab.exploration import explore
from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.scale import Scale


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients):
    return explore(linear_problem, linear_patients, n_episodes=10, n_steps=1, seed=0)


def test_a_feature_that_explains_the_patients_saves_the_run_that_tells_them_apart(
    linear_problem, linear_patients
):
    """The offset is all in which patients differ: who knows it needs one run."""
    told = replace(linear_problem, features=("offset",))
    train = explore(told, linear_patients, n_episodes=10, n_steps=1, seed=0)
    exact = replace(told, objectives=tuple(replace(o, tolerance=0.1) for o in told.objectives))
    blind = replace(exact, features=())
    n_runs = []
    for patient in linear_patients:
        walks = train.without(patient.name)
        n_runs.append(ContinuousVito.learn(exact, walks).personalize(patient).n_runs)
    assert sum(n_runs) <= len(linear_patients) + 1
    walks = replace(train.without("P1"), features=None)
    assert ContinuousVito.learn(blind, walks).personalize(linear_patients[1]).n_runs > 1


def test_a_patient_without_the_feature_counts_as_the_mean(linear_problem, walks):
    told = replace(linear_problem, features=("offset",))
    features = np.array([[1.0], [3.0], *[[2.0]] * 7, [np.nan]])
    experience = Experience.learn(told, replace(walks, features=features))
    assert experience.features.centre == pytest.approx(2.0)
    assert experience.featured(Patient("X", {}, {})) == pytest.approx(0.0)
    assert experience.featured(Patient("X", {}, {"offset": 2.0})) == pytest.approx(0.0)
    assert experience.featured(Patient("X", {}, {"offset": "much"})) == pytest.approx(0.0)


def ratio_problem(scale):
    return Problem(
        "ratio",
        "1",
        (Parameter("s", "s", "mm/s", 10.0, 10_000.0, 100.0, 1.0, scale),),
        (Objective("t", "t", "ms", 0.05),),
        lambda x, patient: np.log(x),
    )


def test_a_parameter_that_acts_by_ratio_is_thought_of_in_its_logarithm():
    patients = [Patient(f"R{i}", {"t": np.log(20.0 * 3**i)}) for i in range(6)]
    runs = {}
    for scale in ("log", "linear"):
        problem = ratio_problem(scale)
        # the same runs for both
        walks = explore(ratio_problem("linear"), patients, n_episodes=3, n_steps=1, seed=0)
        runs[scale] = [
            ContinuousVito.learn(problem, walks.without(p.name)).personalize(p).n_runs
            for p in patients
        ]
    assert max(runs["log"]) <= 2
    assert sum(runs["linear"]) > 2 * sum(runs["log"])


def test_coordinates_are_the_unit_cube_of_the_domain():
    scale = Scale(ratio_problem("log"))
    x = np.array([[10.0], [np.sqrt(10.0 * 10_000.0)], [10_000.0]])
    np.testing.assert_allclose(scale.unit(x), [[0.0], [0.5], [1.0]], atol=1e-15)
    u = np.random.default_rng(0).random((50, 1))
    np.testing.assert_allclose(scale.unit(scale.parameters(u)), u, atol=1e-12)
    # whole numbers as bounds stay whole in the middle too
    whole = replace(ratio_problem("log").parameters[0], lower=200, upper=1000, default=500)
    scale = Scale(replace(ratio_problem("log"), parameters=(whole,)))
    assert scale.parameters(np.array([[1.0]])) == pytest.approx(1000.0)


def test_angles_are_followed_across_their_seam():
    """The direction turns twice over Ω; the target lies beyond ±180°."""

    def direction(x, patient):
        return np.degrees(np.angle(np.exp(1j * 2.0 * np.pi * x)))

    problem = Problem(
        "turn",
        "1",
        (Parameter("t", "t", "", 0.0, 1.0, 0.5, 0.01),),
        (Objective("a", "a", "°", 2.0, "angle"),),
        direction,
    )
    patients = [Patient(f"A{i}", {"a": a}) for i, a in enumerate((179.5, -178.0, 175.0, 0.0))]
    walks = explore(problem, patients, n_episodes=20, n_steps=1, seed=0)
    for patient in patients:
        fit = ContinuousVito.learn(problem, walks.without(patient.name)).personalize(patient)
        assert fit.solved
        assert fit.n_runs <= 2


def test_the_bounded_step_is_that_of_scipy():
    rng = np.random.default_rng(0)
    n_bound = 0
    for _ in range(300):
        m, n = rng.integers(1, 9, size=2)
        jacobian, c = rng.normal(size=(m, n)) * 10 ** rng.uniform(-1, 2), rng.normal(size=m) * 10
        lower, upper = -rng.random(n), rng.random(n)
        anchor, damping = rng.uniform(lower, upper), 10 ** rng.uniform(-3, 2)
        step = bounded_step(jacobian, c, damping, anchor, lower, upper)
        root = np.sqrt(damping)
        stacked = np.concatenate([jacobian, root * np.eye(n)])
        right = np.concatenate([-c, root * anchor])
        other = lsq_linear(stacked, right, bounds=(lower, upper), method="bvls").x
        assert ((step >= lower) & (step <= upper)).all()
        size = [float(np.sum((stacked @ d - right) ** 2)) for d in (step, other)]
        assert size[0] <= size[1] * (1 + 1e-9) + 1e-12
        n_bound += bool((step == lower).any() or (step == upper).any())
    assert 50 < n_bound < 300
