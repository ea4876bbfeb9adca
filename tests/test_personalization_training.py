"""Patients of a file are personalised by no agent that has met them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import personalized
import pytest
from extras import AGENTS_HERE
from personalized import DATA
from stores import write_csv

from vitolab import agent
from vitolab.patients import InputError, PatientTable, read_patients
from vitolab.personalization import fit_table, folds, personalize_file, training_overlap
from vitolab.problem import Patient, Problem
from vitolab.store import latest

run = personalized.run


def test_patients_who_train_are_left_out_of_their_own_training(
    run, linear_patients, monkeypatch, tmp_path
):
    """The training set is the file itself; each patient's walks stay out, whatever the name."""
    learned: list[tuple[str, ...]] = []
    learn = agent.Vito.learn.__func__

    def spy(cls, problem, walks, *args, **kwargs):
        learned.append(walks.patients)
        return learn(cls, problem, walks, *args, **kwargs)

    monkeypatch.setattr(agent.Vito, "learn", classmethod(spy))
    monkeypatch.setattr(folds, "policy_arrays", lambda *args, **kwargs: None)
    file = linear_patients[:3]
    alias = dataclasses.replace(file[1], name="alias")  # the same person under another name
    fitted = run([*file, alias], [*file, alias, linear_patients[9]])
    everybody = {"P0", "P1", "P2", "P9", "alias"}
    assert {frozenset(everybody - set(names)) for names in learned} == {
        frozenset({"P0"}),
        frozenset({"P1", "alias"}),
        frozenset({"P2"}),
    }
    assert dict(zip(fitted["patient"], fitted["training"], strict=True)) == {
        "P0": "4 patients, without P0",
        "P1": "3 patients, without P1 and alias",
        "P2": "4 patients, without P2",
        "alias": "3 patients, without P1 and alias",
    }


def test_the_agent_with_continuous_actions_learns_from_others_only(
    run, linear_patients, monkeypatch
):
    learned: list[tuple[str, ...]] = []
    learn = agent.ContinuousVito.learn.__func__

    def spy(cls, problem, walks, *args, **kwargs):
        learned.append(walks.patients)
        return learn(cls, problem, walks, *args, **kwargs)

    monkeypatch.setattr(agent.ContinuousVito, "learn", classmethod(spy))
    file = linear_patients[:3]
    run(file, file, methods=("vito-continuous",), n_samples=20)
    assert sorted(learned) == [("P0", "P1"), ("P0", "P2"), ("P1", "P2")]


def test_an_agent_that_left_a_patient_out_is_the_one_that_never_heard_of_them(
    run, linear_problem, linear_patients, tmp_path
):
    """Nothing of the patient leaks: change what was measured, and all else stays as it was."""
    file = linear_patients[:4]
    changed = dataclasses.replace(file[0], measurements={"u": 0.0, "w": 0.0})
    one = run(file[:1], [file[0], *file[1:]], results_root=tmp_path / "one")
    two = run(file[:1], [changed, *file[1:]], results_root=tmp_path / "two")
    pd.testing.assert_frame_equal(one, two)


def test_the_agent_with_continuous_actions_leaves_patients_out_too(run, linear_patients, tmp_path):
    """Whether others are in the file, or act beside it, makes no difference."""
    alone = run(linear_patients[:3], linear_patients, methods=("vito-continuous",), n_samples=20)
    assert set(alone["training"]) == {
        f"9 patients, without {patient.name}" for patient in linear_patients[:3]
    }
    assert alone["solved"].all()
    assert alone["n_runs"].max() <= 5  # the problem is linear
    stored = latest(tmp_path / "results", "personalize")
    assert stored.personalizations["n_states"].isna().all()
    assert set(stored.traces["event"]) <= {"start", "step", "restart"}
    both = run(
        linear_patients[:2], linear_patients, methods=("vito", "vito-continuous"), n_samples=20
    )
    own = both[both["method"] == "vito-continuous"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, alone.head(2), check_dtype=False)


def test_a_cascade_of_another_model_is_refused_before_anything_runs(run, linear_patients, tmp_path):
    with pytest.raises(ValueError, match="method is 'bobyqa-cascade', expected one of vito,"):
        run(linear_patients[:1], linear_patients, methods=("bobyqa-cascade",))
    assert not (tmp_path / "results").exists()


def test_every_agent_can_be_asked_for_and_feels_no_other(
    run, linear_patients, monkeypatch, tmp_path
):
    """Hindsight learns from the same walks, each once and five times more."""
    file, replays = linear_patients[:2], []
    learn = agent.Vito.learn.__func__

    def spy(cls, *args, n_replays=0, **kwargs):
        replays.append(n_replays)
        return learn(cls, *args, n_replays=n_replays, **kwargs)

    monkeypatch.setattr(agent.Vito, "learn", classmethod(spy))
    monkeypatch.setattr(folds, "policy_arrays", lambda *args, **kwargs: None)
    together = run(file, linear_patients, methods=AGENTS_HERE, results_root=tmp_path / "all")
    assert set(together["method"]) == set(AGENTS_HERE)
    hindsight = run(file, linear_patients, methods=("vito-hindsight",), results_root=tmp_path / "h")
    own = together[together["method"] == "vito-hindsight"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, hindsight, check_dtype=False)
    # the paper's and the one that starts at stored runs; hindsight beside them and alone
    assert sorted(replays) == [0, 0, 0, 0, 5, 5, 5, 5]


def test_the_same_patient_is_recognised_by_name_or_by_what_was_measured(
    linear_problem, linear_patients
):
    patient, other = linear_patients[:2]
    nudged = {name: value * (1 + 1e-12) for name, value in patient.measurements.items()}
    doubles = [
        dataclasses.replace(other, name=patient.name),
        Patient("converted", nudged, patient.data),
    ]
    strangers = [
        Patient("other rate", patient.measurements, {"offset": 0.4}),
        Patient("other value", {**patient.measurements, "u": 0.0}, patient.data),
    ]
    found = training_overlap(linear_problem, patient, [*doubles, *strangers, other])
    assert found == (patient.name, "converted")


def _angular(linear_problem: Problem) -> Problem:
    """The linear problem with an angle for its second output."""
    u, w = linear_problem.objectives
    return dataclasses.replace(
        linear_problem, objectives=(u, dataclasses.replace(w, unit="°", kind="angle"))
    )


@pytest.mark.parametrize(("one", "other"), [(-185.0, 175.0), (270.0, -90.0), (0.0, 360.0)])
def test_an_angle_a_whole_turn_apart_is_the_same_measurement(linear_problem, one, other):
    problem = _angular(linear_problem)
    patient, double, stranger = (
        Patient(name, {"u": 1.0, "w": w}, {"offset": 0.0})
        for name, w in (("P", one), ("double", other), ("stranger", other + 1e-3))
    )
    assert training_overlap(problem, patient, [double, stranger]) == ("double",)


@pytest.mark.parametrize(
    ("measured", "misfit", "modelled"),
    [(175.0, 8.0, -177.0), (270.0, -5.0, -95.0), (-175.0, -5.0, 180.0), (20.0, 3.0, 23.0)],
)
def test_a_modelled_angle_is_told_within_half_a_turn(
    linear_problem, tmp_path, measured, misfit, modelled
):
    problem = _angular(linear_problem)
    patient = Patient("P", {"u": 1.0, "w": measured}, {"offset": 0.0})
    extra = pd.DataFrame(index=["P"])
    table = PatientTable(tmp_path / "c.csv", [patient], [], extra)
    outcome = {
        **{"patient": "P", "method": "vito", "solved": False, "n_runs": 1, "n_restarts": 0},
        **{"training": "", "stop_reason": "budget", "x:a": 0.0, "x:b": 0.0},
        **{"n_failed": 0, "not_measured": ""},
        **{"misfit:u": 0.5, "misfit:w": misfit},
    }
    (row,) = fit_table(problem, table, pd.DataFrame([outcome]), ("vito",)).to_dict("records")
    assert row["w_measured [°]"] == measured
    assert row["w_modelled [°]"] == pytest.approx(modelled)
    assert row["u_modelled [mL]"] == pytest.approx(1.5)


def test_who_lacks_a_measurement_is_personalised_on_the_others_without_new_runs(
    run, linear_problem, linear_patients, tmp_path
):
    """As by an agent of the problem that has those objectives alone."""
    calls = []

    def counting(x, patient):
        calls.append(len(x))
        return linear_problem.simulate(x, patient)

    problem = dataclasses.replace(linear_problem, simulate=counting)
    path = write_csv(tmp_path / "c.csv", linear_patients[:3])
    lines = path.read_text(encoding="utf-8").splitlines()
    cells = lines[2].split(",")
    w = [name.startswith("w") for name in lines[0].split(",")].index(True)
    lines[2] = ",".join([*cells[:w], "", *cells[w + 1 :]])
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read_patients(path, problem, data=DATA, allow_missing=True)
    assert dict(table.patients[1].measurements).keys() == {"u"}
    for method in ("vito", "vito-continuous", "least-squares"):
        calls.clear()
        where = tmp_path / method
        fitted = personalize_file(
            problem,
            table,
            setup="s",
            train_on=linear_patients[3:],
            n_states=20,
            n_samples=100,
            methods=(method,),
            results_root=where,
        )
        row = fitted.iloc[1]
        assert row["solved"]
        assert row["not_measured"] == "w"
        assert abs(row["u_misfit [mL]"]) < 0.5
        assert np.isnan(row["w_misfit [mmHg]"])
        assert np.isnan(row["w_measured [mmHg]"])
        assert list(fitted["not_measured"]) == ["", "w", ""]
        # the walks were explored once, for all objectives
        explored = 0
        if method != "least-squares":
            episode = 1 if method == "vito-continuous" else 100
            explored = 7 * (100 // episode) * (episode + 1)
        assert sum(calls) == explored + fitted["n_runs"].sum()
        stored = latest(where, "personalize")
        own = stored.traces[stored.traces["patient"] == "P1"]
        assert own["y:w"].isna().all()
        assert own["y:u"].notna().all()
        assert set(own["event"]) <= {"start", "step", "restart"}
        # the same as where the other objective never was
        alone = problem.observing(["u"])
        one = PatientTable(path, [table.patients[1]], [], table.extra.loc[["P1"]])
        other = personalize_file(
            alone,
            one,
            setup="s",
            train_on=linear_patients[3:],
            n_states=20,
            n_samples=100,
            methods=(method,),
            results_root=tmp_path / f"{method}-alone",
        )
        assert (
            other.loc[0, ["n_runs", "a [mL]", "b [ms]"]].tolist()
            == row[["n_runs", "a [mL]", "b [ms]"]].tolist()
        )


def test_nobody_learns_from_patients_without_all_measurements(run, linear_problem, linear_patients):
    partial = [Patient(p.name, {"u": p.measurements["u"]}, p.data) for p in linear_patients[7:]]
    few = run(linear_patients[:1], linear_patients[1:7])
    more = run(linear_patients[:1], [*linear_patients[1:7], *partial])
    assert few["a [mL]"].tolist() == more["a [mL]"].tolist()
    with pytest.raises(InputError, match="is somebody else with all measurements"):
        run(linear_patients[:1], partial)
