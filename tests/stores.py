"""Small stores for tests of the dashboard, written in milliseconds."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.reference import NelderMead
from vitolab.store import OpenRun, assemble
from vitolab.store.tables import fit_row, patient_table, table, trace_table
from vitolab.validation import policy_arrays

#: Text that would act if a page took it for HTML.
PAYLOADS = (
    "<img src=x onerror=\"window.hit='img'\">",
    "<script>window.hit='script'</script>",
    '"><svg onload="window.hit=\'svg\'">',
    "javascript:window.hit='link'",
    "</style></script><b onmouseover=\"window.hit='b'\">bold",
    "{a} {:>9} $x_{ {{ 7 * 7 }} ${7 * 7} [a](javascript:window.hit='md')",
)

#: What stands beside the tables of a complete run.
RECORDS = ("start", "run")

PROBLEM = Problem(
    name="linear",
    version="1",
    parameters=(Parameter("a", "a", "mL", -5.0, 5.0, 0.0, 0.02),),
    objectives=(Objective("u", "u", "mL", 0.5),),
    simulate=lambda x, patient: x,
)


def start_run(
    root: Path, study: str = "wbc-fit", seed: int = 0, parameters: dict | None = None
) -> OpenRun:
    """Start a run, owned by this process."""
    asked = {"setups": ["2p"], "n_samples": 10} if parameters is None else parameters
    return OpenRun.start(root, study, asked, seed, "1", again=True)


def finish_run(run: OpenRun, *, solved: tuple[bool, ...] = (True, True, False)) -> Path:
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
    assemble(run.path, problems={"2p": PROBLEM}, patients=patients)
    run.close("complete")
    return run.path


def stored_run(root: Path, study: str = "wbc-fit", seed: int = 0) -> Path:
    """A complete run."""
    return finish_run(start_run(root, study, seed))


def crowd(root: Path, n_runs: int) -> None:
    """Complete runs that share their tables, so that a thousand are there in a second."""
    pattern = stored_run(root)
    start, manifest = (json.loads((pattern / f"{name}.json").read_text()) for name in RECORDS)
    for seed in range(1, n_runs):
        path = pattern.with_name(f"20200101T000000Z-{seed:08x}")
        path.mkdir()
        for file in pattern.glob("*.parquet"):
            os.link(file, path / file.name)
        record = json.dumps(start | {"seed": seed})
        (path / "start.json").write_text(record, encoding="utf-8")
        size, sha256 = len(record), hashlib.sha256(record.encode()).hexdigest()
        files = manifest["files"] | {"start.json": {"size": size, "sha256": sha256}}
        record = json.dumps(manifest | {"seed": seed, "files": files})
        (path / "run.json").write_text(record, encoding="utf-8")


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


def hostile_study(root: Path, payloads: Sequence[str]) -> str:
    """A complete run of which every name is a payload, with a policy; its identifier."""
    text = itertools.cycle(payloads)
    setup, name = next(text), next(text)
    problem = Problem(
        name=next(text),
        version=next(text),
        parameters=(Parameter(next(text), next(text), next(text), -5.0, 5.0, 0.0, 0.02),),
        objectives=tuple(
            Objective(f"{next(text)}{' ' * (k + 1)}", next(text), next(text), 0.5) for k in range(2)
        ),
        simulate=lambda x, patient: np.hstack([x, 2.0 * x]),
    )
    data: dict[str, float | str] = {next(text): next(text)}
    patient = Patient(name, dict.fromkeys((o.name for o in problem.objectives), 1.0), data)
    fit = NelderMead(problem).personalize(patient, max_runs=5, seed=0)
    keys = {"setup": setup, "patient": name, "seed": 0, "repeat": 0, "start": 0}
    labels = [
        keys | {"method": "vito", "n_states": 8, "n_samples": 50},
        keys | {"method": next(text), "n_states": None, "n_samples": None},
    ]
    run = OpenRun.start(root, "wbc-convergence", {next(text): next(text)}, 0, "1", again=True)
    rows = [label | {"n_states_used": None} | fit_row(problem, fit) for label in labels]
    traces = [trace_table(problem, fit, label) for label in labels]
    run.write_part("part", table(rows), pd.concat(traces))
    problems, sizes = {setup: problem}, {"n_states": {setup: 8}, "n_samples": {setup: 50}}
    assemble(
        run.path,
        problems=problems,
        patients=patient_table(problems, [patient]),
        arrays=policy_arrays(problems, [patient], **sizes),
    )
    run.close("complete")
    return run.path.name


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


def write_csv(path: Path, patients: list[Patient], **further: list[str]) -> Path:
    """Write patients of the linear problem as a user would."""
    rows = [
        {
            "patient": p.name,
            "offset": p.data["offset"],
            "u [mL]": p.measurements["u"],
            "w [mmHg]": p.measurements["w"],
        }
        for p in patients
    ]
    pd.DataFrame(rows).assign(**further).to_csv(path, index=False)
    return path
