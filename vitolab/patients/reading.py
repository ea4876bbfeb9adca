"""A user's own patients: one CSV file, checked cell by cell before anything is computed.

The first row names the columns: ``patient``, what the model needs to know of a patient
(``heart_rate [1/min]``), then each objective of the problem with its unit in brackets
(``lv_edv [mL]``). Units are converted; further columns are kept as text. Whatever is wrong
is said in one sentence with file, row as an editor numbers it, column, value, and what was
expected.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from vitolab.models.description import Range
from vitolab.patients.cells import (
    Column,
    InputError,
    check_rising,
    check_separator,
    checked_number,
    checked_patient,
    headed,
    is_separator_line,
    rows_of,
    shortened,
)
from vitolab.patients.markers import strange, suspects
from vitolab.patients.units import advice, conversion
from vitolab.problem import Patient, Problem

_HEADER = re.compile(r"([^\[\]]*?)\s*(?:\[\s*([^\[\]]*?)\s*\])?")


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
    rows : mapping of str to int
        Row of each patient of the file, as an editor numbers it.
    """

    path: Path
    patients: list[Patient]
    skipped: list[tuple[str, str]]
    extra: pd.DataFrame
    warnings: tuple[str, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)


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
    rows = rows_of(path)
    header = next(rows, None)
    if header is None:
        raise InputError(f"{path}: the file is empty, expected a header and one row per patient")
    if is_separator_line(path, *header):
        header = next(rows, None)
        if header is None:
            raise InputError(f"{path}: found sep=, and no further row, expected a header")
    check_separator(path, *header)
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
                f"{path}, row {row}: found {shortened(fields[i - 1])!r} in column {i}, which has "
                "no name, expected a name in the header or an empty cell"
            )
        del fields[len(names) : n_written]
        if len(fields) != len(names):
            raise InputError(
                f"{path}, row {row}: found {len(fields)} fields, expected {len(names)} as in the "
                "header, separated by commas, with decimal points, text with a comma in quotes"
            )
        cells = [cell.strip() for cell in fields]
        name = checked_patient(path, row, cells[names.index("patient")], first_row)
        first_row[name] = row
        known = {key: (cells[told[key]] if key in told else "") or texts[key] for key in texts}
        kept.append([*known.values(), *(cells[i] for i in others)])
        values: dict[str, float] = {}
        empty: list[str] = []
        for column in columns:
            cell = cells[column.position]
            if cell:
                values[column.name] = checked_number(
                    path, row, column, cell, limits.get(column.name)
                )
                written[column.name].append((row, cell))
            elif allow_missing:
                empty.append(column.name)
            else:
                raise InputError(
                    f"{path}, row {row}, column '{column.header}': the cell is empty, expected a "
                    "number (allow_missing=True goes without it)"
                )
        check_rising(path, row, values, units, rising)
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
    warnings += tuple(
        f"{path}, row {written[column.name][i][0]}, column '{column.header}': "
        f"{written[column.name][i][1]} is {how}, and is used as it is; see whether it has the unit "
        "of the column"
        for column in columns
        if column.name not in ranges
        for i, how in strange([cell for _, cell in written[column.name]])
    )
    return PatientTable(path, patients, skipped, extra, warnings, first_row)


def _columns(
    path: Path,
    row: int,
    names: list[str],
    units: Mapping[str, str],
    known: Mapping[str, Range],
) -> tuple[list[Column], list[int]]:
    """Columns with the numbers that are needed, and the positions of further columns."""
    where = f"{path}, row {row}"
    found: dict[str, Column] = {}
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
            found[name] = Column(name, position, header, units[name], unit or "", factor)

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
