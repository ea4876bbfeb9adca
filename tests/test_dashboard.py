"""The dashboard without a server: what is served, to whom, and pages that fail."""

from __future__ import annotations

import re
import subprocess
import sys

import panel as pn
import pytest
from dashboard_runs import listed

from vitolab import dashboard
from vitolab.dashboard import load_dashboards

selection = load_dashboards("kit.selection")
worker = load_dashboards("kit.worker")


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
