"""A problem file read and checked: everything that is wrong with it, one sentence each."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vitolab.catalogue import MODELS
from vitolab.patients import InputError
from vitolab.patients.units import advice, conversion
from vitolab.problemfile.schema import ADAPTERS, FormatTable, ParameterTable, ProblemTable
from vitolab.quantities import LARGEST_MULTIPLIER, MOST_STEPS

MOST_BYTES = 2**20


class ProblemError(InputError):
    """A problem file that is refused.

    Attributes
    ----------
    sentences : tuple of str
        Everything that is wrong with it.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = tuple(sentences)


def read_table(path: Path) -> ProblemTable:
    """Content of the file, each value of its type."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise ProblemError([f"{path}: there is no such file, expected a problem file"]) from None
    except OSError as error:
        raise ProblemError(
            [f"{path}: cannot be read ({error.strerror}), expected a problem file"]
        ) from None
    if len(content) > MOST_BYTES:
        raise ProblemError([f"{path}: more than 1 MB, expected a problem file of some kilobytes"])
    try:
        found = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ProblemError(
            [f"{path}: byte {error.start + 1} is not UTF-8, expected a TOML file in UTF-8"]
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ProblemError([f"{path}: {one_line(str(error))}, expected TOML"]) from None
    try:
        return ProblemTable.model_validate(_tuples(found))
    except RecursionError:
        raise ProblemError([f"{path}: nested too deep, expected a problem file"]) from None
    except ValidationError as error:
        names = _names(found)
        raise ProblemError(
            [f"{path}: {_sentence(item, names)}" for item in error.errors(include_url=False)]
        ) from None


def _tuples(value: Any) -> Any:
    """Lists of the file as tuples: what is read is not changed any more."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return value


def _names(found: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    """Names of the entries of the file, where they have one."""
    return {
        (what, i): entry["name"]
        for what in ("parameters", "objectives", "columns")
        if isinstance(found.get(what), list)
        for i, entry in enumerate(found[what])
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    }


_EXPECTED: Mapping[str, str] = {
    "missing": "is missing, expected a value",
    "extra_forbidden": "is not known",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "int_type": "expected a whole number",
    "bool_type": "expected true or false",
    "string_type": "expected a text in quotes",
    "tuple_type": "expected a list in brackets",
    "model_type": "expected a table",
    "model_attributes_type": "expected a table",
    "too_short": "is empty, expected at least one entry",
    "union_tag_not_found": f"has no adapter, expected one of {', '.join(ADAPTERS)}",
}


def _sentence(error: Any, names: Mapping[tuple[str, int], str]) -> str:
    """One thing that is wrong, as a sentence that says where."""
    # the choice of an adapter stands among the places, though not in the file
    places = [p for i, p in enumerate(error["loc"]) if i != 1 or p not in ADAPTERS]
    where = ""
    for i, place in enumerate(places):
        if isinstance(place, int):
            name = names.get((str(places[0]), place)) if i == 1 else None
            where += f" {name!r}" if name else f" {place + 1}"
        else:
            where += f"{', ' if where else ''}{place}"
    kind, value = error["type"], error["input"]
    if kind in _EXPECTED:
        said = _EXPECTED[kind]
        if said.startswith("is") or said.startswith("has"):
            return f"{where} {said}"
        return f"{where} is {shown(value)}, {said}"
    if kind == "string_pattern_mismatch":
        expected = "letters, digits and underscores"
        if places == ["name"]:
            expected = "letters, digits, dots, dashes and underscores"
        elif places[-1] != "name":
            expected = "text without angle brackets and control characters"
        return f"{where} is {shown(value)}, expected {expected}"
    if kind == "union_tag_invalid":
        return (
            f"{where}, adapter is {shown(value['adapter'])}, expected one of {', '.join(ADAPTERS)}"
        )
    message = error["msg"].removeprefix("Input should be ")
    return f"{where} is {shown(value)}, expected {message}"


def shown(value: Any) -> str:
    """Value in a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def one_line(text: str) -> str:
    """First line of a message."""
    return " ".join(text.split())[:200]


def contradictions(table: ProblemTable) -> list[str]:
    """Everything that is wrong among values of the right types."""
    wrong: list[str] = []
    if table.name.split("-")[0] in MODELS:  # figures and the dashboard know these by name
        wrong.append(f"name is {table.name!r}, which is a model of vitolab, expected another")
    if any(m < 1 for m in table.multipliers) or any(b <= a for a, b in pairwise(table.multipliers)):
        wrong.append(
            f"multipliers are {shown(list(table.multipliers))}, expected rising positive whole "
            "numbers"
        )
    elif table.multipliers and table.multipliers[-1] > LARGEST_MULTIPLIER:
        wrong.append(
            f"multipliers hold {shown(table.multipliers[-1])}, expected at most "
            f"{LARGEST_MULTIPLIER}"
        )
    for p in table.parameters:
        wrong += [f"parameter {p.name!r}: {sentence}" for sentence in _domain(p)]
    for o in table.objectives:
        if not o.tolerance > 0:
            wrong.append(f"objective {o.name!r}: tolerance is {o.tolerance:g}, expected above 0")
        if o.output_unit is not None and conversion(o.output_unit, o.unit) is None:
            wrong.append(
                f"objective {o.name!r}: output_unit is {o.output_unit!r}, expected a unit that "
                f"converts to {o.unit!r}{advice(o.output_unit, o.unit)}"
            )
    for c in table.columns:
        if not c.lower <= c.upper:
            wrong.append(
                f"column {c.name!r}: lower is {c.lower:g}, expected at most upper {c.upper:g}"
            )
    if not isinstance(table.model, FormatTable):
        named = [
            *(("parameter", p.name, "target", p.target) for p in table.parameters),
            *(("column", c.name, "target", c.target) for c in table.columns),
            *(("objective", o.name, "feature", o.feature) for o in table.objectives),
        ]
        wrong += [
            f"{what} {name!r}: {field} is {value!r}, expected none: it is for models in a format"
            for what, name, field, value in named
            if value is not None
        ]
    elif table.model.trusted and table.model.adapter != "fmu":
        wrong.append("model, trusted is true, expected none: it is for an FMU")
    known: dict[str, str] = {"patient": "the column of names"}
    for what, entries in (
        ("parameter", table.parameters),
        ("objective", table.objectives),
        ("column", table.columns),
    ):
        for entry in entries:
            if entry.name in known:
                wrong.append(
                    f"{what} {entry.name!r}: the name is taken by {known[entry.name]}, expected "
                    "another"
                )
            known.setdefault(entry.name, f"a{'n' if what[0] in 'aeiou' else ''} {what}")
    return wrong


def _domain(p: ParameterTable) -> list[str]:
    """Everything that is wrong with a domain."""
    if not p.lower < p.upper:
        return [f"lower is {p.lower:g}, expected less than upper {p.upper:g}"]
    if not math.isfinite(p.upper - p.lower):
        return [f"lower is {p.lower:g} and upper {p.upper:g}, expected a width below 1.8e308"]
    wrong = []
    if p.scale == "log" and p.lower <= 0:
        wrong.append(f"lower is {p.lower:g}, expected above 0 on a log scale")
    if p.default is not None and not p.lower <= p.default <= p.upper:
        wrong.append(f"default is {p.default:g}, expected within [{p.lower:g}, {p.upper:g}]")
    if p.step is not None and not 0 < p.step <= p.upper - p.lower:
        wrong.append(
            f"step is {p.step:g}, expected above 0 and at most the width of the domain, "
            f"{p.upper - p.lower:g}"
        )
    elif p.step is not None and not (p.upper - p.lower) / p.step <= MOST_STEPS:
        wrong.append(f"step is {p.step:g}, expected at most {MOST_STEPS:.0e} steps in the domain")
    return wrong
