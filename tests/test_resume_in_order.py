"""Patients of a file one after the other: the command, killed midway and given again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from own_models import described
from test_resume import environment, lives

from vitolab.store import list_runs

MODEL = """
import time

def simulate(x, patient):
    time.sleep(0.1)
    a, b = x
    return {"u": a + b, "w": a * patient.data["load"]}
"""
#: With a and b from 3 to 7, so that nobody is solved by the default values.
PATIENTS = """patient,load,u,w
P0,1.0,11.0,7.0
P1,1.1,7.0,3.3
P2,0.9,12.0,4.5
P3,1.2,13.0,7.2
P4,1.0,8.0,3.0
"""
FILES = ("personalizations.parquet", "traces.parquet", "patients.parquet", "arrays.npz")


@pytest.mark.timeout(600)
def test_patients_in_order_go_on_after_a_kill_and_end_in_the_same_bytes(tmp_path):
    """Whatever the number of workers before and after, and the agent is what it would have been."""
    problem = described(tmp_path / "model", model=MODEL)
    (tmp_path / "file.csv").write_text(PATIENTS)

    def start(name: str, jobs: str) -> subprocess.Popen[bytes]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        asked = ["--patients", str(tmp_path / "file.csv"), "--learn-as-you-go", "--at-a-time", "2"]
        asked += ["--agent", str(folder / "agent"), "--out", str(folder / "out.csv")]
        asked += ["--results", str(folder / "results"), "--jobs", jobs, "--seed", "4"]
        return subprocess.Popen(
            [sys.executable, "-m", "vitolab", "personalize", str(problem), *asked],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    assert start("whole", "1").wait() == 0
    process = start("killed", "2")

    def parts() -> dict[Path, int]:
        found = (tmp_path / "killed" / "results").glob("personalize/*/parts/*.parquet")
        return {path: path.stat().st_mtime_ns for path in found if "traces" not in path.name}

    while not parts():
        assert process.poll() is None
        time.sleep(0.005)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 60
    while any(map(lives, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)  # they notice that they are alone
    before = parts()
    assert len(before) < 5
    assert not (tmp_path / "killed" / "agent").exists()
    assert not (tmp_path / "killed" / "out.csv").exists()
    assert [run.status for run in list_runs(tmp_path / "killed" / "results")] == ["interrupted"]

    assert start("killed", "1").wait() == 0
    after = parts()
    assert len(after) == 5
    assert {path: after[path] for path in before} == before
    (one,), (other,) = (list_runs(tmp_path / name / "results") for name in ("whole", "killed"))
    assert (one.status, other.status) == ("complete", "complete")
    for name in FILES:
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes(), name
    for name in ("agent/arrays.npz", "agent/continuous.json", "out.csv"):
        whole, killed = ((tmp_path / each / name).read_bytes() for each in ("whole", "killed"))
        assert whole == killed, name
