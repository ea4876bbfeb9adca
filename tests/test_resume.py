"""A real study, killed at a moment of its own choosing and run again, through papermill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from vitolab import cli
from vitolab.store import list_runs

STUDY = [
    *("run", "rosenbrock-grid", "--jobs", "1", "--seed", "3"),
    *("-p", "n_functions=8", "-p", "grid_size=5", "-p", "n_samples=300", "-p", "n_states=30"),
    *("-p", "max_runs=100", "-p", "n_compared=2"),
]
TABLES = ("personalizations.parquet", "traces.parquet", "patients.parquet", "arrays.npz")


def command(results: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "vitolab", *STUDY, *more, "--results", str(results)]


def environment() -> dict[str, str]:
    root = str(Path(cli.__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


def parts(results: Path) -> dict[Path, int]:
    found = results.glob("rosenbrock-grid/*/parts/*.parquet")
    return {path: path.stat().st_mtime_ns for path in found if "traces" not in path.name}


def lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.timeout(600)
def test_a_killed_study_goes_on_and_ends_in_the_same_bytes(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole), check=True, env=environment(), capture_output=True)

    process = subprocess.Popen(command(killed), env=environment(), stderr=subprocess.DEVNULL)
    while len(parts(killed)) < 3:
        assert process.poll() is None
        time.sleep(0.005)
    kernel = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 60
    while any(map(lives, kernel)):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # it notices that it is alone
    before = parts(killed)
    assert [info.status for info in list_runs(killed)] == ["interrupted"]

    # with another number of workers, which must not matter either
    subprocess.run(command(killed, "--jobs", "2"), check=True, env=environment())
    after = parts(killed)
    assert len(after) == 8
    assert {path: after[path] for path in before} == before
    (one,), (other,) = list_runs(whole), list_runs(killed)
    assert (one.status, other.status) == ("complete", "complete")
    for name in TABLES:
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes(), name


ECG = """patient,qrs_duration [ms],electrical_axis [°],anatomy
A,90,30,normal
B,100,20,hypertrophic
C,110,10,dilated
"""


@pytest.mark.timeout(600)
def test_hearts_built_anew_and_another_number_of_workers_and_threads_change_no_byte(tmp_path):
    """A file of ECGs that trains on itself, killed and gone on with against an empty cache."""
    file = tmp_path / "ecg.csv"
    file.write_text(ECG, encoding="utf-8")

    def start(results: Path, jobs: str, cache: str) -> subprocess.Popen[bytes]:
        arguments = ["personalize", "electrophysiology", "--n-samples", "100", "--jobs", jobs]
        paths = ["--patients", str(file), "--train-on", str(file), "--results", str(results)]
        apart = {"VITOLAB_CACHE": str(tmp_path / cache), "OPENBLAS_NUM_THREADS": jobs}
        return subprocess.Popen(
            [sys.executable, "-m", "vitolab", *arguments, *paths],
            env=environment() | apart,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start(whole, "1", "one").wait() == 0
    process = start(killed, "1", "one")
    while not list(killed.glob("personalize/*/parts/*.parquet")):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert start(killed, "2", "two").wait() == 0
    (one,), (other,) = (
        [run for run in list_runs(results) if run.study == "personalize"]
        for results in (whole, killed)
    )
    for name in TABLES:
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes(), name
