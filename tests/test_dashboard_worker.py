"""The dashboard without a server: work beside the page, its order and its errors."""

from __future__ import annotations

import threading
import time

from dashboard_runs import listed

from vitolab.dashboard import load_dashboards

selection = load_dashboards("kit.selection")
worker = load_dashboards("kit.worker")


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
