"""Opponents that own the same runs: what each learns, and how each goes on from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analytic import linear
from extras import needs_sbi

from vitolab.experience import Experience
from vitolab.exploration import explore
from vitolab.fit import Event, StopReason
from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.reference import opponents
from vitolab.reference.opponents.correlation import _pairs
from vitolab.trajectories import Trajectories

CLASSES = {
    "least-squares-nearest": opponents.NearestLeastSquares,
    "quadratic": opponents.Quadratic,
    "gp-emulator": opponents.Gaussian,
    "correlation": opponents.Correlation,
    "npe": opponents.NeuralPosterior,
}
EMULATORS = [opponents.Quadratic, opponents.Gaussian]
each = pytest.mark.parametrize(
    "learn",
    [
        pytest.param(kind.learn, id=name, marks=[needs_sbi] if name == "npe" else [])
        for name, kind in CLASSES.items()
    ],
)
#: Out of reach of the linear problem.
FAR = Patient("far", {"u": 90.0, "w": -90.0}, {"offset": 0.0})


def curved(x, patient):
    """Quadratic in parameters and offset."""
    a, b = x.T
    t = patient.data["offset"]
    return np.stack([a + 0.05 * b**2 + t, b - 0.04 * a * b + 0.03 * a**2 + a * t + t**2], axis=1)


def smooth(x, patient):
    """Neither linear nor quadratic."""
    a, b = x.T
    return np.stack([3.0 * np.sin(a / 3.0) + b, 4.0 * np.exp(b / 6.0) + a], axis=1)


def turning(x, patient):
    """An angle that goes round as the first parameter does, and the second parameter."""
    a, b = x.T
    return np.stack([180.0 - np.mod(180.0 - (72.0 * a + 5.0 * b), 360.0), b], axis=1)


def measured(problem: Problem, *truths: tuple[float, float], offset=0.3) -> list[Patient]:
    """Patients of known parameters; the first offset is new, others alternate."""
    found = []
    for i, truth in enumerate(truths):
        blank = Patient(f"Q{i}", {}, {"offset": offset + 0.1 * i})
        y = problem.simulate(np.array([truth]), blank)[0]
        z = {o.name: float(v) for o, v in zip(problem.objectives, y, strict=True)}
        found.append(replace(blank, measurements=z))
    return found


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients) -> Trajectories:
    return explore(linear_problem, linear_patients[1:], n_episodes=6, n_steps=1, seed=1)


@pytest.fixture(scope="module")
def curve(linear_problem, linear_patients) -> tuple[Problem, Trajectories]:
    problem = replace(linear_problem, name="curved", simulate=curved, features=("offset",))
    return problem, explore(problem, linear_patients, n_episodes=10, n_steps=1, seed=2)


def test_a_quadratic_model_is_solved_by_the_first_run(curve):
    problem, walks = curve
    agent = opponents.Quadratic.learn(problem, walks)
    for patient in measured(problem, (2.0, -1.0), (-3.0, 2.5), (0.5, 4.0)):
        fit = agent.personalize(patient)
        assert (fit.solved, fit.n_runs) == (True, 1)
        # and the emulator is the model
        np.testing.assert_allclose(fit.trace.expected, fit.trace.misfits, atol=1e-3)


def test_a_smooth_model_is_solved_in_few_runs_by_gaussian_processes(
    linear_problem, linear_patients
):
    problem = replace(linear_problem, name="smooth", simulate=smooth)
    walks = explore(problem, linear_patients, n_episodes=6, n_steps=1, seed=3)
    patients = measured(problem, (2.0, -1.0), (-3.0, 2.5), (0.5, 4.0), (-1.0, -4.0))
    runs = [opponents.Gaussian.learn(problem, walks).personalize(p).n_runs for p in patients]
    assert max(runs) <= 2


@pytest.mark.parametrize("kind", EMULATORS)
def test_slopes_of_an_emulator_are_its_differences(kind, linear_problem, linear_patients):
    angle = Objective("u", "u", "°", 3.0, kind="angle")
    problem = replace(
        linear_problem,
        name="turning",
        simulate=turning,
        objectives=(angle, linear_problem.objectives[1]),
        features=("offset",),
    )
    walks = explore(problem, linear_patients, n_episodes=6, n_steps=1, seed=4)
    at = kind.learn(problem, walks).emulator(linear_patients[0])
    u = np.array([0.45, 0.55])
    _, slopes = at(u)
    steps = 1e-5 * np.eye(2)
    differences = np.array([(at(u + d)[0] - at(u - d)[0]) / 2e-5 for d in steps]).T
    np.testing.assert_allclose(slopes, differences, rtol=1e-3, atol=0.01)


@each
def test_an_angle_is_met_across_its_jump(learn, linear_problem, linear_patients):
    """Measured at ±180°, which a whole turn of the first parameter passes."""
    angle = Objective("u", "u", "°", 3.0, kind="angle")
    objectives = (angle, linear_problem.objectives[1])
    problem = replace(linear_problem, name="turn", simulate=turning, objectives=objectives)
    walks = explore(problem, linear_patients, n_episodes=20, n_steps=1, seed=5)
    patients = measured(problem, (2.49, 0.3), (2.51, 0.3), (-2.5, -1.0))
    agent = learn(problem, walks)
    assert all(agent.personalize(patient, max_runs=60).solved for patient in patients)


def test_gaussian_processes_of_an_angle_have_no_jump(linear_problem, linear_patients):
    """Two parameters on either side of ±180° are emulated alike."""
    angle = Objective("u", "u", "°", 3.0, kind="angle")
    objectives = (angle, linear_problem.objectives[1])
    problem = replace(linear_problem, name="turn", simulate=turning, objectives=objectives)
    walks = explore(problem, linear_patients, n_episodes=20, n_steps=1, seed=5)
    at = opponents.Gaussian.learn(problem, walks).emulator(linear_patients[0])
    x = np.stack([np.linspace(-5.0, 5.0, 41), np.zeros(41)], axis=1)
    psi = problem.tolerance
    y = np.array([at((row + 5.0) / 10.0)[0] for row in x]) * psi
    away = problem.misfit(y, turning(x, linear_patients[0]))[:, 0]
    assert np.abs(away).max() < 10.0


def test_least_squares_start_at_the_nearest_stored_run_and_count_differences(
    linear_problem, linear_patients, walks
):
    calls = []

    def simulate(x, patient):
        calls.extend(x)
        return linear(x, patient)

    problem = replace(linear_problem, simulate=simulate)
    patient = linear_patients[0]
    agent = opponents.NearestLeastSquares.learn(problem, walks)
    calls.clear()
    fit = agent.personalize(patient, max_runs=40)
    away = ((walks.y - problem.measured(patient)) / problem.tolerance) ** 2
    nearest = walks.x.reshape(-1, 2)[away.sum(axis=-1).argmin()]
    np.testing.assert_allclose(fit.trace.x[0], nearest, atol=1e-12)
    assert fit.solved
    assert fit.n_runs == len(calls)
    # one difference for each parameter, and then the step
    moved = np.abs(fit.trace.x[1:3] - fit.trace.x[0]) / 10.0
    assert (np.sort(moved, axis=1)[:, 0] == 0.0).all()
    assert (moved.max(axis=1) <= 2.01e-3).all()


def test_least_squares_go_on_from_runs_that_are_apart_and_then_anywhere(linear_problem, walks):
    agent = opponents.NearestLeastSquares.learn(linear_problem, walks)
    fit = agent.personalize(FAR, max_runs=400)
    starts = fit.trace.x[fit.trace.event != Event.STEP]
    assert fit.stop_reason is StopReason.BUDGET
    assert fit.n_runs == 400
    stored = walks.x.reshape(-1, 2)
    is_stored = [np.abs(stored - start).max(axis=1).min() < 1e-6 for start in starts]
    n = sum(is_stored)
    assert 1 < n <= 12
    assert is_stored == [True] * n + [False] * (len(starts) - n)
    kept = starts[:n] / 10.0
    assert all(np.abs(kept[:i] - kept[i]).max(axis=1).min() > 0.15 for i in range(1, n))


def test_of_runs_that_answered_alike_the_one_of_alike_features_is_nearer(
    linear_problem, linear_patients
):
    """The offset tells two patients apart, who answered the same elsewhere."""
    problem = replace(linear_problem, features=("offset",))
    x = np.array([[[0.0, 0.0], [1.0, 1.0]], [[2.0, 2.0], [3.0, 3.0]]])
    y = np.array([[[0.0, 0.0], [9.0, 9.0]], [[0.0, 0.0], [9.0, 9.0]]])
    step, whose = np.zeros((2, 1), dtype=int), np.arange(2)
    features = np.array([[-1.0], [1.0]])
    walks = Trajectories(("A", "B"), np.zeros((2, 2)), whose, x, y, step, whose * 0 + 1, features)
    stored = Experience.learn(problem, walks)
    for offset, expected in ((-1.0, 0.5), (1.0, 0.7)):
        patient = Patient("P", {"u": 0.0, "w": 0.0}, {"offset": offset})
        np.testing.assert_allclose(next(stored.near(patient)), expected)


def test_correlations_pair_the_largest_first():
    weight = np.array([[0.1, 0.9], [0.8, 0.95], [0.3, 0.2]])
    # the first parameter is left when both outputs are paired, and takes the better of them
    assert list(_pairs(weight)) == [(1, 1), (2, 0), (0, 1)]


def test_correlations_of_a_diagonal_model_lead_straight_to_the_solution(linear_problem):
    """Each parameter has its own output, of slope 2 and −3: a regression gives the inverse."""

    def diagonal(x, patient):
        return x * [2.0, -3.0]

    problem = replace(linear_problem, name="diagonal", simulate=diagonal)
    patients = measured(problem, (1.0, 2.0), (-2.0, 0.5), (3.0, -3.0))
    walks = explore(problem, patients[1:], n_episodes=300, n_steps=1, seed=6)
    agent = opponents.Correlation.learn(problem, walks)
    np.testing.assert_allclose(np.abs(np.diag(agent.correlation)), 1.0)
    np.testing.assert_allclose(np.diag(agent.slope), [0.1 / 4.0, -0.1 / 6.0], rtol=1e-9)
    fit = agent.personalize_from(patients[0], np.array([[-4.0, -4.0]]))[0]
    assert fit.solved
    assert fit.n_runs <= 4  # parameters are uncorrelated but for the draw


@each
def test_every_run_is_counted_within_the_budget_and_within_the_domain(learn, linear_problem, walks):
    calls = []

    def simulate(x, patient):
        calls.extend(x)
        return linear(x, patient)

    agent = learn(replace(linear_problem, simulate=simulate), walks)
    calls.clear()
    for max_runs in (1, 30):
        fit = agent.personalize(FAR, max_runs=max_runs)
        assert (fit.n_runs, fit.stop_reason) == (max_runs, StopReason.BUDGET)
        np.testing.assert_array_equal(calls, fit.trace.x)
        assert (np.abs(fit.trace.x) <= 5.0).all()
        calls.clear()
    with pytest.raises(ValueError, match="max_runs is 0, expected at least 1"):
        agent.personalize(FAR, max_runs=0)


@each
def test_failed_runs_are_data(learn, obstructed_problem, obstructed_patients):
    """Among those stored they are left out; of the patient they count and are gone round."""
    train = obstructed_patients[1:9]
    walks = explore(obstructed_problem, train, n_episodes=12, n_steps=1, seed=7)
    assert not np.isfinite(walks.y).all()
    agent = learn(obstructed_problem, walks)
    assert np.isfinite(agent.stored.y).all()
    assert len(agent.stored.u) == walks.counted.sum()
    start = np.array([[0.0, 0.0]])  # in the middle of what fails
    fit = agent.personalize_from(obstructed_patients[0], start, max_runs=60)[0]
    np.testing.assert_array_equal(fit.trace.x[:1], start)
    assert fit.n_failed >= 1
    assert fit.solved
    nothing = replace(walks, y=np.full_like(walks.y, np.nan))
    with pytest.raises(ValueError, match="'disc': none of the"):
        learn(obstructed_problem, nothing)


@each
def test_the_same_seed_gives_the_same_bits(learn, linear_problem, linear_patients, walks):
    one, two = learn(linear_problem, walks), learn(linear_problem, walks)
    assert one == two
    for patient in (linear_patients[0], FAR):
        fits = [agent.personalize(patient, max_runs=25, seed=3) for agent in (one, two)]
        np.testing.assert_array_equal(fits[0].trace.x, fits[1].trace.x)
    starts = np.array([[1.0, 2.0], [-4.0, 3.0]])
    both = one.personalize_from(FAR, starts, max_runs=25)
    for i, fit in enumerate(both):
        alone = one.personalize_from(FAR, starts[i : i + 1], max_runs=25)[0]
        np.testing.assert_array_equal(fit.trace.x, alone.trace.x)


@each
def test_a_seed_is_never_taken_for_a_number_of_states(learn, linear_problem, walks):
    with pytest.raises(TypeError, match="positional"):
        learn(linear_problem, walks, 600)
    assert learn(linear_problem, walks, seed=0) == learn(linear_problem, walks)


@each
def test_a_parameter_that_acts_by_ratio_is_moved_by_ratio(learn):
    """What is solved does not depend on whether the user takes the logarithm."""
    objective = (Objective("y", "y", "", 0.01),)

    def by_ratio(x, patient):
        return np.log10(x)

    def by_difference(x, patient):
        return x

    runs = []
    for scale, lower, upper, simulate in (
        ("log", 1e-3, 1e3, by_ratio),
        ("linear", -3.0, 3.0, by_difference),
    ):
        middle = 1.0 if scale == "log" else 0.0
        parameter = Parameter("k", "k", "", lower, upper, middle, 0.001, scale)
        problem = Problem("ratio", "1", (parameter,), objective, simulate)
        u = np.linspace(0.05, 0.95, 10)
        x = 10.0 ** (6.0 * u - 3.0) if scale == "log" else 6.0 * u - 3.0
        x = np.stack([x, x], axis=1)[..., np.newaxis]
        whose = np.repeat(np.arange(2), 5)
        one = np.ones(10, dtype=int)
        y = np.stack([simulate(each, None) for each in x])
        walks = Trajectories(
            ("A", "B"), np.zeros((2, 1)), whose, x, y, np.zeros((10, 1), dtype=int), one
        )
        fit = learn(problem, walks).personalize(Patient("P", {"y": 1.234}), max_runs=30)
        assert fit.solved
        runs.append(fit.n_runs)
    assert runs[0] == runs[1]
