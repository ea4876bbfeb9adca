"""Runs survive: killed at any moment, short of disk, twice at once, they end as if undisturbed.

Run as a script this file is a process with everything imported, which forks one that works for
each line that it reads: a real process to kill, without the seconds that imports take. Ten moments
by default; ``VITOLAB_KILLS=100`` asks for as many.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitolab import files
from vitolab.store import list_runs

KILLS = int(os.environ.get("VITOLAB_KILLS", "10"))
TABLES = ("personalizations.parquet", "traces.parquet", "patients.parquet", "arrays.npz")
SIZES = {"n_samples": {"2p": [30, 60]}, "n_states": {"2p": [8]}}


def work(results: Path, seed: int = 5, **sizes: Any) -> None:
    """Explore, learn, cross-validate and personalise, on a problem in closed form."""
    from analytic import linear

    from vitolab.patients import read_patients
    from vitolab.personalization import personalize_file
    from vitolab.problem import Objective, Parameter, Patient, Problem
    from vitolab.store import open_run
    from vitolab.tables import patient_table
    from vitolab.validation import leave_one_out, policy_arrays, reference_runs

    problem = Problem(
        name="linear",
        version="1",
        parameters=tuple(Parameter(name, name, "mL", -5.0, 5.0, 0.0, 0.02) for name in "ab"),
        objectives=tuple(Objective(name, name, "mL", 0.5) for name in "uw"),
        simulate=linear,
    )
    points = np.array([[-2.0, 1.0], [0.5, 2.0], [1.5, -1.0], [2.5, 0.5]])
    patients = []
    for i, point in enumerate(points):
        offset = Patient(f"P{i}", {}, {"offset": 0.1 * i})
        u, w = linear(point[np.newaxis], offset)[0]
        patients.append(Patient(f"P{i}", {"u": u, "w": w}, offset.data))
    problems, sizes = {"2p": problem}, SIZES | sizes
    run = open_run("survive", sizes, results=results, seed=seed, version="1")
    more: dict[str, Any] = {"seed": seed, "n_jobs": 2, "cache": results}
    leave_one_out(run, problems, patients, **sizes, max_runs=60, **more)
    reference_runs(run, problems, patients, methods=["nelder-mead"], n_starts=2, seed=seed)
    largest = {name: {"2p": max(size["2p"])} for name, size in sizes.items()}
    arrays = policy_arrays(problems, patients, **largest, **more)
    run.finish(problems=problems, patients=patient_table(problems, patients), arrays=arrays)

    file = results.parent / "clinic.csv"
    lines = [f"{p.name},{p.data['offset']},{','.join(map(repr, y))}" for p, y in measured(patients)]
    file.write_text("\n".join(["patient,offset,u [mL],w [mL]", *lines]) + "\n", encoding="utf-8")
    personalize_file(
        problem,
        read_patients(file, problem, data={"offset": ""}),
        setup="2p",
        train_on=patients,
        n_states=8,
        n_samples=60,
        max_runs=60,
        seed=seed,
        n_jobs=2,
        results_root=results,
    )


def measured(patients: list[Any]) -> list[tuple[Any, list[float]]]:
    return [(p, [float(p.measurements[name]) for name in "uw"]) for p in patients]


def end_at(event: int, folder: str) -> list[int]:
    """Count what is done to files of a folder; just before the numbered time, kill this process."""
    count = [0]
    marks = ("os.rename", "os.remove", "os.mkdir", "os.link", "os.chmod", "tempfile.mkstemp")

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        writes = name == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if (writes or name in marks) and str(arguments[0]).startswith(folder):
            count[0] += 1
            if count[0] == event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def serve() -> None:
    """For each line, work in a process of its own; say how that ended."""
    for name in ("patients", "personalization", "tables"):  # so that no child has to
        import_module(f"vitolab.{name}")

    print("ready", flush=True)
    for line in sys.stdin:
        asked = [json.loads(line)] if line.startswith("{") else json.loads(line)
        began = time.monotonic()
        children = [fork(**one) for one in asked]
        after = asked[0].get("after")
        if after is not None:
            time.sleep(after)
            os.kill(children[0], signal.SIGKILL)  # not reaped yet, even where it has ended
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps({"codes": codes, "seconds": time.monotonic() - began}), flush=True)


def fork(results: str, event: int = 0, after: float | None = None, **more: Any) -> int:
    """A process that works; its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        count = end_at(event, results)
        work(Path(results), **more)
        Path(f"{results}.events").write_text(str(count[0]), encoding="utf-8")
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(code)


class Server:
    """Another process that runs this file."""

    def __init__(self) -> None:
        root = Path(files.__file__).parents[1]
        paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        assert self._said() == "ready"

    def __call__(self, *asked: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._said())
        return answer

    def _said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


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


def content(results: Path) -> dict[str, bytes]:
    """Tables of the complete runs by study and name, and the walk cache."""
    found = {str(p.relative_to(results)): p.read_bytes() for p in results.glob("walks/*/*.npz")}
    for run in list_runs(results):
        if run.status == "complete":
            for name in TABLES:
                found[f"{run.study}/{name}"] = (run.path / name).read_bytes()
    return found


def finished(results: Path) -> dict[Path, int]:
    """When each finished part and walk was written."""
    found = [*results.glob("*/*/parts/*.parquet"), *results.glob("walks/*/*.npz")]
    return {path: path.stat().st_mtime_ns for path in found}


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


if __name__ == "__main__":
    serve()
