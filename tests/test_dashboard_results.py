"""The page Results without a server: parts, choices, states of a page."""

from __future__ import annotations

import dashboard_runs as made
import panel as pn
import pytest
import result_pages
import stores
from dashboard_runs import listed, opened, plots_of

from vitolab.dashboard import load_dashboards
from vitolab.store import OpenRun
from vitolab.store.tables import table

runs = result_pages.runs

choice = load_dashboards("kit.choice")
explain = load_dashboards("pages.policy.explain")
policy = load_dashboards("pages.policy.learned")
report = load_dashboards("pages.results.report")
selection = load_dashboards("kit.selection")
source = load_dashboards("kit.source")
worker = load_dashboards("kit.worker")
policy_page = load_dashboards("pages.policy.page")
results_page = load_dashboards("pages.results.page")


def test_the_page_shows_figures_words_and_numbers(runs):
    found, ids = runs
    view, content = opened(results_page.ResultsView, found, runs=[ids["convergence"]])
    assert len(plots_of(view.gallery)) == 4
    assert "Vito solves" in view.sentence.object
    assert view.message.object == ""
    assert view.sections.value == "curves"
    assert {k for k, b in view.saver.buttons.items() if not b.disabled} == {
        *("csv", "png", "svg", "html")
    }
    assert content.sizing_mode == "stretch_width"


def test_a_part_is_chosen_by_the_address_and_by_the_user(runs):
    found, ids = runs
    view, _ = opened(results_page.ResultsView, found, runs=[ids["grid"]], view="numbers")
    assert view.sections.value == "numbers"
    assert plots_of(view.gallery) == []
    view.sections.value = "success"
    view.worker.wait(60)
    assert view.selection.view == "success"
    assert len(plots_of(view.gallery)) == 1


def test_results_that_were_left_do_not_come_back(runs):
    found, ids = runs
    chosen, working = selection.Selection(page="results", runs=[ids["grid"]]), worker.Worker()
    view = results_page.ResultsView(chosen, found, working)
    view.panel()
    chosen.runs = ["gone"]
    working.wait(60)
    assert view.sentence.object == ""
    assert "Not in this store: gone" in view.message.object


def test_results_of_a_run_do_not_stand_under_the_words_of_another(runs):
    found, ids = runs
    view, _ = opened(results_page.ResultsView, found, runs=[ids["scouting"]])
    assert view.sentence.object
    view.selection.runs = [ids["grid"]]
    assert view.sentence.object == view.tables.object == ""
    view.worker.wait(60)
    assert view.sentence.object


def test_what_an_address_asks_in_vain_falls_back(runs):
    found, ids = runs
    view, _ = opened(
        results_page.ResultsView, found, runs=[ids["scouting"]], view="nonsense", repeat=99
    )
    assert view.sections.value == "curves"
    assert "Not in this run: part nonsense, repeat 99." in view.message.object


def test_without_a_choice_the_newest_run_is_shown_and_the_address_stays(runs):
    found, _ = runs
    view, _ = opened(results_page.ResultsView, found)
    assert view.selection.runs == []
    assert "newest run" in view.legend.object
    assert plots_of(view.gallery)


def test_a_part_chosen_in_the_newest_run_keeps_that_run(tmp_path):
    """Though a newer one is complete, and though its first part fails."""
    run = made.convergence(tmp_path)
    found = listed(tmp_path)
    view, _ = opened(results_page.ResultsView, found)
    view.sections.value = "numbers"
    view.worker.wait(60)
    assert view.selection.runs == [run]
    newer = made.grid(tmp_path)
    found.refresh(older_than=0.0)
    view.refresh()
    view.worker.wait(60)
    assert view._ids() == [run]
    view.selection.param.update(runs=[], view="", repeat=None)
    view.worker.wait(60)
    assert view._ids() == [newer]
    view.sections.value = "success"
    assert view.selection.runs == [newer]


def test_a_hidden_page_does_no_work_until_it_is_shown(runs):
    found, ids = runs
    view, _ = opened(results_page.ResultsView, found, runs=[ids["scouting"]])
    view.selection.page = "runs"
    view.selection.runs = [ids["grid"]]
    assert not view.worker._jobs
    view.selection.page = "results"
    view.refresh()
    view.worker.wait(60)
    assert view.sections.value == "errors"


def test_nothing_is_drawn_again_while_nothing_changes(runs):
    found, ids = runs
    view, _ = opened(results_page.ResultsView, found, runs=[ids["scouting"]])
    before = plots_of(view.gallery)
    found.refresh(older_than=0)
    view.refresh()
    assert not view.worker._jobs
    assert plots_of(view.gallery) == before


@pytest.mark.parametrize("page", [results_page.ResultsView, policy_page.PolicyView])
def test_an_empty_store_gives_a_command(tmp_path, page):
    view, _ = opened(page, listed(tmp_path / "none"))
    assert "vitolab " in view.message.object
    assert str(tmp_path) in view.message.object


@pytest.mark.parametrize("page", [results_page.ResultsView, policy_page.PolicyView])
def test_a_run_that_the_store_lacks_is_named(runs, page):
    view, _ = opened(page, runs[0], runs=["20990101T000000Z-ffffffff"])
    assert "Not in this store: 20990101T000000Z-ffffffff" in view.message.object
    assert not (view.plane.item if hasattr(view, "plane") else plots_of(view.gallery))


@pytest.mark.parametrize("page", [results_page.ResultsView, policy_page.PolicyView])
def test_a_failed_run_shows_its_reason_as_text(tmp_path, page):
    run = made.convergence(tmp_path, status="failed")
    view, _ = opened(page, listed(tmp_path), runs=[run])
    panes = [getattr(view, n) for n in ("message", "legend", "notes") if hasattr(view, n)]
    shown = "".join(pane.object for pane in panes)
    assert "&lt;b&gt;no&lt;/b&gt;" in shown
    assert "<b>no" not in shown


def test_a_damaged_table_is_told_and_the_page_goes_on(tmp_path):
    good, bad = made.scouting(tmp_path), made.personalization(tmp_path)
    found = listed(tmp_path)
    (found.entry(bad).info.path / "personalizations.parquet").write_bytes(b"PAR1")
    view, _ = opened(results_page.ResultsView, found, runs=[bad])
    assert "note-error" in view.message.object
    assert "personalizations.parquet" in view.message.object
    view.selection.runs = [good]
    view.worker.wait(60)
    assert view.message.object == ""
    assert plots_of(view.gallery)


def test_of_a_run_that_goes_on_what_is_finished_is_shown(tmp_path):
    run = made.convergence(tmp_path, status="running")
    view, _ = opened(results_page.ResultsView, listed(tmp_path), runs=[run])
    assert "1 of 4" in view.legend.object
    assert len(plots_of(view.gallery)) == 4


def test_a_run_that_goes_on_is_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(results_page, "PATIENCE", 0.0)
    run = made.scouting(tmp_path, status="running")
    found = listed(tmp_path)
    view, _ = opened(results_page.ResultsView, found, runs=[run])
    assert "with 70 states" in view.sentence.object
    folder = OpenRun.attach(found.entry(run).info.path)
    problem = made.circulation.problem("2p")
    folder.write_part("more", table([made.row(problem, n_states=90)]))
    folder.progress("folds", 2, 4)
    found.refresh(older_than=0)
    view.refresh()
    view.worker.wait(60)
    assert "with 90 states" in view.sentence.object
    assert "2 of 4" in view.legend.object


def test_hostile_names_are_text_in_the_page_and_in_its_files(tmp_path):
    payload = stores.PAYLOADS[0]
    problem = made.EP
    rows = [
        made.row(problem, setup=payload, patient=payload, method=method)
        for method in ("vito", payload)
    ]
    run = made.store(tmp_path, "hostile", rows, problems={payload: problem})
    found = listed(tmp_path)
    _, content = opened(results_page.ResultsView, found, runs=[run])
    shown = [pane.object for pane in content.select(pn.pane.HTML)]
    assert any("onerror" in str(text) for text in shown)  # it is there, as text
    assert not any("<img src=x" in str(text) for text in shown)
    page = report.make_file(found, [run], "methods", None, "html")[1].decode()
    assert "<img src=x" not in page
