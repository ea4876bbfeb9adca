"""Stored runs: open one to fill it, assemble its tables, load and list what is there.

A notebook is written the same way whether it is run by `vitolab.studies.run` or opened by hand
(the notebook of a study says ``STUDY.open(globals())`` for the first line)::

    run = open_run("wbc-fit", {"setups": setups}, results=results, seed=seed, folder=run_folder)
    leave_one_out(run, ...)                 # run.has_part, run.write_part, run.progress
    stored = run.finish(problems=problems, patients=patient_table(...))
    stored.personalizations                 # what figures are functions of
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from vitolab.files import (
    checksum,
    read_arrays,
    write_arrays,
    write_json,
    write_table,
)
from vitolab.problem import Problem
from vitolab.store.claims import OutOfTime, last_claims
from vitolab.store.columns import check_arrays, check_table
from vitolab.store.folder import (
    ARRAYS,
    FAILURE_KEYS,
    RunFolder,
    RunInfo,
    finished_parts,
    inspect_run,
    left_behind,
    read_progress,
    stored_parameters,
)
from vitolab.store.records import (
    SCHEMA,
    Manifest,
    ProblemRecord,
    Problems,
    Progress,
    Start,
    read_record,
)
from vitolab.version import code_version

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "OpenRun",
    "Run",
    "RunInfo",
    "assemble",
    "code_version",
    "inspect_run",
    "latest",
    "list_runs",
    "open_run",
]

#: Columns that tell one personalisation from another, in the order of the stored tables.
KEYS = ("setup", "patient", "method", "n_states", "n_samples", "repeat", "start")
_NULLABLE = ("n_states", "n_samples", "repeat", "start")
#: Groups of columns, in the order of the stored tables; each keeps the order of its problem.
_GROUPS = ("", "z", "data", "truth", "misfit", "x", "y", "c", "e", "why", "last")


@dataclass(frozen=True)
class Run:
    """A stored run, to read from.

    Attributes
    ----------
    path : Path
    manifest : Manifest
        What was asked for, how it ended, and the problems by setup. Of a run that is not
        finished, `status` is the status it would have if all ended well, and `files` is empty.
    """

    path: Path
    manifest: Manifest

    @classmethod
    def load(cls, path: Path | str) -> Run:
        """Open a run; its tables are read when they are first used.

        Parameters
        ----------
        path : Path or str
            Folder of the run. A run that goes on can be opened once its tables are assembled.

        Raises
        ------
        ValueError
            If the folder is not a run that can be read.
        """
        path = Path(path)
        try:
            if (path / "run.json").exists():
                return cls(path, read_record(Manifest, path / "run.json"))
            start = read_record(Start, path / "start.json")
            problems = read_record(Problems, path / "problems.json").problems
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        manifest = Manifest(
            **start.model_dump(),
            status="complete",
            reason="",
            finished="",
            problems=problems,
            files={},
        )
        return cls(path, manifest)

    @property
    def study(self) -> str:
        """Name of its study."""
        return self.manifest.study

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of its study."""
        return self.manifest.parameters

    @property
    def problems(self) -> Mapping[str, ProblemRecord]:
        """Problems by setup, as they were stored."""
        return self.manifest.problems

    @property
    def finished(self) -> bool:
        """Whether its tables are assembled: a run without them is not opened."""
        return True

    @cached_property
    def patients(self) -> pd.DataFrame:
        """One row per setup and patient: ``z:``, ``data:`` and, where synthetic, ``truth:``."""
        return self._table("patients.parquet")

    @cached_property
    def personalizations(self) -> pd.DataFrame:
        """One row per personalisation."""
        return self._table("personalizations.parquet")

    @cached_property
    def traces(self) -> pd.DataFrame:
        """One row per forward run, of the personalisations that were traced."""
        return self._table("traces.parquet")

    @cached_property
    def failures(self) -> pd.DataFrame:
        """Failed forward runs by patient and cause; empty where none failed, or none is known.

        How many there were, and the parameters of one of them. Those of explorations are of all
        walks that were asked for, whether or not the run found them in the walk cache.
        """
        import pandas as pd

        if not (self.path / "failures.parquet").is_file():
            return pd.DataFrame(columns=list(FAILURE_KEYS))
        return self._table("failures.parquet")

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, such as ``6p/centroids``."""
        path = self._file(ARRAYS)
        arrays = read_arrays(path)
        check_arrays(str(path), arrays)
        return arrays

    def _table(self, name: str) -> pd.DataFrame:
        """Read a table."""
        import pandas as pd

        path = self._file(name)
        try:
            table = pd.read_parquet(path)
        except OSError:
            raise
        except Exception as error:  # damaged files make pyarrow and pandas raise in many ways
            why = " ".join(str(error).split())
            raise ValueError(f"{path}: damaged, expected a table ({why})") from None
        check_table(str(path), path.stem, table, self.manifest.problems)
        return table

    def _file(self, name: str) -> Path:
        """Path of a stored file, after a check that it is the one that was stored."""
        path = self.path / name
        if not path.is_file():
            raise ValueError(f"{path}: the file is missing, expected in a run with such data")
        record = self.manifest.files.get(name)
        if record is not None:
            size = path.stat().st_size
            if size != record.size:
                raise ValueError(f"{path}: {size} bytes, expected {record.size} as stored")
            if checksum(path) != record.sha256:
                raise ValueError(f"{path}: the content is not the one that was stored")
        return path


@dataclass(frozen=True)
class OpenRun:
    """A run that is being computed; see `open_run`.

    Attributes
    ----------
    folder : RunFolder
    """

    folder: RunFolder
    _asked: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self.folder.path

    def has_part(self, key: str) -> bool:
        """Whether the part is there, whole; see `RunFolder.has_part`."""
        self._asked.add(key)
        return self.folder.has_part(key)

    def write_part(
        self,
        key: str,
        personalizations: pd.DataFrame,
        traces: pd.DataFrame | None = None,
        failures: pd.DataFrame | None = None,
    ) -> None:
        """Keep a finished part; see `RunFolder.write_part`."""
        self.folder.write_part(key, personalizations, traces, failures)

    def write_failures(self, key: str, failures: pd.DataFrame | None) -> None:
        """Keep what is known of failed runs of an exploration; see `RunFolder.write_failures`."""
        self.folder.write_failures(key, failures)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell how far the work is."""
        self.folder.progress(stage, done, total)

    @property
    def until(self) -> float:
        """When no further part is begun (s, epoch); infinite without a limit of wall time."""
        return math.inf if self.folder.limit is None else self.folder.limit.until

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
        if self.folder.state == "complete":
            return Run.load(self.path).personalizations
        self._check_time()
        done = finished_parts(self.path)
        if not done:
            raise ValueError(f"{self.path}: no part is finished yet, expected at least one")
        return _joined(done, KEYS)

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
        if self.folder.state == "complete":
            return Run.load(self.path)
        run = assemble(self.folder, problems=problems, patients=patients, arrays=arrays)
        self._check_time()
        if self.folder.state == "attached":
            return run  # whoever started the run waits for the rest of the notebook
        self.folder.finish("complete")
        return Run.load(self.path)

    def _check_time(self) -> None:
        """Stop where parts were left out for want of time."""
        limit, total = self.folder.limit, len(self._asked)
        if limit is None:
            return
        done = sum(self.folder.has_part(key) for key in self._asked)
        if done < total:
            stage = f"stopped at its limit of {limit.hours:g} h"
            self.progress(stage, done, total)
            raise OutOfTime(f"{stage}: {done} of {total} parts are finished")


def open_run(
    study: str,
    parameters: Mapping[str, Any],
    *,
    results: Path | str,
    seed: int,
    version: str | None = None,
    folder: Path | str = "",
    again: bool = False,
) -> OpenRun:
    """Open the run that a notebook fills.

    Parameters
    ----------
    study : str
        Name of the study.
    parameters : mapping of str to JSON value
        All parameters of the notebook but ``seed``, ``n_jobs``, ``results``, ``run_folder``.
    results : Path or str
        Folder of all results.
    seed : int
    version : str, optional
        Changes whenever a part would come out differently; by default `code_version` of the study.
    folder : Path or str
        Folder of a run that another process started and will finish. If empty, the notebook
        was opened by hand: it starts, resumes and finishes the run itself, and one that is
        complete is opened to be looked at.
    again : bool
        If opened by hand, compute anew what is complete.

    Returns
    -------
    OpenRun

    Raises
    ------
    RunInUse
        If a live process owns the run.
    ValueError
        If the run in `folder` was started with another study, seed or parameters.
    """
    if not folder:
        asked = (Path(results), study, parameters, seed, version or code_version(study))
        left = left_behind(*asked)
        run = RunFolder.start(*asked, again=again)
        if left and run.state == "new":
            print(left, file=sys.stderr)
        if run.state == "complete":
            print(f"already complete: {run.path}", file=sys.stderr)
        return OpenRun(run)
    run = RunFolder.attach(Path(folder))
    root = run.path.resolve().parents[1]
    given = {"study": study, "seed": seed, **stored_parameters(root, parameters)}
    stored = {"study": run.record.study, "seed": run.record.seed, **run.record.parameters}
    for name in sorted(given.keys() | stored.keys()):
        if name not in given or name not in stored or given[name] != stored[name]:
            raise ValueError(
                f"{run.path}: {name} is {given.get(name, 'absent')!r} in the notebook, expected "
                f"{stored.get(name, 'absent')!r} as the run was started"
            )
    return OpenRun(run)


def assemble(
    run: RunFolder,
    *,
    problems: Mapping[str, Problem],
    patients: pd.DataFrame,
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> Run:
    """Join the parts of a run into its tables.

    The tables depend on the content of the parts only: not on the order in which they were
    finished, nor by how many workers.

    Parameters
    ----------
    run : RunFolder
    problems : mapping of setup name to Problem
    patients : DataFrame
        One row per setup and patient.
    arrays : mapping of str to ndarray, optional

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If a part is damaged, or a table lacks a column.
    """
    done = finished_parts(run.path)
    traces = run.beside_parts(".traces.parquet")
    if done:
        joined = _joined(done, KEYS)
        write_table(run.path / "personalizations.parquet", joined)
    if traces:
        write_table(run.path / "traces.parquet", _joined(traces, (*KEYS, "iteration")))
    run.tabulate_failures()
    _check_columns("patients", patients, ("setup", "patient"))
    write_table(run.path / "patients.parquet", patients.reset_index(drop=True))
    if arrays:
        write_arrays(run.path / ARRAYS, dict(sorted(arrays.items())))
    described = {setup: problem.describe() for setup, problem in problems.items()}
    record = Problems.model_validate({"schema_version": SCHEMA, "problems": described})
    write_json(run.path / "problems.json", record.model_dump(mode="json"))
    return Run.load(run.path)


def _joined(paths: Sequence[Path], keys: Sequence[str]) -> pd.DataFrame:
    """Rows of all parts, sorted by their keys."""
    import pandas as pd

    tables = []
    for path in paths:
        try:
            table = pd.read_parquet(path)
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            raise ValueError(f"{path}: damaged, delete it and run again ({error})") from None
        _check_columns(str(path), table, keys)
        # a column of one part may hold nothing but nulls, and then has no type of its own
        tables.append(table.astype(dict.fromkeys(_NULLABLE, "Int64")))

    def first_row(table: pd.DataFrame) -> list[str]:
        return [str(value) for value in table[list(keys)].head(1).to_numpy().flat]

    tables.sort(key=first_row)  # so that columns come in the same order every time
    joined = pd.concat(tables, ignore_index=True)
    joined = joined.sort_values(list(keys), na_position="first", ignore_index=True)
    return joined[sorted(joined.columns, key=lambda name: _place(str(name), keys))]


def _place(column: str, keys: Sequence[str]) -> tuple[int, int]:
    """Where a column stands in its table: keys first, then group by group."""
    if column in keys:
        return -1, keys.index(column)
    group = column.partition(":")[0] if ":" in column else ""
    return (_GROUPS.index(group) if group in _GROUPS else len(_GROUPS)), 0


def _check_columns(what: str, table: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse a table that lacks a column."""
    for name in names:
        if name not in table.columns:
            raise ValueError(f"{what}: column {name!r} is missing")


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
    for folder in _folders(Path(results_root)):
        if folder.name != "walks":
            claims = last_claims(folder)
            runs += [inspect_run(path, claims) for path in _folders(folder)]
    return sorted(runs, key=lambda run: (run.path.name, run.study), reverse=True)


def _folders(root: Path) -> list[Path]:
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


def latest(results_root: Path | str, study: str) -> Run:
    """Load the newest complete run of a study.

    Raises
    ------
    ValueError
        If there is none.
    """
    folder = Path(results_root) / study
    for path in sorted(_folders(folder), reverse=True):
        if inspect_run(path).status == "complete":
            return Run.load(path)
    raise ValueError(f"{folder}: no complete run, expected one; `vitolab run {study}` makes it")


def newest_progress(results_root: Path | str, study: str, since: float) -> Progress | None:
    """How far the newest run of a study is.

    Parameters
    ----------
    results_root : Path or str
    study : str
    since : float
        Time (s, epoch) before which progress is of some earlier run.
    """
    folders = _folders(Path(results_root) / study)
    told = read_progress(max(folders)) if folders else None
    return told if told is not None and told.heartbeat >= since else None
