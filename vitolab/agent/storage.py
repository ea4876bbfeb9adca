"""How agents are kept: a folder of plain arrays and JSON, whole or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vitolab.files import read_arrays, write_arrays, write_json
from vitolab.problem import Problem


def save(
    path: Path, file: str, description: Mapping[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Write a folder with a description (JSON) and arrays.

    Raises
    ------
    FileExistsError
        If the path exists.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists; choose another place for the agent")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        write_arrays(temporary / "arrays.npz", arrays)
        write_json(temporary / file, dict(description))
        temporary.chmod(0o755)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def load(
    path: Path, file: str, version: int, problem: Problem
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `save` wrote; the problem must be the one that the agent learned.

    Raises
    ------
    ValueError
        If the format is unknown or the problem differs.
    """
    description: dict[str, Any] = json.loads((path / file).read_text(encoding="utf-8"))
    if description.get("format") != version:
        raise ValueError(f"{path}: format is {description.get('format')!r}, expected {version}")
    learned, given = description["problem"], json.loads(json.dumps(problem.describe()))
    for name in given:
        if learned.get(name) != given[name]:
            raise ValueError(
                f"{path}: the agent learned another problem: {name} is "
                f"{learned.get(name)}, the problem given has {given[name]}"
            )
    return description, read_arrays(path / "arrays.npz")
