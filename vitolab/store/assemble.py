"""The tables of a run, joined from its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from vitolab.files import write_arrays, write_json
from vitolab.problem import Problem
from vitolab.store.columns import ARRAYS, FAILURE_KEYS
from vitolab.store.folder import (
    EXPLORATION,
    FAILURES,
    TRACES,
    beside_parts,
    finished_parts,
)
from vitolab.store.parquet import read_table, write_table
from vitolab.store.records import SCHEMA, Problems
from vitolab.store.stored import Run
from vitolab.store.tables import KEYS

if TYPE_CHECKING:
    import pandas as pd

_NULLABLE = ("n_states", "n_samples", "repeat", "start")
#: Groups of columns, in the order of the stored tables; each keeps the order of its problem.
_GROUPS = ("", "z", "data", "truth", "misfit", "x", "y", "c", "e", "why", "last")


def assemble(
    path: Path,
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
    path : Path
        Folder of the run.
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
    done = finished_parts(path)
    traces = beside_parts(path, TRACES)
    if done:
        write_table(path / "personalizations.parquet", joined(done, KEYS))
    if traces:
        write_table(path / "traces.parquet", joined(traces, (*KEYS, "iteration")))
    tabulate_failures(path)
    _check_columns("patients", patients, ("setup", "patient"))
    write_table(path / "patients.parquet", patients.reset_index(drop=True))
    if arrays:
        write_arrays(path / ARRAYS, dict(sorted(arrays.items())))
    described = {setup: problem.describe() for setup, problem in problems.items()}
    record = Problems.model_validate({"schema_version": SCHEMA, "problems": described})
    write_json(path / "problems.json", record.model_dump(mode="json"))
    return Run.load(path)


def joined(paths: Sequence[Path], keys: Sequence[str]) -> pd.DataFrame:
    """Rows of all parts, sorted by their keys.

    Raises
    ------
    ValueError
        If a part is damaged or lacks a key.
    """
    import pandas as pd

    tables = []
    for path in paths:
        try:
            table = read_table(path)
        except ValueError:
            raise ValueError(
                f"{path}: damaged, expected a table: delete it and run again"
            ) from None
        _check_columns(str(path), table, keys)
        # a column of one part may hold nothing but nulls, and then has no type of its own
        tables.append(table.astype(dict.fromkeys(_NULLABLE, "Int64")))

    def first_row(table: pd.DataFrame) -> list[str]:
        return [str(value) for value in table[list(keys)].head(1).to_numpy().flat]

    tables.sort(key=first_row)  # so that columns come in the same order every time
    rows = pd.concat(tables, ignore_index=True)
    rows = rows.sort_values(list(keys), na_position="first", ignore_index=True)
    return rows[sorted(rows.columns, key=lambda name: _place(str(name), keys))]


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
            raise ValueError(f"{what}: column {name!r} is missing, expected it")


def tabulate_failures(path: Path) -> None:
    """Write ``failures.parquet`` if runs failed: how many by cause, and parameters of one.

    Parameters
    ----------
    path : Path
        Folder of the run.
    """
    import pandas as pd

    explored = sorted((path / "parts").glob(f"{EXPLORATION}*{FAILURES}"))
    # fewer of the same walks come before more of them
    newest = {file.name.rpartition("-")[0]: file for file in explored}
    found = [*newest.values(), *beside_parts(path, FAILURES)]
    table = path / "failures.parquet"
    if not found:
        if table.exists():  # of an earlier attempt
            table.unlink(missing_ok=True)
        return
    joined = pd.concat([read_table(file) for file in found], ignore_index=True)
    causes = list(FAILURE_KEYS[:-2])
    x = [name for name in joined.columns if name.startswith("x:")]
    # by their values, so that the one that is kept does not depend on the order of the parts
    joined = joined.sort_values([*causes, *x], ignore_index=True)
    counted = joined.groupby(causes, sort=False, as_index=False).agg(
        {"n_runs": "sum", "n_retries": "sum", **dict.fromkeys(x, "first")}
    )
    write_table(table, counted[[*FAILURE_KEYS, *x]])
