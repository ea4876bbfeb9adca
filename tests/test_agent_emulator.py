"""The emulator of the agent with continuous actions, and its plans."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from vitolab.agent import ContinuousVito
from vitolab.agent.covariance import Covariance, posterior
from vitolab.agent.emulator import Emulator
from vitolab.agent.planning import Target, best_plan
from vitolab.exploration import explore
from vitolab.fit import Event
from vitolab.problem import Objective, Parameter, Patient, Problem


def runs(n=40, n_patients=4, seed=0):
    """Two outputs of three inputs; patients differ by a constant."""
    rng = np.random.default_rng(seed)
    a, group = rng.uniform(-1.0, 1.0, (n, 3)), rng.integers(0, n_patients, n)
    smooth = np.column_stack([np.sin(2.0 * a[:, 0]) + a[:, 1], a[:, 2] ** 2 - a[:, 0]])
    return a, group, 10.0 * smooth + rng.normal(size=(n_patients, 2))[group]


@pytest.fixture(scope="module")
def emulator():
    a, group, y = runs()
    return Emulator.given(Covariance.learn(a, group, y), a, group, y)


def test_without_parts_of_patients_it_is_the_process_of_scikit_learn():
    a, group, y = runs()
    none, one = np.zeros(2), np.ones(2)
    length = np.array([[0.7, 1.1, 2.0], [1.5, 0.4, 0.9]])
    covariance = Covariance(none, length, 25.0 * one, 4.0 * one, none, none, 0.01 * one)
    found = Emulator.given(covariance, a, group, y).at(a + 0.1, 9, 3)
    for o in range(2):
        kernel = ConstantKernel(25.0) * RBF(length[o])
        kernel += ConstantKernel(4.0) * DotProduct(1.0) + WhiteKernel(0.01)
        other = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(a, y[:, o])
        mean, deviation = other.predict(a + 0.1, return_std=True)
        np.testing.assert_allclose(found.mean[:, o], mean, rtol=1e-6, atol=1e-8)
        # that of a run to be made, which has noise
        np.testing.assert_allclose(found.variance[:, o] + 0.01, deviation**2, rtol=1e-6)


def test_derivatives_are_those_of_differences(emulator):
    points, h = np.random.default_rng(1).uniform(-1.0, 1.0, (4, 3)), 1e-5
    found = emulator.at(points, 2, 3)
    for i, step in enumerate(h * np.eye(3)):
        more, less = (emulator.at(points + sign * step, 2, 3) for sign in (1, -1))
        difference = (more.mean - less.mean) / (2 * h)
        np.testing.assert_allclose(found.slopes[..., i], difference, rtol=1e-4, atol=1e-5)
        difference = (more.variance - less.variance) / (2 * h)
        np.testing.assert_allclose(found.variance_slopes[..., i], difference, rtol=1e-3, atol=1e-5)


def test_the_gradient_of_the_posterior_is_that_of_differences():
    a, group, y = runs(25)
    loss, centre = posterior(a, group, y[:, 0] / y[:, 0].std(), 0.1)
    rng = np.random.default_rng(2)
    for _ in range(3):
        h = centre + 0.5 * rng.normal(size=len(centre))
        difference = approx_fprime(h, lambda at: loss(at)[0], 1e-6)
        np.testing.assert_allclose(loss(h)[1], difference, rtol=1e-3, atol=1e-3)


def test_runs_one_by_one_or_all_at_once_are_the_same(emulator):
    a, group, y = emulator.a, emulator.group, emulator.y
    grown = Emulator.given(emulator.covariance, a[:-5], group[:-5], y[:-5])
    for i in range(len(a) - 5, len(a)):
        grown = grown.after(a[i], int(group[i]), y[i])
    points = np.random.default_rng(3).uniform(-1.0, 1.0, (6, 3))
    one, other = (e.at(points, 1, 3) for e in (grown, emulator))
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-6)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-3, atol=1e-6)


def test_a_run_corrects_its_own_patient_and_hardly_another(emulator):
    """A patient whose outputs lie far from all others: the next one is not expected to."""
    point = np.array([[0.3, -0.2, 0.5]])
    before = emulator.at(point, 9, 3)
    far = before.mean[0] + 20.0
    after = emulator.after(point[0], 8, far)
    own, other = (after.at(point, group, 3) for group in (8, 9))
    np.testing.assert_allclose(own.mean[0], far, atol=0.2)
    assert (np.abs(other.mean[0] - before.mean[0]) < 0.5 * np.abs(far - before.mean[0])).all()
    assert (own.variance < 0.1 * before.variance).all()
    assert (other.variance > own.variance).all()


def test_a_chance_is_the_share_of_draws_that_meet_every_measurement(linear_problem, emulator):
    target = Target(
        linear_problem,
        replace(emulator, a=emulator.a[:, :2], covariance=of_two(emulator.covariance)),
        9,
        np.empty(0),
        np.array([2.0, 1.0]),
        np.empty((0, 2)),
        np.empty(0),
    )
    u = np.random.default_rng(4).random((5, 2))
    misfits, chance = target.expected(u)
    expected = target.emulator.at(2.0 * u - 1.0, 9, 2)
    np.testing.assert_allclose(misfits, expected.mean - np.array([2.0, 1.0]), atol=1e-9)
    draws = np.random.default_rng(5).normal(size=(200_000, 1, 2))
    drawn = misfits + np.sqrt(expected.variance) * draws
    share = (np.abs(drawn) < 1.0).all(axis=2).mean(axis=0)
    np.testing.assert_allclose(np.exp(chance), share, atol=0.005)


def of_two(covariance):
    """Covariance of the first two inputs alone."""
    return replace(covariance, length=covariance.length[:, :2])


def test_no_plan_ends_where_the_model_was_run_or_failed(linear_problem):
    a, group, y = runs(seed=6)
    covariance = of_two(Covariance.learn(a, group, y))
    found = Emulator.given(covariance, a[:, :2], group, y)
    z, rng = y.mean(axis=0), np.random.default_rng(0)
    nothing = (np.empty((0, 2)), np.empty(0))
    target = Target(linear_problem, found, 9, np.empty(0), z, *nothing)
    starts = [np.full(2, 0.5)]
    free = best_plan(target, starts, np.empty((0, 2)), rng)
    again = best_plan(target, starts, free.u[np.newaxis], rng)
    assert np.abs(again.u - free.u).max() > 1e-3
    wide = replace(target, avoided=free.u[np.newaxis], reach=np.array([0.1]))
    gone_round = best_plan(wide, starts, np.empty((0, 2)), rng)
    assert np.linalg.norm(gone_round.u - free.u) > 0.05


def cubic(x, patient):
    """Far from linear, other for every patient."""
    a, b = x.T
    return np.column_stack([a**3 / 20 + b + patient.data["load"], b - 0.4 * a])


def cubic_problem(simulate=cubic):
    return Problem(
        "cubic",
        "1",
        tuple(Parameter(name, name, "", -5.0, 5.0, 0.0, 0.01) for name in "ab"),
        tuple(Objective(name, name, "", 0.2) for name in ("u", "w")),
        simulate,
    )


def cubic_patients(n=8):
    rng = np.random.default_rng(7)
    patients = []
    for i in range(n):
        patient = Patient(f"C{i}", {"u": 0.0, "w": 0.0}, {"load": float(rng.normal())})
        u, w = cubic(rng.uniform(-4.0, 4.0, (1, 2)), patient)[0]
        patients.append(replace(patient, measurements={"u": float(u), "w": float(w)}))
    return patients


def test_without_walks_every_patient_makes_the_next_one_cheaper():
    problem, patients = cubic_problem(), cubic_patients(10)
    agent, fits = ContinuousVito.learn(problem), []
    for patient in patients:
        fits.append(agent.personalize(patient))
        agent = agent.update([(patient, fits[-1])])
    assert all(fit.solved for fit in fits)
    assert np.array_equal(fits[0].trace.x[0], problem.default)
    assert (fits[0].trace.event[1:10] == Event.RESTART).all()
    assert sum(fit.n_runs for fit in fits[5:]) <= 12


def test_an_agent_is_the_same_in_whatever_portions_it_learned():
    problem, patients = cubic_problem(), cubic_patients(12)
    agent, fits = ContinuousVito.learn(problem), []
    for patient in patients[:11]:
        fits.append((patient, agent.personalize(patient)))
        agent = agent.update(fits[-1:])
    at_once = ContinuousVito.learn(problem).update(fits)
    in_two = ContinuousVito.learn(problem).update(fits[:4]).update(fits[4:])
    runs_of = [a.personalize(patients[11], seed=1).trace for a in (agent, at_once, in_two)]
    for other in runs_of[1:]:
        assert np.array_equal(runs_of[0].x, other.x)
        assert np.array_equal(runs_of[0].y, other.y)
    assert agent == at_once == in_two


def test_walks_and_patients_are_learned_from_together():
    problem, patients = cubic_problem(), cubic_patients()
    walks = explore(problem, patients[:3], n_episodes=5, n_steps=1, seed=0)
    agent = ContinuousVito.learn(problem, walks)
    fit = agent.personalize(patients[3])
    more = agent.update([(patients[3], fit)])
    assert len(more.experience.u) == len(agent.experience.u) + fit.n_runs
    assert len(more.experience.known) == 4
    assert more.personalize(patients[4]).solved


def test_a_jump_of_the_outputs_traps_nobody():
    """A solution seems to lie between two runs, at the jump: there is none, but one elsewhere."""

    def jumping(x, patient):
        y = cubic(x, patient)
        y[:, 1] += np.where(x[:, 0] > 0.0, 6.0, 0.0)
        return y

    problem = cubic_problem(jumping)
    patients = []
    for i, at in enumerate(np.random.default_rng(8).uniform(-4.0, 4.0, (6, 2))):
        load = {"load": 0.1 * i}
        u, w = jumping(at[np.newaxis], Patient(f"J{i}", {}, load))[0]
        patients.append(Patient(f"J{i}", {"u": float(u), "w": float(w)}, load))
    walks = explore(problem, patients, n_episodes=30, n_steps=1, seed=0)
    for patient in patients:
        fit = ContinuousVito.learn(problem, walks.without(patient.name)).personalize(patient)
        assert fit.solved
        assert fit.n_runs <= 30


def test_runs_without_a_logarithm_are_left_out():
    """Walks that may leave the domain reach values that a logarithmic scale does not have."""
    problem = Problem(
        "ratio",
        "1",
        (Parameter("s", "s", "", 0.1, 10.0, 1.0, 0.1, "log"),),
        (Objective("t", "t", "", 0.05),),
        lambda x, patient: np.sqrt(np.abs(x)),
        border="free",
    )
    patients = [Patient(f"R{i}", {"t": 1.0 + 0.2 * i}) for i in range(3)]
    walks = explore(problem, patients, n_episodes=3, n_steps=40, seed=0)
    assert (walks.x[walks.counted] <= 0.0).any()
    agent = ContinuousVito.learn(problem, walks)
    assert len(agent.experience.u) < walks.counted.sum()
    for patient in patients:
        assert agent.personalize(patient).solved


def test_tolerances_are_met_where_squares_would_leave_one_missed():
    """Of five outputs alike, four were measured 0 and one 1.7 ψ: their mean misses the fifth."""
    n = 4
    names = [f"y{i}{j}" for i in range(n) for j in range(5)]
    problem = Problem(
        "fivefold",
        "1",
        tuple(Parameter(f"x{i}", f"x{i}", "", -9.0, 9.0, 5.0, 0.1) for i in range(n)),
        tuple(Objective(name, name, "", 1.0) for name in names),
        lambda x, patient: np.repeat(x, 5, axis=1) + patient.data["load"],
    )
    z = {name: 1.7 if name.endswith("4") else 0.0 for name in names}
    patients = [Patient(f"F{i}", z, {"load": 0.1 * i}) for i in range(4)]
    walks = explore(problem, patients[1:], n_episodes=8, n_steps=1, seed=0)
    fit = ContinuousVito.learn(problem, walks).personalize(patients[0], max_runs=30)
    assert fit.solved
    assert fit.n_runs <= 4
