"""What a model answers, as numbers: what numpy would only take for numbers is none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NONE = (bool, str, bytes, bytearray, complex, date, timedelta)  # numpy converts these


def numbers(found: Any, names: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Convert an answer to numbers; masked ones are NaN.

    Parameters
    ----------
    found : array_like
    names : sequence of str, optional
        Columns that a table of pandas is to have, if it has labels; by default any.

    Returns
    -------
    ndarray
        A copy.

    Raises
    ------
    TypeError, ValueError
        If it holds truth values, text, dates, complex numbers or anything else that is no real
        number, or columns with other labels.
    """
    pandas = sys.modules.get("pandas")  # who answers with it has loaded it
    if pandas is not None and isinstance(found, pandas.DataFrame):
        found = _by_label(found, names)
    if isinstance(found, np.ma.MaskedArray):
        known = numbers(np.asarray(found.data))
        return np.where(np.ma.getmaskarray(found), np.nan, known)
    if isinstance(found, (bytes, bytearray, memoryview)):
        raise TypeError(f"an output is {found!r:.40}, expected a number")
    array = found if isinstance(found, np.ndarray) else np.asarray(found, dtype=object)
    if array.dtype.kind in "iuf":
        return np.array(array, dtype=np.float64)
    if array.dtype.kind != "O":
        raise TypeError(f"outputs are of type {array.dtype}, expected numbers")
    values = [_number(value) for value in array.ravel().tolist()]
    return np.array(values, dtype=np.float64).reshape(array.shape)


def _number(value: Any) -> Any:
    """One number of an answer."""
    if value is np.ma.masked:
        return np.nan
    if isinstance(value, (np.ndarray, np.generic)) and not value.ndim:
        value = value.item()
    if isinstance(value, _NONE):
        raise TypeError(f"an output is {value!r:.40}, expected a number")
    return np.nan if value is None else value


def _by_label(table: Any, names: Sequence[str] | None) -> Any:
    """Columns of a table of pandas in the order of their names; as they are without labels."""
    labels = list(table.columns)
    if labels == list(range(len(labels))):
        return table.to_numpy()
    if names is None:
        return table.to_numpy()
    if sorted(map(str, labels)) != sorted(names):
        found = ", ".join(map(str, labels))
        raise ValueError(f"columns are {found}, expected {', '.join(names)}")
    return table[list(names)].to_numpy()
