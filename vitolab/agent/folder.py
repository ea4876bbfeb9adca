"""An agent as a folder of plain arrays and JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vitolab.files import read_arrays, temporary_folder, write_arrays, write_json
from vitolab.problem import Problem
from vitolab.saved import field

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
    except (ValueError, RecursionError):  # neither UTF-8 nor JSON, or nested too deep
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
