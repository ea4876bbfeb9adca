"""Another process that owns a run.

Run as a script this file is that process: ``start`` owns a run, says so and waits; ``study`` fills
a run with an analytic function, slowly.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vitolab.files import digest
from vitolab.store import Run, claims, open_run
from vitolab.store.claims import RunInUse
from vitolab.store.opened import OpenRun

N_PARTS = 6


def fake_study(results: Path, pause: float = 0.0, order: list[int] | None = None) -> Run:
    """Fill a run with an analytic function; says which parts it computes."""
    import numpy as np
    import pandas as pd

    from vitolab.problem import Objective, Parameter, Problem

    problem = Problem(
        name="square",
        version="1",
        parameters=(Parameter("k", "k", "", -2.0, 2.0, 0.0, 0.01),),
        objectives=(Objective("f", "f", "", 0.1),),
        simulate=lambda x, patient: x**2,
    )
    run = open_run("fake", {"n": N_PARTS}, results=results, seed=7, version="1")
    for done, i in enumerate(order or range(N_PARTS)):
        key = digest("part", i)
        if run.has_part(key):
            continue
        time.sleep(pause)
        x = np.linspace(i, i + 1, 3)
        learned = i % 2 == 0
        keys: dict[str, Any] = {
            "setup": f"{2 + i % 3}p",
            "patient": f"P{i}",
            "method": "vito" if learned else "nelder-mead",
            "n_states": 10 if learned else None,
            "n_samples": 100 if learned else None,
            "repeat": 0 if learned else None,
            "start": None,
        }
        table = pd.DataFrame([keys | {"seed": 7, "solved": learned, f"x:k{i % 2}": float(i)}])
        trace = pd.DataFrame([keys | {"iteration": t, "y:f": y} for t, y in enumerate(x**2)])
        run.write_part(key, table, trace if i < 4 else None)
        run.progress("parts", done + 1, N_PARTS)
        print(f"computed {i}", flush=True)
    patients = pd.DataFrame({"setup": "2p", "patient": [f"P{i}" for i in range(N_PARTS)]})
    arrays = {"2p/v": np.arange(3.0), "2p/q": np.eye(2)}
    return run.finish(problems={"2p": problem}, patients=patients, arrays=arrays)


def script(*arguments: object) -> subprocess.Popen[str]:
    """Another process that runs this file."""
    root = Path(claims.__file__).parents[1]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def start(results: Path, seed: int = 0, **changes: Any) -> OpenRun:
    arguments = {"study": "s", "parameters": {"n": 1, "m": [2]}, "version": "1"} | changes
    return OpenRun.start(results, seed=seed, **arguments)


def main(what: str, results: str, *more: str) -> None:
    """Be the other process."""
    if what == "study":
        fake_study(Path(results), float(more[0]))
        return
    if more:
        print("ready", flush=True)
        while not Path(more[0]).exists():
            time.sleep(0.001)
    try:
        print(start(Path(results)).state, flush=True)
    except RunInUse:
        print("refused", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
