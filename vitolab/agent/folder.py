"""An agent as a folder of plain arrays and JSON."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vitolab.files import read_arrays, resolved, temporary_folder, write_arrays, write_json
from vitolab.problem import Problem
from vitolab.saved import field

FORMAT = 1
ARRAYS = "arrays.npz"
#: ``check(file, problem, arrays)`` refuses arrays that are none of such an agent.
Check = Callable[[Path, Problem, Mapping[str, NDArray[Any]]], None]


def write_agent(
    path: Path,
    name: str,
    problem: Problem,
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    check: Check,
    *,
    replace: bool = False,
) -> None:
    """Write the folder, whole or not at all.

    Parameters
    ----------
    path : Path
    name : str
        Name of its JSON file.
    problem : Problem
    description, arrays : mapping
    check : callable
        The check with which the arrays are read.
    replace : bool
        Whether an agent of the same kind may be there, which is replaced. It waits beside, under
        the name that `recover` knows, until the new one is in its place.

    Raises
    ------
    FileExistsError
        If the path exists.
    ValueError
        If the agent could not be read again, or what is to be replaced is more than an agent.
    """
    path = Path(path)
    recover(path)
    if replace:
        path = resolved(path)
        check_replaceable(path, name)
    elif path.exists():
        raise FileExistsError(
            f"{path} exists, expected a new name: choose another place for the agent"
        )
    try:
        check(path / ARRAYS, problem, arrays)
    except ValueError as error:
        raise ValueError(f"the agent is not saved: {error}") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_folder(path.parent, f".{path.name}.")
    try:
        write_arrays(temporary / ARRAYS, arrays)
        sums = {key: _digest(array) for key, array in arrays.items()}
        known = {"format": FORMAT, "problem": problem.describe(), "sha256": sums}
        described = {**known, **description}
        write_json(temporary / name, described)
        if path.exists():
            shutil.rmtree(_waiting(path), ignore_errors=True)
            path.rename(_waiting(path))
        temporary.rename(path)
        shutil.rmtree(_waiting(path), ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_replaceable(path: Path, name: str) -> None:
    """Refuse to replace what is more than an agent of a kind; nothing at all is fine.

    Parameters
    ----------
    path : Path
    name : str
        Name of its JSON file.

    Raises
    ------
    ValueError
    """
    recover(path)
    if not path.exists():
        return
    if not path.is_dir():
        raise ValueError(f"{path} is a file, expected the folder of an agent")
    found = {file.name for file in path.iterdir()}
    for missing in sorted({name, ARRAYS} - found):
        raise ValueError(f"{path}: {missing} is missing, expected the folder of an agent")
    for other in sorted(found - {name, ARRAYS}):
        raise ValueError(
            f"{path} holds {other}, expected {name} and {ARRAYS} alone in a folder to be replaced"
        )


def recover(path: Path) -> None:
    """Put an agent back that was about to be replaced when the process was killed."""
    if not path.exists() and _waiting(path).is_dir():
        _waiting(path).rename(path)


def _waiting(path: Path) -> Path:
    """Where an agent waits while it is replaced."""
    return path.with_name(f".{path.name}.replaced")


def read_agent(
    path: Path, name: str, problem: Problem
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read description and arrays of an agent that learned this problem.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or no arrays in it.
    ValueError
        If the format is unknown, the problem differs, it is another kind of agent, or an array is
        not the one that was stored.
    """
    path = Path(path)
    recover(path)
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: there is no such folder, expected that of an agent")
    if not (path / name).is_file():
        found = ", ".join(sorted(file.name for file in path.glob("*.json"))[:3]) or "none"
        raise ValueError(f"{path}: the JSON file is {found}, expected {name}")
    if not (path / ARRAYS).is_file():
        raise FileNotFoundError(f"{path / ARRAYS}: there is no such file, expected arrays")
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
                f"{learned.get(key)}, expected {given[key]} as the problem given"
            )
    try:
        arrays = read_arrays(path / ARRAYS)
    except ValueError as error:  # which names the file alone
        raise ValueError(f"{path}: {error}") from None
    if "sha256" in description:  # agents of before have none
        sums = field(path / name, description, "sha256", dict)
        for key in (*sums, *arrays):
            if key not in arrays:
                raise ValueError(f"{path / ARRAYS}: {key} is missing, expected an array")
            if sums.get(key) != _digest(arrays[key]):
                raise ValueError(
                    f"{path / ARRAYS}: {key} is not the array that was stored, expected it"
                )
    return description, arrays


def check_features(path: Path, name: str, problem: Problem, description: Mapping[str, Any]) -> None:
    """Refuse an agent that learned other features of patients than this problem has.

    Raises
    ------
    ValueError
    """
    learned, given = field(path / name, description, "features", list), list(problem.features)
    if learned != given:
        raise ValueError(
            f"{path}: the agent learned features {learned}, expected {given} as the problem given"
        )


def _digest(array: NDArray[Any]) -> str:
    """SHA-256 of type, shape and values of an array, as 64 hexadecimal digits."""
    kind = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(kind + array.tobytes()).hexdigest()
