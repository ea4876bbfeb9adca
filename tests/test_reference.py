from dataclasses import replace

import nlopt
import numpy as np
import pytest

from vitolab.fit import Event, StopReason
from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.reference import (
    BobyqaCascade,
    BobyqaSimple,
    LeastSquares,
    NelderMead,
    Stage,
    bobyqa,
)

LINEAR_STAGES = (Stage(("a",), "u", 15), Stage(("b",), "w", 15))
METHODS = {
    "nelder-mead": NelderMead,
    "nelder-mead-unweighted": lambda p: NelderMead(p, weighted=False),
    "nelder-mead-wide": lambda p: NelderMead(p, width=0.1),
    "least-squares": LeastSquares,
    "least-squares-multistart": lambda p: LeastSquares(p, multistart=True),
    "bobyqa-simple": BobyqaSimple,
    "bobyqa-cascade": lambda p: BobyqaCascade(p, LINEAR_STAGES),
}
KEEP_THEIR_START = [name for name in METHODS if not name.startswith("bobyqa")]


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
    # a seed whose start is far enough from all borders for BOBYQA
    starts = [
        METHODS[m](linear_problem).personalize(patient, max_runs=1, seed=6).x
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
    for name in KEEP_THEIR_START:
        fits = METHODS[name](linear_problem).personalize_from(
            linear_patients[0], starts, max_runs=20
        )
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
    for name in ("nelder-mead", "bobyqa-simple", "bobyqa-cascade"):
        fit = METHODS[name](problem).personalize_from(patient, start, max_runs=100)[0]
        assert fit.n_runs > 1
        assert np.isnan(fit.trace.y[0]).all()


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


# --- BOBYQA ------------------------------------------------------------------------------


def test_bobyqa_moves_what_is_nearer_to_a_border_than_its_step(linear_problem, linear_patients):
    starts = np.array([[1.0, 2.0], [-4.0, 4.5], [5.0, -5.0]])
    moved = [[1.0, 2.0], [-2.5, 2.5], [5.0, -5.0]]
    fits = BobyqaSimple(linear_problem).personalize_from(linear_patients[0], starts, max_runs=20)
    np.testing.assert_allclose([fit.trace.x[0] for fit in fits], moved)


def test_bobyqa_simple_minimises_the_plain_sum_in_the_unit_cube(linear_problem, linear_patients):
    """As NLopt's own on the same function, whatever the tolerances."""
    problem = replace(
        linear_problem, objectives=(Objective("u", "u", "mL", 1e-3), Objective("w", "w", "", 1e-5))
    )
    z = problem.measured(linear_patients[0])
    points = []

    def objective(unit, gradient):
        points.append(10.0 * unit - 5.0)
        y = problem.simulate(points[-1][np.newaxis], linear_patients[0])[0]
        return abs(y[0] - z[0]) + abs(y[1] - z[1])

    optimiser = nlopt.opt(nlopt.LN_BOBYQA, 2)
    optimiser.set_lower_bounds([0.0, 0.0])
    optimiser.set_upper_bounds([1.0, 1.0])
    optimiser.set_initial_step(0.25)
    optimiser.set_xtol_abs(1e-4)
    optimiser.set_min_objective(objective)
    optimiser.optimize([0.4, 0.7])
    start = np.array([[-1.0, 2.0]])
    fit = BobyqaSimple(problem).personalize_from(linear_patients[0], start, max_runs=500)[0]
    assert fit.stop_reason is StopReason.STALLED
    np.testing.assert_allclose(fit.trace.x, points, atol=1e-12)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit("nlopt failure")])
def test_what_ends_a_program_passes_through_nlopt(linear_problem, error):
    """In any run, also in the last that the optimiser would make."""
    far = Patient("far", {"u": 100.0, "w": 100.0}, {"offset": 0.0})
    for name in ("bobyqa-simple", "bobyqa-cascade"):
        n_runs = METHODS[name](linear_problem).personalize(far, max_runs=1000).n_runs
        for last in range(1, n_runs + 1):
            left = iter([False] * (last - 1) + [True])

            def simulate(x, patient, left=left):
                if next(left):
                    raise error
                return linear_problem.simulate(x, patient)

            method = METHODS[name](replace(linear_problem, simulate=simulate))
            with pytest.raises(type(error)) as caught:
                method.personalize(far, max_runs=1000)
            assert caught.value is error


def _conduction(x, patient):
    """A QRS duration and an axis that follow from ratios of velocities, as of a heart."""
    v_myo, v_lv, v_rv = x.T
    left, right = 30e3 / v_lv, 24e3 / v_rv
    return np.stack([20e3 / v_myo + np.maximum(left, right), 30 + 4 * (right - left)], axis=1)


@pytest.fixture(scope="module")
def conduction():
    return Problem(
        name="conduction",
        version="1",
        parameters=(
            Parameter("v_myo", "v", "mm/s", 200.0, 1000.0, 500.0, 5.0),
            Parameter("v_lv", "v", "mm/s", 500.0, 5000.0, 2000.0, 5.0),
            Parameter("v_rv", "v", "mm/s", 500.0, 5000.0, 2000.0, 5.0),
        ),
        objectives=(
            Objective("qrs_duration", "QRS", "ms", 5.0),
            Objective("electrical_axis", "axis", "deg", 10.0, kind="angle"),
        ),
        simulate=_conduction,
    )


REACHABLE = Patient("reachable", {"qrs_duration": 95.0, "electrical_axis": -40.0})
UNREACHABLE = Patient("unreachable", {"qrs_duration": 40.0, "electrical_axis": -100.0})
START = np.array([[600.0, 2000.0, 3000.0]])


def test_the_cascade_tunes_one_group_of_parameters_at_a_time(conduction):
    fit = BobyqaCascade(conduction, until_stable=True).personalize_from(UNREACHABLE, START)[0]
    x, c = fit.trace.x, np.abs(fit.trace.misfits)
    first = int(np.argmin((x[:, 1:] == START[0, 1:]).all(axis=1)))
    assert 3 < first <= 15
    best = int(np.argmin(c[:first, 0]))
    second = int(np.argmin(x[first:, 0] == x[best, 0]))
    assert 5 < second <= 25
    tuned = [best, *range(first, first + second)]
    best = tuned[int(np.argmin(c[tuned, 1]))]
    assert np.array_equal(x[first + second, 1:], x[best, 1:])


def test_the_cascade_solves_and_the_first_success_ends_it(conduction):
    for start in conduction.draw(np.random.default_rng(0), 10):
        for until_stable in (False, True):
            method = BobyqaCascade(conduction, until_stable=until_stable)
            fit = method.personalize_from(REACHABLE, start[np.newaxis], max_runs=100)[0]
            solved = conduction.is_solved(fit.trace.misfits)
            assert fit.solved == solved[-1]
            assert not solved[:-1].any()


def test_the_cap_cuts_the_cascade_short_and_nothing_else(conduction):
    capped = BobyqaCascade(conduction).personalize_from(UNREACHABLE, START, max_runs=30)[0]
    assert (capped.n_runs, capped.stop_reason) == (30, StopReason.BUDGET)
    stable = BobyqaCascade(conduction, until_stable=True)
    fit = stable.personalize_from(UNREACHABLE, START, max_runs=30)[0]
    assert 30 < fit.n_runs < 1000
    assert fit.stop_reason is StopReason.STALLED
    assert np.array_equal(fit.trace.x[:30], capped.trace.x)


def test_a_cascade_that_goes_in_circles_ends(linear_problem, monkeypatch):
    """Of u = a + b and w = b - a the stages give a = -b, then b = a: both change sign for ever."""
    turning = replace(
        linear_problem,
        simulate=lambda x, patient: np.stack([x[:, 0] + x[:, 1], x[:, 1] - x[:, 0]], axis=1),
    )
    method = BobyqaCascade(turning, LINEAR_STAGES, until_stable=True)
    patient = Patient("turning", {"u": 0.0, "w": 0.0})
    start = np.array([[2.0, 2.0]])
    fit = method.personalize_from(patient, start, max_runs=30)[0]
    # back at the start after two rounds of at most 15 runs a stage
    assert (fit.n_runs <= 60, fit.stop_reason) == (True, StopReason.STALLED)
    monkeypatch.setattr(bobyqa, "HARD_LIMIT", 40)
    fit = method.personalize_from(patient, start, max_runs=30)[0]
    assert (fit.n_runs, fit.stop_reason) == (40, StopReason.BUDGET)


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ((Stage(("a", "v_myo"), "u", 9),), "'linear': has no 'v_myo' for a stage"),
        ((Stage(("a",), "qrs_duration", 9),), "expected one of u, w"),
        ((Stage((), "u", 9),), "is empty"),
    ],
)
def test_a_stage_that_does_not_suit_the_problem_is_refused(linear_problem, stages, says):
    with pytest.raises(ValueError, match=says):
        BobyqaCascade(linear_problem, stages)


# --- a model that confirms ---------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_table_that_lies_about_success_never_yields_a_solved_fit(
    linear_problem, linear_patients, method
):
    patient = linear_patients[0]
    z = linear_problem.measured(patient)
    problem, calls = counted(
        replace(
            linear_problem,
            simulate=lambda x, patient: np.tile(z, (len(x), 1)),
            confirm=lambda x, patient: linear_problem.simulate(x, patient) + 100.0,
        )
    )
    fit = METHODS[method](problem).personalize(patient, max_runs=40)
    assert not fit.solved
    assert fit.n_runs == len(calls) <= 40
    np.testing.assert_allclose(fit.trace.y, linear_problem.simulate(fit.trace.x, patient) + 100.0)
