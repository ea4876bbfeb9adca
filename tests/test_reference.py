from dataclasses import replace

import numpy as np
import pytest

from vitolab.problem import Patient
from vitolab.reference import LeastSquares, NelderMead
from vitolab.trajectories import Event, StopReason

METHODS = {
    "nelder-mead": NelderMead,
    "nelder-mead-unweighted": lambda p: NelderMead(p, weighted=False),
    "nelder-mead-wide": lambda p: NelderMead(p, width=0.1),
    "least-squares": LeastSquares,
    "least-squares-multistart": lambda p: LeastSquares(p, multistart=True),
}


def counted(problem):
    """The problem, and a list that grows by one for each forward run."""
    calls = []

    def simulate(x, patient):
        calls.extend(x)
        return problem.simulate(x, patient)

    return replace(problem, simulate=simulate), calls


@pytest.mark.parametrize("method", METHODS)
def test_every_forward_run_is_counted(linear_problem, linear_patients, method):
    problem, calls = counted(linear_problem)
    fit = METHODS[method](problem).personalize(linear_patients[0], max_runs=100, seed=4)
    assert fit.n_runs == len(calls) == len(fit.trace.x)
    assert np.array_equal(fit.trace.x, calls)


@pytest.mark.parametrize("method", METHODS)
def test_a_linear_problem_is_solved_and_the_first_success_ends_it(
    linear_problem, linear_patients, method
):
    # from the middle: a simplex that is pressed against a border may collapse there
    start = np.array([[0.5, -0.5]])
    for patient in linear_patients:
        fit = METHODS[method](linear_problem).personalize_from(patient, start, max_runs=200)[0]
        solved = linear_problem.is_solved(fit.trace.misfits)
        assert fit.solved
        assert fit.stop_reason is StopReason.SOLVED
        assert solved[-1]
        assert not solved[:-1].any()
        assert np.array_equal(fit.x, fit.trace.x[-1])


def test_least_squares_needs_few_steps_on_a_linear_problem(linear_problem, linear_patients):
    # a step costs two differences and the run it leads to, after the run at the start
    for patient in linear_patients:
        assert LeastSquares(linear_problem).personalize(patient, max_runs=100).n_runs <= 1 + 3 * 3


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_kept_to_the_run(linear_problem, linear_patients, method):
    far = Patient("far", {"u": 100.0, "w": 100.0}, {"offset": 0.0})
    for max_runs in (1, 7, 40):
        problem, calls = counted(linear_problem)
        fit = METHODS[method](problem).personalize(far, max_runs=max_runs)
        assert len(calls) <= max_runs
        assert not fit.solved
        if fit.stop_reason is StopReason.BUDGET:
            assert fit.n_runs == max_runs


def test_one_seed_is_one_start_for_all_methods_and_patients(linear_problem, linear_patients):
    starts = [
        METHODS[m](linear_problem).personalize(patient, max_runs=1, seed=9).x
        for m in METHODS
        for patient in linear_patients[:3]
    ]
    for start in starts:
        np.testing.assert_allclose(start, starts[0], atol=1e-12)


def test_the_first_simplex_has_the_edges_it_says(linear_problem, linear_patients):
    """As scipy's own, where nothing is scaled or bounded: 5 % of each value."""
    start = np.array([[2.0, -4.0]])
    far = Patient("far", {"u": 100.0, "w": 100.0}, {"offset": 0.0})
    ours = NelderMead(linear_problem).personalize_from(far, start, max_runs=3)[0].trace.x
    np.testing.assert_allclose(ours, [[2.0, -4.0], [2.1, -4.0], [2.0, -4.2]])
    wide = NelderMead(linear_problem, width=0.1)
    xs = wide.personalize_from(far, np.array([[2.0, 4.5]]), max_runs=3)[0].trace.x
    # a tenth of the domain's ten units; the second would leave it and points inwards
    np.testing.assert_allclose(xs, [[2.0, 4.5], [3.0, 4.5], [2.0, 3.5]])


def test_given_starts_are_the_first_run(linear_problem, linear_patients):
    starts = np.array([[1.0, 2.0], [-4.0, 4.5], [5.0, 5.0]])
    for make in METHODS.values():
        fits = make(linear_problem).personalize_from(linear_patients[0], starts, max_runs=20)
        for start, fit in zip(starts, fits, strict=True):
            np.testing.assert_allclose(fit.trace.x[0], start, atol=1e-9)
            assert fit.trace.event[0] == Event.START


def failing(problem):
    def simulate(x, patient):
        y = problem.simulate(x, patient)
        y[x[:, 0] > 1.0] = np.nan
        return y

    return replace(problem, simulate=simulate)


def test_failed_runs_are_counted_and_never_a_crash(linear_problem, linear_patients):
    problem = failing(linear_problem)
    start = np.array([[3.0, 0.0]])
    patient = Patient("left", {"u": -2.0, "w": 1.0}, {"offset": 0.0})
    single = LeastSquares(problem).personalize_from(patient, start, max_runs=50)[0]
    assert single.stop_reason is StopReason.FAILED
    assert single.n_runs == 1
    assert np.isnan(single.y).all()
    multi = LeastSquares(problem, multistart=True).personalize_from(patient, start, max_runs=50)[0]
    assert multi.solved
    assert multi.n_restarts >= 1
    simplex = NelderMead(problem).personalize_from(patient, start, max_runs=100)[0]
    assert simplex.n_runs > 1
    assert np.isnan(simplex.trace.y[0]).all()


def test_runs_stay_in_the_domain(linear_problem, linear_patients):
    far = Patient("far", {"u": 100.0, "w": -100.0}, {"offset": 0.0})
    for make in METHODS.values():
        x = make(linear_problem).personalize(far, max_runs=60).trace.x
        assert (x >= linear_problem.lower).all()
        assert (x <= linear_problem.upper).all()


def test_a_simplex_ends_before_its_budget_when_it_has_collapsed(linear_problem):
    far = Patient("far", {"u": 100.0, "w": 100.0}, {"offset": 0.0})
    fit = NelderMead(linear_problem).personalize(far, max_runs=5000)
    assert fit.stop_reason is StopReason.STALLED
    assert "own tolerance" in fit.stop_reason.sentence


def test_no_budget_is_refused(linear_problem, linear_patients):
    with pytest.raises(ValueError, match="max_runs is 0"):
        NelderMead(linear_problem).personalize(linear_patients[0], max_runs=0)
