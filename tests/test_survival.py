"""Runs survive: killed at any moment, short of disk, twice at once, they end as if undisturbed.

Run as a script this file is a process with everything imported, which forks one that works for
each line that it reads: a real process to kill, without the seconds that imports take. Ten moments
by default; ``VITOLAB_KILLS=100`` asks for as many.
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
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import simulators

from vitolab import cli
from vitolab.store import list_runs
from vitolab.store.claims import RunFailed

KILLS = int(os.environ.get("VITOLAB_KILLS", "10"))
TABLES = (
    *("personalizations.parquet", "traces.parquet", "failures.parquet"),
    *("patients.parquet", "arrays.npz"),
)
SIZES = {"n_samples": {"2p": [30, 60]}, "n_states": {"2p": [8]}}


def failing(x: Any, patient: Any) -> Any:
    """Answer as `linear` does, but for two corners of the domain."""
    from analytic import linear

    y = linear(x, patient)
    y[x[:, 0] > 3.5] = np.nan
    y[x[:, 1] < -4.0, 1] = np.inf
    return y


def work(results: Path, seed: int = 5, only: bool = False, **sizes: Any) -> None:
    """Explore, learn, cross-validate and, unless that only, personalise; all in closed form."""
    from analytic import linear

    from vitolab.patients import read_patients
    from vitolab.personalization import personalize_file
    from vitolab.problem import Objective, Parameter, Patient, Problem
    from vitolab.store import open_run
    from vitolab.store.tables import patient_table
    from vitolab.validation import leave_one_out, policy_arrays, reference_runs

    problem = Problem(
        name="linear",
        version="1",
        parameters=tuple(Parameter(name, name, "mL", -5.0, 5.0, 0.0, 0.02) for name in "ab"),
        objectives=tuple(Objective(name, name, "mL", 0.5) for name in "uw"),
        simulate=failing,
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

    if only:
        return
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


def act_at(event: int, folder: str, act: Callable[[str], None]) -> list[int]:
    """Count what is done to files of a folder; just before the numbered time, and then on, act."""
    count = [0]
    marks = ("os.rename", "os.remove", "os.mkdir", "os.link", "os.chmod", "tempfile.mkstemp")

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        writes = name == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if (writes or name in marks) and f"{arguments[0]}/".startswith(f"{folder}/"):
            count[0] += 1
            if count[0] >= event > 0:
                act(str(arguments[0]))

    sys.addaudithook(hook)
    return count


def kill(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(number: int, path: str) -> None:
    """What a system does whose disk is full, or read-only, or no longer there."""
    raise OSError(number, os.strerror(number), path)


LOST: list[str] = []


def lose(folder: str, _: str) -> None:
    """What a mount point looks like without its network folder: empty."""
    if folder not in LOST:
        LOST.append(folder)
        os.rename(folder, f"{folder}.elsewhere")
        os.mkdir(folder)


def serve() -> None:
    """For each line, work in a process of its own; say how that ended."""
    for name in ("patients", "personalization", "store.tables"):  # so that no child has to
        import_module(f"vitolab.{name}")

    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.monotonic()
        children = [fork(**one) for one in asked]
        after = asked[0].get("after")
        if after is not None:
            time.sleep(after)
            os.kill(children[0], signal.SIGKILL)  # not reaped yet, even where it has ended
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps({"codes": codes, "seconds": time.monotonic() - began}), flush=True)


def fork(
    results: str,
    event: int = 0,
    after: float | None = None,
    number: int = 0,
    lost: bool = False,
    **more: Any,
) -> int:
    """A process that works, with what happens to it; its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        act = partial(lose, results) if lost else partial(refuse, number) if number else kill
        count = act_at(event, results, act)
        work(Path(results), **more)
        Path(f"{results}.events").write_text(str(count[0]), encoding="utf-8")
        code = 0
    except Exception as error:
        said = str(error) if isinstance(error, RunFailed) else str(cli._refusal(error))
        Path(f"{results}.said").write_text(said, encoding="utf-8")
    finally:
        os._exit(code)


def environment() -> dict[str, str]:
    paths = [str(Path(cli.__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class Server:
    """Another process that runs this file."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
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
    """When each finished part and walk was written; what stands beside a part may be of none."""
    parts = [p for p in results.glob("*/*/parts/*.parquet") if len(p.suffixes) == 1]
    found = [*parts, *results.glob("walks/*/*.npz")]
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


def short_of_space(results: Path) -> None:
    """Work on a real disk that is full, then grows bit by bit, is read-only, and at last large."""
    said = []
    for option in ("size=80k", "size=200k", "ro", "rw,size=64m"):
        subprocess.run(["mount", "-o", f"remount,{option}", str(results)], check=True)
        try:
            work(results)
        except Exception as error:
            said.append(str(error) if isinstance(error, RunFailed) else str(cli._refusal(error)))
            before = finished(results)
            # by hand, as it were: while this process lives the run is its own
            assert {run.status for run in list_runs(results)} <= {"running", "failed"}
    after = finished(results)
    same = {path: after[path] for path in before} == before
    names = {name: hashlib.sha256(data).hexdigest() for name, data in content(results).items()}
    print(json.dumps({"said": said, "same": same, "content": names}))


def test_a_real_disk_that_is_full_or_read_only_harms_nothing(whole: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    if not shutil.which(NAMESPACE[0]) or shell("mount -t tmpfs tmpfs $1", results).returncode:
        pytest.skip("this system allows no mounts of one's own")
    script = "mount -t tmpfs -o size=80k tmpfs $1; exec $2 $3 short $1"
    done = shell(script, results, sys.executable, __file__)
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


if __name__ == "__main__":
    if sys.argv[1:2] == ["short"]:
        short_of_space(Path(sys.argv[2]))
    else:
        serve()
