"""The folder of a run: ``start.json`` first, parts that are whole or absent, ``run.json`` last.

A run is ``results/<study>/<run id>/``, with ``parts/`` while it is computed. Who owns it meanwhile
is known to `vitolab.store.claims`; `vitolab.store.opened` puts it all together.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from vitolab.files import checked_name, checksum, resolved, temporary_folder, write_json, writer
from vitolab.parallel.processes import process_started
from vitolab.store.claims import write_claim
from vitolab.store.info import Status, inspect_run
from vitolab.store.parquet import is_sound, read_table
from vitolab.store.records import (
    SCHEMA,
    FileRecord,
    Manifest,
    Problems,
    Progress,
    Start,
    read_record,
)

#: Endings of tables that go with a part, and the beginning of the keys of explorations.
TRACES = ".traces.parquet"
FAILURES = ".failures.parquet"
EXPLORATION = "exploration-"
LIBRARIES = ("vitolab", "numpy", "scipy", "numba", "scikit-learn", "pandas", "pyarrow")


def stored_parameters(results_root: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as they are stored: paths below the results are relative to that folder.

    So a run is found by the same parameters after the results have been moved.

    Raises
    ------
    ValueError, TypeError
        If one is no finite JSON value.
    """
    root = resolved(results_root)
    stored: dict[str, Any] = json.loads(json.dumps(dict(parameters), allow_nan=False))
    for name, value in stored.items():
        if isinstance(value, str) and os.path.isabs(value) and Path(value).is_relative_to(root):
            stored[name] = Path(value).relative_to(root).as_posix()
    return stored


def find_run(folder: Path, fingerprint: str, status: Status) -> tuple[Path, Start] | None:
    """Newest run of a fingerprint and status."""
    name = "run.json" if status in ("complete", "failed") else "start.json"  # which that holds, too
    for path in sorted(folder.glob(f"*-{fingerprint[:8]}"), reverse=True):
        info = inspect_run(path)
        if (info.fingerprint, info.status) == (fingerprint, status):
            with suppress(ValueError):
                return path, read_record(Start, path / name)
    return None


def left_over(folder: Path, fingerprint: str) -> Path | None:
    """Run of which a new one takes over the finished parts: it failed, or its manifest is damaged.

    Of several the newest.
    """
    for path in sorted(folder.glob(f"*-{fingerprint[:8]}"), reverse=True):
        if inspect_run(path).status in ("failed", "unreadable"):
            with suppress(ValueError):
                if read_record(Start, path / "start.json").fingerprint == fingerprint:
                    return path
    return None


def first_record(
    study: str, parameters: dict[str, Any], seed: int, version: str, fingerprint: str
) -> Start:
    """What is known of a run when this process starts it."""
    return Start(
        schema_version=SCHEMA,
        study=study,
        parameters=parameters,
        seed=seed,
        fingerprint=fingerprint,
        version=version,
        started=_now(),
        host=socket.gethostname(),
        process=os.getpid(),
        process_started=process_started(os.getpid()) or "",
        versions=_versions(),
    )


def create(folder: Path, record: Start, claim: Path, failed: Path | None) -> Path:
    """Make the folder of a new run; it appears under its name with its first files in it."""
    temporary = temporary_folder(folder, f".new-{writer()}.")
    try:
        write_json(temporary / "start.json", record.model_dump())
        write_progress(temporary, "starting", 0, 0)
        (temporary / "parts").mkdir()
        if failed is not None:
            take_over_parts(failed / "parts", temporary / "parts")
        while True:
            name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{record.fingerprint[:8]}"
            if not (folder / name).exists():
                write_claim(claim, name)
                return temporary.rename(folder / name)
            time.sleep(0.1)  # made again within one second
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def take_over_parts(source: Path, target: Path) -> None:
    """Share the finished parts of a failed run: they never change once written.

    Left behind is what is damaged, what belongs to parts that were interrupted, and parts without
    an answer: what made their runs fail may be mended.
    """
    for path in sorted(source.glob("*.parquet")):
        part = source / f"{path.name.partition('.')[0]}.parquet"
        finished = path.name.startswith(EXPLORATION) or (is_sound(part) and _has_answers(part))
        if not finished or not is_sound(path):
            continue
        try:
            os.link(path, target / path.name)
        except OSError:  # a file system without links
            shutil.copy2(path, target / path.name)


def _has_answers(part: Path) -> bool:
    """Whether any run of a part gave an answer, as far as its table tells."""
    table = read_table(part)
    if "stop_reason" in table and (table["stop_reason"] == "error").all():
        return False
    if not {"n_runs", "n_failed"} <= set(table.columns):
        return True
    return bool((table["n_failed"] < table["n_runs"]).any())


def write_progress(path: Path, stage: str, done: int, total: int) -> None:
    """Write ``progress.json``."""
    progress = Progress(
        schema_version=SCHEMA, stage=stage, done=done, total=total, heartbeat=time.time()
    )
    write_json(path / "progress.json", progress.model_dump())


def write_manifest(
    path: Path, record: Start, status: Literal["complete", "failed"], reason: str
) -> None:
    """Write ``run.json``, the last file of a run; what only served the computing goes."""
    waiting = path / "problems.json"
    problems = read_record(Problems, waiting).problems if waiting.exists() else {}
    passing = {"run.json", "progress.json", "problems.json", "limit.json"}
    files = {
        file.name: FileRecord(size=file.stat().st_size, sha256=checksum(file))
        for file in sorted(path.iterdir())
        if file.is_file() and file.name not in passing and not file.name.startswith(".")
    }
    manifest = Manifest(
        **record.model_dump(),
        status=status,
        reason=reason,
        finished=_now(),
        problems=problems,
        files=files,
    )
    write_json(path / "run.json", manifest.model_dump(mode="json"))
    waiting.unlink(missing_ok=True)
    (path / "limit.json").unlink(missing_ok=True)


def part_file(path: Path, key: str) -> Path:
    """File of a part of a run."""
    return path / "parts" / f"{checked_name('key of a part', key)}.parquet"


def is_whole(path: Path) -> bool:
    """Whether a Parquet file is there with its last bytes."""
    try:
        with path.open("rb") as file:
            file.seek(-4, os.SEEK_END)
            return file.read() == b"PAR1"
    except OSError:
        return False


def is_sound_part(part: Path) -> bool:
    """Whether a part is there, whole and undamaged with all that goes with it."""
    if not is_whole(part):
        return False
    beside = [path for s in (TRACES, FAILURES) if (path := part.with_suffix(s)).exists()]
    return all(is_sound(path) for path in (part, *beside))


def finished_parts(path: Path) -> list[Path]:
    """Personalizations of the finished parts of a run; tables that go with a part are none."""
    found = sorted((path / "parts").glob("*.parquet"))
    return [part for part in found if part.name.count(".") == 1]


def beside_parts(path: Path, suffix: str) -> list[Path]:
    """Files that stand beside finished parts; others belong to parts that were interrupted.

    Parameters
    ----------
    path : Path
        Folder of the run.
    suffix : str
        Such as ``.traces.parquet``.
    """
    found = sorted((path / "parts").glob(f"*{suffix}"))
    return [p for p in found if is_whole(part_file(path, p.name.removesuffix(suffix)))]


def _now() -> str:
    """Time of day, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    """Versions of Python and of the main libraries."""
    versions = {"python": sys.version.split()[0]}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
