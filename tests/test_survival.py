"""Runs survive: killed at any moment, short of disk, twice at once, they end as if undisturbed.

Ten moments by default; ``VITOLAB_KILLS=100`` asks for as many.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
import simulators
import survivor
from survivor import TABLES, Server, content, environment, finished

from vitolab import cli
from vitolab.store import list_runs

KILLS = int(os.environ.get("VITOLAB_KILLS", "10"))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.process.kill()
    running.process.wait()


@pytest.fixture(scope="module")
def whole(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the undisturbed work."""
    results = tmp_path_factory.mktemp("whole") / "results"
    assert server({"results": str(results)})["codes"] == [0]
    return results


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.timeout(60 + 15 * KILLS)
def test_work_that_is_killed_at_any_moment_goes_on_and_ends_in_the_same_bytes(
    server: Server, whole: Path, tmp_path: Path
) -> None:
    """Every other time at a given thing done to files, else after a given time."""
    expected = content(whole)
    assert {name.partition("/")[0] for name in expected} == {"walks", "survive", "personalize"}
    n_events = int(Path(f"{whole}.events").read_text(encoding="utf-8"))
    once_more = tmp_path / "timed" / "results"
    seconds = server({"results": str(once_more)})["seconds"]
    assert content(once_more) == expected

    rng = np.random.default_rng(2016)
    caught = 0
    for i in range(KILLS):
        results = tmp_path / f"{i}" / "results"
        share = (i + rng.uniform()) / KILLS
        moment = {"event": 1 + int(share * n_events)} if i % 2 else {"after": share * seconds}
        codes = server({"results": str(results), **moment})["codes"]
        caught += codes == [-signal.SIGKILL]
        runs = list_runs(results)
        assert {run.status for run in runs} <= {"interrupted", "complete"}, (moment, runs)
        assert content(results).items() <= expected.items(), moment
        before = finished(results)
        assert server({"results": str(results)})["codes"] == [0], moment
        after = finished(results)
        assert {path: after[path] for path in before} == before, moment
        assert [run.status for run in list_runs(results)] == ["complete", "complete"], moment
        assert content(results) == expected, moment
    print(f"killed {caught} of {KILLS} times; undisturbed {seconds:.2f} s, {n_events} events")
    assert caught >= 0.8 * KILLS  # some that were to be killed by the clock were faster


WRONG = [errno.ENOSPC, errno.EROFS, errno.ESTALE, errno.EIO, None]


@pytest.mark.parametrize("number", WRONG, ids=lambda n: errno.errorcode[n] if n else "lost")
def test_a_disk_that_fails_is_named_harms_nothing_and_work_goes_on_after_it(
    server: Server, whole: Path, tmp_path: Path, number: int | None
) -> None:
    """It is full, read-only, stale, broken or gone from some moment on."""
    expected = content(whole)
    n_events = int(Path(f"{whole}.events").read_text(encoding="utf-8"))
    results = tmp_path / "results"
    share = np.random.default_rng(WRONG.index(number)).uniform(0.05, 0.95)
    fault = {"lost": True} if number is None else {"number": number}
    asked = {"results": str(results), "event": 1 + int(share * n_events), **fault}
    assert server(asked)["codes"] == [1]
    (said,) = Path(f"{results}.said").read_text(encoding="utf-8").splitlines()
    assert str(results) in said
    assert os.strerror(number or errno.ENOENT) in said
    assert ".tmp" not in said
    if number is None:
        assert list_runs(results) == []  # none that is there by half
        shutil.rmtree(results)
        Path(f"{results}.elsewhere").rename(results)
    assert {run.status for run in list_runs(results)} <= {"interrupted", "failed", "complete"}
    assert content(results).items() <= expected.items()
    before = finished(results)
    assert server({"results": str(results)})["codes"] == [0]
    assert {path: finished(results)[path] for path in before} == before
    assert content(results) == expected


NAMESPACE = ["unshare", "--map-root-user", "--mount"]


def shell(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a script where mounts are its own."""
    command = [*NAMESPACE, "sh", "-ec", script, "sh", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment())


def test_a_real_disk_that_is_full_or_read_only_harms_nothing(whole: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    if not shutil.which(NAMESPACE[0]) or shell("mount -t tmpfs tmpfs $1", results).returncode:
        pytest.skip("this system allows no mounts of one's own")
    script = "mount -t tmpfs -o size=80k tmpfs $1; exec $2 $3 short $1"
    done = shell(script, results, sys.executable, survivor.__file__)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["same"]
    assert len(told["said"]) == 3
    for said, why in zip(told["said"], [errno.ENOSPC, errno.ENOSPC, errno.EROFS], strict=True):
        assert str(results) in said
        assert os.strerror(why) in said
    expected = {n: hashlib.sha256(data).hexdigest() for n, data in content(whole).items()}
    assert told["content"] == expected


def test_different_work_on_one_store_at_once_ends_as_if_alone(
    server: Server, whole: Path, tmp_path: Path
) -> None:
    """They share a walk cache, of which one needs more than the other."""
    small, both = tmp_path / "small" / "results", tmp_path / "both" / "results"
    other = {"n_samples": {"2p": [120]}, "only": True}
    assert server({"results": str(small), **other})["codes"] == [0]
    codes = server({"results": str(both)}, {"results": str(both), **other})["codes"]
    assert codes == [0, 0]
    tables = [content(results) for results in (whole, small)]
    runs = [run for run in list_runs(both) if run.study == "survive"]
    for run in runs:
        alone = tables[run.parameters["n_samples"] == {"2p": [120]}]
        for name in TABLES:
            assert (run.path / name).read_bytes() == alone[f"survive/{name}"], name
    assert [run.status for run in list_runs(both)] == ["complete"] * 3
    walks = {name: data for name, data in content(both).items() if name.startswith("walks/")}
    assert walks.keys() == {name for name in tables[0] if name.startswith("walks/")}
    for name, data in walks.items():  # the longer ones, unless the last to write was the other
        assert data in (tables[0][name], tables[1][name])


def test_of_the_same_work_at_once_one_is_refused_in_a_sentence(
    server: Server, whole: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    codes = server(*[{"results": str(results)}] * 2)["codes"]
    assert sorted(codes) == [0, 1]
    (said,) = Path(f"{results}.said").read_text(encoding="utf-8").splitlines()
    assert "another process is starting this run" in said or "is computing this run" in said
    assert content(results) == content(whole)


CLI = [
    *("run", "wbc-convergence", "--jobs", "2", "-p", 'setups=["2p"]', "-p", "n_patients=4"),
    *("-p", 'n_samples={"2p":[10]}', "-p", 'n_states={"2p":10}', "-p", "n_starts=60"),
]


def begun(results: Path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A study of the command line with processes that work for it, as soon as they are there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "vitolab", *CLI, "--results", str(results)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        preexec_fn=simulators.interruptible,
    )
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        with suppress(psutil.Error):
            if sum("LokyProcess" in " ".join(child.cmdline()) for child in family) == 2:
                return process, family
        time.sleep(0.05)
    process.kill()
    raise AssertionError("no worker was started")


def left(family: list[psutil.Process]) -> list[int]:
    """Processes of a family, and of its sessions, that are alive."""
    numbers = {child.pid for child in family}
    alive = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE and (
                process in family or os.getsid(process.pid) in numbers
            ):
                alive.append(process.pid)
    return alive


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.timeout(400)
def test_a_study_that_is_ended_leaves_no_process_and_says_how_to_go_on(
    number: signal.Signals, tmp_path: Path
) -> None:
    process, family = begun(tmp_path)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    if number != signal.SIGKILL:
        assert process.returncode == cli.STOPPED
        assert "vitolab: stopped; the same command goes on from here\n" in said
        assert "Task exception" not in said
    deadline = time.monotonic() + 60  # killed while it imports, a worker sees that only then
    while left(family):
        assert time.monotonic() < deadline, [child.cmdline() for child in family]
        time.sleep(0.1)
    (info,) = list_runs(tmp_path)
    assert info.status == "interrupted"
