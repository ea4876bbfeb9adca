"""Small stores for tests of the dashboard, written in milliseconds."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from vitolab.problem import Objective, Parameter, Problem
from vitolab.runs import RunFolder
from vitolab.store import assemble

#: Text that would act if a page took it for HTML.
PAYLOADS = (
    "<img src=x onerror=\"window.hit='img'\">",
    "<script>window.hit='script'</script>",
    '"><svg onload="window.hit=\'svg\'">',
    "javascript:window.hit='link'",
    "</style></script><b onmouseover=\"window.hit='b'\">bold",
    "{{ 7 * 7 }} ${7 * 7} [a](javascript:window.hit='md')",
)

PROBLEM = Problem(
    name="linear",
    version="1",
    parameters=(Parameter("a", "a", "mL", -5.0, 5.0, 0.0, 0.02),),
    objectives=(Objective("u", "u", "mL", 0.5),),
    simulate=lambda x, patient: x,
)


def start_run(
    root: Path, study: str = "wbc-fit", seed: int = 0, parameters: dict | None = None
) -> RunFolder:
    """Start a run, owned by this process."""
    asked = {"setups": ["2p"], "n_samples": 10} if parameters is None else parameters
    return RunFolder.start(root, study, asked, seed, "1", again=True)


def finish_run(run: RunFolder, *, solved: tuple[bool, ...] = (True, True, False)) -> Path:
    """Fill a run with one setup, a patient for each outcome, Vito and a reference."""
    rows = [
        {
            "setup": "2p",
            "patient": f"P{i}",
            "method": method,
            "n_states": 10 if method == "vito" else None,
            "n_samples": 100 if method == "vito" else None,
            "repeat": 0,
            "start": None if method == "vito" else 0,
            "seed": 1,
            "solved": ok if method == "vito" else False,
            "n_runs": 10 + i,
            "n_restarts": 0,
            "stop_reason": "solved" if ok else "max_runs",
            "misfit:u": 0.1,
            "x:a": 0.5,
        }
        for i, ok in enumerate(solved)
        for method in ("vito", "nelder-mead")
    ]
    table = pd.DataFrame(rows).astype(
        dict.fromkeys(("n_states", "n_samples", "repeat", "start"), "Int64")
    )
    run.write_part("part", table)
    patients = pd.DataFrame(
        [{"setup": "2p", "patient": f"P{i}", "z:u": 1.0} for i in range(len(solved))]
    )
    assemble(run, problems={"2p": PROBLEM}, patients=patients)
    run.finish("complete")
    return run.path


def stored_run(root: Path, study: str = "wbc-fit", seed: int = 0) -> Path:
    """A complete run."""
    return finish_run(start_run(root, study, seed))


def hostile_run(root: Path, payload: str, folder: str = "20200101T000000Z-00000000") -> Path:
    """A failed run whose every text is a payload."""
    path = root / "hostile" / folder
    path.mkdir(parents=True)
    record = {
        "schema_version": 1,
        "study": payload,
        "parameters": {payload: payload, "n_patients": 3},
        "seed": 0,
        "fingerprint": payload,
        "version": payload,
        "started": payload,
        "host": payload,
        "process": 1,
        "process_started": payload,
        "versions": {payload: payload},
    }
    (path / "start.json").write_text(json.dumps(record), encoding="utf-8")
    record |= {"status": "failed", "reason": payload, "finished": payload}
    record |= {"problems": {}, "files": {}}
    (path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    return path


def bad_folders(root: Path) -> dict[str, Path]:
    """Folders that are no runs: damaged, half-written, of the future, foreign."""
    made = {}
    for name in ("damaged", "half", "future", "foreign"):
        made[name] = root / "wbc-fit" / f"20200101T00000{len(made)}Z-{name}"
        made[name].mkdir(parents=True)
    (made["damaged"] / "run.json").write_text('{"schema_version": 1, "stu', encoding="utf-8")
    (made["half"] / "personalizations.parquet").write_bytes(b"PAR1half")
    (made["future"] / "run.json").write_text('{"schema_version": 99}', encoding="utf-8")
    (made["foreign"] / "holiday.jpg").write_bytes(b"\xff\xd8")
    return made
