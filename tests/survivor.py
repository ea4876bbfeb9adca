"""Work that is to survive, in a process that a test may kill.

Run as a script this file is a process with everything imported, which forks one that works for
each line that it reads: a real process to kill, without the seconds that imports take.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from vitolab import cli
from vitolab.store import list_runs
from vitolab.store.claims import RunFailed

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


if __name__ == "__main__":
    if sys.argv[1:2] == ["short"]:
        short_of_space(Path(sys.argv[2]))
    else:
        serve()
