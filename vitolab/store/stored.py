"""A stored run, to read from: its tables and arrays are checked when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from vitolab.files import checksum, read_arrays
from vitolab.store.columns import ARRAYS, FAILURE_KEYS, check_arrays, check_table
from vitolab.store.info import folders_in, inspect_run
from vitolab.store.parquet import read_table
from vitolab.store.records import Manifest, ProblemRecord, Problems, Start, read_record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """A stored run, to read from.

    Attributes
    ----------
    path : Path
    manifest : Manifest
        What was asked for, how it ended, and the problems by setup. Of a run that is not
        finished, `status` is the status it would have if all ended well, and `files` is empty.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import vitolab as vl
    >>> from vitolab.store.tables import patient_table
    >>> problems = {"2p": vl.models.rosenbrock.problem()}
    >>> patients = vl.models.rosenbrock.cohort(3)
    >>> sizes = {"n_samples": {"2p": [100]}, "n_states": {"2p": [20]}}
    >>> with TemporaryDirectory() as results:
    ...     filled = vl.store.open_run("example", {}, results=results, seed=0)
    ...     vl.leave_one_out(filled, problems, patients, **sizes, methods=["vito"], max_runs=10)
    ...     stored = filled.finish(problems=problems, patients=patient_table(problems, patients))
    ...     run = vl.Run.load(stored.path)
    ...     run.study, len(run.personalizations), [o.name for o in run.problems["2p"].objectives]
    ('example', 3, ['t1', 't2'])
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

    def check_files(self) -> None:
        """Refuse tables and arrays that are not there as they were stored.

        Raises
        ------
        ValueError
            With the first, and how to get it again.
        """
        for name in self.manifest.files:
            if name == ARRAYS or name.endswith(".parquet"):
                try:
                    self._file(name)
                except ValueError as error:
                    raise ValueError(f"{error}; again=True computes the run again") from None

    def _table(self, name: str) -> pd.DataFrame:
        """Read a table."""
        path = self._file(name)
        table = read_table(path)
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


def latest(results_root: Path | str, study: str) -> Run:
    """Load the newest complete run of a study.

    Raises
    ------
    ValueError
        If there is none.
    """
    folder = Path(results_root) / study
    for path in sorted(folders_in(folder), reverse=True):
        if inspect_run(path).status == "complete":
            return Run.load(path)
    raise ValueError(f"{folder}: no complete run, expected one; `vitolab run {study}` makes it")
