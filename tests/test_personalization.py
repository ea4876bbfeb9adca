"""Patients of a file are personalised one by one: by no agent that has met them, in any order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import personalized
import pytest
from personalized import DATA
from stores import write_csv

from vitolab import agent
from vitolab.failures import CannotRun
from vitolab.patients import InputError, PatientTable, read_patients
from vitolab.personalization import folds
from vitolab.problem import Patient
from vitolab.store import latest, list_runs

run = personalized.run


def test_what_is_called_solved_meets_the_tolerances_at_the_parameters_told(
    run, linear_problem, linear_patients
):
    file, train_on = linear_patients[:4], linear_patients[4:]
    fitted = run(file, train_on, methods=("vito", "least-squares"))
    assert list(fitted["patient"]) == [p.name for p in file for _ in range(2)]
    assert set(fitted["training"]) == {"6 patients", ""}
    assert fitted["solved"][fitted["method"] == "least-squares"].all()  # the problem is linear
    for (_, row), patient in zip(fitted.iterrows(), np.repeat(file, 2), strict=True):
        x = np.array([[row["a [mL]"], row["b [ms]"]]])
        y = linear_problem.simulate(x, patient)[0]
        z = linear_problem.measured(patient)
        assert [row["u_modelled [mL]"], row["w_modelled [mmHg]"]] == pytest.approx(list(y))
        assert [row["u_measured [mL]"], row["w_measured [mmHg]"]] == pytest.approx(list(z))
        assert [row["u_misfit [mL]"], row["w_misfit [mmHg]"]] == pytest.approx(list(y - z))
        assert linear_problem.is_solved(y - z) == row["solved"]
        assert 1 <= row["n_runs"] <= 60


def test_why_a_patient_is_not_solved_is_said_in_words(run, linear_patients):
    far = Patient("far", {"u": 90.0, "w": 90.0}, {"offset": 0.0})
    fitted = run([far], linear_patients, methods=("vito", "nelder-mead"))
    assert not fitted["solved"].any()
    assert fitted["stop_reason"][0] == "The largest number of forward runs was reached."
    assert fitted["n_runs"][0] == 60


def test_order_of_file_and_of_training_patients_makes_no_difference(run, linear_patients, tmp_path):
    file, train_on = linear_patients[:3], linear_patients[3:]
    methods = ("vito", "vito-deterministic", "nelder-mead", "least-squares-multistart")
    one = run(file, train_on, methods=methods, results_root=tmp_path / "one")
    two = run(file[::-1], train_on[::-1], methods=methods, results_root=tmp_path / "two", n_jobs=2)
    assert list(two["patient"]) == list(one["patient"])[::-1]
    by = ["patient", "method"]
    pd.testing.assert_frame_equal(
        one.sort_values(by, ignore_index=True), two.sort_values(by, ignore_index=True)
    )


def test_other_patients_of_the_file_make_no_difference(run, linear_patients, tmp_path):
    train_on = linear_patients[5:]
    many = run(linear_patients[:5], train_on, results_root=tmp_path / "one")
    alone = run(linear_patients[2:3], train_on, results_root=tmp_path / "two")
    pd.testing.assert_frame_equal(many.iloc[[2]].reset_index(drop=True), alone)


def test_a_file_with_one_patient_cannot_train_on_itself(run, linear_patients):
    with pytest.raises(InputError, match="'P0': none of the 1 training patients is somebody else"):
        run(linear_patients[:1], linear_patients[:1])


def test_stored_run_holds_what_figures_read(run, linear_patients, tmp_path):
    file, train_on = linear_patients[:3], linear_patients[3:]
    fitted = run(file, train_on, methods=("vito", "nelder-mead"))
    stored = latest(tmp_path / "results", "personalize")
    assert stored.manifest.problems["2p"].parameters[0].unit == "mL"
    assert list(stored.patients["patient"]) == ["P0", "P1", "P2"]
    assert stored.arrays["2p/centroids"].shape == (12, 2)
    rows = stored.personalizations.set_index(["patient", "method"])
    lengths = stored.traces.groupby(["patient", "method"]).size()
    for _, row in fitted.iterrows():
        key = row["patient"], row["method"]
        assert rows.loc[key, "n_runs"] == lengths[key] == row["n_runs"]
        assert rows.loc[key, "x:a"] == row["a [mL]"]
    assert rows.xs("nelder-mead", level="method")["n_samples"].isna().all()


def test_the_same_call_again_reads_the_stored_run(run, linear_patients, tmp_path, monkeypatch):
    one = run(linear_patients[:2], linear_patients[2:])
    monkeypatch.setattr(folds, "recorded_walks", None)  # nothing is computed any more
    two = run(linear_patients[1::-1], linear_patients[2:])
    pd.testing.assert_frame_equal(one.iloc[::-1].reset_index(drop=True), two)
    assert len(list_runs(tmp_path / "results")) == 1


def test_after_a_failure_nothing_half_written_is_left_and_finished_patients_are_kept(
    run, linear_problem, linear_patients, tmp_path, monkeypatch
):
    out = tmp_path / "fit.csv"
    out.write_text("of yesterday", encoding="utf-8")
    personalize = agent.Vito.personalize
    done: list[str] = []

    def breaks(self, patient, **more):
        if len(done) == 2:
            raise CannotRun("the disk\nis full")
        done.append(patient.name)
        return personalize(self, patient, **more)

    file, train_on = linear_patients[:4], linear_patients[4:]
    monkeypatch.setattr(agent.Vito, "personalize", breaks)
    with pytest.raises(RuntimeError):
        run(file, train_on, out=out)
    (failed,) = list_runs(tmp_path / "results")
    assert (failed.status, failed.reason) == ("failed", "CannotRun: the disk is full")
    assert out.read_text(encoding="utf-8") == "of yesterday"
    assert {path.name for path in tmp_path.iterdir()} == {"fit.csv", "results", "clinic.csv"}

    again: list[str] = []

    def counts(self, patient, **more):
        again.append(patient.name)
        return personalize(self, patient, **more)

    monkeypatch.setattr(agent.Vito, "personalize", counts)
    fitted = run(file, train_on, out=out)
    assert again == ["P2", "P3"]  # the first two are not computed twice
    clean = run(file, train_on, results_root=tmp_path / "clean")
    pd.testing.assert_frame_equal(fitted, clean)
    written = pd.read_csv(out, keep_default_na=False)
    assert list(written.columns) == list(fitted.columns)
    assert written["a [mL]"].to_numpy() == pytest.approx(fitted["a [mL]"].to_numpy(), rel=1e-4)


def test_a_run_that_the_user_stopped_goes_on_where_it_was(
    run, linear_patients, tmp_path, monkeypatch
):
    personalize = agent.Vito.personalize

    def stopped(self, patient, **more):
        if patient.name == "P1":
            raise KeyboardInterrupt
        return personalize(self, patient, **more)

    with monkeypatch.context() as patched:
        patched.setattr(agent.Vito, "personalize", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(linear_patients[:2], linear_patients[2:])
    (info,) = list_runs(tmp_path / "results")
    assert info.status == "interrupted"
    run(linear_patients[:2], linear_patients[2:])
    (info,) = list_runs(tmp_path / "results")
    assert info.status == "complete"


def test_patients_who_were_skipped_and_further_columns_come_out_again(
    run, linear_problem, linear_patients, tmp_path
):
    path = write_csv(tmp_path / "c.csv", linear_patients[:3], sex=list("fmf"), solved=list("abc"))
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[2] = "P1,,0.5,,m,b"
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read_patients(path, linear_problem, data=DATA, allow_missing=True)
    fitted = run([], linear_patients[3:], table=table)
    assert list(fitted["patient"]) == ["P0", "P1", "P2"]
    assert list(fitted["sex"]) == ["f", "m", "f"]
    assert list(fitted["solved (file)"]) == ["a", "b", "c"]
    skipped = fitted.iloc[1]
    assert skipped["stop_reason"] == "Left out: offset and w not measured (row 3)."
    assert skipped[["method", "solved", "n_runs", "a [mL]"]].isna().all()


def test_what_cannot_be_done_is_refused_before_anything_is_computed(
    run, linear_problem, linear_patients, tmp_path
):
    nobody = PatientTable(tmp_path / "c.csv", [], [("P1", "x")], pd.DataFrame(index=["P1"]))
    with pytest.raises(InputError, match="every patient lacks what the model needs"):
        run([], linear_patients, table=nobody)
    with pytest.raises(InputError, match="found a directory, expected a name"):
        run(linear_patients[:1], linear_patients[1:], out=tmp_path)
    with pytest.raises(ValueError, match="method is 'magic', expected one of vito, "):
        run(linear_patients[:1], linear_patients[1:], methods=("magic",))
    with pytest.raises(ValueError, match="training patient 'P1' occurs twice, expected once"):
        run(linear_patients[:1], linear_patients[1:2] * 2)
    assert not (tmp_path / "results").exists()
