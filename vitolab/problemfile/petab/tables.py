"""The tables of a problem in PEtab: rows, and the parameters, columns and objectives they make."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from vitolab.problemfile.petab.files import (
    Model,
    Wrong,
    content_of,
    first_few,
    number_of,
    one_line,
    shown,
)

_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_AN_ID = "at most 64 letters, digits and underscores, no digit first, and not patient"
_ONE = r"1(?:\.0*)?"
_FORMULA = re.compile(rf"(?:{_ONE}\s*\*\s*)?([A-Za-z_]\w*)(?:\s*\*\s*{_ONE})?", re.ASCII)
A_SETTING = "a number, or a parameter with estimate 0"
_LABEL = re.compile(r"[^\x00-\x1f\x7f<>]{1,200}")
_NO_PRIOR = ("", "parameterScaleUniform")
_NOTHING = ("", "nan", "NaN")
TAKEN = ("patient",)  # the column of names


@dataclass(frozen=True)
class _Row:
    """A row of a table: its cells as text, and where what is wrong with it is kept."""

    path: Path
    position: int
    cells: Mapping[str, str]
    wrong: Wrong

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def refuse(self, column: str, expected: str) -> None:
        """Refuse a cell."""
        cell = self[column]
        found = f"found {shown(cell)}" if cell else "the cell is empty"
        self.wrong.setdefault(
            (str(self.path), column, cell, expected),
            f"{self.path}, row {self.position}, column {shown(column)}: {found}, expected "
            f"{expected}",
        )

    def number(
        self,
        column: str,
        expected: str = "a number",
        *,
        fixed: Mapping[str, float] | None = None,
        positive: bool = False,
    ) -> float:
        """Value of a cell, which may name a fixed parameter; NaN where it is refused."""
        cell = self[column]
        value = number_of(cell)
        if value is None and fixed is not None:
            value = fixed.get(cell)
        if value is None or (positive and value <= 0):
            self.refuse(column, expected)
            return math.nan
        return value


@dataclass(frozen=True)
class _Sheet:
    """A table: its header, and its rows that are not empty."""

    path: Path
    header: tuple[str, ...]
    rows: tuple[_Row, ...]

    def others(self, *names: str) -> list[str]:
        """Columns with other names."""
        return [name for name in self.header if name not in names]


def read_sheet(path: Path, needed: Sequence[str], wrong: Wrong) -> _Sheet:
    """Table of tab-separated values; what is wrong with it is kept."""
    content = content_of(path, wrong)
    if content is None:
        return _Sheet(path, (), ())
    try:
        cells = pd.read_csv(
            io.BytesIO(content),
            sep="\t",
            header=None,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            encoding="utf-8-sig",
        ).fillna("")
    except ValueError as error:
        wrong["file", str(path)] = f"{path}: {one_line(error)}, expected tab-separated values"
        return _Sheet(path, (), ())
    header, *lines = [[cell.strip() for cell in line] for line in cells.to_numpy().tolist()]
    for name in needed:
        if name not in header:
            wrong[str(path), "header", name] = (
                f"{path}, row 1: column {name!r} is missing, expected tab-separated values with it"
            )
    for name in dict.fromkeys(header):
        if header.count(name) > 1 or not name:
            is_named = f"column {shown(name)} occurs twice" if name else "a column has no name"
            wrong[str(path), "header", name] = f"{path}, row 1: {is_named}, expected each once"
    rows = tuple(
        _Row(path, i, dict(zip(header, line, strict=True)), wrong)
        for i, line in enumerate(lines, 2)
        if any(line)
    )
    if not rows:
        wrong[str(path), "rows"] = f"{path}: found a header and no further row, expected some"
    return _Sheet(path, tuple(header), rows)


def unique(sheet: _Sheet, column: str) -> dict[str, _Row]:
    """Rows by their ids, which are refused where they are none, or not the only ones."""
    found: dict[str, _Row] = {}
    for row in sheet.rows:
        name = row[column]
        if not _ID.fullmatch(name) or name in TAKEN:
            row.refuse(column, _AN_ID)
        elif name in found:
            row.refuse(column, f"a name that is not in row {found[name].position}")
        found.setdefault(name, row)
    return found


@dataclass(frozen=True)
class Measurements:
    """Measured values, by condition and observable, the rows of an observable, and all times."""

    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    rows: dict[str, list[_Row]] = field(default_factory=dict)
    times: dict[float, None] = field(default_factory=dict)

    @property
    def conditions(self) -> set[str]:
        """Conditions in which something was measured."""
        return {condition for condition, _ in self.values}

    def cells(self, condition: str, objectives: Iterable[str]) -> list[float | None]:
        """Mean of what was measured of each objective; None where nothing was."""
        found = [self.values.get((condition, name)) for name in objectives]
        return [None if v is None else sum(value / len(v) for value in v) for v in found]


def measurements_of(
    sheet: _Sheet, observables: Mapping[str, _Row], conditions: Mapping[str, _Row]
) -> Measurements:
    """Read the table of measurements."""
    data = Measurements()
    for row in sheet.rows:
        of, under = row["observableId"], row["simulationConditionId"]
        if of not in observables:
            row.refuse("observableId", "an observable of its table")
        if under not in conditions:
            row.refuse("simulationConditionId", "a condition of its table")
        if row["preequilibrationConditionId"] not in _NOTHING:
            row.refuse("preequilibrationConditionId", "none: a model starts as it is")
        if row["observableParameters"] not in _NOTHING:
            row.refuse("observableParameters", "none: an observable is a quantity of the model")
        time = row.number("time", "a finite time above 0", positive=True)
        if not math.isnan(time):
            data.times[time] = None
        data.values.setdefault((under, of), []).append(row.number("measurement"))
        data.rows.setdefault(of, []).append(row)
    if len(data.times) > 1:
        found = first_few([f"{time:g}" for time in data.times])
        sheet.rows[0].wrong[str(sheet.path), "times"] = (
            f"{sheet.path}, column 'time': found {found}, expected one time for all measurements"
        )
    return data


def parameters_of(
    sheet: _Sheet, model: Model, settings: Collection[str]
) -> tuple[dict[str, dict[str, Any]], dict[str, float], dict[str, dict[str, Any]]]:
    """Parameters to find, values of the others, and columns for those that the model has not."""
    estimated: dict[str, dict[str, Any]] = {}
    fixed: dict[str, float] = {}
    columns: dict[str, dict[str, Any]] = {}
    for name, row in unique(sheet, "parameterId").items():
        is_estimated = number_of(row["estimate"])
        if name in settings:
            row.refuse("parameterId", "a parameter that is no column of the conditions")
        elif is_estimated not in (0.0, 1.0):
            row.refuse("estimate", "0 or 1")
        elif name in model.ruled:
            row.refuse("parameterId", "a parameter that no rule of the model determines")
        elif is_estimated == 0.0:
            fixed[name] = value = row.number("nominalValue")
            if name in model.parameters and model.parameters[name] != value:
                columns[name] = {"name": name, "value": value}
        elif name not in model.parameters:
            row.refuse("parameterId", "a parameter of the model, since it is estimated")
        else:
            estimated[name] = _estimated(row)
    return estimated, fixed, columns


def _estimated(row: _Row) -> dict[str, Any]:
    """Entry of a parameter to find."""
    for kind in ("objectivePrior", "initializationPrior"):
        if row[f"{kind}Type"] not in (*_NOTHING, *_NO_PRIOR):
            row.refuse(f"{kind}Type", "none: a domain is all that is known of a parameter")
        if row[f"{kind}Parameters"] not in _NOTHING:
            row.refuse(f"{kind}Parameters", "none: a domain is all that is known of a parameter")
    scale = row["parameterScale"]
    if scale not in ("lin", "log", "log10"):
        row.refuse("parameterScale", "lin, log or log10")
    is_log = scale != "lin"
    entry: dict[str, Any] = {"name": row["parameterId"], **_label(row["parameterName"])}
    entry["lower"] = lower = row.number(
        "lowerBound", "a number above 0 on a log scale" if is_log else "a number", positive=is_log
    )
    entry["upper"] = upper = row.number("upperBound")
    if upper <= lower:
        row.refuse("upperBound", f"a number above lowerBound, {lower:g}")
    if row["nominalValue"] not in _NOTHING:
        entry["default"] = value = row.number("nominalValue")
        if value < lower or value > upper:
            row.refuse("nominalValue", f"a number within the bounds, {lower:g} to {upper:g}")
    entry["scale"] = "log" if is_log else "linear"
    return entry


def settings_of(sheet: _Sheet, settings: Sequence[str], model: Model) -> dict[str, dict[str, Any]]:
    """Columns that the conditions set."""
    columns: dict[str, dict[str, Any]] = {}
    for name in settings:
        is_id = _ID.fullmatch(name) and name not in TAKEN
        target = model.target(name) if is_id else None
        if target is None:
            expected = "a parameter or species of the model that no rule determines"
            sheet.rows[0].wrong[str(sheet.path), "setting", name] = (
                f"{sheet.path}, row 1: found column {shown(name)}, expected "
                f"{expected if is_id else _AN_ID}"
            )
        columns[name] = {"name": name, **({} if target == name else {"target": target})}
    return columns


def objectives_of(
    sheet: _Sheet,
    taken: Collection[str],
    model: Model,
    fixed: Mapping[str, float],
    data: Measurements,
) -> dict[str, dict[str, Any]]:
    """Objectives of the observables that were measured."""
    objectives: dict[str, dict[str, Any]] = {}
    for row in sheet.rows:
        name = row["observableId"]
        if name not in data.rows or name in objectives:
            continue
        if name in taken:
            row.refuse("observableId", "a name that is no parameter and no column")
        formula = _FORMULA.fullmatch(row["observableFormula"])
        output = model.output(formula[1]) if formula and formula[1] != "time" else None
        if output is None:
            row.refuse(
                "observableFormula", "the id of one parameter, species or compartment of the model"
            )
        if row["observableTransformation"] not in (*_NOTHING, "lin"):
            row.refuse("observableTransformation", "lin: misfits are differences")
        if row["noiseDistribution"] not in (*_NOTHING, "normal"):
            row.refuse("noiseDistribution", "normal")
        objectives[name] = {
            "name": name,
            **_label(row["observableName"]),
            "tolerance": _tolerance(row, fixed, data.rows[name]),
            "output": output,
            "feature": "final",
        }
    return objectives


def _tolerance(row: _Row, fixed: Mapping[str, float], measured: Sequence[_Row]) -> float:
    """Standard deviation of the noise of an observable; NaN where it is refused."""
    name = row["observableId"]
    placeholder = f"noiseParameter1_{name}"
    if row["noiseFormula"] != placeholder:
        for each in measured:
            if each["noiseParameters"] not in _NOTHING:
                each.refuse("noiseParameters", f"none: the noise of {name} has no {placeholder}")
        expected = f"a number above 0, a parameter with estimate 0, or {placeholder}"
        return row.number("noiseFormula", expected, fixed=fixed, positive=True)
    expected = "one number above 0, or a parameter with estimate 0"
    first, *others = measured
    value = first.number("noiseParameters", expected, fixed=fixed, positive=True)
    for each in others:
        other = each.number("noiseParameters", expected, fixed=fixed, positive=True)
        if not math.isnan(value) and not math.isnan(other) and other != value:
            each.refuse("noiseParameters", f"{value:g} as in the first row of {name}")
    return value


def _label(text: str) -> dict[str, str]:
    """Label of an entry, where there is one that can be shown."""
    return {"label": text} if _LABEL.fullmatch(text) else {}
