"""The JSON files of a run, read through a model at the door."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

SCHEMA: Final = 1
#: Larger files are none of these.
MOST_BYTES = 2**24


class _Record(BaseModel):
    """What is read from a JSON file."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Start(_Record):
    """``start.json``: what was asked for, by whom, with which versions."""

    schema_version: Literal[1]
    study: str
    parameters: dict[str, Any]
    seed: int
    fingerprint: str
    version: str
    started: str
    host: str
    process: int
    process_started: str
    versions: dict[str, str]


class Progress(_Record):
    """``progress.json``: how far the work is; `heartbeat` is when that was written (s, epoch)."""

    schema_version: Literal[1]
    stage: str
    done: int
    total: int
    heartbeat: float


class Limit(_Record):
    """``limit.json``: wall time that a run is given (h), and when that is spent (s, epoch)."""

    schema_version: Literal[1]
    hours: float
    until: float


class FileRecord(_Record):
    """Size in bytes and checksum of a stored file."""

    size: int
    sha256: str


class ParameterRecord(_Record):
    """A parameter as it was when the run was stored; see `vitolab.problem.Parameter`."""

    name: str
    label: str
    unit: str
    lower: float
    upper: float
    default: float
    step: float
    scale: Literal["linear", "log"]


class ObjectiveRecord(_Record):
    """An objective as it was when the run was stored; see `vitolab.problem.Objective`."""

    name: str
    label: str
    unit: str
    tolerance: float
    kind: Literal["difference", "angle"]


class ProblemRecord(_Record):
    """A problem as it was when the run was stored; see `vitolab.problem.Problem`."""

    name: str
    version: str
    border: Literal["clip", "reject", "free"]
    multipliers: tuple[int, ...]
    parameters: tuple[ParameterRecord, ...]
    objectives: tuple[ObjectiveRecord, ...]


class Problems(_Record):
    """``problems.json``: the problems by setup, until the manifest takes them up."""

    schema_version: Literal[1]
    problems: dict[str, ProblemRecord]


class Outcome(Start):
    """The short part of a manifest, enough for a list of runs."""

    status: Literal["complete", "failed"]
    reason: str
    finished: str


class Manifest(Outcome):
    """``run.json``: the whole record of a finished run."""

    problems: dict[str, ProblemRecord]
    files: dict[str, FileRecord]


class Claim(_Record):
    """Who owns a run; `process` is None once the owner let go."""

    schema_version: Literal[1]
    host: str
    boot: str
    process: int | None
    process_started: str
    heartbeat: float
    run: str


_R = TypeVar("_R", bound=_Record)


class MissingRecord(ValueError):
    """The file is not there."""


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting for anybody: a pipe in its place is empty."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_record(model: type[_R], path: Path | str) -> _R:
    """Read a JSON file through its model.

    Raises
    ------
    MissingRecord
        If there is no such file.
    ValueError
        If the file is damaged, foreign or of another version of this package.
    """
    name = os.path.basename(path)
    try:
        with open(path, "rb", opener=_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
                raise ValueError(f"{name} is damaged, expected a file of some kilobytes")
            content = file.read(MOST_BYTES)
    except FileNotFoundError:
        raise MissingRecord(f"{name} is missing") from None
    except OSError as error:
        raise ValueError(f"{name} cannot be read ({error.strerror})") from None
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        raise ValueError(f"{name} is damaged, expected JSON")
    if first["loc"] == ("schema_version",) and isinstance(first["input"], int):
        raise ValueError(
            f"{name} was written by another version of vitolab (schema {first['input']}, "
            f"expected {SCHEMA})"
        )
    where = ".".join(str(part) for part in first["loc"]) or "content"
    raise ValueError(f"{name}: {where}: {first['msg']}")
