"""A stored run tells what failed, for any number of workers and after a kill."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from analytic import linear
from part_store import Parts
from simulators import corner, nowhere, raising

from vitolab import validation
from vitolab.failures import Failure, Kind
from vitolab.settings import Settings
from vitolab.store import OpenRun, Run, open_run
from vitolab.store.assemble import tabulate_failures
from vitolab.store.tables import failure_table, patient_table
from vitolab.uncertainty.methods import Learning, Methods
from vitolab.uncertainty.stability import stability
from vitolab.validation import child_seed, recorded_walks, walks_for


def corners(x, patient):
    """Answer as `linear` does, but fail in two ways, of which one says so."""
    if (x[:, 0] > 3).any():
        raise ValueError("high")
    y = linear(x, patient)
    y[x[:, 1] < -3] = np.nan
    return y


class Stopped(Exception):
    """Ends a study early."""


def crossed(folder, cache, problem, patients, n_samples, stop=False):
    """Leave-one-out with walks of a cache; if asked for, stopped after the first part."""
    run = open_run("own", {"n": n_samples}, results=folder, seed=0, version="1")
    problems = {"s": problem}

    class Stopping(OpenRun):
        def write_part(self, *part):
            super().write_part(*part)
            raise Stopped

    sizes = {"n_samples": {"s": [n_samples]}, "n_states": {"s": [20]}, "max_runs": 20}
    try:
        kept = Stopping(run.path, run.record, run.state) if stop else run
        validation.leave_one_out(kept, problems, patients, **sizes, cache=cache)
    except Stopped:
        run.release()
        return None
    return run.finish(problems=problems, patients=patient_table(problems, patients)).failures


def test_a_stored_run_tells_what_failed_the_same_whatever_the_cache_holds(
    linear_problem, linear_patients, tmp_path
):
    problem = replace(linear_problem, simulate=corners)
    patients = linear_patients[:3]

    def study(run, cache, n_samples, **more):
        return crossed(tmp_path / run, tmp_path / cache, problem, patients, n_samples, **more)

    few, many = study("few", "few", 150), study("many", "many", 350)
    explored = [table[table["stage"] == "exploration"]["n_runs"].sum() for table in (few, many)]
    assert 0 < explored[0] < explored[1]
    assert len(few["text"].unique()) == 2
    pd.testing.assert_frame_equal(study("prefix", "many", 150), few)
    pd.testing.assert_frame_equal(study("extended", "few", 350), many)
    # stopped, and gone on with after another study has extended the walks
    assert study("stopped", "stopped", 150, stop=True) is None
    study("between", "stopped", 350)
    pd.testing.assert_frame_equal(study("stopped", "stopped", 150), few)


def test_fewer_of_the_same_walks_are_not_counted_beside_more(
    linear_problem, linear_patients, tmp_path
):
    problem = replace(linear_problem, simulate=corners)
    run = open_run("own", {}, results=tmp_path, seed=0, version="1")
    _, largest, _ = (
        recorded_walks(run, "s", problem, linear_patients, n_samples, 0)
        for n_samples in (100, 300, 200)
    )
    stored = run.finish(problems={}, patients=pd.DataFrame({"setup": [], "patient": []}))
    assert stored.failures["n_runs"].sum() == sum(f.n_runs for f in largest.failures)


def test_learners_of_uncertainty_record_their_exploration(
    linear_problem, linear_patients, tmp_path
):
    problem = replace(linear_problem, simulate=corners)
    methods = Methods(
        learners={"vito": Learning(100, Settings(n_states=20))}, training=linear_patients[1:]
    )
    run = Parts()
    deviation = {"u": 0.1, "w": 0.1}
    stability(
        run,
        {"s": problem},
        linear_patients[:1],
        deviation=deviation,
        methods=methods,
        n_perturbations=2,
    )
    walks = walks_for(problem, linear_patients[1:], 100, child_seed(0, "repeat", 0))
    found = [table for key, table in run.failures.items() if key.startswith("exploration-")]
    assert [table["n_runs"].sum() for table in found] == [sum(f.n_runs for f in walks.failures)]


@pytest.mark.parametrize("stage", ["exploration", "personalization"])
def test_a_run_of_which_none_answers_leaves_the_causes(
    linear_problem, linear_patients, tmp_path, stage
):
    problem = replace(linear_problem, simulate=nowhere)
    run = open_run("own", {}, results=tmp_path, seed=0, version="1")

    def work():
        if stage == "exploration":
            recorded_walks(run, "s", problem, linear_patients, 200, 0)
        methods = ["least-squares-multistart"]
        validation.reference_runs(run, {"s": problem}, linear_patients, methods=methods, n_starts=1)

    with pytest.raises(ValueError, match="no license") as error:
        work()
    run.close("failed", str(error.value))
    stored = Run.load(run.path)
    assert "failures.parquet" in stored.manifest.files
    assert set(stored.failures["stage"]) == {stage}
    assert set(stored.failures["text"]) == {"RuntimeError: no license"}
    assert f"all {stored.failures['n_runs'].sum()} runs" in stored.manifest.reason


def failure_rows(n_runs):
    failure = Failure("P", Kind.TIME_OUT, "3 s", (1.0,), n_runs)
    return failure_table("personalization", "s", ["a"], [failure])


def test_failures_of_an_attempt_that_was_killed_are_not_those_of_the_next(tmp_path):
    run = open_run("own", {}, results=tmp_path, seed=0, version="1")
    rows = pd.DataFrame({"setup": ["s"], "patient": ["P"]})
    for key in ("a", "b", "c"):  # as if killed before the part itself was written
        run.write_part(key, rows, failures=failure_rows(3))
        run.part(key).unlink()
    run.write_part("a", rows)
    run.write_part("b", rows, failures=failure_rows(2))
    tabulate_failures(run.path)
    assert pd.read_parquet(run.path / "failures.parquet")["n_runs"].tolist() == [2]
    with pytest.raises(ValueError, match="begins with 'exploration-'"):
        run.write_failures("a", failure_rows(1))
    run.close("failed", "no")
    after = open_run("own", {}, results=tmp_path, seed=0, version="1")
    taken = {path.name for path in (after.path / "parts").iterdir()}
    assert taken == {"a.parquet", "b.parquet", "b.failures.parquet"}


def studied(folder, problem, patients, n_jobs=1):
    run = open_run("own", {}, results=folder, seed=0, version="1")
    problems = {"s": problem}
    validation.leave_one_out(
        run,
        problems,
        patients,
        n_samples={"s": [40]},
        n_states={"s": [20]},
        methods=("vito", "vito-continuous"),
        n_jobs=n_jobs,
        cache=folder,
    )
    validation.reference_runs(
        run, problems, patients, methods=["nelder-mead"], n_starts=2, n_jobs=n_jobs
    )
    return run.finish(problems=problems, patients=patient_table(problems, patients))


def test_a_stored_run_tells_what_failed_the_same_for_any_number_of_workers(
    linear_problem, linear_patients, tmp_path
):
    problem = replace(linear_problem, simulate=corner(raising))
    alone = studied(tmp_path / "a", problem, linear_patients)
    together = studied(tmp_path / "b", problem, linear_patients, n_jobs=2)
    pd.testing.assert_frame_equal(alone.failures, together.failures)
    pd.testing.assert_frame_equal(alone.personalizations, together.personalizations)
    failures = alone.failures
    assert set(failures["stage"]) == {"exploration", "personalization"}
    assert set(failures["text"]) == {"ArithmeticError: diverged"}
    own = failures[failures["stage"] == "personalization"].set_index("patient")["n_runs"]
    counted = alone.personalizations.groupby("patient")["n_failed"].sum()
    pd.testing.assert_series_equal(own, counted[counted > 0], check_names=False)
    assert (failures["x:a"] > 2).all()


def test_a_run_without_failures_has_an_empty_table(linear_problem, linear_patients, tmp_path):
    stored = studied(tmp_path, linear_problem, linear_patients)
    assert stored.failures.empty
    assert (stored.personalizations["n_failed"] == 0).all()


def test_what_was_mended_is_run_again_after_a_run_of_which_none_answered(
    linear_problem, linear_patients, tmp_path
):
    """The cause lay outside the problem: a licence, a library."""
    mended = []

    def simulate(x, patient):
        return linear(x, patient) if mended else nowhere(x, patient)

    problems = {"s": replace(linear_problem, simulate=simulate)}

    def study():
        run = open_run("own", {}, results=tmp_path, seed=0, version="1")
        try:
            validation.reference_runs(
                run, problems, linear_patients, methods=["nelder-mead"], n_starts=1
            )
        except ValueError:
            run.close("failed", "none answered")
            raise
        return run.finish(problems=problems, patients=patient_table(problems, linear_patients))

    with pytest.raises(ValueError, match="no license"):
        study()
    mended.append(True)
    stored = study()
    assert stored.personalizations["n_failed"].sum() == 0
    assert stored.failures.empty
