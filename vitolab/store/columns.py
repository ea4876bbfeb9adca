"""Stored tables and arrays, checked once, when they are loaded: names, kinds and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vitolab.store.records import ProblemRecord
from vitolab.store.tables import IN_ORDER, KEYS

if TYPE_CHECKING:
    import pandas as pd

#: Tables of a run, each in a file ``<name>.parquet``; and the file of its arrays.
TABLES = ("patients", "personalizations", "traces", "failures")
ARRAYS = "arrays.npz"
#: Columns of the table of failed runs before those of the parameters.
FAILURE_KEYS = ("setup", "stage", "patient", "kind", "text", "n_runs", "n_retries")
_NEEDED = {
    "patients": ("setup", "patient"),
    "personalizations": (*KEYS, "solved", "n_runs"),
    "traces": (*KEYS, "iteration"),  # draws of a posterior have no actions
    "failures": FAILURE_KEYS,
}
#: Text that names something, and other text, which may be missing.
_NAMES = {"setup", "patient", "method", "event", "stage", "kind"}
_TEXT = {"text", "stop_reason", "not_measured", "note", "history"}
#: Whole numbers, and those that may be missing.
_WHOLE = {"iteration", "action", "state", "seed"} | {f"n_{what}" for what in ("runs", "retries")}
_NULLABLE = {"n_failed", "n_restarts", "n_states", "n_samples", "repeat", "start"}
_NULLABLE |= {"n_states_used", "n_training_runs", "max_runs", "position", *IN_ORDER}
_NUMBERS = {"z", "truth", "misfit", "x", "y", "c", "e", "why", "last"}
#: Columns that a table has for all parameters or objectives of a problem, or for none.
_OF_PROBLEM = {"x": "parameters", "last": "parameters"} | dict.fromkeys(
    ("z", "misfit", "y", "c"), "objectives"
)


def check_table(
    file: str, name: str, table: pd.DataFrame, problems: Mapping[str, ProblemRecord]
) -> None:
    """Refuse a stored table that is not what this package stores.

    Parameters
    ----------
    file : str
        For the message.
    name : str
        One of `TABLES`.
    table : DataFrame
    problems : mapping of setup name to ProblemRecord

    Raises
    ------
    ValueError
        With the file and the first column that is missing or wrong.
    """
    for column in _NEEDED[name]:
        if column not in table.columns:
            raise ValueError(f"{file}: column {column!r} is missing, expected it")
    for column in map(str, table.columns):
        expected = _expected(column, table[column])
        if expected:
            kind = table[column].dtype
            raise ValueError(f"{file}: column {column!r} is {kind}, expected {expected}")
    for setup in set(table["setup"]) & problems.keys():
        for group, what in _OF_PROBLEM.items():
            if not any(str(column).startswith(f"{group}:") for column in table.columns):
                continue
            for item in getattr(problems[setup], what):
                if f"{group}:{item.name}" not in table.columns:
                    raise ValueError(
                        f"{file}: column '{group}:{item.name}' is missing, expected it"
                    )


def _expected(column: str, values: pd.Series[Any]) -> str:
    """What a column should hold; empty if it does."""
    import pandas as pd
    from pandas.api import types

    known = values.dropna()
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "plain values"
    group = column.partition(":")[0] if ":" in column else ""
    if column in _NAMES or column in _TEXT:
        right = all(isinstance(value, str) for value in known)
        return "" if right and (column in _TEXT or len(known) == len(values)) else "text"
    if column in _WHOLE or column in _NULLABLE:
        # a sampler does not restart: next to others a column of floats with gaps
        gaps = column in _NULLABLE and types.is_float_dtype(values)
        whole = types.is_integer_dtype(values) or (gaps and bool((known % 1 == 0).all()))
        right = whole or not len(known)
        right = right and (column in _NULLABLE or len(known) == len(values))
        return "" if right else "whole numbers"
    if column == "solved":
        right = types.is_bool_dtype(values) and len(known) == len(values)
        return "" if right or not len(values) else "true or false"
    if group in _NUMBERS:
        right = (types.is_numeric_dtype(values) and values.dtype.kind != "c") or not len(known)
        return "" if right else "numbers"
    plain = all(isinstance(v, str | bool | int | float | np.generic) for v in known)
    return "" if plain or not types.is_object_dtype(values) else "numbers or text"


#: Arrays of the policy of a setup, and their dimensions.
_POLICY = {"centroids": 2, "q": 2, "v": 1, "visits": 2, "residuals": 1, "failing": 2} | {
    f"counts_{part}": 1 for part in ("indptr", "indices", "data")
}


def check_arrays(file: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse stored arrays that are not numbers or text, and a policy that does not fit together.

    Parameters
    ----------
    file : str
        For the message.
    arrays : mapping of str to ndarray

    Raises
    ------
    ValueError
        With the file and the first array that is wrong.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in "biufU":
            raise ValueError(f"{file}: {name} is {array.dtype}, expected numbers or text")
    for setup in [name.removesuffix("/centroids") for name in arrays if _is_policy(name, arrays)]:
        n = len(np.atleast_1d(arrays[f"{setup}/centroids"]))
        for what, dimensions in _POLICY.items():
            name = f"{setup}/{what}"
            if name in arrays:
                _check_policy(f"{file}: {name}", arrays[name], dimensions)
        rows = len(arrays[f"{setup}/q"])
        for what in ("q", "v", "visits"):
            name = f"{setup}/{what}"
            # the last may stand for failed runs
            if name in arrays and len(arrays[name]) not in _lengths(what, n, rows):
                raise ValueError(
                    f"{file}: {name} has {len(arrays[name])} rows, expected one for each of "
                    f"{n} states"
                )


def _is_policy(name: str, arrays: Iterable[str]) -> bool:
    """Whether an array is the centroids of a stored policy."""
    return name.endswith("/centroids") and f"{name.removesuffix('/centroids')}/q" in arrays


def _lengths(what: str, n: int, rows: int) -> tuple[int, ...]:
    """Lengths that an array of a policy may have."""
    return (n, n + 1) if what == "q" else (rows,)


def _check_policy(what: str, array: NDArray[Any], dimensions: int) -> None:
    """Refuse an array of a policy of the wrong kind."""
    if array.dtype.kind not in ("biuf" if what.endswith("/failing") else "iuf"):
        raise ValueError(f"{what} is {array.dtype}, expected numbers")
    if array.ndim != dimensions:
        raise ValueError(f"{what} has the shape {array.shape}, expected {dimensions} dimensions")
