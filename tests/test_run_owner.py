"""A run has one owner while that lives: on this machine or another, in this process or not."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from run_process import said, script, start

from vitolab.store import claims, list_runs
from vitolab.store.claims import RunInUse, last_claims
from vitolab.store.info import inspect_run
from vitolab.store.opened import OpenRun


def edit_claim(run: OpenRun, **changes: Any) -> None:
    """Change who owns a run."""
    (path,) = last_claims(run.path.parent).values()
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_the_owner_of_a_run_is_respected_while_it_lives(tmp_path: Path) -> None:
    other = script("start", tmp_path)
    assert said(other) == "new"
    with pytest.raises(RunInUse, match=f"process {other.pid} on .* is computing this run"):
        start(tmp_path)
    (run,) = tmp_path.glob("s/2*")
    start(tmp_path, seed=1).release()  # another run is nobody's
    other.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while inspect_run(run).status == "running":
        assert time.monotonic() < deadline
        time.sleep(0.01)  # killed, though still to be reaped by this process
    assert start(tmp_path).state == "resumed"
    other.wait()


@pytest.mark.parametrize("interrupted", [False, True])
def test_of_processes_that_start_at_once_one_gets_the_run(
    tmp_path: Path, interrupted: bool
) -> None:
    if interrupted:
        edit_claim(start(tmp_path), process=2**22 + 1)  # above the largest process number
    others = [script("start", tmp_path, tmp_path / "go") for _ in range(4)]
    for other in others:
        assert said(other) == "ready"
    (tmp_path / "go").touch()
    answers = sorted(said(other) for other in others)
    assert answers == ["refused"] * 3 + ["resumed"] or not interrupted
    assert answers == ["new"] + ["refused"] * 3 or interrupted
    assert len(list_runs(tmp_path)) == 1
    for other in others:
        other.kill()
        other.wait()


def test_an_owner_on_another_machine_is_judged_by_its_heartbeat(tmp_path: Path) -> None:
    run = start(tmp_path)
    claims._stop(next(iter(last_claims(run.path.parent).values())))
    edit_claim(run, host="elsewhere", boot="other", heartbeat=time.time() - 50)
    assert inspect_run(run.path).status == "running"
    edit_claim(run, process=None)  # let go a moment ago
    assert inspect_run(run.path).status == "interrupted"
    edit_claim(run, process=12)
    with pytest.raises(RunInUse, match="process 12 on elsewhere"):
        start(tmp_path)
    edit_claim(run, host="elsewhere", boot="other", heartbeat=time.time() - 61)
    assert inspect_run(run.path).status == "interrupted"
    assert start(tmp_path).state == "resumed"


def test_a_recycled_process_number_is_not_taken_for_the_owner(tmp_path: Path) -> None:
    run = start(tmp_path)
    edit_claim(run, process=os.getppid(), process_started="long ago")
    assert inspect_run(run.path).status == "interrupted"
    assert start(tmp_path).state == "resumed"


def test_a_process_may_open_its_own_run_again(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert inspect_run(first.path).status == "running"
    assert start(tmp_path).state == "resumed"  # a cell that is executed twice


def test_the_heart_beats_while_the_owner_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "HEARTBEAT", 0.02)
    run = start(tmp_path)
    (path,) = last_claims(run.path.parent).values()

    def beat() -> float:
        return float(json.loads(path.read_text())["heartbeat"])

    first, deadline = beat(), time.monotonic() + 10
    while beat() == first:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    run.close("complete")
    last = beat()
    time.sleep(0.1)
    assert beat() == last
    assert json.loads(path.read_text())["process"] is None
