"""An error of a method is the patient's for whom it happened."""

from concurrent.futures import CancelledError

import numpy as np
import pytest

from vitolab import agent
from vitolab.failures import CannotRun, Kind
from vitolab.fit import StopReason
from vitolab.guard import personalized
from vitolab.initialization import Initializer
from vitolab.reference import NelderMead
from vitolab.validation import initial_errors, leave_one_out, references
from vitolab.validation.references import reference_runs


class Raising(NelderMead):
    """Makes two runs, then raises for one patient."""

    error = np.linalg.LinAlgError("Singular matrix")

    def personalize(self, patient, *, max_runs=100, seed=0):
        if patient.name != "P1":
            return super().personalize(patient, max_runs=max_runs, seed=seed)
        super().personalize(patient, max_runs=2, seed=seed)
        raise self.error

    def personalize_from(self, patient, starts, *, max_runs=100, seed=0):
        if patient.name != "P1" or max_runs == 2:
            return super().personalize_from(patient, starts, max_runs=max_runs, seed=seed)
        raise self.error


class Parts(dict):
    until = np.inf

    def has_part(self, key):
        return key in self

    def write_part(self, key, personalizations, traces=None, failures=None):
        self[key] = (personalizations, traces, failures)

    def write_failures(self, key, failures):
        raise AssertionError

    def progress(self, *_):
        pass


def test_an_error_is_recorded_with_the_runs_made_before(linear_problem, linear_patients):
    fit = personalized(
        linear_problem, Raising(linear_problem), linear_patients[1], max_runs=30, seed=0
    )[0]
    assert not fit.solved
    assert fit.stop_reason is StopReason.ERROR
    assert fit.n_runs == 2
    assert np.isfinite(fit.x).all()
    (failure,) = fit.failures
    assert (failure.patient, failure.kind, failure.n_runs) == ("P1", Kind.METHOD, 0)
    assert "LinAlgError: Singular matrix" in failure.sentence


def test_an_error_before_the_first_run_gives_an_outcome_for_each_start(
    linear_problem, linear_patients
):
    fits = personalized(
        linear_problem,
        Raising(linear_problem),
        linear_patients[1],
        max_runs=30,
        seed=0,
        starts=np.zeros((3, 2)),
    )
    assert [fit.n_runs for fit in fits] == [0, 0, 0]
    assert np.isnan([fit.x for fit in fits]).all()


@pytest.mark.parametrize(
    "ending", [KeyboardInterrupt, CannotRun, CancelledError, MemoryError, OSError]
)
def test_what_ends_the_work_still_does(linear_problem, linear_patients, monkeypatch, ending):
    monkeypatch.setattr(Raising, "error", ending("stop"))
    with pytest.raises(ending):
        personalized(
            linear_problem, Raising(linear_problem), linear_patients[1], max_runs=30, seed=0
        )


def test_the_other_patients_go_on(linear_problem, linear_patients, monkeypatch):
    monkeypatch.setattr(references, "build", lambda method, problem: Raising(problem))
    monkeypatch.setattr(references, "workers", lambda problem: "threads")
    parts = Parts()
    patients = linear_patients[:3]
    arguments = {"methods": ["nelder-mead"], "n_starts": 1, "max_runs": 40}
    reference_runs(parts, {"linear": linear_problem}, patients, **arguments)
    rows = {table["patient"].iloc[0]: table.iloc[0] for table, _, _ in parts.values()}
    assert set(rows) == {"P0", "P1", "P2"}
    assert rows["P1"]["stop_reason"] == "error"
    assert rows["P1"]["n_runs"] == 2
    assert rows["P0"]["stop_reason"] != "error"
    failures = [f for _, _, f in parts.values() if f is not None]
    assert any("Singular matrix" in text for f in failures for text in f["text"])


class Kept(Parts):
    """Explorations may be recorded, too."""

    def write_failures(self, key, failures):
        assert failures is None


def raise_without(name, monkeypatch):
    """Let the learning raise wherever nobody of this name is learned from."""
    learn = agent.Vito.learn.__func__

    def learned(cls, problem, walks, *args, **kwargs):
        if name not in walks.patients:
            raise np.linalg.LinAlgError("Singular matrix")
        return learn(cls, problem, walks, *args, **kwargs)

    monkeypatch.setattr(agent.Vito, "learn", classmethod(learned))


def fold(parts, problem, patients, **more):
    sizes = {"n_states": {"linear": [10]}, "n_samples": {"linear": [30]}, "max_runs": 10}
    leave_one_out(parts, {"linear": problem}, patients, **(sizes | more))


def test_an_error_of_the_learning_is_the_patients_who_was_left_out(
    linear_problem, linear_patients, monkeypatch
):
    raise_without("P1", monkeypatch)
    parts = Kept()
    fold(parts, linear_problem, linear_patients[:4], methods=["vito", "vito-continuous"])
    rows = {
        (row["method"], row["patient"]): row["stop_reason"]
        for table, _, _ in parts.values()
        for row in table.to_dict("records")
    }
    assert len(rows) == 8
    assert [key for key, reason in rows.items() if reason == "error"] == [("vito", "P1")]


def test_a_study_of_nothing_but_errors_fails_with_the_first(
    linear_problem, linear_patients, monkeypatch
):
    raise_without("nobody", monkeypatch)
    with pytest.raises(RuntimeError, match="every personalisation ended by an error: LinAlgError"):
        fold(Kept(), linear_problem, linear_patients[:3])


def test_an_error_in_learning_where_to_start_is_the_patients_too(
    linear_problem, linear_patients, monkeypatch
):
    learn = Initializer.learn.__func__
    calls = iter(range(9))

    def learned(cls, *args, **kwargs):
        if next(calls) == 1:  # patients come in their order
            raise np.linalg.LinAlgError("Singular matrix")
        return learn(cls, *args, **kwargs)

    monkeypatch.setattr(Initializer, "learn", classmethod(learned))
    parts = Kept()
    sizes = {"n_states": {"linear": [10]}, "n_samples": {"linear": [30]}}
    initial_errors(parts, {"linear": linear_problem}, linear_patients[:3], **sizes)
    rows = {table["patient"].iloc[0]: table.iloc[0] for table, _, _ in parts.values()}
    assert [rows[f"P{i}"]["stop_reason"] == "error" for i in range(3)] == [False, True, False]
    assert rows["P1"]["n_runs"] == 0
