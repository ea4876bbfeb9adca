"""The dashboard without a server: the page of runs."""

from __future__ import annotations

import shutil
import time

import pytest
import stores
from dashboard_runs import listed
from markup import elements

from vitolab.dashboard import load_dashboards
from vitolab.store import OpenRun
from vitolab.studies import find_study
from vitolab.version import code_version

selection = load_dashboards("kit.selection")
worker = load_dashboards("kit.worker")
runs_page = load_dashboards("pages.runs.page")


def page_of(root, **state):
    """The page of runs, up to date."""
    view = runs_page.RunsView(selection.Selection(**state), listed(root), worker.Worker())
    view.panel()
    view.worker.wait()
    return view


def test_an_empty_store_gives_the_command_that_fills_it(tmp_path):
    view = page_of(tmp_path / "my results")
    assert not view.table.visible
    assert f"vitolab demo --results &#x27;{tmp_path}/my results&#x27;" in view.message.object


def column(view, field):
    """Column of the table as it is shown."""
    return [shown[field] for shown in view.table.shown]


def test_runs_are_listed_filtered_and_searched(tmp_path):
    for seed in (1, 2):
        stores.stored_run(tmp_path, seed=seed)
    stores.stored_run(tmp_path, "ep-scouting", seed=3)
    stores.bad_folders(tmp_path)
    view = page_of(tmp_path)
    assert column(view, "status").count("⚠ damaged") == 3
    assert column(view, "status").count("⚠ other version") == 1
    assert [round(s, 1) for s in column(view, "solved") if s is not None] == [66.7] * 3
    view.status.value = "unreadable"
    assert view.selection.status == "unreadable"
    assert len(view.table.shown) == 4
    view.selection.param.update(status="", study="ep-scouting")
    assert view.study.value == "ep-scouting"
    assert column(view, "study") == ["ep-scouting"]
    view.selection.param.update(study="", search="seed=2")
    assert column(view, "seed") == ["2"]
    view.selection.search = "nothing like it"
    assert "None of 7 runs" in view.message.object


def test_a_refresh_sends_what_changed_alone(tmp_path):
    chosen = stores.stored_run(tmp_path, seed=1)
    for seed in range(3, 6):
        stores.stored_run(tmp_path, seed=seed)
    run = stores.start_run(tmp_path, seed=2)
    view = page_of(tmp_path, runs=[chosen.name])
    before = view.table.rows
    run.progress("learning", 3, 10)
    view.source.refresh(0)
    view.refresh()
    assert view.table.rows is before
    assert [(r["seed"], r["status"]) for r in view.table.changed] == [("2", "▶ running 30 %")]
    stores.start_run(tmp_path, "ep-scouting").release()
    view.source.refresh(0)
    view.refresh()
    assert sorted(column(view, "status")) == [
        "‖ interrupted",
        "▶ running 30 %",
        *["✓ complete"] * 4,
    ]
    assert view.table.chosen == [chosen.name]
    run.close("failed", stores.PAYLOADS[0])
    view.source.refresh(0)
    view.refresh()
    failed = next(r for r in view.table.shown if r["status"] == "✗ failed")
    assert failed["note"] == stores.PAYLOADS[0]


def test_nothing_is_sent_while_nothing_changes(tmp_path):
    stores.stored_run(tmp_path)
    view = page_of(tmp_path)
    sent = []
    view.table.param.watch(sent.append, ["rows", "changed", "chosen", "order", "page"])
    view.message.param.watch(sent.append, "object")
    view.detail.param.watch(sent.append, "object")
    for _ in range(3):
        view.source.refresh(0)
        view.refresh()
    assert sent == []


def test_choosing_keeps_what_a_filter_hides_and_the_order(tmp_path):
    paths = [stores.stored_run(tmp_path, seed=seed).name for seed in (1, 2, 3)]
    view = page_of(tmp_path, runs=[paths[1]])
    assert view.table.chosen == [paths[1]]
    view.table.chosen = [paths[1], paths[0]]
    assert view.selection.runs == [paths[1], paths[0]]
    view.selection.search = "seed=3"
    assert view.table.chosen == [paths[1], paths[0]]
    view.table.chosen = [paths[1], paths[0], paths[2]]
    assert view.selection.runs == [paths[1], paths[0], paths[2]]
    assert view.actions["results"].label == "Compare 3 runs"
    assert "seed" in view.detail.object
    view.selection.runs = []
    assert view.table.chosen == []


@pytest.mark.parametrize("payload", stores.PAYLOADS)
def test_hostile_runs_are_shown_as_text(tmp_path, payload):
    run = stores.hostile_run(tmp_path, payload)
    view = page_of(tmp_path, runs=[run.name, f"{payload}"])
    for markup in (view.detail.object, view.message.object):
        allowed = {"h2", "div", "table", "thead", "tbody", "tr", "th", "td", "span"}
        assert set(elements(markup).found) <= allowed
    assert payload in elements(view.detail.object).text


def test_a_thousand_runs_are_listed_within_a_second(tmp_path):
    run = stores.stored_run(tmp_path)
    for i in range(999):
        shutil.copytree(run, run.parent / f"20250101T{i:06d}Z-{i:08x}")
    began = time.process_time()
    found = listed(tmp_path)
    view = runs_page.RunsView(selection.Selection(), found, worker.Worker())
    view.panel()
    took = time.process_time() - began
    view.worker.close()
    assert len(view.table.rows) == 1000
    assert took < 1.0 + 1.0  # a second, and one for a busy machine


def test_a_run_by_other_code_does_not_go_on(tmp_path):
    """The command is given all the same, with what it does."""
    quick = find_study("wbc-fit").profiles["quick"]
    own = code_version("wbc-fit")
    for version, words in (("old", "begins anew"), (own, "goes on from there")):
        run = OpenRun.start(tmp_path, "wbc-fit", quick, 0, version, again=True)
        run.close("failed", "a reason")
        view = runs_page.RunsView(selection.Selection(runs=[run.path.name]), listed(tmp_path), None)
        view.refresh()
        view._show_detail()
        assert words in view.detail.object
