"""The dashboard without a server: state, store, escaping, worker, the page of runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from html.parser import HTMLParser
from urllib.parse import parse_qsl, quote

import pandas as pd
import panel as pn
import pytest
import stores
from hypothesis import example, given
from hypothesis import strategies as st

from vitolab import dashboard
from vitolab.dashboard import load_dashboards
from vitolab.store import OpenRun
from vitolab.studies import find_study
from vitolab.version import code_version

safe = load_dashboards("kit.safe")
selection = load_dashboards("kit.selection")
source = load_dashboards("kit.source")
worker = load_dashboards("kit.worker")
runs_page = load_dashboards("pages.runs.page")

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}", fullmatch=True)
numbers = st.none() | st.integers(0, 999_999_999)


def listed(root):
    """Source of a folder, listed."""
    found = source.Source(root)
    found.refresh()
    return found


# --- state ------------------------------------------------------------------------------------


@given(
    page=st.sampled_from(list(selection.PAGES)),
    runs=st.lists(names, max_size=8, unique=True),
    patient=st.just("") | st.from_regex(r"\w[\w. -]{0,63}", fullmatch=True),
    setup=st.just("") | names,
    step=numbers,
    repeat=numbers,
)
@example(page="patient", runs=["a", "b"], patient="Müller 2", setup="base", step=0, repeat=None)
def test_an_address_brings_the_same_state_back(page, runs, patient, setup, step, repeat):
    there = selection.Selection(
        page=page, runs=runs, patient=patient, setup=setup, step=step, repeat=repeat
    )
    back = selection.Selection()
    back.read("?" + there.query())
    assert {n: getattr(back, n) for n in selection.FIELDS} == {
        n: getattr(there, n) for n in selection.FIELDS
    }
    assert back.refused == ()


@given(st.text(max_size=200))
@example("page=%ff%fe&step=%F0%9F%98%80")
@example("step=٣")  # a digit, but not one of ours
@example("&".join(f"a{i}=1" for i in range(200)))
def test_no_address_breaks_the_state(query):
    state = selection.Selection()
    state.read(query)
    assert state.page in selection.PAGES
    for name, value in parse_qsl(state.query()):
        assert name in selection.FIELDS
        assert re.fullmatch(r"[\w., -]{1,600}", value)


def test_odd_filters_of_an_address_are_refused():
    state = selection.Selection()
    state.read("status=finished&sort=started,up&study=wbc-fit")
    assert state.refused == ("status", "sort")
    state.read("status=complete&sort=started,desc")
    assert state.refused == ()


@pytest.mark.parametrize("field", selection.FIELDS)
@pytest.mark.parametrize(
    "value",
    [*stores.PAYLOADS, "../../etc/passwd", "..", "/etc/passwd", "a/b", "a\\b", "a\x00b", "x" * 999],
)
def test_hostile_values_of_an_address_are_refused(field, value):
    state = selection.Selection()
    state.read(f"{field}={quote(value)}")
    assert getattr(state, field) == state.param[field].default
    assert state.refused == (field,)


def test_what_an_address_cannot_hold_stays_out_of_it():
    state = selection.Selection(search="a<b>", study="wbc-fit", runs=["x"] * 9)
    assert state.query() == "study=wbc-fit"


def test_going_back_resets_what_the_address_does_not_name():
    state = selection.Selection(page="patient", patient="C01", step=3)
    state.read("?page=results")
    assert (state.page, state.patient, state.step) == ("results", "", None)


def test_reading_an_address_is_one_change():
    state, seen = selection.Selection(), []
    state.watch(lambda: seen.append(state.patient), "patient", "step", "page")
    state.read("page=patient&patient=C01&step=3")
    assert seen == ["C01"]


# --- store ------------------------------------------------------------------------------------


def test_folders_that_are_no_runs_are_listed_with_a_reason(tmp_path):
    good = stores.stored_run(tmp_path)
    bad = stores.bad_folders(tmp_path)
    found = listed(tmp_path)
    assert len(found.entries) == 5
    by_name = {entry.info.path: entry for entry in found.entries}
    assert by_name[good].info.status == "complete"
    for path in bad.values():
        assert by_name[path].info.status == "unreadable"
        assert by_name[path].info.reason
        with pytest.raises(ValueError, match="cannot be read"):
            found.run(by_name[path].id)
    assert "another version" in by_name[bad["future"]].info.reason
    assert len(found.table(good.name, "personalizations")) == 6  # and nothing else is harmed


@pytest.mark.parametrize(
    "name", ["../secret", "..", "/etc", "wbc-fit/..", "", ".", "secret", "walks", ".claims"]
)
def test_only_what_is_listed_can_be_opened(tmp_path, name):
    root = tmp_path / "results"
    stores.stored_run(root)
    shutil.copytree(stores.stored_run(tmp_path / "other"), tmp_path / "secret")
    found = listed(root)
    with pytest.raises(ValueError, match="no run"):
        found.run(name)
    with pytest.raises(ValueError, match="no run"):
        found.table(name, "traces")


@pytest.mark.parametrize("name", ["../x", "run.json", "start", "arrays"])
def test_only_known_tables_can_be_read(tmp_path, name):
    run = stores.stored_run(tmp_path)
    with pytest.raises(ValueError, match="no table"):
        listed(tmp_path).table(run.name, name)


def test_links_out_of_the_store_are_not_followed(tmp_path):
    outside = stores.stored_run(tmp_path / "outside")
    root = tmp_path / "results"
    inside = stores.stored_run(root, seed=1)
    (root / "wbc-fit" / "20200101T000000Z-link").symlink_to(outside)
    (inside / "traces.parquet").symlink_to(outside / "personalizations.parquet")
    found = listed(root)
    entry = next(e for e in found.entries if e.info.path.name.endswith("link"))
    assert entry.info.status == "unreadable"
    assert entry.info.seed is None  # nothing of it is shown
    with pytest.raises(ValueError, match="cannot be read"):
        found.table(entry.id, "personalizations")
    with pytest.raises(ValueError, match="leads out"):
        found.table(inside.name, "traces")


def test_the_folder_of_results_may_itself_be_a_link(tmp_path):
    run = stores.stored_run(tmp_path / "disk")
    (tmp_path / "results").symlink_to(tmp_path / "disk")
    assert len(listed(tmp_path / "results").table(run.name, "personalizations")) == 6


def test_tables_are_read_once_and_again_when_they_changed(tmp_path):
    run = stores.stored_run(tmp_path)
    found = listed(tmp_path)
    first = found.table(run.name, "personalizations")
    assert found.table(run.name, "personalizations") is first
    (run / "personalizations.parquet").write_bytes(b"PAR1 something else PAR1")
    with pytest.raises(ValueError, match="as stored"):
        found.table(run.name, "personalizations")


def test_a_run_that_goes_on_shows_what_is_finished(tmp_path):
    run = stores.start_run(tmp_path)
    found = listed(tmp_path)
    assert found.entries[0].info.status == "running"
    with pytest.raises(ValueError, match="no finished part"):
        found.table(run.path.name, "personalizations")
    done = stores.stored_run(tmp_path / "other")
    table = pd.read_parquet(done / "personalizations.parquet")
    run.write_part("first", table.iloc[:2])
    assert len(found.table(run.path.name, "personalizations")) == 2
    run.release()


def test_key_results_tell_vito_and_the_best_reference(tmp_path):
    run = stores.stored_run(tmp_path)
    found = listed(tmp_path)
    found.learn_facts([run.name, "unknown"])
    facts = found.entry(run.name).facts
    assert (facts.patients, facts.personalizations) == (3, 6)
    assert facts.solved == pytest.approx(200 / 3)
    assert facts.runs == pytest.approx(11.0)
    assert facts.best == "nelder-mead 0 %"


def test_a_folder_that_was_moved_away_is_not_taken_for_an_empty_one(tmp_path):
    run = stores.stored_run(tmp_path / "results")
    found = listed(tmp_path / "results")
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    found.refresh(0)
    assert found.problem == f"{tmp_path}/results: the folder is gone, expected a folder of results"
    assert [entry.id for entry in found.entries] == [run.name]
    (tmp_path / "elsewhere").rename(tmp_path / "results")
    found.refresh(0)
    assert found.problem == ""


def test_an_absent_folder_is_an_empty_store_and_a_file_is_none(tmp_path):
    assert listed(tmp_path / "absent").entries == ()
    (tmp_path / "file").touch()
    found = listed(tmp_path / "file")
    assert "expected a folder" in found.problem


# --- escaping ---------------------------------------------------------------------------------


class Elements(HTMLParser):
    """Names of the elements of some HTML, and all text in it."""

    def __init__(self):
        super().__init__()
        self.found, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        self.text += data


def elements(markup):
    """Parse some HTML."""
    parser = Elements()
    parser.feed(markup)
    parser.close()
    return parser


@given(st.text(max_size=300))
@example(stores.PAYLOADS[0])
@example("&lt;b&gt;")
def test_text_is_shown_as_it_is(value):
    shown = elements(safe.text(value))
    assert shown.found == []
    assert shown.text == safe.plain(value)


@pytest.mark.parametrize("payload", stores.PAYLOADS)
def test_every_door_escapes(payload):
    frame = pd.DataFrame({payload: [payload, None, 1.5]})
    for markup, allowed in (
        (safe.fill("<b>{x}</b>", x=payload), {"b"}),
        (safe.note_html("error", payload, payload), {"div", "strong", "pre", "code"}),
        (
            safe.table_html(frame, caption=payload),
            {"div", "table", "caption", "thead", "tr", "th", "tbody", "td"},
        ),
    ):
        found = elements(markup)
        assert set(found.found) <= allowed
        assert payload in found.text


def test_text_cannot_turn_around_or_flood_the_page():
    assert safe.plain("a\u202eb\x00c\u2066d") == "abcd"
    assert len(safe.plain("x" * 10_000)) == safe.LIMIT


# --- worker -----------------------------------------------------------------------------------


def test_results_are_handed_over_where_they_are_polled():
    work, got = worker.Worker(), []
    threads = []

    def job(x):
        threads.append(threading.current_thread())
        return x + 1

    work.submit(job, 1, done=lambda value: got.append((value, threading.current_thread())))
    work.wait()
    assert got == [(2, threading.main_thread())]
    assert threads[0] is not threading.main_thread()


def test_later_work_supersedes_earlier_work():
    work, got, go = worker.Worker(), [], threading.Event()
    work.submit(lambda: go.wait(5) and "old", done=got.append, key="curves")
    work.submit(lambda: "new", done=got.append, key="curves")
    go.set()
    work.wait()
    time.sleep(0.05)
    work.poll()
    assert got == ["new"]


def test_what_is_left_for_later_leaves_the_event_loop_its_turn():
    work, got = worker.Worker(), []
    work.later(lambda: got.append("left out"), "pictures")
    work.later(lambda: got.append(1) or work.later(lambda: got.append(2), "pictures"), "pictures")
    work.poll()
    assert got == [1]
    work.wait()
    assert got == [1, 2]


def test_finished_work_is_handed_over_piece_by_piece():
    work, got = worker.Worker(), []
    for number in range(3):
        work.later(lambda number=number: got.append(number), f"piece {number}")
    assert [work.poll() for _ in range(4)] == [True, True, True, False]
    assert got == [0, 1, 2]


def test_a_page_gets_no_more_before_it_has_drawn(tmp_path, monkeypatch):
    """A browser that never says so is waited for, but not for ever."""
    pace, frame = load_dashboards("kit.pace"), load_dashboards("kit.frame")
    work, got = worker.Worker(), []
    shown = frame.Frame(selection.Selection(), listed(tmp_path), work)
    monkeypatch.setattr(shown, "_next", float("inf"))
    for number in range(5):
        work.later(lambda number=number: got.append(number), f"piece {number}")
    shown.tick()
    shown.tick()
    assert got == [0]
    shown.pace.drawn = shown.pace.asked  # as the browser answers
    assert got == [0, 1]
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + pace.PATIENCE + 1)
    for _ in range(3):  # one that never answers is waited for once
        shown.tick()
    assert got == [0, 1, 2, 3, 4]


def test_an_error_becomes_one_sentence(capsys):
    work, got = worker.Worker(), []

    def refuse():
        raise ValueError("the file\nis damaged")

    def break_down():
        raise KeyError("x")

    def stop():
        raise AssertionError

    work.submit(refuse, failed=got.append)
    work.wait()
    assert capsys.readouterr().err == ""
    work.submit(break_down, failed=got.append)
    work.submit(stop, failed=got.append)
    work.submit(stop)
    work.wait()
    assert got[0] == "the file is damaged"
    assert sorted(got[1:]) == ["unexpected AssertionError", "unexpected KeyError: 'x'"]
    assert capsys.readouterr().err.count("Traceback") == 3


def test_an_error_while_a_result_is_shown_is_told_and_harms_no_other_work(capsys):
    """Whatever its type: by then nothing that the user gave is at fault."""
    work, got, go = worker.Worker(), [], threading.Event()

    def show(value):
        raise ValueError(f"{value} is none of the options")

    work.submit(go.wait, 5, done=show, failed=got.append)
    work.submit(go.wait, 5, done=got.append)
    go.set()
    work.wait()
    assert sorted(map(str, got)) == [
        "True",
        "unexpected ValueError: True is none of the options",
    ]
    assert "Traceback" in capsys.readouterr().err


# --- the page of runs -------------------------------------------------------------------------


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


# --- serving ----------------------------------------------------------------------------------


def test_the_command_line_does_not_load_panel():
    code = "import sys, vitolab.dashboard; assert 'panel' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("lab", False)],
)
def test_loopback_is_known(address, loopback):
    assert dashboard.is_loopback(address) == loopback


def test_no_origin_is_a_wildcard():
    server = load_dashboards("kit.server")
    for address in ("127.0.0.1", "0.0.0.0", "::"):
        origins = server.allowed_origins(address, 5006, ("lab.example.org",))
        assert origins[-1] == "lab.example.org"
        assert not any("*" in origin for origin in origins)
        assert "127.0.0.1:5006" in origins


@pytest.mark.parametrize(
    ("address", "users", "warned"),
    [("127.0.0.1", False, False), ("0.0.0.0", False, True), ("0.0.0.0", True, False)],
)
def test_an_open_address_without_authentication_is_warned_of(
    tmp_path, monkeypatch, capsys, address, users, warned
):
    served = []

    class Recorder:
        @staticmethod
        def serve(results, **options):
            served.append(options)

    monkeypatch.setattr(dashboard, "load_dashboards", lambda module: Recorder)
    (tmp_path / "users.json").write_text('{"ann": "secret"}')
    file = tmp_path / "users.json" if users else None
    dashboard.serve(tmp_path, address=address, basic_auth=file)
    assert ("can be reached from other machines" in capsys.readouterr().err) == warned
    assert served[0]["address"] == address


def test_no_file_of_the_dashboard_names_another_host():
    for path in dashboard.find_dashboards().rglob("*"):
        if path.suffix in (".html", ".css", ".js", ".py"):
            hosts = set(re.findall(r"https?://([\w.-]+)", path.read_text(encoding="utf-8")))
            assert hosts <= {"www.w3.org"}, path


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"user": 1}', '"password"', '{"a": ""}', '{"": "x"}']
)
def test_a_file_of_users_is_checked(tmp_path, content):
    (tmp_path / "users.json").write_text(content)
    with pytest.raises(ValueError, match="expected JSON such as"):
        dashboard.read_users(tmp_path / "users.json")


def test_every_page_is_there_or_says_that_it_is_not(tmp_path):
    frame = load_dashboards("kit.frame")
    state, work = selection.Selection(), worker.Worker()
    shown = frame.Frame(state, listed(tmp_path), work)
    for page in selection.PAGES:
        state.page = page
        shown.show()
        assert shown.navigation.value == page
        assert [name for name, part in shown._pages.items() if part.visible] == [page]
    work.wait()
    assert set(shown.views) == set(selection.PAGES)
    panes = shown.body.select(lambda part: isinstance(part, pn.pane.HTML))
    assert not any("cannot be shown" in str(pane.object) for pane in panes)


def framed(root):
    """The frame of a session, its worker."""
    frame_module = load_dashboards("kit.frame")
    found, working = listed(root), worker.Worker()
    made = frame_module.Frame(selection.Selection(), found, working)
    made.show()
    return frame_module, made, working


def test_a_game_is_in_the_address_of_its_page_alone(tmp_path):
    """There and back is one step each."""
    _, frame, working = framed(tmp_path)
    frame.selection.param.update(page="teach", model="rosenbrock", patient="F002")
    working.wait()
    assert frame.views["teach"].game.n_runs == 1
    changes = []
    frame.selection.watch(lambda: changes.append(frame.selection.query()), "page", "model")
    for page, query in (
        ("patient", "page=patient"),
        ("teach", "page=teach&patient=F002&model=rosenbrock"),
    ):
        frame.navigation.value = page
        working.wait()
        assert changes.pop() == query
        assert changes == []
    assert frame.views["teach"].game.n_runs == 1


def test_a_store_that_does_not_answer_is_told_and_told_off(tmp_path, monkeypatch):
    frame_module, frame, _ = framed(tmp_path)
    assert frame.notice.object == ""
    monkeypatch.setattr(frame_module, "STALE", -1.0)
    frame._show_age()
    assert "What is shown may be old: the store has not answered" in frame.notice.object
    monkeypatch.setattr(frame_module, "STALE", 15.0)
    frame._show_age()
    assert frame.notice.object == ""
    frame._not_listed("no answer")
    assert "What is shown may be old: no answer" in frame.notice.object


def test_a_clock_that_is_set_back_stops_no_listing(tmp_path, monkeypatch):
    found = listed(tmp_path)
    stores.stored_run(tmp_path)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    found.refresh(older_than=0.0)
    assert len(found.entries) == 1


def test_a_slow_listing_keeps_no_other_session_waiting(tmp_path, monkeypatch):
    found, go_on = listed(tmp_path), threading.Event()
    monkeypatch.setattr(source, "list_runs", lambda root: go_on.wait(10) and [])
    slow = threading.Thread(target=lambda: found.refresh(older_than=0.0))
    slow.start()
    began = time.monotonic()
    found.refresh(older_than=0.0)
    assert found.entry("nothing") is None
    assert time.monotonic() - began < 5.0
    go_on.set()
    slow.join()


@pytest.mark.parametrize("where", ["build", "refresh"])
def test_a_page_that_fails_leaves_the_others(tmp_path, monkeypatch, capsys, where):
    """And says so in a sentence."""
    _, frame, _ = framed(tmp_path)

    def fails(*_):
        raise KeyError("what it needs")

    teach = load_dashboards("pages.teach.page")
    monkeypatch.setattr(teach.TeachView, "panel" if where == "build" else "refresh", fails)
    frame.selection.page = "teach"
    frame.show()
    (text,) = (
        (p for p in frame._pages["teach"].select(pn.pane.HTML))
        if where == "build"
        else [frame.notice]
    )
    assert "what it needs" in text.object
    assert ("cannot be shown" if where == "build" else "not refreshed") in text.object
    assert "KeyError" in capsys.readouterr().err
    frame.selection.page = "runs"
    frame.show()
    assert frame._pages["runs"].visible


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


def test_a_device_in_the_place_of_a_record_is_no_record(tmp_path):
    """It would be read for ever."""
    run = stores.stored_run(tmp_path)
    (run / "run.json").unlink()
    (run / "run.json").symlink_to("/dev/zero")
    (entry,) = listed(tmp_path).entries
    assert entry.info.status == "unreadable"


def test_nothing_outside_the_run_is_looked_at(tmp_path):
    """Neither by a name in the manifest nor by a link of a run that goes on."""
    secret = tmp_path / "secret.json"
    secret.write_text("x")
    run = stores.stored_run(tmp_path / "results")
    record = json.loads((run / "run.json").read_text())
    record["files"]["../../../secret.json"] = {"size": 1, "sha256": "0"}
    (run / "run.json").write_text(json.dumps(record))
    found = listed(tmp_path / "results")
    found.learn_facts([run.name])
    assert "what lies outside the run is not looked at" in found.entries[0].facts.damaged
    going = stores.start_run(tmp_path / "results")
    (going.path / "problems.json").symlink_to(secret)
    found.refresh(older_than=0.0)
    with pytest.raises(ValueError, match="a link that leads out is not followed"):
        found.run(going.path.name)


def test_a_sampler_is_no_reference_method(tmp_path):
    run = stores.stored_run(tmp_path)
    table = pd.read_parquet(run / "personalizations.parquet")
    table.loc[table["method"] != "vito", "method"] = "posterior"
    table.to_parquet(run / "personalizations.parquet")
    assert load_dashboards("kit.facts").read_facts(run / "personalizations.parquet").best == ""


def test_a_search_for_a_parameter_fits_into_an_address():
    state = selection.Selection(search='"n_samples": 100, größer')
    other = selection.Selection()
    other.read(state.query())
    assert other.search == state.search


def test_long_work_keeps_nothing_waiting():
    """Short work is done while all threads for long work are taken."""
    free, working, done = threading.Event(), worker.Worker(), []
    for _ in range(8):
        working.submit(free.wait, 30, pool="long")
    working.submit(int, done=done.append, key="short")
    end = time.monotonic() + 20
    while working.is_busy("short") and time.monotonic() < end:
        working.poll()
    free.set()
    working.wait()
    assert done == [0]


def test_a_run_whose_files_lead_out_of_the_store_is_not_read(tmp_path):
    run = stores.stored_run(tmp_path / "outside", "wbc-fit", 7)
    inside = tmp_path / "results" / "wbc-fit" / run.name
    inside.mkdir(parents=True)
    for name in ("start.json", "run.json"):
        (inside / name).symlink_to(run / name)
    (entry,) = listed(tmp_path / "results").entries
    assert entry.info.status == "unreadable"
    assert entry.info.seed is None


def test_a_link_in_a_circle_and_a_pipe_harm_nothing_else(tmp_path):
    run = stores.stored_run(tmp_path, "wbc-fit")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "wbc-fit" / "loop").symlink_to("loop")
    pipe = tmp_path / "wbc-fit" / "20200101T000000Z-00000001"
    pipe.mkdir()
    os.mkfifo(pipe / "run.json")
    found = {entry.info.path.name: entry.info.status for entry in listed(tmp_path).entries}
    assert found == {run.name: "complete", pipe.name: "unreadable"}


def test_a_linked_study_is_one_entry_and_tells_nothing_of_what_is_in_it(tmp_path):
    stores.stored_run(tmp_path / "outside", "secret")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "linked").symlink_to(tmp_path / "outside" / "secret")
    (entry,) = listed(tmp_path / "results").entries
    assert (entry.info.path.name, entry.info.status) == ("linked", "unreadable")


def test_a_run_whose_table_is_destroyed_is_not_listed_as_whole(tmp_path):
    run = stores.stored_run(tmp_path)
    (run / "personalizations.parquet").write_bytes(b"")
    found = listed(tmp_path)
    found.learn_facts([run.name])
    shown = load_dashboards("pages.runs.rows").row(found.entries[0])
    assert shown["status"] == "⚠ damaged"


@pytest.mark.parametrize("name", ["personalizations.parquet", "patients.parquet"])
@pytest.mark.parametrize("gone", [True, False])
def test_damage_while_the_page_is_open_is_seen(tmp_path, name, gone):
    """Any file that the run says it stored, missing or of another length."""
    run = stores.stored_run(tmp_path)
    found = listed(tmp_path)
    found.learn_facts([run.name])
    assert found.entries[0].facts.damaged == ""
    content = (run / name).read_bytes()
    (run / name).unlink()
    if not gone:
        (run / name).write_bytes(content[:-9])
    found.refresh(older_than=0)
    assert found.entries[0].facts is None
    found.learn_facts([run.name])
    why = f"{name} is {'missing' if gone else 'not as long as it was stored'}"
    assert found.entries[0].facts.damaged == why
    assert load_dashboards("pages.runs.rows").row(found.entries[0])["note"].endswith(why)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefix": "../x"}, "^prefix is '../x'"),
        ({"prefix": "<b>"}, "^prefix is '<b>'"),
        ({"origins": ("*",)}, "^origins hold '\\*'"),
        ({"origins": ("http://lab.example",)}, "^origins hold 'http://lab.example'"),
        ({"address": "::1"}, "^address is ::1"),
        ({"address": "300.1.1.1"}, "--address 300.1.1.1: .*, expected an own one"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_served(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        dashboard.serve(tmp_path, port=0, **options)


def test_a_file_in_the_place_of_the_results_is_refused(tmp_path):
    (tmp_path / "demo.log").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        dashboard.serve(tmp_path / "demo.log", port=0)
