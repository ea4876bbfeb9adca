"""A user's own patients: one CSV file, checked cell by cell before anything is computed.

The first row names the columns: ``patient``, what the model needs to know of a patient
(``heart_rate [1/min]``), then each objective of the problem with its unit in brackets
(``lv_edv [mL]``). Units are converted; further columns are kept as text. Whatever is wrong
is said in one sentence with file, row as an editor numbers it, column, value, and what was
expected.
"""

from __future__ import annotations

import csv
import difflib
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from vitolab.models.description import Range
from vitolab.patients.markers import is_marker, suspects
from vitolab.patients.units import advice, conversion
from vitolab.problem import Patient, Problem

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_NAME = re.compile(r"\w[\w. -]{0,63}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_HEADER = re.compile(r"([^\[\]]*?)\s*(?:\[\s*([^\[\]]*?)\s*\])?")


class InputError(ValueError):
    """A file of the user's that is refused; the message is one sentence that says why."""


@dataclass(frozen=True)
class PatientTable:
    """Patients read from a file.

    Attributes
    ----------
    path : Path
    patients : list of Patient
        In the order of the file.
        Some may lack a measurement, where that is allowed.
    skipped : list of (str, str)
        Patients that are left out, and the reason of each.
    extra : DataFrame
        Further columns as text, one row per patient of the file, skipped ones too; the index
        is the patient's name.
    warnings : tuple of str
        Values that are used although they look like a marker of a missing one, a sentence each;
        see `vitolab.patients.markers.suspects`.
    """

    path: Path
    patients: list[Patient]
    skipped: list[tuple[str, str]]
    extra: pd.DataFrame
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Column:
    """Where a number stands in a row, and how it becomes the unit of the problem."""

    name: str
    position: int
    header: str
    unit: str
    written: str
    factor: float


def read_patients(
    path: Path | str,
    problem: Problem,
    *,
    data: Mapping[str, str] = MappingProxyType({}),
    texts: Mapping[str, str] = MappingProxyType({}),
    ranges: Mapping[str, Range] = MappingProxyType({}),
    rising: Sequence[tuple[str, str]] = (),
    allow_missing: bool = False,
) -> PatientTable:
    """Read patients and their measurements from a CSV file.

    Rows in which every cell is empty are passed over. A further column is kept as text if it
    has no unit in brackets, or if it is a measurement of `ranges` that this problem does not
    use (so that one file serves several setups).

    Parameters
    ----------
    path : Path or str
        UTF-8 (with or without a byte order mark), separated by commas, decimal points.
    problem : Problem
        Names the measurements that are read, and their units.
    data : mapping of str to str
        Name and unit of the numbers that the model needs to know of each patient.
    texts : mapping of str to str
        Name of the texts that the model needs to know, and what stands for an empty cell or a
        column that is not there.
    ranges : mapping of str to (lower, upper, unit)
        Limits by name of quantity; a quantity that is not named has none.
    rising : sequence of (str, str)
        Pairs of measurements of which the first must be the smaller one.
    allow_missing : bool
        Take a patient without all measurements, and leave out one without any, or without what
        the model needs to know, instead of refusing the file.

    Returns
    -------
    PatientTable

    Raises
    ------
    InputError
        If the file is refused, with one sentence that says where and why.
    """
    path = Path(path)
    rows = _rows(path)
    header = next(rows, None)
    if header is None:
        raise InputError(f"{path}: the file is empty, expected a header and one row per patient")
    if _is_separator_line(path, *header):
        header = next(rows, None)
        if header is None:
            raise InputError(f"{path}: found sep=, and no further row, expected a header")
    _check_separator(path, *header)
    units = {**data, **{o.name: o.unit for o in problem.objectives}}
    names = [" ".join(cell.split()) for cell in header[1]]
    n_written = len(names)
    while names and not names[-1]:  # spreadsheets write cells that were emptied
        names.pop()
    columns, others = _columns(path, header[0], names, units, ranges)
    limits = {
        column.name: _limits(ranges[column.name], column.unit)
        for column in columns
        if column.name in ranges
    }

    told = {name: names.index(name) for name in texts if name in names}
    others = [i for i in others if i not in told.values()]
    patients: list[Patient] = []
    skipped: list[tuple[str, str]] = []
    first_row: dict[str, int] = {}
    kept: list[list[str]] = []
    written: dict[str, list[tuple[int, str]]] = {column.name: [] for column in columns}
    for row, fields in rows:
        beyond = fields[len(names) : n_written]
        if any(cell.strip() for cell in beyond):
            i = next(i for i, cell in enumerate(beyond, len(names) + 1) if cell.strip())
            raise InputError(
                f"{path}, row {row}: found {_cut(fields[i - 1])!r} in column {i}, which has no "
                "name, expected a name in the header or an empty cell"
            )
        del fields[len(names) : n_written]
        if len(fields) != len(names):
            raise InputError(
                f"{path}, row {row}: found {len(fields)} fields, expected {len(names)} as in the "
                "header, separated by commas, with decimal points, text with a comma in quotes"
            )
        cells = [cell.strip() for cell in fields]
        name = _name(path, row, cells[names.index("patient")], first_row)
        first_row[name] = row
        known = {key: (cells[told[key]] if key in told else "") or texts[key] for key in texts}
        kept.append([*known.values(), *(cells[i] for i in others)])
        values: dict[str, float] = {}
        empty: list[str] = []
        for column in columns:
            cell = cells[column.position]
            if cell:
                values[column.name] = _number(path, row, column, cell, limits.get(column.name))
                written[column.name].append((row, cell))
            elif allow_missing:
                empty.append(column.name)
            else:
                raise InputError(
                    f"{path}, row {row}, column '{column.header}': the cell is empty, expected a "
                    "number (--allow-missing goes without it)"
                )
        _check_rising(path, row, values, units, rising)
        measurements = {o.name: values[o.name] for o in problem.objectives if o.name in values}
        if not measurements or any(key not in values for key in data):
            skipped.append((name, f"{' and '.join(empty)} not measured (row {row})"))
            continue
        patients.append(
            Patient(name, measurements, {**known, **{key: values[key] for key in data}})
        )
    if not first_row:
        raise InputError(f"{path}: found a header and no further row, expected one row per patient")
    extra = pd.DataFrame(
        kept,
        index=pd.Index(list(first_row), name="patient"),
        columns=[*texts, *(names[i] for i in others)],
        dtype="str",
    )
    warnings = tuple(
        f"{path}, row {row}, column '{column.header}': {cell} looks like a marker of a missing "
        "value, and is used as a measurement; leave the cell empty if it is one"
        for column in columns
        for row, cell in (
            written[column.name][i] for i in suspects([c for _, c in written[column.name]])
        )
    )
    return PatientTable(path, patients, skipped, extra, warnings)


def template(
    problem: Problem,
    *,
    data: Mapping[str, str] = MappingProxyType({}),
    texts: Mapping[str, str] = MappingProxyType({}),
    ranges: Mapping[str, Range] = MappingProxyType({}),
    examples: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> str:
    """CSV text with the header of a problem and two example patients.

    The examples are what the model itself answers at its default parameters, and ten steps
    beside them, rounded to four digits.

    Parameters
    ----------
    problem : Problem
    data : mapping of str to str
        Name and unit of the numbers that the model needs to know of each patient.
    texts : mapping of str to str
        Name of the texts that the model needs to know, and an example.
    ranges : mapping of str to (lower, upper, unit)
        Limits by name of quantity, within which examples lie.
    examples : mapping of str to sequence of float
        Numbers of `data` for the two example patients, where others than a third and two thirds
        of the way through their range are better examples.

    Returns
    -------
    str
    """
    units = {**data, **{o.name: o.unit for o in problem.objectives}}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["patient", *(headed(name, unit) for name, unit in units.items()), *texts])
    start = problem.default[np.newaxis]
    for i in range(2):
        told = {
            name: examples[name][i] if name in examples else _example(name, i, ranges)
            for name in data
        }
        x = np.clip(start + 10 * i * problem.step, problem.lower, problem.upper)
        y = problem.simulate(x, Patient("example", {}, {**texts, **told}))[0]
        numbers = [f"{value:.4g}" for value in (*told.values(), *y.tolist())]
        writer.writerow([f"example {i + 1}", *numbers, *texts.values()])
    return text.getvalue()


def _example(name: str, i: int, ranges: Mapping[str, Range]) -> float:
    """Value of an example patient: a third or two of the way through its range."""
    low, high, _ = ranges.get(name, (-math.inf, math.inf, ""))
    if math.isinf(high):
        return 1.0 + i if math.isinf(low) else low + 1.0 + i
    return high - 1.0 - i if math.isinf(low) else low + (high - low) * (i + 1) / 3.0


def headed(name: str, unit: str) -> str:
    """Header of a column of numbers: its name, and its unit in brackets."""
    return f"{name} [{unit}]" if unit else name


def _read(path: Path) -> str:
    """Text of the file."""
    if path.is_dir():
        raise InputError(f"{path}: found a directory, expected a CSV file")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file, expected a CSV file") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"{path}: cannot be read ({reason}), expected a CSV file") from None
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(f"{path}: found a workbook, expected it saved as CSV (UTF-8)")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}, row {row}: found byte 0x{error.object[error.start]:02x}, which is not "
            "UTF-8, expected a CSV file saved as UTF-8"
        ) from None
    if "\0" in text:
        row = text[: text.index("\0")].count("\n") + 1
        raise InputError(f"{path}, row {row}: found a zero byte, expected a CSV file in UTF-8")
    return text


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Row numbers and fields of the rows that are not empty."""
    reader = csv.reader(io.StringIO(_read(path), newline=""), strict=True)
    while True:
        row = reader.line_num + 1  # a quoted cell may hold line breaks: where the row starts
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"{path}, row {row}: found text that is not CSV ({error}), expected fields "
                "separated by commas and closed quotes"
            ) from None
        if any(field.strip() for field in fields):
            yield row, fields


def _columns(
    path: Path,
    row: int,
    names: list[str],
    units: Mapping[str, str],
    known: Mapping[str, Range],
) -> tuple[list[_Column], list[int]]:
    """Columns with the numbers that are needed, and the positions of further columns."""
    where = f"{path}, row {row}"
    found: dict[str, _Column] = {}
    others: dict[int, str | None] = {}
    for position, header in enumerate(names):
        if not header:
            raise InputError(f"{where}: column {position + 1} has no name, expected one")
        match = _HEADER.fullmatch(header)
        name, unit = match.groups() if match else (header, None)
        if header in names[:position] or name in found:
            raise InputError(f"{where}: column '{header}' occurs twice, expected once")
        if name not in units:
            others[position] = unit
        elif not unit and units[name]:
            raise InputError(
                f"{where}: column '{header}' has no unit, expected '{headed(name, units[name])}'"
            )
        else:
            factor = conversion(unit or "", units[name])
            if factor is None:
                raise InputError(
                    f"{where}, column '{header}': found unit '{unit}', expected "
                    f"{units[name] or 'no unit'} or a unit that converts to it"
                    f"{advice(unit or '', units[name])}"
                )
            found[name] = _Column(name, position, header, units[name], unit or "", factor)

    missing = [name for name in ("patient", *units) if name not in found and name not in names]
    for name in missing:
        header = headed(name, units.get(name, ""))
        for position in others:
            if _nearest(names[position], missing) == name:
                raise InputError(
                    f"{where}: column '{names[position]}' is not known, did you mean '{header}'?"
                )
        raise InputError(f"{where}: column '{header}' is missing, found {_list(names)}")
    for position, unit in others.items():
        header = names[position]
        if unit is not None and header.split("[")[0].strip() not in known:
            expected = _list([headed(*item) for item in units.items()])
            raise InputError(
                f"{where}: column '{header}' is not known, expected {expected}; a further column "
                "is kept if its name has no brackets"
            )
    others.pop(names.index("patient"))
    return [found[name] for name in units], list(others)


def _is_separator_line(path: Path, row: int, fields: list[str]) -> bool:
    """Whether a first row tells a spreadsheet that columns are separated by commas."""
    line = ",".join(fields).strip(" ").lower()
    if not line.startswith("sep="):
        return False
    if line.strip(",") == "sep=" and line != "sep=":
        return True
    spoken = next((said for sign, said in _SEPARATORS.items() if sign in line), _cut(line))
    raise InputError(f"{path}, row {row}: found {spoken} between columns, expected commas")


def _cut(text: str) -> str:
    """Text in a message, on one line and cut where it is long."""
    return " ".join(text.split())[:40]


def _check_separator(path: Path, row: int, header: list[str]) -> None:
    """Refuse a header whose columns are separated by something else than commas."""
    if "patient" in [cell.strip() for cell in header]:
        return
    for separator, spoken in _SEPARATORS.items():
        cells = [cell.strip(' "') for field in header for cell in field.split(separator)]
        if "patient" in cells or (len(header) == 1 and len(cells) > 1):
            raise InputError(f"{path}, row {row}: found {spoken} between columns, expected commas")


def _nearest(header: str, candidates: list[str]) -> str | None:
    """Name that a header was probably meant to be."""
    name = re.sub(r"[\s-]+", "_", re.split(r"[\[(]", header)[0].strip().lower())
    nearest = difflib.get_close_matches(name, candidates, n=1)
    return nearest[0] if nearest else None


def _list(texts: list[str]) -> str:
    """Quoted and separated by commas."""
    return ", ".join(f"'{text}'" for text in texts)


def _limits(limits: Range, unit: str) -> tuple[float, float] | None:
    """Range in the unit of the problem; None if the problem measures something else."""
    factor = conversion(limits[2], unit)
    return None if factor is None else (limits[0] * factor, limits[1] * factor)


def _name(path: Path, row: int, name: str, first_row: Mapping[str, int]) -> str:
    """Name of the patient of a row, checked."""
    where = f"{path}, row {row}, column 'patient'"
    if not name:
        raise InputError(f"{where}: the cell is empty, expected a name")
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{where}: found {name!r}, expected at most 64 letters, digits, spaces, dots, dashes "
            "and underscores, beginning with a letter or digit"
        )
    if name in first_row:
        raise InputError(
            f"{where}: found '{name}' again, expected a name that is not in row {first_row[name]}"
        )
    return name


def _number(
    path: Path, row: int, column: _Column, cell: str, limits: tuple[float, float] | None
) -> float:
    """Value of a cell in the unit of the problem, checked."""
    where = f"{path}, row {row}, column '{column.header}'"
    shown = _cut(cell)
    if not _NUMBER.fullmatch(cell):
        what = "a number with a decimal point" if "," in cell else "a number"
        raise InputError(f"{where}: found '{shown}', expected {what}")
    value = float(cell) * column.factor
    if not math.isfinite(value):
        raise InputError(f"{where}: found '{shown}', expected a finite number")
    if limits is not None and not limits[0] <= value <= limits[1]:
        converted = "" if column.factor == 1.0 else f" ({value:g} {column.unit})"
        raise InputError(
            f"{where}: found {f'{shown} {column.written}'.rstrip()}{converted}, expected "
            f"{limits[0]:g} to {limits[1]:g} {column.unit}"
            f"{'; it looks like a marker of a missing value' if is_marker(cell) else ''}"
        )
    return value


def _check_rising(
    path: Path,
    row: int,
    values: Mapping[str, float],
    units: Mapping[str, str],
    rising: Sequence[tuple[str, str]],
) -> None:
    """Refuse measurements that cannot belong together."""
    for low, high in rising:
        if low in values and high in values and values[low] >= values[high]:
            raise InputError(
                f"{path}, row {row}: found {low} {values[low]:g} {units[low]} and {high} "
                f"{values[high]:g} {units[high]}, expected {low} below {high}"
            )
