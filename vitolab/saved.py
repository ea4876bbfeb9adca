"""Files of one object: plain arrays, and their description as JSON text among them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vitolab.files import read_arrays, write_arrays

#: Kind of an array (``f``, ``i``, ``b``, or ``U`` for text), and its shape; None for any length.
Shape = tuple[str, tuple[int | None, ...]]
FORMAT = 1
_DESCRIPTION = "description"  # name of the text among the arrays


def write_object(
    path: Path, kind: str, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write an object as ``.npz``, whole or not at all; an earlier file is replaced.

    Parameters
    ----------
    path : Path
    kind : str
        Name of the class.
    description : mapping of str to value
        What JSON knows.
    arrays : mapping of str to ndarray
    """
    text = json.dumps({"format": FORMAT, "kind": kind, **description}, allow_nan=False)
    write_arrays(Path(path), {**arrays, _DESCRIPTION: np.array(text)})


def read_object(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read description and arrays of an object of a kind.

    Raises
    ------
    ValueError
        If the file is damaged, or holds something else.
    """
    path = Path(path)
    try:
        arrays = read_arrays(path)
    except ValueError:
        raise ValueError(f"{path} is damaged, expected arrays") from None
    try:
        description = json.loads(str(arrays.pop(_DESCRIPTION)))
    except (KeyError, ValueError, RecursionError):
        raise ValueError(f"{path}: description is missing or damaged, expected JSON") from None
    if not isinstance(description, dict):
        raise ValueError(f"{path}: description is {description!r:.60}, expected fields by name")
    if description.get("kind") != kind:
        raise ValueError(f"{path}: kind is {description.get('kind')!r:.60}, expected {kind!r}")
    if description.get("format") != FORMAT:
        raise ValueError(f"{path}: format is {description.get('format')!r:.60}, expected {FORMAT}")
    return description, arrays


def field(file: Path, description: Mapping[str, Any], name: str, kind: type) -> Any:
    """Get a field of a description, of the kind expected; a number is finite.

    Raises
    ------
    ValueError
        If it is missing or of another kind.
    """
    if name not in description:
        raise ValueError(f"{file}: {name} is missing, expected {kind.__name__}")
    value = description[name]
    number = kind is float and isinstance(value, int) and not isinstance(value, bool)
    if not (isinstance(value, kind) or number) or (kind is float and not np.isfinite(value)):
        raise ValueError(f"{file}: {name} is {value!r:.60}, expected {kind.__name__}")
    return value


def names(file: Path, description: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Get a field that lists distinct names.

    Raises
    ------
    ValueError
        If it is something else.
    """
    found = field(file, description, name, list)
    if not all(isinstance(v, str) and v for v in found) or len(set(found)) < len(found):
        raise ValueError(f"{file}: {name} is {found!r:.60}, expected distinct names")
    return tuple(found)


def check_range(file: Path, name: str, values: NDArray[Any], lowest: int, highest: int) -> None:
    """Refuse whole numbers outside a range.

    Raises
    ------
    ValueError
        With the first that lies outside.
    """
    bad = (values < lowest) | (values > highest)
    if bad.any():
        where = _row(bad)
        raise ValueError(
            f"{file}: {name} holds {values[bad][0]}{where}, expected from {lowest} to {highest}"
        )


def check_limits(
    file: Path, name: str, values: NDArray[Any], lowest: ArrayLike, highest: ArrayLike
) -> None:
    """Refuse numbers outside limits, which broadcast to their shape.

    Raises
    ------
    ValueError
        With the first that lies outside.
    """
    low, high = (np.broadcast_to(limit, values.shape) for limit in (lowest, highest))
    bad = ~((values >= low) & (values <= high))
    if bad.any():
        raise ValueError(
            f"{file}: {name} holds {values[bad][0]:.6g}{_row(bad)}, expected from "
            f"{low[bad][0]:.6g} to {high[bad][0]:.6g}"
        )


def check_arrays(
    file: Path,
    arrays: Mapping[str, NDArray[Any]],
    expected: Mapping[str, Shape],
    may_fail: Collection[str] = (),
    optional: Mapping[str, Shape] | None = None,
) -> None:
    """Refuse arrays other than those expected.

    Parameters
    ----------
    file : Path
    arrays : mapping of str to ndarray
    expected : mapping of str to tuple
        `Shape` of each, by name.
    may_fail : collection of str
        Arrays that may hold numbers that are not finite, as after failed runs.
    optional : mapping of str to tuple, optional
        Arrays that may be missing, as `expected`.

    Raises
    ------
    ValueError
        If an array is missing, not expected, of another kind or shape, or not finite.
    """
    known = {name: shape for name, shape in (optional or {}).items() if name in arrays}
    expected = {**expected, **known}
    for name in arrays:
        if name not in expected:
            raise ValueError(f"{file}: {name} is not expected, expected {', '.join(expected)}")
    for name, (kind, shape) in expected.items():
        if name not in arrays:
            raise ValueError(f"{file}: {name} is missing, expected an array")
        found = arrays[name]
        fits = len(found.shape) == len(shape) and all(
            n is None or m == n for m, n in zip(found.shape, shape, strict=True)
        )
        if found.dtype.kind != kind or not fits:
            raise ValueError(
                f"{file}: {name} holds {_sized(found.shape)} {found.dtype} values, expected "
                f"{_sized(shape)} {_KINDS[kind]}"
            )
        if kind != "f":
            continue
        if found.dtype != np.float64:
            raise ValueError(f"{file}: {name} has type {found.dtype}, expected float64")
        bad = ~np.isfinite(found)
        if name not in may_fail and bad.any():
            raise ValueError(
                f"{file}: {name} holds {found[bad][0]}{_row(bad)}, expected finite numbers"
            )


_KINDS = {"f": "numbers", "i": "whole numbers", "b": "values true or false", "U": "texts"}


def _sized(shape: tuple[int | None, ...]) -> str:
    """Shape of an array in words; None for any length."""
    sizes = ["any number of" if n is None else str(n) for n in shape] or ["single"]
    return sizes[0] if len(sizes) == 1 else f"{sizes[0]} rows of {' by '.join(sizes[1:])}"


def _row(bad: NDArray[np.bool_]) -> str:
    """Where the first that is bad stands, counted from 1."""
    return f" in row {np.argwhere(bad)[0][0] + 1}" if bad.ndim else ""
