"""Published runs: what travels with the package reads like any other run."""

from __future__ import annotations

import json

import nbformat
import pandas as pd
import pytest
import stores

from vitolab import version
from vitolab.dashboard import load_dashboards
from vitolab.models import circulation
from vitolab.store import copy_published, list_runs, open_run, published
from vitolab.store.shipped import PUBLISHED, REPORT, publish
from vitolab.store.stored import Run
from vitolab.store.tables import patient_table
from vitolab.studies import STUDIES, profile_of
from vitolab.validation import leave_one_out

source = load_dashboards("kit.source")


def notebook_of(path):
    """Put an executed notebook with one output, one input and one script beside a run."""
    output = nbformat.v4.new_output("stream", text=f"stored in {path}")
    script = nbformat.v4.new_output("display_data", {"application/javascript": "alert(1)"})
    cell = nbformat.v4.new_code_cell("secret = 1", outputs=[output, script])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path / "notebook.ipynb")


def test_a_published_run_has_the_tables_of_the_run_and_not_the_name_of_the_computer(tmp_path):
    path = stores.stored_run(tmp_path / "results")
    copy = Run.load(publish(path, tmp_path / "published"))
    run = Run.load(path)
    for name in ("patients", "personalizations"):
        pd.testing.assert_frame_equal(getattr(copy, name), getattr(run, name))
    assert copy.problems == run.problems
    record = json.loads((copy.path / "run.json").read_text(encoding="utf-8"))
    assert record["host"] == ""
    assert record["process"] == 0
    kept = {key: value for key, value in record.items() if key not in ("host", "process")}
    original = json.loads((path / "run.json").read_text(encoding="utf-8"))
    changed = {key for key, value in kept.items() if value != original[key]}
    assert changed == {"files", "process_started"}


def test_the_executed_notebook_becomes_a_page_without_code_scripts_or_paths(tmp_path):
    pytest.importorskip("nbconvert")
    path = stores.stored_run(tmp_path / "results")
    notebook_of(path)
    page = (publish(path, tmp_path / "published") / REPORT).read_text(encoding="utf-8")
    assert "stored in results/wbc-fit/" in page
    for hidden in ("secret", "alert", str(tmp_path), "http:", "https:"):
        assert hidden not in page


def test_only_complete_runs_are_published_and_each_once(tmp_path):
    run = stores.start_run(tmp_path / "results")
    with pytest.raises(ValueError, match=r"not complete, expected one that is|missing"):
        publish(run.path, tmp_path / "published")
    assert not (tmp_path / "published").exists()
    path = stores.stored_run(tmp_path / "others")
    publish(path, tmp_path / "published")
    with pytest.raises(ValueError, match="published already"):
        publish(path, tmp_path / "published")


def test_the_dashboard_lists_published_runs_after_those_of_the_results(tmp_path):
    shipped = publish(stores.stored_run(tmp_path / "elsewhere", "wbc-12p"), tmp_path / "published")
    own = stores.stored_run(tmp_path / "results")
    found = source.Source(tmp_path / "results", tmp_path / "published")
    found.refresh()
    assert [entry.info.path for entry in found.entries] == [own, shipped]
    assert [entry.published for entry in found.entries] == [False, True]
    assert len(found.table(found.entries[1].id, "personalizations")) == 6


def test_a_published_run_that_was_copied_is_listed_once(tmp_path):
    publish(stores.stored_run(tmp_path / "results"), tmp_path / "published")
    found = source.Source(tmp_path / "results", tmp_path / "published")
    found.refresh()
    assert [entry.published for entry in found.entries] == [False]


@pytest.mark.parametrize("info", list_runs(PUBLISHED), ids=lambda info: info.study)
def test_what_is_published_is_whole(info):
    run = Run.load(info.path)
    assert run.study in {study.name for study in STUDIES}
    for name in run.manifest.files:
        if name.endswith(".parquet"):
            assert len(getattr(run, name.removesuffix(".parquet")))
    assert len(run.personalizations)
    assert not any("/" in str(value) for value in run.parameters.values())


def test_published_runs_are_copied_once_into_a_folder_of_results(tmp_path):
    copies = copy_published(tmp_path / "results")
    assert [copy.parent.parent for copy in copies] == [tmp_path / "results"] * len(copies)
    assert copy_published(tmp_path / "results") == copies
    assert {info.path for info in list_runs(tmp_path / "results")} == set(copies)


def test_a_study_without_a_published_run_is_said():
    with pytest.raises(ValueError, match=r"^study is 'nothing', expected one with a published run"):
        published("nothing")


def test_a_profile_is_known_by_its_parameters():
    study = next(study for study in STUDIES if study.name == "wbc-convergence")
    parameters = dict(study.profiles["standard"])
    assert profile_of("wbc-convergence", parameters) == "standard"
    assert profile_of("wbc-convergence", parameters | {"n_starts": 7}) == ""
    assert profile_of("nothing", parameters) == ""


def test_what_is_published_does_not_change_what_code_is_known_by(tmp_path, monkeypatch):
    (tmp_path / "mdp.py").write_text("GAMMA = 0.99\n", encoding="utf-8")
    (tmp_path / "_published").mkdir()
    monkeypatch.setattr(version, "package_folder", lambda: tmp_path)
    before = version.reached_version()
    (tmp_path / "_published" / "run.json").write_text("{}", encoding="utf-8")
    assert version.reached_version() == before
    (tmp_path / "ranges.json").write_text("{}", encoding="utf-8")
    assert version.reached_version() != before


def test_published_rows_are_those_of_this_code(tmp_path):
    """To the last bit on one machine; other processors and libraries round in other ways."""
    run = published("wbc-convergence")
    seed, states = run.manifest.seed, run.parameters["n_states"]["2p"]
    problems, patients = {"2p": circulation.problem("2p")}, circulation.cohort().evaluation
    size = min(run.parameters["n_samples"]["2p"])
    mine = open_run("again", {}, results=tmp_path, seed=seed)
    sizes = {"n_samples": {"2p": [size]}, "n_states": {"2p": [states]}}
    leave_one_out(mine, problems, patients, **sizes, methods=["vito", "vito-deterministic"])
    table = mine.finish(problems=problems, patients=patient_table(problems, patients))
    columns = [
        "solved",
        "n_runs",
        "n_restarts",
        *(f"x:{p.name}" for p in problems["2p"].parameters),
    ]
    keys = ["method", "patient"]
    ours = table.personalizations.set_index(keys)[columns].sort_index()
    rows = run.personalizations.query("setup == '2p' and n_samples == @size and repeat == 0")
    theirs = rows.set_index(keys)[columns].sort_index()
    assert list(ours.index) == list(theirs.index)
    alike = (ours == theirs).all(axis=1)
    assert alike.mean() >= 0.9, f"{alike.mean():.0%} of {len(alike)} rows are the same"
