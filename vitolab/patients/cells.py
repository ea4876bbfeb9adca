"""Rows and cells of a user's file, each refused with one sentence that says where and why."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vitolab.patients.markers import is_marker

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_NAME = re.compile(r"\w[\w. -]{0,63}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class InputError(ValueError):
    """A file of the user's that is refused; the message is one sentence that says why."""


@dataclass(frozen=True)
class Column:
    """Where a number stands in a row, and how it becomes the unit of the problem."""

    name: str
    position: int
    header: str
    unit: str
    written: str
    factor: float


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


def rows_of(path: Path) -> Iterator[tuple[int, list[str]]]:
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


def is_separator_line(path: Path, row: int, fields: list[str]) -> bool:
    """Whether a first row tells a spreadsheet that columns are separated by commas."""
    line = ",".join(fields).strip(" ").lower()
    if not line.startswith("sep="):
        return False
    if line.strip(",") == "sep=" and line != "sep=":
        return True
    spoken = next((said for sign, said in _SEPARATORS.items() if sign in line), shortened(line))
    raise InputError(f"{path}, row {row}: found {spoken} between columns, expected commas")


def shortened(text: str) -> str:
    """Text in a message, on one line and cut where it is long."""
    return " ".join(text.split())[:40]


def check_separator(path: Path, row: int, header: list[str]) -> None:
    """Refuse a header whose columns are separated by something else than commas."""
    if "patient" in [cell.strip() for cell in header]:
        return
    for separator, spoken in _SEPARATORS.items():
        cells = [cell.strip(' "') for field in header for cell in field.split(separator)]
        if "patient" in cells or (len(header) == 1 and len(cells) > 1):
            raise InputError(f"{path}, row {row}: found {spoken} between columns, expected commas")


def checked_patient(path: Path, row: int, name: str, first_row: Mapping[str, int]) -> str:
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


def checked_number(
    path: Path, row: int, column: Column, cell: str, limits: tuple[float, float] | None
) -> float:
    """Value of a cell in the unit of the problem, checked."""
    where = f"{path}, row {row}, column '{column.header}'"
    shown = shortened(cell)
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


def check_rising(
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
