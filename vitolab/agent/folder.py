"""An agent as a folder of plain arrays and JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.files import read_arrays, temporary_folder, write_arrays, write_json
from vitolab.problem import Problem

FORMAT = 1
ARRAYS = "arrays.npz"


def write_agent(
    path: Path,
    name: str,
    problem: Problem,
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write the folder, whole or not at all; ``name`` is that of its JSON file.

    Raises
    ------
    FileExistsError
        If the path exists.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists; choose another place for the agent")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_folder(path.parent, f".{path.name}.")
    try:
        write_arrays(temporary / ARRAYS, arrays)
        described = {"format": FORMAT, "problem": problem.describe(), **description}
        write_json(temporary / name, described)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_agent(
    path: Path, name: str, problem: Problem
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read description and arrays of an agent that learned this problem.

    Raises
    ------
    ValueError
        If the format is unknown or the problem differs.
    """
    path = Path(path)
    try:
        description: dict[str, Any] = json.loads((path / name).read_text(encoding="utf-8"))
    except ValueError:  # neither UTF-8 nor JSON
        raise ValueError(f"{path / name} is damaged, expected JSON") from None
    if not isinstance(description, dict):
        raise ValueError(f"{path / name} is {description!r:.60}, expected fields by name")
    if description.get("format") != FORMAT:
        raise ValueError(f"{path}: format is {description.get('format')!r}, expected {FORMAT}")
    field(path / name, description, "problem", dict)
    learned, given = description["problem"], json.loads(json.dumps(problem.describe()))
    for key in given:
        if learned.get(key) != given[key]:
            raise ValueError(
                f"{path}: the agent learned another problem: {key} is "
                f"{learned.get(key)}, the problem given has {given[key]}"
            )
    try:
        return description, read_arrays(path / ARRAYS)
    except ValueError as error:  # which names the file alone
        raise ValueError(f"{path}: {error}") from None


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


def check_arrays(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    expected: Mapping[str, tuple[str, tuple[int | None, ...]]],
) -> None:
    """Refuse arrays other than those expected.

    Parameters
    ----------
    path : Path
        Of the agent.
    arrays : mapping of str to ndarray
    expected : mapping of str to tuple
        Kind of the numbers (``f``, ``i`` or ``b``) and shape by name; None for any length.

    Raises
    ------
    ValueError
        If an array is missing, not expected, of another kind or shape, or not finite.
    """
    file = path / ARRAYS
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
            any_length = tuple("any" if n is None else n for n in shape)
            raise ValueError(
                f"{file}: {name} has type {found.dtype} and shape {found.shape}, expected kind "
                f"{kind!r} and shape {any_length}"
            )
        if kind == "f" and (found.dtype != np.float64 or not np.isfinite(found).all()):
            raise ValueError(
                f"{file}: {name} has type {found.dtype} or is not finite, expected "
                "finite numbers of 64 bits"
            )
