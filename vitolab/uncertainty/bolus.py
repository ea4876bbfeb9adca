"""Read measurements before and after a fluid bolus from a CSV file, checked cell by cell.

The columns are those of the published table: ``subject``; stroke volume and arterial pressures
before and after (``SV_mL_pre``, ``MAP_mmHg_pre``, ``SAP_mmHg_pre``, ``DAP_mmHg_pre``, and ``_post``
alike); heart rates ``HR_from_CI_SVI_pre_bpm`` and ``HR_from_CI_SVI_post_bpm``. Other columns
are passed over. What is wrong is said in one sentence.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from vitolab.models.bolus.about import MODEL
from vitolab.patients import InputError
from vitolab.problem import Patient

#: What a column is called (abbreviation, unit), and its lowest and highest value in a living adult.
QUANTITIES: Mapping[str, tuple[str, str, float, float]] = MappingProxyType(
    {
        "stroke_volume": ("SV", "mL", *MODEL.ranges["stroke_volume"][:2]),
        "aortic_mean": ("MAP", "mmHg", *MODEL.ranges["aortic_mean"][:2]),
        "aortic_systolic": ("SAP", "mmHg", *MODEL.ranges["aortic_systolic"][:2]),
        "aortic_diastolic": ("DAP", "mmHg", *MODEL.ranges["aortic_diastolic"][:2]),
        "heart_rate": ("HR_from_CI_SVI", "bpm", *MODEL.ranges["heart_rate"][:2]),
    }
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Bolus:
    """One subject, before and after.

    Attributes
    ----------
    before, after : Patient
        Of the same name, with ``stroke_volume`` and the three pressures measured and
        ``heart_rate`` known.
    """

    before: Patient
    after: Patient


def column(quantity: str, when: str) -> str:
    """Name of a column: ``pre`` or ``post`` stands before the unit of the heart rate."""
    name, unit, _, _ = QUANTITIES[quantity]
    parts = (name, when, unit) if quantity == "heart_rate" else (name, unit, when)
    return "_".join(parts)


def read_bolus(path: Path | str) -> list[Bolus]:
    """Read all subjects.

    Parameters
    ----------
    path : Path or str
        UTF-8, separated by commas, decimal points.

    Returns
    -------
    list of Bolus
        In the order of the file; `vitolab.models.bolus.SYNTHETIC` is a file to try.

    Raises
    ------
    InputError
        If the file is refused, with one sentence that says where and why.
    """
    path = Path(path)
    rows = _rows(path)
    if len(rows) < 2:
        raise InputError(
            f"{path}: found {len(rows)} rows, expected a header and one row per subject"
        )
    header = [cell.strip() for cell in rows[0][1]]
    _check_header(path, header)
    subjects: list[Bolus] = []
    first_row: dict[str, int] = {}
    for number, fields in rows[1:]:
        where = f"{path}, row {number}"
        if len(fields) != len(header):
            raise InputError(
                f"{where}: found {len(fields)} fields, expected {len(header)} as in the header"
            )
        cells = dict(zip(header, (field.strip() for field in fields), strict=True))
        name = cells["subject"]
        if not name:
            raise InputError(f"{where}, column 'subject': the cell is empty, expected a name")
        if name in first_row:
            raise InputError(
                f"{where}, column 'subject': found '{name}' again, expected a name that is not in "
                f"row {first_row[name]}"
            )
        first_row[name] = number
        before, after = (_examination(where, name, cells, when) for when in ("pre", "post"))
        subjects.append(Bolus(before, after))
    return subjects


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Row numbers and fields of the rows that are not empty."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise InputError(f"{path}: there is no such file, expected a CSV file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: found text that is not UTF-8, expected a CSV file") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"{path}: cannot be read ({reason}), expected a CSV file") from None
    try:
        lines = list(enumerate(csv.reader(text.splitlines(), strict=True), start=1))
    except csv.Error as error:
        raise InputError(f"{path}: found text that is not CSV ({error})") from None
    return [(number, fields) for number, fields in lines if any(f.strip() for f in fields)]


def _check_header(path: Path, header: Sequence[str]) -> None:
    """Refuse a header that lacks a column, has one in another unit, or twice."""
    for name in header:
        if name and header.count(name) > 1:
            raise InputError(f"{path}, row 1: column '{name}' occurs twice, expected once")
    wanted = [column(quantity, when) for when in ("pre", "post") for quantity in QUANTITIES]
    for name in ("subject", *wanted):
        if name in header:
            continue
        if name != "subject" and (other := _in_other_unit(name, header)):
            raise InputError(f"{path}, row 1: found column '{other}', expected '{name}'")
        raise InputError(f"{path}, row 1: column '{name}' is missing")


def _in_other_unit(wanted: str, header: Sequence[str]) -> str | None:
    """Column of the same quantity and examination, with another unit."""
    start, when = wanted.split("_")[0], "post" if "post" in wanted else "pre"
    parts = (name.split("_") for name in header)
    found = (p for p in parts if p[0] == start and when in p and "protocol" not in p)
    return next(("_".join(p) for p in found), None)


def _examination(where: str, name: str, cells: Mapping[str, str], when: str) -> Patient:
    """Measurements of one examination, checked."""
    values = {}
    for quantity, (_, unit, low, high) in QUANTITIES.items():
        header = column(quantity, when)
        cell = cells[header]
        if not cell:
            raise InputError(f"{where}, column '{header}': the cell is empty, expected a number")
        if not _NUMBER.fullmatch(cell) or not math.isfinite(float(cell)):
            shown = cell[:40]
            raise InputError(f"{where}, column '{header}': found '{shown}', expected a number")
        values[quantity] = float(cell)
        if not low <= values[quantity] <= high:
            raise InputError(
                f"{where}, column '{header}': found {cell} {unit}, expected {low:g} to {high:g} "
                f"{unit}"
            )
    for low_name, high_name in MODEL.rising:
        if values[low_name] >= values[high_name]:
            low_column, high_column = column(low_name, when), column(high_name, when)
            raise InputError(
                f"{where}: found {low_column} {values[low_name]:g} and {high_column} "
                f"{values[high_name]:g}, expected {low_column} below {high_column}"
            )
    rate = values.pop("heart_rate")
    return Patient(name, values, {"heart_rate": rate})
