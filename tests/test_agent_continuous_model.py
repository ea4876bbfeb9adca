"""The agent with continuous actions: what it learns of the model, and its coordinates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from vitolab.agent.deviation import Deviation
from vitolab.agent.experience import Experience, basis
from vitolab.agent.scale import Scale

from vitolab.agent import ContinuousVito
from vitolab.agent.bounded import bounded_step
from vitolab.exploration import explore
from vitolab.problem import Objective, Parameter, Patient, Problem


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
    for patient in linear_patients:
        walks = train.without(patient.name)
        assert ContinuousVito.learn(exact, walks).personalize(patient).n_runs == 1
    walks = replace(train.without("P1"), features=None)
    assert ContinuousVito.learn(blind, walks).personalize(linear_patients[1]).n_runs > 1


def test_a_patient_without_the_feature_counts_as_the_mean(linear_problem, walks):
    told = replace(linear_problem, features=("offset",))
    features = np.array([[1.0], [3.0], *[[2.0]] * 7, [np.nan]])
    experience = Experience.learn(told, replace(walks, features=features))
    assert experience.centre == pytest.approx(2.0)
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


def test_the_common_model_of_a_plane_is_the_plane(linear_problem):
    """Patients that do not differ: the linear map, but for the ridge, to a tenth of its slopes."""
    alike = [Patient(f"P{i}", {"u": 0.0, "w": 0.0}, {"offset": 0.0}) for i in range(3)]
    walks = explore(linear_problem, alike, n_episodes=60, n_steps=1, seed=1)
    experience = Experience.learn(linear_problem, walks)
    u = np.random.default_rng(2).random((300, 2))
    y, jacobian = experience.model(u, np.empty((300, 0)))
    x = Scale(linear_problem).parameters(u)
    np.testing.assert_allclose(y, linear_problem.simulate(x, alike[0]) / 0.5, atol=0.3)
    expected = np.array([[1.0, 0.4], [-0.3, 0.8]]) * 10.0 / 0.5
    np.testing.assert_allclose(
        jacobian, np.broadcast_to(expected, jacobian.shape), rtol=0.1, atol=0.2
    )
    alone, _ = experience.model(u[7:8], np.empty((1, 0)))
    assert np.array_equal(alone[0], y[7])


def test_a_deviation_passes_through_the_runs_made_and_has_the_slopes_it_tells():
    rng = np.random.default_rng(0)
    variation = rng.normal(size=(3, 5, 2))
    u = rng.random((6, 2))
    found = np.einsum("nb,dbo,d->no", basis(u), variation, rng.normal(size=3)) + np.sin(2.0 * u)
    deviation = Deviation.expect(variation, u, found)
    for point, value in zip(u, found, strict=True):
        np.testing.assert_allclose(deviation.at(point)[0], value, atol=0.02)
    point, h = np.array([0.3, 0.6]), 1e-6
    _, slopes = deviation.at(point)
    for i, step in enumerate(h * np.eye(2)):
        difference = deviation.at(point + step)[0] - deviation.at(point - step)[0]
        np.testing.assert_allclose(slopes[:, i], difference / (2 * h), rtol=1e-5, atol=1e-7)


def test_nothing_is_expected_before_the_first_run():
    variation = np.ones((1, 5, 2))
    value, slopes = Deviation.expect(variation, np.empty((0, 2)), np.empty((0, 2))).at(np.ones(2))
    assert not value.any()
    assert not slopes.any()


def test_one_run_tells_what_the_training_patients_have_in_common_with_this_one():
    """Patients differ along one direction: a run at one end of Ω tells the other end."""
    direction = np.array([[4.0, 2.0, -1.0, 0.0, 1.0]]).T
    u = np.array([[0.1, 0.2]])
    truth = 3.0 * basis(u) @ direction
    known = Deviation.expect(5.0 * direction[np.newaxis], u, truth)
    unknown = Deviation.expect(np.empty((0, 5, 1)), u, truth)
    far = np.array([0.9, 0.8])
    expected = 3.0 * basis(far[np.newaxis])[0] @ direction
    assert abs(known.at(far)[0] - expected) < 0.05 * abs(expected)
    assert abs(unknown.at(far)[0] - expected) > 0.2 * abs(expected)


def test_how_patients_vary_is_learned_and_taken_out(linear_problem, linear_patients, walks):
    """An offset per patient, in both objectives alike: one direction has nearly all of it."""
    experience = Experience.learn(linear_problem, walks)
    size = np.sqrt((experience.variation**2).sum(axis=(1, 2)))
    assert size[0] > 3 * size[1]
    constant = experience.variation[0, 0] / np.linalg.norm(experience.variation[0])
    np.testing.assert_allclose(np.abs(constant), np.sqrt(0.5), atol=0.05)
    plain = linear_problem.simulate(walks.x[walks.counted], Patient("Z", {}, {"offset": 0.0})) / 0.5
    before = np.std(walks.y[walks.counted] / 0.5 - plain)
    assert np.std(experience.y - plain) < 0.3 * before


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
