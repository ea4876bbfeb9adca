"""Runs in which patients teach those after them, stored, shown and written by the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from part_store import Parts
from typer.testing import CliRunner

from vitolab.cli import app
from vitolab.experience import Experience
from vitolab.store import OpenRun, Run, list_runs
from vitolab.store.tables import patient_table
from vitolab.studies.notebooks import find_notebook
from vitolab.studies.problem import STUDY
from vitolab.validation import reference_runs
from vitolab.validation.continuing import Continuing
from vitolab.validation.rounds import one_after_another


@pytest.fixture(scope="module")
def stored(linear_problem, linear_patients, tmp_path_factory) -> Run:
    """Two methods one patient after the other, beside a reference method."""
    asked = {"learn_as_you_go": True, "episode": 1}
    run = OpenRun.start(tmp_path_factory.mktemp("results"), "problem", asked, 0, "1")
    for name in ("vito-continuous", "quadratic"):
        method = Continuing(linear_problem, name, Experience.none(linear_problem))
        one_after_another(run, "2p", method, linear_patients[:3], max_runs=30, total_runs=25)
    reference_runs(
        *(run, {"2p": linear_problem}, linear_patients[:3]),
        methods=["nelder-mead"],
        n_starts=2,
        max_runs=30,
    )
    known = patient_table({"2p": linear_problem}, linear_patients[:3])
    return run.finish(problems={"2p": linear_problem}, patients=known)


def test_a_run_with_and_without_an_order_is_stored_and_read(stored):
    rows = stored.personalizations
    ordered = rows[rows["order"].notna()]
    assert set(ordered["method"]) == {"vito-continuous", "quadratic"}
    for _, own in ordered.sort_values("order").groupby("method"):
        assert list(own["patient"]) == ["P0", "P1", "P2"]
        assert list(own["order"]) == list(own["round"]) == [1, 2, 3]
        assert own["n_runs"].sum() <= 25
        assert own["history"].nunique() == 3
    assert len(stored.traces) == rows[rows["method"] != "nelder-mead"]["n_runs"].sum() + sum(
        stored.traces["method"] == "nelder-mead"
    )


@pytest.mark.parametrize("section", [section.name for section in STUDY.sections])
def test_every_section_of_the_study_has_something_to_say(stored, section):
    (own,) = [each for each in STUDY.sections if each.name == section]
    content = own.build(stored, 0)
    assert content.sentence
    if section == "curves":
        assert content.sentence.startswith("Nothing was explored: in the order of the file each")
        (_, table) = content.tables[0]
        assert list(table["patient"]) == ["P0", "P1", "P2"]


def personalize(*arguments: str):
    return CliRunner().invoke(app, ["personalize", *arguments], catch_exceptions=False)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The starter, with four patients."""
    source = find_notebook("starter/problem.toml").parent
    for name in ("problem.toml", "model.py"):
        shutil.copy(source / name, tmp_path / name)
    lines = (source / "patients.csv").read_text(encoding="utf-8").splitlines()[:5]
    (tmp_path / "patients.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_the_command_tells_the_order_and_what_it_took(own):
    asked = [str(own / "problem.toml"), "--patients", str(own / "patients.csv")]
    asked += ["--learn-as-you-go", "--results", str(own / "results"), "--jobs", "1"]
    asked += ["--agent", str(own / "agent")]
    some = personalize(*asked, "--total-runs", "13", "--out", str(own / "some.csv"))
    assert some.exit_code == 0
    assert "in the order of the file, each patient after what those before taught: " in some.stderr
    assert "13 of 13 forward runs used. An estimate: the 3 open would take about" in some.stderr
    every = personalize(*asked, "--out", str(own / "all.csv"))
    assert "4 solved, 0 unreachable, 0 not solved, 0 open; " in every.stderr
    first, again = ((own / f"{name}.csv").read_text("utf-8") for name in ("some", "all"))
    assert first.splitlines()[1] == again.splitlines()[1]
    assert len(list_runs(own / "results")) == 2
    assert (own / "agent" / "continuous.json").is_file()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--train-on", "patients.csv"], "--n-samples is missing, expected it with --train-on"),
        (["--give-up", "2"], "give_up is 2.0, expected from 0 to below 1"),
    ],
)
def test_the_command_refuses_what_would_not_be_used(own, monkeypatch, more, said):
    monkeypatch.chdir(own)
    with pytest.raises(ValueError, match=said):
        personalize("problem.toml", "--patients", "patients.csv", "--learn-as-you-go", *more)
    assert not (own / "results").exists()


def test_a_method_that_keeps_to_no_budget_takes_no_total(linear_problem, linear_patients):
    """Its runs cannot be shared."""
    method = Continuing(linear_problem, "bobyqa-cascade-stable", Experience.none(linear_problem))
    with pytest.raises(ValueError, match="total_runs is 9, which bobyqa-cascade-stable does not"):
        one_after_another(Parts(), "s", method, linear_patients[:2], total_runs=9)
