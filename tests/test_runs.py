"""One folder, parts that are whole or absent, the manifest last."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from run_process import N_PARTS, fake_study, said, script, start

from vitolab.files import atomic
from vitolab.store import list_runs
from vitolab.store.info import inspect_run, read_progress
from vitolab.store.opened import OpenRun


def fill(run: OpenRun, key: str = "a") -> None:
    import pandas as pd

    run.write_part(key, pd.DataFrame({"setup": ["2p"]}))


TABLES = ("personalizations.parquet", "traces.parquet", "patients.parquet", "arrays.npz")


def test_a_study_killed_halfway_goes_on_and_ends_in_the_same_bytes(tmp_path: Path) -> None:
    whole = fake_study(tmp_path / "whole")
    other = script("study", tmp_path / "killed", 0.3)
    assert [said(other) for _ in range(3)] == ["computed 0", "computed 1", "computed 2"]
    (info,) = list_runs(tmp_path / "killed")
    assert info.status == "running"
    other.send_signal(signal.SIGKILL)
    other.wait()
    (info,) = list_runs(tmp_path / "killed")
    assert info.status == "interrupted"
    assert info.progress is not None
    assert (info.progress.stage, info.progress.total) == ("parts", N_PARTS)
    kept = {p.name: p.stat().st_mtime_ns for p in (info.path / "parts").iterdir()}
    assert 3 <= len([name for name in kept if "traces" not in name]) < N_PARTS

    resumed = fake_study(tmp_path / "killed")
    assert resumed.path == info.path
    for name, written in kept.items():
        assert (info.path / "parts" / name).stat().st_mtime_ns == written
    for name in TABLES:
        assert (resumed.path / name).read_bytes() == (whole.path / name).read_bytes()
    assert inspect_run(resumed.path).status == "complete"


def test_what_killed_writers_left_is_removed_and_nothing_of_live_ones(tmp_path: Path) -> None:
    run = start(tmp_path)
    folders = (run.path, run.path / "parts", tmp_path / "walks" / "key", run.path.parent)
    folders[2].mkdir(parents=True)
    run.release()
    code = (
        "import os, signal, sys; from pathlib import Path; from vitolab.files import atomic\n"
        "open_files = [atomic(Path(folder, 'a.parquet')) for folder in sys.argv[1:]]\n"
        "for file in open_files: file.__enter__()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, *map(str, folders)], check=False)
    left = [path for folder in folders for path in folder.glob("*.tmp")]
    assert len(left) == len(folders)
    for folder in folders:  # as another machine and an earlier version name theirs
        for name, age in ((".a.elsewhere-0-1.x.tmp", 0), (".b.elsewhere-0-1.x.tmp", 7200)):
            (folder / name).touch()
            os.utime(folder / name, (time.time() - age,) * 2)
        (folder / "notes.tmp").touch()  # of the user
    with ExitStack() as stack:
        live = [stack.enter_context(atomic(folder / "c.parquet")) for folder in folders]
        assert start(tmp_path).state == "resumed"
        assert all(path.exists() for path in live)
        for folder in folders:
            names = {path.name for path in folder.glob("*.tmp")} - {path.name for path in live}
            assert names == {".a.elsewhere-0-1.x.tmp", "notes.tmp"}


def test_tables_do_not_depend_on_the_order_of_the_parts(tmp_path: Path) -> None:
    first = fake_study(tmp_path / "a")
    second = fake_study(tmp_path / "b", order=[4, 0, 5, 2, 1, 3])
    for name in TABLES:
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()


def test_a_resumed_run_is_the_same_folder_and_keeps_its_parts(tmp_path: Path) -> None:
    first = start(tmp_path)
    assert first.state == "new"
    assert not first.has_part("a")
    fill(first)
    first.release()
    second = start(tmp_path)
    assert second.state == "resumed"
    assert second.path == first.path
    assert second.has_part("a")


def test_a_complete_run_is_reported_and_made_anew_only_on_request(tmp_path: Path) -> None:
    first = start(tmp_path)
    first.close("complete")
    found = start(tmp_path)
    assert (found.state, found.path) == ("complete", first.path)
    with pytest.raises(RuntimeError, match="not this process's to finish"):
        found.close("complete")
    anew = start(tmp_path, again=True)
    assert anew.state == "new"
    assert anew.path != first.path
    assert inspect_run(first.path).status == "complete"


def test_a_new_run_takes_over_the_parts_of_a_failed_one(tmp_path: Path) -> None:
    failed = start(tmp_path)
    fill(failed)
    failed.close("failed", "ValueError: no")
    (info,) = list_runs(tmp_path)
    assert (info.status, info.reason) == ("failed", "ValueError: no")
    following = start(tmp_path)
    assert following.state == "new"
    assert following.path != failed.path
    assert following.has_part("a")
    following.release()
    assert not start(tmp_path, seed=1).has_part("a")


def test_from_scratch_means_without_the_parts_of_a_failed_run(tmp_path: Path) -> None:
    failed = start(tmp_path)
    fill(failed)
    failed.close("failed", "no")
    assert not start(tmp_path, again=True).has_part("a")


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"parameters": {"n": 2, "m": [2]}},
        {"parameters": {"n": 1.5, "m": [2]}},
        {"parameters": {"n": 1}},
        {"version": "2"},
        {"study": "t"},
    ],
)
def test_what_is_not_the_same_is_not_resumed(tmp_path: Path, changes: dict[str, Any]) -> None:
    first = start(tmp_path)
    first.release()
    other = start(tmp_path, **changes)
    assert other.state == "new"
    assert other.record.fingerprint != first.record.fingerprint


def test_the_order_of_parameters_makes_no_difference(tmp_path: Path) -> None:
    first = start(tmp_path)
    first.release()
    assert start(tmp_path, parameters={"m": [2], "n": 1}).state == "resumed"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"study": "../s"}, "study is '../s'"),
        ({"study": "walks"}, "walk cache"),
        ({"parameters": {"n": float("inf")}}, "not JSON compliant"),
    ],
)
def test_what_cannot_be_stored_is_refused(
    tmp_path: Path, changes: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        start(tmp_path, **changes)
    assert not list_runs(tmp_path)


def test_progress_is_told_and_read(tmp_path: Path) -> None:
    run = start(tmp_path)
    run.progress("folds", 3, 8)
    progress = read_progress(run.path)
    assert progress is not None
    assert (progress.stage, progress.done, progress.total) == ("folds", 3, 8)
    assert abs(progress.heartbeat - time.time()) < 60


def test_a_part_without_its_end_counts_as_absent(tmp_path: Path) -> None:
    run = start(tmp_path)
    fill(run)
    part = run.part("a")
    for content in (part.read_bytes()[:-1], b"PA", b""):
        part.write_bytes(content)
        assert not run.has_part("a")
    with pytest.raises(ValueError, match="key of a part"):
        run.has_part("../a")


def test_traces_of_an_unfinished_part_do_not_make_it_finished(tmp_path: Path) -> None:
    run = start(tmp_path)
    fill(run)
    run.part("a").rename(run.part("b").with_suffix(".traces.parquet"))
    assert not run.has_part("a")
    assert not run.has_part("b")


def test_a_run_that_is_finished_cannot_be_attached_to(tmp_path: Path) -> None:
    run = start(tmp_path)
    assert OpenRun.attach(run.path).state == "attached"
    with pytest.raises(RuntimeError, match="not this process's"):
        OpenRun.attach(run.path).close("complete")
    run.close("complete")
    with pytest.raises(ValueError, match="the run is finished"):
        OpenRun.attach(run.path)
    with pytest.raises(ValueError, match=r"start\.json is missing"):
        OpenRun.attach(tmp_path)
