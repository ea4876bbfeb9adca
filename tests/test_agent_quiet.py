"""Methods that learn do so without a warning: a number that overflows is a step that went wrong."""

import warnings

import numpy as np
import pytest

from vitolab.agent.covariance import FARTHEST, Covariance, posterior
from vitolab.experience import Experience
from vitolab.exploration import explore
from vitolab.failures import CannotRun
from vitolab.fit import StopReason
from vitolab.methods import AGENTS, METHODS, Settings, learn
from vitolab.models import circulation, rosenbrock
from vitolab.validation.continuing import Continuing
from vitolab.validation.orders import order_of_patients
from vitolab.validation.parts import child_seed


@pytest.fixture(autouse=True)
def strict():
    """Any warning is an error; only what is too small to matter may be rounded to zero."""
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        yield


@pytest.fixture(scope="module", params=["linear", "rosenbrock", "circulation"])
def ordinary(request, linear_problem, linear_patients):
    """A problem and patients, of whom the last one is held out."""
    if request.param == "linear":
        return linear_problem, linear_patients
    if request.param == "rosenbrock":
        return rosenbrock.problem(), list(rosenbrock.cohort(8))
    return circulation.problem("3p"), list(circulation.cohort().evaluation)[:8]


@pytest.mark.parametrize("name", AGENTS)
def test_learning_and_acting_on_it_raise_no_warning(name, ordinary):
    try:
        METHODS[name].check()
    except CannotRun as missing:
        pytest.skip(str(missing))
    problem, patients = ordinary
    walks = explore(problem, patients[:-1], n_episodes=2, n_steps=60, seed=0)
    agent = learn([name], problem, walks, 0, Settings(n_states=20))[name]
    fit = agent.personalize(patients[-1], max_runs=30, seed=0)
    assert np.isfinite(fit.trace.y).all()


def test_learning_from_nothing_raises_no_warning(ordinary):
    problem, patients = ordinary
    method = Continuing(problem, "vito-continuous", Experience.none(problem))
    fits = [fit for fit, _ in method.one_by_one(patients, max_runs=40)]
    assert not any(fit.stop_reason is StopReason.ERROR for fit in fits)


def test_learning_twelve_parameters_from_nothing_raises_no_warning():
    """An order in which the optimisation of the covariances went far."""
    problem, order = circulation.problem("12p"), 2
    patients = order_of_patients(circulation.cohort().first(48), order)[:12]
    nothing, seed = Experience.none(problem), child_seed(0, "order", order)
    method = Continuing(problem, "vito-continuous", nothing, seed=seed)
    assert all(fit.solved for fit, _ in method.one_by_one(patients))


def linear_runs(seed):
    """Runs of a linear model of one to four parameters, of up to 100,000 tolerances."""
    rng = np.random.default_rng(seed)
    d, n, n_patients = (int(rng.integers(*limits)) for limits in ((1, 5), (3, 40), (1, 9)))
    a, group = rng.uniform(-1.0, 1.0, (n, d)), np.sort(rng.integers(0, n_patients, n))
    y = 10.0 ** rng.uniform(0.0, 5.0) * (
        a @ rng.normal(size=d) + rng.normal(size=n_patients)[group]
    )
    return a, group, y[:, np.newaxis]


@pytest.mark.parametrize("first", [300, 350, 400])  # the optimisation went far for 338 and 405
def test_covariances_of_a_linear_model_overflow_nowhere(first):
    for seed in range(first, first + 50):
        covariance = Covariance.learn(*linear_runs(seed))
        for each in vars(covariance).values():
            assert np.isfinite(each).all()


def test_the_posterior_is_finite_and_its_gradient_right_however_far_away():
    a, group, y = linear_runs(1)
    loss, centre = posterior(a, group, y[:, 0] / y.std(), 0.1)
    near = np.full(len(centre), 0.1)
    inside = loss(centre + near)
    for i in range(len(centre)):
        for far in (-1e4, 1e4):
            step = near.copy()
            step[i] = far
            value, slope = loss(centre + step)
            assert np.isfinite(value)
            assert np.isfinite(slope).all()
            assert value > inside[0]
    step = near.copy()
    step[-1] = 2.0 * FARTHEST  # a spread of a length is 1
    h, tiny = centre + step, np.zeros(len(centre))
    tiny[-1] = 1e-4
    difference = (loss(h + tiny)[0] - loss(h - tiny)[0]) / 2e-4
    np.testing.assert_allclose(loss(h)[1][-1], difference, rtol=1e-6)
