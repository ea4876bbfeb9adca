"""The page Patient without a server: which run and patient is shown after another choice."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pandas as pd
import patient_pages
from patient_pages import opened, replace_table, words

from vitolab.dashboard import load_dashboards

learned = patient_pages.learned
fitted = patient_pages.fitted
store = patient_pages.store

answers = load_dashboards("charts.answers")
selection = load_dashboards("kit.selection")
source = load_dashboards("kit.source")
worker = load_dashboards("kit.worker")
page = load_dashboards("pages.patient.page")


def test_a_run_that_the_store_lacks_is_told(store):
    """No other run stands in its place; a chosen one takes it."""
    view, chosen, working = opened(store, runs=["nothing"])
    assert "Not in this store: nothing. Choose another" in words(view.newest.object)
    assert view.choice.widget.value not in [entry.id for entry in view.source.entries]
    assert not view.content.visible
    chosen.runs = []
    working.wait()
    assert view.content.visible


def test_a_patient_that_cannot_be_shown_keeps_no_other_from_being_chosen(tmp_path, store):
    """The first lacks a measurement: it is said, and the widgets stay."""
    shutil.copytree(store, tmp_path / "copy")
    run = next((tmp_path / "copy" / "wbc-convergence").glob("2*"))
    known = pd.read_parquet(run / "patients.parquet")
    first, second = sorted(known["patient"].unique())[:2]
    known.loc[known["patient"] == first, "z:lv_edv"] = np.nan
    replace_table(run, "patients", known)
    view, _, working = opened(tmp_path / "copy")
    assert f"the run holds no 'lv_edv' of {first}" in words(view.message.object).replace(
        "&#x27;", "'"
    )
    assert not view.content.visible
    assert view.widgets.visible
    view.patient.value = second
    working.wait()
    assert view.content.visible
    assert view._film.patient.name == second
    assert view.message.object == ""


def test_a_run_within_which_something_was_chosen_is_kept(tmp_path, store):
    shutil.copytree(store, tmp_path / "results")
    view, chosen, working = opened(tmp_path / "results")
    run = view._stored.id
    assert chosen.runs == []
    view.player.value = 2
    working.wait()
    assert chosen.runs == [run]
    first = next((tmp_path / "results" / "wbc-convergence").glob("2*"))
    shutil.copytree(first, first.with_name("20991231T000000Z-later"))
    view.source.refresh(older_than=0)
    view.refresh()
    working.wait()
    assert view._stored.id == run
    assert "Forward run 2 of" in view.count.object


def test_a_run_that_comes_back_is_shown_again(tmp_path, store):
    shutil.copytree(store, tmp_path / "results")
    view, _, working = opened(tmp_path / "results")
    assert view.content.visible
    study = tmp_path / "results" / "wbc-convergence"
    for there, seen in ((False, False), (True, True)):
        study.rename(tmp_path / "away") if not there else (tmp_path / "away").rename(study)
        view.source.refresh(older_than=0)
        view.refresh()
        working.wait()
        assert view.content.visible == seen


def test_curves_of_one_patient_never_stand_under_the_name_of_another(store, monkeypatch):
    """The model takes its time: until it answers there is no curve."""
    view, _, working = opened(store)
    assert len(view.screen.picture.model.data["time"]) > 0
    answer, go_on = answers.simulate, threading.Event()
    monkeypatch.setattr(answers, "simulate", lambda *given: go_on.wait(10) and answer(*given))
    view._turn(1)
    while working.is_busy("patient-film") or not working.is_busy("patient-answer"):
        working.poll()
    assert len(view.screen.picture.model.data["time"]) == 0
    go_on.set()
    working.wait()
    assert len(view.screen.picture.model.data["time"]) > 0


def test_another_run_is_shown_from_its_beginning(tmp_path, store):
    """What was chosen within the run before is none of it."""
    shutil.copytree(store, tmp_path / "two")
    (first,) = (tmp_path / "two" / "wbc-convergence").glob("2*")
    shutil.copytree(first, first.with_name("20200101T000000Z-earlier"))
    view, chosen, working = opened(tmp_path / "two", patient="C03", method="nelder-mead", step=2)
    assert (view.choice.widget.value, view._film.patient.name) == ("-", "C03")
    assert "The newest run: wbc-convergence" in view.newest.object
    view.choice.widget.value = "20200101T000000Z-earlier"
    working.wait()
    assert view._stored.id == "20200101T000000Z-earlier"
    assert view.newest.object == ""
    assert chosen.query() == "page=patient&runs=20200101T000000Z-earlier"
    assert view.patient.value == "C01"
    assert "Not in this run" not in view.outcome.object


def test_a_run_that_was_left_before_it_was_read_does_not_come_back(tmp_path, store):
    """There and back again at once: the first stays."""
    shutil.copytree(store, tmp_path / "two")
    (first,) = (tmp_path / "two" / "wbc-convergence").glob("2*")
    shutil.copytree(first, first.with_name("20200101T000000Z-earlier"))
    view, chosen, working = opened(tmp_path / "two", runs=[first.name])
    chosen.runs = ["20200101T000000Z-earlier"]
    chosen.runs = [first.name]
    working.wait()
    assert view._stored.id == first.name
    assert view.content.visible
    chosen.runs = ["20200101T000000Z-earlier"]
    chosen.patient = "C03"
    working.wait()
    assert (view._stored.id, view.patient.value) == ("20200101T000000Z-earlier", "C03")


def test_hidden_pages_wait(store):
    """A change while another page is shown is taken up when this one is."""
    view, chosen, working = opened(store, method="vito")
    chosen.page = "runs"
    chosen.patient = "C03"
    working.wait()
    assert view.patient.value == "C01"
    chosen.page = "patient"
    view.refresh()
    working.wait()
    assert view.patient.value == "C03"


def test_a_row_of_the_table_selects_its_run(store):
    """The table of all runs follows the slider and leads to a run."""
    view, _, working = opened(store, method="vito")
    rows = view.screen.table.shown
    assert [row["run"] for row in rows] == list(range(1, view.player.end + 1))
    view.screen.table.chosen = ["1"]
    working.wait()
    assert view.player.value == 1
    view.player.value = view.player.end
    working.wait()
    assert view.screen.table.chosen == [str(view.player.end)]


def test_a_page_that_was_left_while_it_loaded_is_whole_on_return(store):
    """Run, table and sentences are there; a run of another address is taken up."""
    found = source.Source(store)
    found.refresh()
    chosen, working = selection.Selection(page="patient", method="nelder-mead"), worker.Worker()
    view = page.PatientView(chosen, found, working)
    view.panel()
    chosen.page = "results"
    working.wait()
    chosen.page = "patient"
    view.refresh()
    working.wait()
    assert "Forward run 1 of" in view.count.object
    assert view.screen.told.object
    chosen.param.update(page="results", step=2)
    chosen.page = "patient"
    view.refresh()
    working.wait()
    assert "Forward run 3 of" in view.count.object
