"""A line of a list of runs: where each stands, read from its small files only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vitolab.store.claims import is_alive, last_claims, read_claim
from vitolab.store.records import MissingRecord, Outcome, Progress, Start, read_record

Status = Literal["complete", "failed", "running", "interrupted", "unreadable"]


@dataclass(frozen=True)
class RunInfo:
    """One line of a list of runs.

    Attributes
    ----------
    path : Path
    study : str
    status : {"complete", "failed", "running", "interrupted", "unreadable"}
    reason : str
        Why it failed or cannot be read.
    started, finished : str
        ISO 8601, UTC; empty where unknown.
    parameters : mapping of str to JSON value
    seed : int or None
    version, fingerprint : str
    progress : Progress or None
        Of a run that is not finished.
    """

    path: Path
    study: str
    status: Status
    reason: str = ""
    started: str = ""
    finished: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    version: str = ""
    fingerprint: str = ""
    progress: Progress | None = None


def inspect_run(path: Path, claims: Mapping[str, Path] | None = None) -> RunInfo:
    """Say how a run stands; whatever is wrong with the folder becomes a reason, not an error.

    Parameters
    ----------
    path : Path
    claims : mapping of str to Path, optional
        Answer of `last_claims` for the folder of the study, where it is at hand already.
    """
    folder = str(path)  # thousands of runs are listed at once
    start: Start
    status: Status
    reason, finished, progress = "", "", None
    try:
        try:
            start = outcome = read_record(Outcome, f"{folder}/run.json")
            status, reason, finished = outcome.status, outcome.reason, outcome.finished
        except MissingRecord:
            start = read_record(Start, f"{folder}/start.json")
            if claims is None:
                claims = last_claims(path.parent)
            claim = read_claim(claims.get(start.fingerprint[:16]))
            mine = claim is not None and claim.run == path.name
            status = "running" if mine and is_alive(claim) else "interrupted"
            progress = read_progress(path)
    except ValueError as error:
        return RunInfo(path, path.parent.name, "unreadable", str(error))
    return RunInfo(
        path=path,
        study=start.study,
        status=status,
        reason=reason,
        started=start.started,
        finished=finished,
        parameters=start.parameters,
        seed=start.seed,
        version=start.version,
        fingerprint=start.fingerprint,
        progress=progress,
    )


def read_progress(path: Path) -> Progress | None:
    """How far a run is; None where that cannot be read."""
    with suppress(ValueError):
        return read_record(Progress, f"{path}/progress.json")
    return None


def list_runs(results_root: Path | str) -> list[RunInfo]:
    """List all runs, newest first.

    Every folder at the place of a run is listed; one that cannot be read has the status
    ``unreadable`` and the reason.

    Parameters
    ----------
    results_root : Path or str

    Returns
    -------
    list of RunInfo
        Empty if there is no such folder.
    """
    runs = []
    for folder in folders_in(Path(results_root)):
        if folder.name != "walks":
            claims = last_claims(folder)
            runs += [inspect_run(path, claims) for path in folders_in(folder)]
    return sorted(runs, key=lambda run: (run.path.name, run.study), reverse=True)


def folders_in(root: Path) -> list[Path]:
    """Folders within a folder that are not hidden."""
    try:
        with os.scandir(root) as entries:
            return [root / e.name for e in entries if not e.name.startswith(".") and _is_folder(e)]
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder; a link in a circle is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False
