"""A run that is being computed: one folder, one owner, parts that are whole or absent."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from vitolab.files import checked_name, digest, resolved, write_json
from vitolab.problem import Problem
from vitolab.store.assemble import assemble, joined, tabulate_failures
from vitolab.store.claims import OutOfTime, keep_alive, let_go, sweep_run, take, write_claim
from vitolab.store.folder import (
    EXPLORATION,
    FAILURES,
    TRACES,
    create,
    find_run,
    finished_parts,
    first_record,
    is_sound_part,
    is_whole,
    left_over,
    part_file,
    stored_parameters,
    write_manifest,
    write_progress,
)
from vitolab.store.parquet import read_table, write_table
from vitolab.store.records import SCHEMA, Limit, MissingRecord, Start, read_record
from vitolab.store.stored import Run
from vitolab.store.tables import KEYS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class OpenRun:
    """A run that is being computed, to write to; see `vitolab.store.open_run`.

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
    _asked: set[str] = field(default_factory=set, compare=False, repr=False)

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
    ) -> OpenRun:
        """Find or make the run of these parameters, and own it.

        A complete run is reported as such, an interrupted one is resumed, and `left_over` may leave
        finished parts to a new one. Study, parameters, version and seed are the fingerprint.

        Parameters
        ----------
        results_root : Path
        study : str
        parameters : mapping of str to JSON value
        seed : int
        version : str
            Changes whenever a part would come out differently.
        again : bool
            Recompute what is complete or failed; an interrupted run is still resumed.

        Raises
        ------
        RunInUse
            If a live process owns the run.
        ValueError, TypeError
            If the study is no name, or a parameter no finite JSON value.
        """
        root = resolved(results_root)
        folder = root / checked_name("study", study)
        if folder == root / "walks":
            raise ValueError("study is 'walks', which is the folder of the walk cache")
        asked = stored_parameters(root, parameters)
        fingerprint = digest(study, asked, version, seed)
        find = partial(find_run, folder, fingerprint)

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
                source = None if again else left_over(folder, fingerprint)
                record = first_record(study, asked, seed, version, fingerprint)
                path = create(folder, record, claim, source)
                run = cls(path, record, "new", claim)
            keep_alive(claim)
            sweep_run(root, run.path)
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
        folder = resolved(results_root) / checked_name("study", study)
        fingerprint = digest(study, asked, version, seed)
        return any(find_run(folder, fingerprint, status) for status in ("complete", "interrupted"))

    @classmethod
    def attach(cls, path: Path) -> OpenRun:
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
        return part_file(self.path, key)

    def has_part(self, key: str) -> bool:
        """Whether a part is there, whole and undamaged; its key is a `vitolab.files.digest`."""
        self._asked.add(key)
        return is_sound_part(self.part(key))

    def read_part(self, key: str) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Read a finished part: its personalisations, and their forward runs where it has any.

        Raises
        ------
        OSError, ValueError
            If it is not there, or damaged.
        """
        traces = self.part(key).with_suffix(TRACES)
        return read_table(self.part(key)), read_table(traces) if traces.exists() else None

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
            write_table(part.with_suffix(TRACES), traces)
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
        if not key.startswith(EXPLORATION):
            raise ValueError(f"key is {key!r}, expected one that begins with {EXPLORATION!r}")
        self._keep_failures(key, failures)

    def _keep_failures(self, key: str, failures: pd.DataFrame | None) -> None:
        """Write a table of failed runs, or remove it."""
        path = self.part(key).with_suffix(FAILURES)
        if failures is not None:
            write_table(path, failures)
        elif path.exists():
            path.unlink(missing_ok=True)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell how far the work is."""
        write_progress(self.path, stage, done, total)

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

    @property
    def until(self) -> float:
        """When no further part is begun (s, epoch); infinite without a limit of wall time."""
        return math.inf if self.limit is None else self.limit.until

    @property
    def personalizations(self) -> pd.DataFrame:
        """One row per personalisation so far, in the order of the table that is stored.

        Raises
        ------
        OutOfTime
            If parts were left out for want of time.
        ValueError
            If no part is finished, or one is damaged.
        """
        if self.state == "complete":
            return Run.load(self.path).personalizations
        self._check_time()
        done = finished_parts(self.path)
        if not done:
            raise ValueError(f"{self.path}: no part is finished yet, expected at least one")
        return joined(done, KEYS)

    def finish(
        self,
        *,
        problems: Mapping[str, Problem],
        patients: pd.DataFrame,
        arrays: Mapping[str, NDArray[Any]] | None = None,
    ) -> Run:
        """Assemble the tables and, where the notebook owns the run, write its manifest.

        Parameters
        ----------
        problems : mapping of setup name to Problem
        patients : DataFrame
            One row per setup and patient.
        arrays : mapping of str to ndarray, optional

        Returns
        -------
        Run
            As stored. A run that was complete before is left as it is.

        Raises
        ------
        OutOfTime
            If parts were left out for want of time: the tables hold the others, and the run
            can be gone on with.
        """
        if self.state == "complete":
            return Run.load(self.path)
        run = assemble(self.path, problems=problems, patients=patients, arrays=arrays)
        self._check_time()
        if self.state == "attached":
            return run  # whoever started the run waits for the rest of the notebook
        self.close("complete")
        return Run.load(self.path)

    def close(self, status: Literal["complete", "failed"], reason: str = "") -> None:
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
                tabulate_failures(self.path)
        write_manifest(self.path, self.record, status, reason)
        self.release()

    def release(self) -> None:
        """Let the run go without a manifest: it is interrupted, and may be resumed."""
        if self._claim is not None:
            let_go(self._claim)

    def _check_time(self) -> None:
        """Stop where parts were left out for want of time."""
        limit, total = self.limit, len(self._asked)
        if limit is None:
            return
        done = sum(is_whole(self.part(key)) for key in self._asked)
        if done < total:
            stage = f"stopped at its limit of {limit.hours:g} h"
            self.progress(stage, done, total)
            raise OutOfTime(f"{stage}: {done} of {total} parts are finished")
