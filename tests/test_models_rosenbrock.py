import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import rosen

from vitolab.models import rosenbrock


@given(x=st.lists(st.floats(-5, 5), min_size=2, max_size=2))
@settings(deadline=None, max_examples=100)
def test_the_two_terms_make_scipys_function(x):
    patient = rosenbrock.cohort(1)[0]
    patient = type(patient)("one", patient.measurements, {"alpha": 1.0})
    t1, t2 = rosenbrock.problem().simulate(np.array([x]), patient)[0]
    assert t1**2 + 100 * t2**2 == pytest.approx(rosen(x), rel=1e-12, abs=1e-12)


def test_both_terms_vanish_at_the_optimum_only():
    problem = rosenbrock.problem()
    for patient in rosenbrock.cohort():
        x = rosenbrock.optimum(patient)[np.newaxis]
        np.testing.assert_allclose(problem.simulate(x, patient), 0, atol=1e-12)
        assert not problem.is_solved(problem.simulate(x + 0.2, patient)).any()


def test_the_cohort_is_one_fixed_sequence_over_the_papers_range():
    cohort = rosenbrock.cohort(100)
    alphas = np.array([p.data["alpha"] for p in cohort])
    assert (np.abs(alphas) <= 2).all()
    assert [p.data for p in rosenbrock.cohort(20)] == [p.data for p in cohort[:20]]
    # frozen: every stored result speaks of these functions
    np.testing.assert_allclose(alphas[:3], [0.278477, 1.847573, 0.302406], atol=1e-6)


def test_the_paper_s_set_up():
    base, extended = rosenbrock.problem(), rosenbrock.problem(extended=True)
    assert base.step.tolist() == [0.01, 0.01]
    assert base.tolerance.tolist() == [0.05, 0.05]
    assert (base.n_actions, extended.n_actions) == (12, 16)
    assert rosenbrock.grid().shape == (441, 2)
    assert len({tuple(x) for x in rosenbrock.grid()}) == 441


def test_absolute_objectives_lose_the_sign():
    patient = rosenbrock.cohort(1)[0]
    x = np.random.default_rng(0).uniform(-5, 5, (20, 2))
    signed = rosenbrock.problem().simulate(x, patient)
    absolute = rosenbrock.problem(absolute=True).simulate(x, patient)
    assert np.array_equal(absolute, np.abs(signed))
    assert rosenbrock.problem().version != rosenbrock.problem(absolute=True).version
