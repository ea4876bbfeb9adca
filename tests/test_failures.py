"""A failed run is data: whatever went wrong, it is one row, one record, and no crash."""

import shutil
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analytic import linear
from part_store import Parts
from simulators import corner, leaving, nothing, nowhere, raising, short, with_value

import vitolab
from vitolab import validation
from vitolab.agent import ContinuousVito, Vito
from vitolab.exploration import explore
from vitolab.failures import LONGEST, MOST, OTHERS, Failure, Kind, Reason, Record
from vitolab.problem import Patient
from vitolab.problemfile.simulators import Scaled
from vitolab.reference import BobyqaSimple, LeastSquares, NelderMead
from vitolab.running import Answers

WAYS = {
    "raised": (raising, Kind.RAISED, "ArithmeticError: diverged"),
    "exit": (leaving, Kind.RAISED, "SystemExit: 3"),
    "nothing": (nothing, Kind.SHAPE, "shape (), expected (1, 2)"),
    "short": (short, Kind.SHAPE, "shape (1, 1), expected (1, 2)"),
    "nan": (with_value(np.nan), Kind.NOT_FINITE, "w"),
    "infinite": (with_value(-np.inf), Kind.NOT_FINITE, "w"),
    "none": (with_value(None), Kind.NOT_FINITE, "w"),
}


@pytest.mark.parametrize(("say", "kind", "text"), WAYS.values(), ids=WAYS)
def test_whatever_goes_wrong_is_one_row_and_one_record(
    linear_problem, linear_patients, say, kind, text
):
    problem = replace(linear_problem, simulate=corner(say))
    x = np.array([[0.0, 1.0], [3.0, -1.0], [1.0, 2.0], [4.0, 0.5]])
    runs = problem.run(x, linear_patients[0])
    y = runs.y
    failed = np.array([False, True, False, True])
    assert np.array_equal(~np.isfinite(y).all(axis=1), failed)
    assert np.array_equal(y[~failed], linear(x[~failed], linear_patients[0]))
    assert runs.failures == (
        Failure("P0", kind, text, (3.0, -1.0)),
        Failure("P0", kind, text, (4.0, 0.5)),
    )


@pytest.mark.parametrize(("say", "kind", "text"), WAYS.values(), ids=WAYS)
def test_walks_go_on_and_their_failures_are_kept(
    linear_problem, linear_patients, tmp_path, say, kind, text
):
    problem = replace(linear_problem, simulate=corner(say))
    sizes = {"n_episodes": 4, "n_steps": 20, "seed": 5}
    walks = explore(problem, linear_patients, **sizes, cache=tmp_path)
    failed = ~np.isfinite(walks.y).all(axis=2)
    assert np.array_equal(failed, walks.x[..., 0] > 2)
    assert 0 < failed.sum() < failed.size / 2
    assert {(f.kind, f.text) for f in walks.failures} == {(kind, text)}
    for i, failure in enumerate(walks.failures):
        own = failed[walks.patient == i]
        assert failure.patient == f"P{i}"
        assert failure.n_runs == own.sum()
        assert failure.x in {tuple(x) for x in walks.x[walks.patient == i][own].tolist()}
    for again in (
        explore(problem, linear_patients, **sizes, n_jobs=2),
        explore(problem, linear_patients, **sizes, cache=tmp_path),
    ):
        assert np.array_equal(again.y, walks.y, equal_nan=True)
        assert again.failures == walks.failures
    more = explore(problem, linear_patients, 6, 20, 5, cache=tmp_path)
    assert sum(f.n_runs for f in more.failures) == (~np.isfinite(more.y).all(axis=2)).sum()
    one = walks.select(["P3"])
    assert {f.patient for f in one.failures} == {"P3"}


@pytest.mark.parametrize("say", [raising, nothing, with_value(np.nan)])
@pytest.mark.parametrize("method", ["vito", "continuous", "simplex", "squares", "bobyqa"])
def test_every_method_counts_failed_runs_and_takes_none_for_a_success(
    linear_problem, linear_patients, say, method
):
    problem = replace(linear_problem, simulate=corner(say))
    walks = explore(problem, linear_patients[1:], n_episodes=4, n_steps=25, seed=1)
    agent = {
        "vito": lambda: Vito.learn(problem, walks, 30),
        "continuous": lambda: ContinuousVito.learn(problem, walks),
        "simplex": lambda: NelderMead(problem),
        "squares": lambda: LeastSquares(problem, multistart=True),
        "bobyqa": lambda: BobyqaSimple(problem),
    }[method]()
    starts = np.array([[2.2, 0.0], [4.5, 4.0], [1.9, -4.0]])
    fits = agent.personalize_from(linear_patients[0], starts, max_runs=40, seed=3)
    assert sum(fit.n_failed for fit in fits) > 0
    for fit in fits:
        failed = ~np.isfinite(fit.trace.y).all(axis=1)
        assert [f.x for f in fit.failures] == list(map(tuple, fit.trace.x[failed].tolist()))
        assert fit.n_runs == len(fit.trace.x) <= 40
        assert fit.n_failed == np.count_nonzero(fit.trace.x[:, 0] > 2)
        assert not fit.solved or problem.is_solved(fit.misfits)


def test_a_model_says_itself_why_a_row_failed(linear_problem, linear_patients):
    def simulate(x, patient):
        y = linear(x, patient)
        y[1] = np.nan
        return Answers(y, {1: Reason(Kind.TIME_OUT, "3 s\nmore", n_retries=2)})

    runs = replace(linear_problem, simulate=simulate).run(np.zeros((2, 2)), linear_patients[0])
    assert runs.failures == (Failure("P0", Kind.TIME_OUT, "3 s", (0.0, 0.0), 1, 2),)


def test_a_problem_of_which_no_run_answers_stops_early(linear_problem, linear_patients):
    made = []

    def simulate(x, patient):
        made.extend(np.atleast_2d(x))
        return nowhere(x, patient)

    problem = replace(linear_problem, simulate=simulate)
    with pytest.raises(ValueError, match=r"all 600 runs so far failed.*P0, a=.*no license$"):
        explore(problem, linear_patients, n_episodes=20, n_steps=500)
    # 60 of each patient; a batch that raised is asked again row by row, the first row once more as
    # a batch and as one vector, to see whether the function takes such
    assert len(made) == 2 * 600 + 2


def test_a_patient_whose_runs_all_fail_does_not_stop_the_others(linear_problem, linear_patients):
    def simulate(x, patient):
        return nowhere(x, patient) if patient.name == "P4" else linear(x, patient)

    walks = explore(replace(linear_problem, simulate=simulate), linear_patients, 8, 20)
    failed = ~np.isfinite(walks.y).all(axis=2)
    assert failed[walks.patient == 4].all()
    assert not failed[walks.patient != 4].any()
    assert walks.failures == (
        Failure("P4", Kind.RAISED, "RuntimeError: no license", walks.failures[0].x, 8 * 21),
    )


def test_references_of_which_no_run_answers_stop_early(linear_problem, linear_patients):
    run = Parts()
    problem = replace(linear_problem, simulate=nowhere)
    with pytest.raises(ValueError, match=r"all \d+ runs so far failed.*RuntimeError: no license$"):
        validation.reference_runs(
            run, {"s": problem}, linear_patients, methods=["least-squares-multistart"], n_starts=1
        )
    # until then the patients might be to blame; what was run is kept
    assert len(run.parts) == len(linear_patients)
    kept = sum(table["n_runs"].sum() for table in run.failures.values())
    assert kept == sum(rows["n_runs"].sum() for rows, _ in run.parts.values())


def test_a_patient_whose_runs_all_fail_does_not_stop_references(linear_problem, linear_patients):
    def simulate(x, patient):
        return nowhere(x, patient) if patient.name == "P0" else linear(x, patient)

    run = Parts()
    problem = replace(linear_problem, simulate=simulate)
    methods = ["least-squares-multistart", "nelder-mead"]
    validation.reference_runs(run, {"s": problem}, linear_patients, methods=methods, n_starts=1)
    validation.leave_one_out(
        run,
        {"s": problem},
        linear_patients,
        n_samples={"s": [20]},
        n_states={"s": [10]},
        n_jobs=2,
    )
    # gone on with, where only the patient for whom all fails is left
    for key in [key for key, (rows, _) in run.parts.items() if set(rows["patient"]) == {"P0"}]:
        del run.parts[key]
    validation.reference_runs(run, {"s": problem}, linear_patients, methods=methods, n_starts=1)
    rows = run.personalizations
    failed = rows["n_failed"] == rows["n_runs"]
    assert set(rows.loc[failed, "patient"]) == {"P0"}
    assert not rows.loc[failed, "solved"].any()


def test_what_was_called_off_has_not_failed(linear_problem, linear_patients):
    """While everything is being stopped, a fold must not end with runs that were never made."""

    def simulate(x, patient):
        raise CancelledError

    problem = replace(linear_problem, simulate=simulate)
    with pytest.raises(CancelledError):
        problem.run(np.zeros((3, 2)), linear_patients[0])


def test_causes_are_told_apart_up_to_a_number():
    record = Record()
    for i in range(MOST + 5):
        record.add(Failure("P", Kind.RAISED, f"x is {i}", (float(i),), n_retries=1))
    record.add(Failure("P", Kind.RAISED, "x is 0", (7.0,)))
    *told, others = record.failures
    assert len(told) == MOST
    assert told[0] == Failure("P", Kind.RAISED, "x is 0", (0.0,), 2, 1)
    assert others == Failure("P", Kind.RAISED, OTHERS, (float(MOST),), 5, 5)


def test_texts_are_short_lines(linear_problem):
    def simulate(x, patient):
        raise ValueError("\n \n" + 1000 * "long" + "\nTraceback")

    runs = replace(linear_problem, simulate=simulate).run(np.zeros((1, 2)), Patient("P", {}))
    assert runs.failures[0].text == ("ValueError: " + (1000 * "long")[:LONGEST])


def test_the_first_of_longer_walks_have_failures_of_their_own(
    linear_problem, linear_patients, tmp_path
):
    problem = replace(linear_problem, simulate=corners)
    few = explore(problem, linear_patients, 2, 20, 5, cache=tmp_path / "few")
    many = explore(problem, linear_patients, 6, 20, 5, cache=tmp_path / "many")
    prefix = explore(problem, linear_patients, 2, 20, 5, cache=tmp_path / "many")
    extended = explore(problem, linear_patients, 6, 20, 5, cache=tmp_path / "few")
    assert few.failures == prefix.failures == many.first(40).failures
    assert extended.failures == many.failures
    assert np.array_equal(extended.cause, many.cause)
    assert {f.text for f in many.failures} == {"ValueError: high", "u, w"}
    for walks in (few, many, many.first(33), many.select(["P1", "P3"]).first(7)):
        within = np.arange(walks.x.shape[1]) <= walks.length[:, np.newaxis]
        failed = within & ~np.isfinite(walks.y).all(axis=2)
        assert sum(f.n_runs for f in walks.failures) == failed.sum()
    assert few.failures


def test_walks_of_which_no_run_answers_are_not_kept(linear_problem, linear_patients, tmp_path):
    out_of_order = {"P4"}

    def simulate(x, patient):
        return nowhere(x, patient) if patient.name in out_of_order else linear(x, patient)

    problem = replace(linear_problem, simulate=simulate)
    for n_steps in (4, 60):  # of the longer ones more than are made before others decide
        first = explore(problem, linear_patients, 1, n_steps, cache=tmp_path)
        assert {f.patient for f in first.failures} == {"P4"}
        assert len(list(tmp_path.rglob("*.npz"))) == len(linear_patients) - 1
        out_of_order.clear()
        again = explore(problem, linear_patients, 1, n_steps, cache=tmp_path)
        assert again.failures == ()
        assert np.isfinite(again.y).all()
        shutil.rmtree(tmp_path / "walks")
        out_of_order.add("P4")


def test_runs_within_a_model_are_its_own_affair(linear_problem, linear_patients):
    inner = replace(linear_problem, simulate=corners)

    def simulate(x, patient):
        return np.nan_to_num(inner.run(x, patient).y)

    problem = replace(linear_problem, simulate=simulate)
    runs = problem.run(np.full((3, 2), 4.0), linear_patients[0])
    assert runs.failures == ()
    assert np.isfinite(runs.y).all()


def test_a_confirmed_row_fails_for_the_reason_of_the_model_that_confirms(linear_problem):
    patient = Patient("P", {"u": 0.0, "w": 0.0}, {"offset": 0.0})
    problem = replace(
        linear_problem,
        simulate=corners,
        confirm=lambda x, patient: Answers(x * np.nan, {0: Reason(Kind.CRASHED, "exact")}),
    )
    x = np.array([[0.0, 0.0], [3.5, 0.0], [1.0, 3.0]])
    runs = problem.run(x, patient, confirm=np.zeros(2))
    assert runs.failed.tolist() == [True, True, False]
    assert [(f.text, f.x) for f in runs.failures] == [
        ("exact", (0.0, 0.0)),
        ("ValueError: high", (3.5, 0.0)),
    ]


def test_reasons_pass_through_parts_and_units(linear_problem, linear_patients):
    def simulate(x, patient):
        return Answers(x * np.nan, {0: Reason(Kind.TIME_OUT, "3 s")})

    problem = replace(linear_problem, simulate=Scaled(simulate, (1.0, 2.0))).observing(["w"])
    (failure,) = problem.run(np.zeros((1, 2)), linear_patients[0]).failures
    assert (failure.kind, failure.text) == (Kind.TIME_OUT, "3 s")


def test_no_state_of_a_context_carries_failures():
    found = [
        path.name
        for path in Path(vitolab.__file__).parent.rglob("*.py")
        if "contextvars" in path.read_text(encoding="utf-8")
    ]
    assert found == []


def corners(x, patient):
    """Answer as `linear` does, but fail in two ways, of which one says so."""
    if (x[:, 0] > 3).any():
        raise ValueError("high")
    y = linear(x, patient)
    y[x[:, 1] < -3] = np.nan
    return y
