"""The life of a run: one folder, one owner, parts that are whole or absent, the manifest last.

A run is ``results/<study>/<run id>/``: ``start.json`` first, ``parts/`` while it is computed,
``run.json`` last. Who owns it meanwhile is told by `vitolab.store.claims`.
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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vitolab.files import (
    checked_name,
    checksum,
    digest,
    temporary_folder,
    write_json,
    write_table,
    writer,
)
from vitolab.parallel.processes import process_started
from vitolab.store.claims import (
    is_alive,
    keep_alive,
    last_claims,
    let_go,
    read_claim,
    sweep,
    take,
    write_claim,
)
from vitolab.store.records import (
    SCHEMA,
    FileRecord,
    Limit,
    Manifest,
    MissingRecord,
    Outcome,
    Problems,
    Progress,
    Start,
    read_record,
)

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table of failed runs before those of the parameters.
FAILURE_KEYS = ("setup", "stage", "patient", "kind", "text", "n_runs", "n_retries")
#: Tables of a run, each in a file ``<name>.parquet``; and the file of its arrays.
TABLES = ("patients", "personalizations", "traces", "failures")
ARRAYS = "arrays.npz"
_FAILURES = ".failures.parquet"
_EXPLORATION = "exploration-"
LIBRARIES = ("vitolab", "numpy", "scipy", "numba", "scikit-learn", "pandas", "pyarrow")

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


def stored_parameters(results_root: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as they are stored: paths below the results are relative to that folder.

    So a run is found by the same parameters after the results have been moved.

    Raises
    ------
    ValueError, TypeError
        If one is no finite JSON value.
    """
    root = results_root.resolve()
    stored: dict[str, Any] = json.loads(json.dumps(dict(parameters), allow_nan=False))
    for name, value in stored.items():
        if isinstance(value, str) and os.path.isabs(value) and Path(value).is_relative_to(root):
            stored[name] = Path(value).relative_to(root).as_posix()
    return stored


def left_behind(
    results_root: Path, study: str, parameters: Mapping[str, Any], seed: int, version: str
) -> str:
    """Sentence about a run that was interrupted and only another version could resume, or "".

    Parameters
    ----------
    results_root, study, parameters, seed, version
        See `RunFolder.start`.
    """
    asked = stored_parameters(results_root, parameters)
    for path in sorted((results_root / study).glob("*Z-*"), reverse=True):
        info = inspect_run(path)
        if (info.parameters, info.seed) != (asked, seed):
            continue
        if info.version == version or info.status != "interrupted":
            return ""
        return f"{path} was interrupted with another version of the code, and begins again"
    return ""


def finished_parts(path: Path) -> list[Path]:
    """Personalizations of the finished parts of a run; tables that go with a part are none."""
    found = sorted((path / "parts").glob("*.parquet"))
    return [part for part in found if part.name.count(".") == 1]


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


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, to write to.

    Attributes
    ----------
    path : Path
    record : Start
    state : {"new", "resumed", "complete", "attached"}
        How it was found. A complete run is only to be read; an attached one belongs to the
        process that started it, which also finishes it.
    """

    path: Path
    record: Start
    state: Literal["new", "resumed", "complete", "attached"]
    _claim: Path | None = None

    @classmethod
    def start(
        cls,
        results_root: Path,
        study: str,
        parameters: Mapping[str, Any],
        seed: int,
        version: str,
        *,
        again: bool = False,
    ) -> RunFolder:
        """Find or make the run of these parameters, and own it.

        A complete run is reported as such. An interrupted one is resumed. After a failed one a
        new run takes over its finished parts. Study, parameters, version and seed together are
        the fingerprint by which runs are the same.

        Parameters
        ----------
        results_root : Path
        study : str
        parameters : mapping of str to JSON value
        seed : int
        version : str
            Changes whenever a part would come out differently.
        again : bool
            Compute anew what is complete or failed; an interrupted run is still resumed.

        Raises
        ------
        RunInUse
            If a live process owns the run.
        ValueError, TypeError
            If the study is no name, or a parameter no finite JSON value.
        """
        root = results_root.resolve()
        folder = root / checked_name("study", study)
        if folder == root / "walks":
            raise ValueError("study is 'walks', which is the folder of the walk cache")
        asked = stored_parameters(root, parameters)
        fingerprint = digest(study, asked, version, seed)
        find = partial(_find, folder, fingerprint)

        if not again and (done := find("complete")):
            return cls(*done, "complete")
        claim = take(folder, fingerprint)
        try:
            if not again and (done := find("complete")):  # finished meanwhile
                let_go(claim)
                return cls(*done, "complete")
            if found := find("interrupted"):
                write_claim(claim, found[0].name)
                (found[0] / "limit.json").unlink(missing_ok=True)
                run = cls(*found, "resumed", claim)
            else:
                failed = None if again else find("failed")
                record = Start(
                    schema_version=SCHEMA,
                    study=study,
                    parameters=asked,
                    seed=seed,
                    fingerprint=fingerprint,
                    version=version,
                    started=_now(),
                    host=socket.gethostname(),
                    process=os.getpid(),
                    process_started=process_started(os.getpid()) or "",
                    versions=_versions(),
                )
                path = _create(folder, record, claim, failed[0] if failed else None)
                run = cls(path, record, "new", claim)
            keep_alive(claim)
            places = (folder, folder / ".claims", run.path, run.path / "parts")
            for place in (*places, *root.glob("walks/*"), *root.glob(".inputs/**/")):
                sweep(place)
        except BaseException:
            let_go(claim)
            raise
        return run

    @classmethod
    def is_known(
        cls,
        results_root: Path,
        study: str,
        parameters: Mapping[str, Any],
        seed: int,
        version: str,
    ) -> bool:
        """Whether `start` would find a run of these parameters, complete or to go on with."""
        asked = stored_parameters(results_root, parameters)
        folder = results_root.resolve() / checked_name("study", study)
        fingerprint = digest(study, asked, version, seed)
        return any(_find(folder, fingerprint, status) for status in ("complete", "interrupted"))

    @classmethod
    def attach(cls, path: Path) -> RunFolder:
        """Work on a run that another process started and will finish.

        Raises
        ------
        ValueError
            If the folder is no run, or is finished.
        """
        if (path / "run.json").exists():
            raise ValueError(f"{path}: the run is finished, expected one that is going on")
        try:
            record = read_record(Start, path / "start.json")
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return cls(path, record, "attached")

    def part(self, key: str) -> Path:
        """File of a part."""
        return self.path / "parts" / f"{checked_name('key of a part', key)}.parquet"

    def has_part(self, key: str) -> bool:
        """Whether the part is there, whole.

        Parameters
        ----------
        key : str
            Name of the part: the `vitolab.files.digest` of what tells it from the others.
        """
        return _is_whole(self.part(key))

    def write_part(
        self,
        key: str,
        personalizations: pd.DataFrame,
        traces: pd.DataFrame | None = None,
        failures: pd.DataFrame | None = None,
    ) -> None:
        """Keep a finished part.

        Parameters
        ----------
        key : str
        personalizations : DataFrame
            One row per personalisation.
        traces : DataFrame, optional
            One row per forward run; written first, as the other table marks the part as done.
        failures : DataFrame, optional
            See `vitolab.store.tables.failure_table`; written first, too. Without it what an attempt
            that was interrupted has left is removed.
        """
        part = self.part(key)
        if traces is not None:
            write_table(part.with_suffix(".traces.parquet"), traces)
        self._keep_failures(key, failures)
        write_table(part, personalizations)

    def write_failures(self, key: str, failures: pd.DataFrame | None) -> None:
        """Keep what is known of failed runs of an exploration.

        Parameters
        ----------
        key : str
            ``exploration-<walks>-<number>``: of the same walks only the last key counts.
        failures : DataFrame or None
            See `vitolab.store.tables.failure_table`; None removes an earlier record.

        Raises
        ------
        ValueError
            If the key is another one.
        """
        if not key.startswith(_EXPLORATION):
            raise ValueError(f"key is {key!r}, expected one that begins with {_EXPLORATION!r}")
        self._keep_failures(key, failures)

    def _keep_failures(self, key: str, failures: pd.DataFrame | None) -> None:
        """Write a table of failed runs, or remove it."""
        path = self.part(key).with_suffix(_FAILURES)
        if failures is not None:
            write_table(path, failures)
        elif path.exists():
            path.unlink(missing_ok=True)

    def beside_parts(self, suffix: str) -> list[Path]:
        """Files that stand beside finished parts; others belong to parts that were interrupted.

        Parameters
        ----------
        suffix : str
            Such as ``.traces.parquet``.
        """
        found = sorted((self.path / "parts").glob(f"*{suffix}"))
        return [path for path in found if self.has_part(path.name.removesuffix(suffix))]

    def tabulate_failures(self) -> None:
        """Write ``failures.parquet`` if runs failed: how many by cause, and parameters of one."""
        import pandas as pd

        explored = sorted((self.path / "parts").glob(f"{_EXPLORATION}*{_FAILURES}"))
        # fewer of the same walks come before more of them
        latest = {path.name.rpartition("-")[0]: path for path in explored}
        found = [*latest.values(), *self.beside_parts(_FAILURES)]
        table = self.path / "failures.parquet"
        if not found:
            if table.exists():  # of an earlier attempt
                table.unlink(missing_ok=True)
            return
        joined = pd.concat([pd.read_parquet(path) for path in found], ignore_index=True)
        causes = list(FAILURE_KEYS[:-2])
        x = [name for name in joined.columns if name.startswith("x:")]
        # by their values, so that the one that is kept does not depend on the order of the parts
        joined = joined.sort_values([*causes, *x], ignore_index=True)
        counted = joined.groupby(causes, sort=False, as_index=False).agg(
            {"n_runs": "sum", "n_retries": "sum", **dict.fromkeys(x, "first")}
        )
        write_table(table, counted[[*FAILURE_KEYS, *x]])

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell how far the work is."""
        _write_progress(self.path, stage, done, total)

    def allow(self, hours: float) -> None:
        """Give the run so much wall time from now on (h), until it is started again."""
        limit = Limit(schema_version=SCHEMA, hours=hours, until=time.time() + 3600 * hours)
        write_json(self.path / "limit.json", limit.model_dump())

    @cached_property
    def limit(self) -> Limit | None:
        """Wall time that the run is given; None if any."""
        try:
            return read_record(Limit, self.path / "limit.json")
        except MissingRecord:
            return None

    def finish(self, status: Literal["complete", "failed"], reason: str = "") -> None:
        """Write the manifest and let the run go.

        The description of the problems is taken from ``problems.json``, where the tables of
        the run have been assembled. A run that failed leaves what is known of failed forward runs.

        Parameters
        ----------
        status : {"complete", "failed"}
        reason : str
            Why it failed, one line.

        Raises
        ------
        RuntimeError
            If this process does not own the run.
        """
        if self._claim is None:
            raise RuntimeError(f"{self.path}: the run is not this process's to finish")
        if status == "failed":
            with suppress(OSError, ValueError, KeyError):  # the manifest matters more
                self.tabulate_failures()
        waiting = self.path / "problems.json"
        problems = read_record(Problems, waiting).problems if waiting.exists() else {}
        passing = {"run.json", "progress.json", "problems.json", "limit.json"}
        files = {
            path.name: FileRecord(size=path.stat().st_size, sha256=checksum(path))
            for path in sorted(self.path.iterdir())
            if path.is_file() and path.name not in passing and not path.name.startswith(".")
        }
        manifest = Manifest(
            **self.record.model_dump(),
            status=status,
            reason=reason,
            finished=_now(),
            problems=problems,
            files=files,
        )
        write_json(self.path / "run.json", manifest.model_dump(mode="json"))
        waiting.unlink(missing_ok=True)
        (self.path / "limit.json").unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Let the run go without a manifest: it is interrupted, and may be resumed."""
        if self._claim is not None:
            let_go(self._claim)


def _find(folder: Path, fingerprint: str, status: Status) -> tuple[Path, Start] | None:
    """Newest run of a fingerprint and status."""
    for path in sorted(folder.glob(f"*-{fingerprint[:8]}"), reverse=True):
        info = inspect_run(path)
        if (info.fingerprint, info.status) == (fingerprint, status):
            with suppress(ValueError):
                return path, read_record(Start, path / "start.json")
    return None


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


def _write_progress(path: Path, stage: str, done: int, total: int) -> None:
    """Write ``progress.json``."""
    progress = Progress(
        schema_version=SCHEMA, stage=stage, done=done, total=total, heartbeat=time.time()
    )
    write_json(path / "progress.json", progress.model_dump())


def _is_whole(path: Path) -> bool:
    """Whether a Parquet file is there with its last bytes."""
    try:
        with path.open("rb") as file:
            file.seek(-4, os.SEEK_END)
            return file.read() == b"PAR1"
    except OSError:
        return False


def _create(folder: Path, record: Start, claim: Path, failed: Path | None) -> Path:
    """Make the folder of a new run; it appears under its name with its first files in it."""
    temporary = temporary_folder(folder, f".new-{writer()}.")
    try:
        write_json(temporary / "start.json", record.model_dump())
        _write_progress(temporary, "starting", 0, 0)
        (temporary / "parts").mkdir()
        if failed is not None:
            _take_over_parts(failed / "parts", temporary / "parts")
        while True:
            name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{record.fingerprint[:8]}"
            if not (folder / name).exists():
                write_claim(claim, name)
                return temporary.rename(folder / name)
            time.sleep(0.1)  # made anew within one second
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _has_answers(part: Path) -> bool:
    """Whether any run of a part gave an answer, as far as its table tells."""
    import pandas as pd

    table = pd.read_parquet(part)
    if not {"n_runs", "n_failed"} <= set(table.columns):
        return True
    return bool((table["n_failed"] < table["n_runs"]).any())


def _take_over_parts(source: Path, target: Path) -> None:
    """Share the finished parts of a failed run: they never change once written.

    What belongs to parts that were interrupted is left behind, and parts without an answer are:
    what made their runs fail may be mended.
    """
    for path in sorted(source.glob("*.parquet")):
        part = source / f"{path.name.partition('.')[0]}.parquet"
        finished = path.name.startswith(_EXPLORATION) or (_is_whole(part) and _has_answers(part))
        if not finished or not _is_whole(path):
            continue
        try:
            os.link(path, target / path.name)
        except OSError:  # a file system without links
            shutil.copy2(path, target / path.name)
