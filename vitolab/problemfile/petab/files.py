"""The files of a problem in PEtab: what it names, and what its model in SBML has."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from vitolab.problemfile.reading import ProblemError

MOST_BYTES = 2**16
MOST_BYTES_OF_TABLE = 2**24

_FILES = ("sbml_files", "condition_files", "observable_files", "measurement_files")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

#: Sentences by what makes them the same: of many rows with one fault the first is told.
Wrong = dict[tuple[str, ...], str]


def files_of(path: Path) -> dict[str, Path]:
    """Files that a problem names."""
    found = _description(path)
    wrong: list[str] = []
    if not isinstance(found, dict):
        raise ProblemError([f"{path}: the content is {shown(found)}, expected a problem in PEtab"])
    version = found.get("format_version")
    if isinstance(version, bool) or version not in (1, "1", "1.0", "1.0.0"):
        wrong.append(f"{path}: format_version is {shown(version)}, expected 1")
    problem = found.get("problems")
    if isinstance(problem, list) and len(problem) == 1 and isinstance(problem[0], dict):
        problem = problem[0]
    else:
        wrong.append(f"{path}: problems is {shown(problem)}, expected a list of one mapping")
        problem = {}
    for names, table in (
        (("format_version", "parameter_file", "problems"), found),
        ((*_FILES, "visualization_files"), problem),
    ):
        wrong += [
            f"{path}: {shown(name)} is not known, expected {', '.join(names)}"
            for name in table
            if name not in names
        ]
    files: dict[str, Path] = {}
    for what in (*(_FILES if problem else ()), "parameter_file"):
        name = problem.get(what) if what in _FILES else found.get("parameter_file")
        if isinstance(name, list) and len(name) == 1:
            name = name[0]
        if not isinstance(name, str):
            wrong.append(f"{path}: {what} is {shown(name)}, expected the name of one file")
        elif not _is_file(path.parent / name):
            wrong.append(f"{path}: {what} is {shown(name)}, expected a file beside it")
        else:
            files[what] = path.parent / name
    if wrong:
        raise ProblemError(wrong)
    return files


def _description(path: Path) -> Any:
    """Content of a file in YAML."""
    wrong: Wrong = {}
    content = content_of(path, wrong, MOST_BYTES)
    if content is None:
        raise ProblemError(list(wrong.values()))
    try:
        text = content.decode("utf-8-sig")
        # names for parts, of which a small file can make a huge one
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, yaml.SafeLoader)):
            raise ProblemError([f"{path}: found an alias, expected each value written out"])
        return yaml.safe_load(text)
    except ProblemError:
        raise
    except Exception as error:  # the text is the user's: parsers answer with exceptions of any kind
        raise ProblemError([f"{path}: {one_line(error)}, expected YAML in UTF-8"]) from None


def _is_file(path: Path) -> bool:
    """Whether there is such a file; a name that cannot be one is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def content_of(path: Path, wrong: Wrong, most: int = MOST_BYTES_OF_TABLE) -> bytes | None:
    """Content of a file; None where it is refused."""
    if not _is_file(path):
        wrong["file", str(path)] = f"{path}: there is no such file, expected one"
        return None
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        wrong["file", str(path)] = f"{path}: cannot be read ({error.strerror}), expected a file"
        return None
    if len(content) > most:
        size = f"{most // 1024} kB" if most < 2**20 else f"{most // 2**20} MB"
        wrong["file", str(path)] = f"{path}: more than {size}, expected a smaller file"
        return None
    return content


@dataclass(frozen=True)
class Model:
    """What a model in SBML has.

    Attributes
    ----------
    parameters : mapping of str to float or None
        Global parameters and their values; None where there is none, or it follows from others.
    species : mapping of str to str
        Species as libroadrunner calls what formulas mean by them: amount, or [concentration].
    compartments : set of str
    ruled : set of str
        What a rule determines at all times.
    """

    parameters: Mapping[str, float | None]
    species: Mapping[str, str]
    compartments: Collection[str]
    ruled: Collection[str]

    def target(self, name: str) -> str | None:
        """Name by which a quantity is set; None if it cannot be."""
        if name in self.ruled:
            return None
        return name if name in self.parameters else self.species.get(name)

    def output(self, name: str) -> str | None:
        """Name by which a quantity is read; None if there is none."""
        is_known = name in self.parameters or name in self.compartments
        return name if is_known else self.species.get(name)


def model_of(path: Path, content: bytes, wrong: Wrong) -> Model | None:
    """What a model has; None where it is refused."""
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        wrong["file", str(path)] = f"{path}: {one_line(error)}, expected SBML"
        return None

    def found(of: str, what: str) -> list[Mapping[str, str]]:
        return [element.attrib for element in root.findall(f"{{*}}model/{{*}}{of}/{{*}}{what}")]

    assigned = {a.get("symbol") for a in found("listOfInitialAssignments", "initialAssignment")}
    return Model(
        {
            p.get("id", ""): None if p.get("id") in assigned else number_of(p.get("value", ""))
            for p in found("listOfParameters", "parameter")
        },
        {
            name: name if s.get("hasOnlySubstanceUnits") in ("true", "1") else f"[{name}]"
            for s in found("listOfSpecies", "species")
            for name in [s.get("id", "")]
        },
        {c.get("id", "") for c in found("listOfCompartments", "compartment")},
        {r.get("variable", "") for r in found("listOfRules", "assignmentRule")},
    )


def number_of(text: str) -> float | None:
    """Finite number that a text is; None if it is none."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def first_few(names: Sequence[str]) -> str:
    """Names, the first of many."""
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def shown(value: Any) -> str:
    """Value in a message, cut where it is long; of what holds others only what it is."""
    if value is None:
        return "missing"
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    if isinstance(value, (str, float)):
        text = repr(value[:60]) if isinstance(value, str) else repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    if isinstance(value, int) and abs(value) < 10**15:
        return str(value)
    return f"of the type {type(value).__name__}"


def one_line(error: Exception) -> str:
    """What a parser said, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
