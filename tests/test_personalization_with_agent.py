"""An agent goes on from one file of patients to the next, and is never half saved."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import personalized
import pytest
from personalized import counted

from vitolab.agent import ContinuousVito, folder
from vitolab.agent.experienced import check_experience
from vitolab.experience import Experience
from vitolab.methods import Settings
from vitolab.personalization import order
from vitolab.personalization.kept import alone, holds
from vitolab.store import list_runs
from vitolab.validation import child_seed
from vitolab.validation.continuing import Continuing

go, run = personalized.go, personalized.run


def test_an_agent_goes_on_from_one_file_to_the_next(go, linear_problem, linear_patients, tmp_path):
    kept = tmp_path / "agent"
    go(linear_patients[:3], agent=kept)
    second = go(linear_patients[3:6], agent=kept)
    whole = go(linear_patients[:6], agent=tmp_path / "other")
    assert list(second["n_runs"]) == list(whole["n_runs"][3:])
    assert second["training"][1] == "3 patients of the agent and 1 patient before"
    one = ContinuousVito.load(kept, linear_problem)
    other = ContinuousVito.load(tmp_path / "other", linear_problem)
    assert one.experience.key == other.experience.key
    assert len(one.experience.known) == 6
    assert {path.name for path in tmp_path.iterdir()} == {
        *("agent", "other", "results", "clinic.csv")
    }


def test_nobody_learns_from_their_own_runs_of_another_file(
    go, linear_problem, linear_patients, tmp_path
):
    """The agent keeps whose runs it has, and who comes again is personalised by the others."""
    kept = tmp_path / "agent"
    go(linear_patients[:3], agent=kept)
    agent = ContinuousVito.load(kept, linear_problem)
    others = ContinuousVito(linear_problem, agent.experience.without("P1"))
    again = go([linear_patients[1], linear_patients[5]], agent=kept)
    assert list(again["training"]) == [
        "2 patients of the agent and nobody before, without P1",
        "3 patients of the agent and 1 patient before",
    ]
    seed = child_seed(3, "patient", "P1")
    expected = others.personalize(linear_patients[1], max_runs=60, seed=seed)
    assert again[["a [mL]", "b [ms]"]].to_numpy()[0].tolist() == expected.x.tolist()
    assert again["n_runs"][0] == expected.n_runs
    stored = ContinuousVito.load(kept, linear_problem).experience
    assert stored.names == ("P0", "P1", "P2", "P5")
    assert stored.without("P1").names == ("P0", "P2", "P5")
    assert set(stored.without("P1").patient) == {0, 1, 2}


def test_an_agent_that_was_saved_without_names_is_still_read(linear_problem, linear_patients):
    """Its patients have no names, and it counts the runs that answered."""
    patient = linear_patients[0]
    agent = ContinuousVito.learn(linear_problem)
    experience = agent.update([(patient, agent.personalize(patient))]).experience
    arrays = experience.to_arrays()
    del arrays["made"], arrays["names"], arrays["checksums"]
    check_experience(Path("file"), linear_problem, arrays)
    read = Experience.from_arrays(linear_problem, arrays)
    assert (read.names, read.n_runs) == (("",), len(experience.u))
    assert read.without(patient.name) is read
    np.testing.assert_array_equal(read.u, experience.u)


def test_the_same_command_with_its_agent_learns_from_nobody_twice(
    go, linear_problem, linear_patients, tmp_path, monkeypatch
):
    kept = tmp_path / "agent"
    one = go(linear_patients[:3], agent=kept)
    before = ContinuousVito.load(kept, linear_problem).experience.key
    done = counted(monkeypatch)
    two = go(linear_patients[:3], agent=kept)
    assert not done
    pd.testing.assert_frame_equal(one, two)
    assert ContinuousVito.load(kept, linear_problem).experience.key == before
    # with another file in between it has learned from them all the same
    go(linear_patients[3:4], agent=kept)
    three = go(linear_patients[:3], agent=kept)
    assert done == ["P3"]
    pd.testing.assert_frame_equal(one, three)
    stored = ContinuousVito.load(kept, linear_problem).experience
    assert stored.names == ("P0", "P1", "P2", "P3")
    # unless it is to be done again, by an agent that leaves out the own runs, and keeps each once
    four = go(linear_patients[:3], agent=kept, again=True)
    assert done == ["P3", "P0", "P1", "P2"]
    assert list(four["training"]) == [
        "3 patients of the agent and nobody before, without P0",
        "3 patients of the agent and 1 patient before, without P1",
        "3 patients of the agent and 2 patients before, without P2",
    ]
    more = ContinuousVito.load(kept, linear_problem).experience
    assert more.names == ("P0", "P1", "P2", "P3")
    assert set(map(bytes, stored.u)) <= set(map(bytes, more.u))
    assert holds(more, stored)
    assert not holds(stored, more)


def test_a_damaged_run_of_an_agent_is_refused_with_what_to_do(
    go, linear_problem, linear_patients, tmp_path
):
    kept = tmp_path / "agent"
    go(linear_patients[:2], agent=kept)
    (info,) = list_runs(tmp_path / "results")
    (info.path / "traces.parquet").unlink()
    with pytest.raises(ValueError, match=r"traces.parquet: .*; again=True computes the run again"):
        go(linear_patients[:2], agent=kept)
    go(linear_patients[:2], agent=kept, again=True)
    assert ContinuousVito.load(kept, linear_problem).experience.names == ("P0", "P1")


def test_a_patient_who_comes_again_under_another_name_is_left_out(
    go, linear_problem, linear_patients, tmp_path
):
    kept = tmp_path / "agent"
    go(linear_patients[:3], agent=kept)
    again = go([replace(linear_patients[1], name="A7")], agent=kept)
    assert list(again["training"]) == ["2 patients of the agent and nobody before, without P1"]
    named = ContinuousVito.load(kept, linear_problem).experience.names
    assert named == ("P0", "P1", "P2", "A7")


def test_patients_without_names_cannot_be_left_out_which_is_said(
    go, linear_problem, linear_patients, tmp_path
):
    """An agent of an earlier version."""
    kept = tmp_path / "agent"
    go(linear_patients[:2], agent=kept)
    known = ContinuousVito.load(kept, linear_problem).experience
    nameless = replace(known, names=("", ""), checksums=("", ""))
    ContinuousVito(linear_problem, nameless).save(kept, replace=True)
    again = go(linear_patients[1:2], agent=kept)
    assert list(again["training"]) == [
        "2 patients of the agent, 2 of them without a name, and nobody before"
    ]


def test_what_two_commands_teach_an_agent_at_the_same_time_is_all_kept(
    go, linear_problem, linear_patients, tmp_path, monkeypatch, capsys
):
    """Both begin without an agent, and the second ends before the first; given again they rest."""
    kept = tmp_path / "agent"
    (tmp_path / "other").mkdir()
    personalizer = Continuing.personalizer

    def tuesday():
        return go(linear_patients[3:5], agent=kept, results_root=tmp_path / "other")

    def meanwhile(self, patient):
        if patient.name == "P1":
            tuesday()
        return personalizer(self, patient)

    with monkeypatch.context() as patched:
        patched.setattr(Continuing, "personalizer", meanwhile)
        monday = go(linear_patients[:3], agent=kept)
    known = ContinuousVito.load(kept, linear_problem).experience
    assert known.names == ("P3", "P4", "P0", "P1", "P2")
    assert list(monday["training"])[2] == "2 patients before"
    said = f"{kept} has learned from other patients meanwhile, and keeps them"
    assert capsys.readouterr().err.count(said) == 1
    done = counted(monkeypatch)
    pd.testing.assert_frame_equal(go(linear_patients[:3], agent=kept), monday)
    tuesday()
    assert not done
    assert ContinuousVito.load(kept, linear_problem).experience.key == known.key
    assert {path.name for path in tmp_path.iterdir()} == {
        *("agent", "other", "results", "clinic.csv")
    }


def test_commands_wait_for_each_other_while_an_agent_is_replaced(tmp_path):
    """A lock that another process holds; it ends with that process."""
    hold = (
        "import sys, time; from pathlib import Path; from vitolab.personalization.kept import *\n"
        "with alone(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", hold, str(tmp_path / "agent")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        entered = threading.Event()

        def enter():
            with alone(tmp_path / "agent"):
                entered.set()

        thread = threading.Thread(target=enter, daemon=True)
        thread.start()
        assert not entered.wait(0.5)
        process.kill()
        assert entered.wait(30)
        thread.join()


def test_an_agent_is_saved_though_the_call_was_killed_once_the_run_was_stored(
    go, linear_problem, linear_patients, tmp_path, monkeypatch
):
    kept = tmp_path / "agent"
    with monkeypatch.context() as patched:
        patched.setattr(order.ContinuousVito, "save", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            go(linear_patients[:3], agent=kept)
    assert not kept.exists()
    done = counted(monkeypatch)
    go(linear_patients[:3], agent=kept)
    assert not done
    assert len(ContinuousVito.load(kept, linear_problem).experience.known) == 3


def test_an_agent_that_waited_to_be_replaced_comes_back(linear_problem, tmp_path, monkeypatch):
    kept = tmp_path / "agent"
    agent = ContinuousVito.learn(linear_problem)
    agent.save(kept)
    rename = Path.rename

    def killed(self, target):
        if Path(target) == kept:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            ContinuousVito(linear_problem, agent.experience, 0.25).save(kept, replace=True)
    assert not kept.exists()
    assert ContinuousVito.load(kept, linear_problem).give_up == 0.0
    ContinuousVito(linear_problem, agent.experience, 0.25).save(kept, replace=True)
    assert ContinuousVito.load(kept, linear_problem).give_up == 0.25
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


def test_a_folder_that_holds_more_than_an_agent_is_not_replaced(linear_problem, tmp_path):
    kept = tmp_path / "agent"
    agent = ContinuousVito.learn(linear_problem)
    agent.save(kept)
    with pytest.raises(FileExistsError, match="choose another place"):
        agent.save(kept)
    (kept / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match=r"agent holds notes.txt, expected continuous.json and "):
        agent.save(kept, replace=True)
    assert (kept / "notes.txt").read_text(encoding="utf-8") == "mine"
    with pytest.raises(ValueError, match=r"arrays.npz is missing, expected the folder"):
        folder.check_replaceable(tmp_path, "continuous.json")


def test_a_larger_total_goes_on_with_the_agent_that_the_smaller_one_left(
    go, linear_problem, linear_patients, tmp_path, monkeypatch
):
    kept, file = tmp_path / "agent", linear_patients[:4]
    free = go(file, agent=tmp_path / "other", results_root=tmp_path / "free")
    total = int(free["n_runs"][:2].sum())
    go(file, agent=kept, total_runs=total)
    done = counted(monkeypatch)
    again = go(file, agent=kept, total_runs=500)
    assert done == ["P2", "P3"]
    assert list(again["n_runs"]) == list(free["n_runs"])
    one, other = (ContinuousVito.load(p, linear_problem) for p in (kept, tmp_path / "other"))
    assert one.experience.key == other.experience.key


def test_an_agent_of_another_problem_is_refused(go, linear_problem, linear_patients, tmp_path):
    other = replace(linear_problem, name="another")
    ContinuousVito.learn(other, settings=Settings()).save(tmp_path / "agent")
    with pytest.raises(ValueError, match="the agent learned another problem: name is another"):
        go(linear_patients[:2], agent=tmp_path / "agent")
    assert not (tmp_path / "results").exists()


def test_of_an_agent_of_a_model_that_has_changed_it_is_said_what_to_do(
    linear_problem, linear_patients, tmp_path
):
    kept = tmp_path / "agent"
    ContinuousVito.learn(linear_problem).save(kept)
    changed = replace(linear_problem, version="2")
    with pytest.raises(ValueError, match="or its files have changed since the agent learned, ex"):
        personalized.in_order(changed, linear_patients[:2], tmp_path, agent=kept)
    # what is otherwise another problem is told as before
    with pytest.raises(ValueError, match="the agent learned another problem: version is 1"):
        personalized.in_order(
            replace(changed, parameters=changed.parameters[:1]),
            *(linear_patients[:2], tmp_path),
            agent=kept,
        )
