"""An agent goes on from one file of patients to the next, and is never half saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import personalized
import pytest
from personalized import counted

from vitolab.agent import ContinuousVito, folder
from vitolab.experience import Experience, check_experience
from vitolab.methods import Settings
from vitolab.personalization import order
from vitolab.validation import child_seed

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
    assert stored.names == ("P0", "P1", "P2", "P1", "P5")
    assert stored.without("P1").names == ("P0", "P2", "P5")
    assert set(stored.without("P1").patient) == {0, 1, 2}


def test_an_agent_that_was_saved_without_names_is_still_read(linear_problem, linear_patients):
    """Its patients have no names, and it counts the runs that answered."""
    patient = linear_patients[0]
    agent = ContinuousVito.learn(linear_problem)
    experience = agent.update([(patient, agent.personalize(patient))]).experience
    arrays = experience.to_arrays()
    del arrays["made"], arrays["names"]
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
    # with another file in between it is another agent, which does learn
    go(linear_patients[3:4], agent=kept)
    go(linear_patients[:3], agent=kept)
    assert done == ["P3", "P0", "P1", "P2"]


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
