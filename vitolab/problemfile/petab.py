"""Problems in PEtab, version 1, as models of one's own, where the two say the same.

PEtab describes by tables what is to be estimated of a model in SBML. Estimated parameters become
parameters, observables that are one quantity of the model objectives, conditions patients, and
their numbers columns. What has no counterpart here is refused, all of it at once.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import yaml

from vitolab.files import new_folder
from vitolab.problemfile import ProblemError, read_problem

MOST_BYTES = 2**16
MOST_BYTES_OF_TABLE = 2**24
MODEL = "model.xml"

_FILES = ("sbml_files", "condition_files", "observable_files", "measurement_files")
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_AN_ID = "at most 64 letters, digits and underscores, no digit first, and not patient"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ONE = r"1(?:\.0*)?"
_FORMULA = re.compile(rf"(?:{_ONE}\s*\*\s*)?([A-Za-z_]\w*)(?:\s*\*\s*{_ONE})?", re.ASCII)
_A_SETTING = "a number, or a parameter with estimate 0"
_LABEL = re.compile(r"[^\x00-\x1f\x7f<>]{1,200}")
_NO_PRIOR = ("", "parameterScaleUniform")
_NOTHING = ("", "nan", "NaN")
_TAKEN = ("patient",)  # the column of names

#: Sentences by what makes them the same: of many rows with one fault the first is told.
_Wrong = dict[tuple[str, ...], str]


@dataclass(frozen=True)
class Petab:
    """A PEtab problem, as the files of a problem of one's own.

    Attributes
    ----------
    path : Path
        Where it was read.
    problem, patients : str
        Text of ``problem.toml`` and ``patients.csv``.
    model : bytes
        The model in SBML, as it is.
    notes : tuple of str
        What its user should know, one sentence each; ``problem`` holds them too.
    """

    path: Path
    problem: str
    patients: str
    model: bytes
    notes: tuple[str, ...]


def begin_from_petab(path: Path | str, folder: Path) -> Petab:
    """Make a folder with a problem, its patients and its model from PEtab, whole or not at all.

    Parameters
    ----------
    path : Path or str
        YAML; the files that it names are found beside it.
    folder : Path
        Must not exist.

    Returns
    -------
    Petab
        What was written.

    Raises
    ------
    ValueError
        If the folder exists, or its parent does not.
    ProblemError
        If the problem is refused, see `read_petab`, or its model cannot be run.
    """
    with new_folder(folder) as temporary:
        found = read_petab(path)
        (temporary / MODEL).write_bytes(found.model)
        (temporary / "patients.csv").write_text(found.patients, encoding="utf-8", newline="")
        written = temporary / "problem.toml"
        written.write_text(found.problem, encoding="utf-8", newline="")
        try:
            read_problem(written)
        except ProblemError as error:  # of the model: what it is made of, what can be set
            raise ProblemError(
                [sentence.replace(str(written), str(found.path)) for sentence in error.sentences]
            ) from None
    return found


def read_petab(path: Path | str) -> Petab:
    """Read a PEtab problem of version 1.

    Labels that are long or hold markup are passed over, as are columns that PEtab does not know;
    a species is its concentration, or its amount where the model says so.

    Parameters
    ----------
    path : Path or str
        YAML; the files that it names are found beside it.

    Returns
    -------
    Petab

    Raises
    ------
    ProblemError
        If it is refused, with one sentence for each thing that is wrong.
    """
    path = Path(path)
    files = _files(path)
    wrong: _Wrong = {}
    content = _content(files["sbml_files"], wrong)
    model = _model(files["sbml_files"], content, wrong) if content is not None else None
    conditions = _sheet(files["condition_files"], ("conditionId",), wrong)
    observables = _sheet(
        files["observable_files"], ("observableId", "observableFormula", "noiseFormula"), wrong
    )
    measured = _sheet(
        files["measurement_files"],
        ("observableId", "simulationConditionId", "measurement", "time"),
        wrong,
    )
    parameters = _sheet(files["parameter_file"], ("parameterId", "estimate"), wrong)
    if content is None or model is None or wrong:
        raise ProblemError(list(wrong.values()))

    settings = conditions.others("conditionId", "conditionName")
    known = _unique(observables, "observableId"), _unique(conditions, "conditionId")
    data = _measurements(measured, *known)
    estimated, fixed, columns = _parameters(parameters, model, settings)
    columns |= _settings(conditions, settings, model)
    objectives = _objectives(
        observables, {*_TAKEN, *settings, *estimated, *columns}, model, fixed, data
    )
    patients = {
        row["conditionId"]: {name: row.number(name, _A_SETTING, fixed=fixed) for name in settings}
        for row in conditions.rows
        if row["conditionId"] in data.conditions
    }
    if not estimated and not wrong:
        wrong["estimated",] = (
            f"{parameters.path}: no parameter has estimate 1, expected at least one"
        )
    if wrong:
        raise ProblemError(list(wrong.values()))
    constant = {name: entry.pop("value") for name, entry in columns.items() if "value" in entry}
    notes = _notes(
        data, [r["conditionId"] for r in conditions.rows], known[0], objectives, constant
    )
    problem = _problem(path, notes, estimated, objectives, columns, data.times)
    table = [
        [name, *({**constant, **values}[c] for c in columns), *data.cells(name, objectives)]
        for name, values in patients.items()
    ]
    return Petab(path, problem, _csv(["patient", *columns, *objectives], table), content, notes)


# Files


def _files(path: Path) -> dict[str, Path]:
    """Files that a problem names."""
    found = _description(path)
    wrong: list[str] = []
    if not isinstance(found, dict):
        raise ProblemError([f"{path}: the content is {_shown(found)}, expected a problem in PEtab"])
    version = found.get("format_version")
    if isinstance(version, bool) or version not in (1, "1", "1.0", "1.0.0"):
        wrong.append(f"{path}: format_version is {_shown(version)}, expected 1")
    problem = found.get("problems")
    if isinstance(problem, list) and len(problem) == 1 and isinstance(problem[0], dict):
        problem = problem[0]
    else:
        wrong.append(f"{path}: problems is {_shown(problem)}, expected a list of one mapping")
        problem = {}
    for names, table in (
        (("format_version", "parameter_file", "problems"), found),
        ((*_FILES, "visualization_files"), problem),
    ):
        wrong += [
            f"{path}: {_shown(name)} is not known, expected {', '.join(names)}"
            for name in table
            if name not in names
        ]
    files: dict[str, Path] = {}
    for what in (*(_FILES if problem else ()), "parameter_file"):
        name = problem.get(what) if what in _FILES else found.get("parameter_file")
        if isinstance(name, list) and len(name) == 1:
            name = name[0]
        if not isinstance(name, str):
            wrong.append(f"{path}: {what} is {_shown(name)}, expected the name of one file")
        elif not _is_file(path.parent / name):
            wrong.append(f"{path}: {what} is {_shown(name)}, expected a file beside it")
        else:
            files[what] = path.parent / name
    if wrong:
        raise ProblemError(wrong)
    return files


def _description(path: Path) -> Any:
    """Content of a file in YAML."""
    wrong: _Wrong = {}
    content = _content(path, wrong, MOST_BYTES)
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
        raise ProblemError([f"{path}: {_one_line(error)}, expected YAML in UTF-8"]) from None


def _is_file(path: Path) -> bool:
    """Whether there is such a file; a name that cannot be one is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _content(path: Path, wrong: _Wrong, most: int = MOST_BYTES_OF_TABLE) -> bytes | None:
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
class _Model:
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


def _model(path: Path, content: bytes, wrong: _Wrong) -> _Model | None:
    """What a model has; None where it is refused."""
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        wrong["file", str(path)] = f"{path}: {_one_line(error)}, expected SBML"
        return None

    def found(of: str, what: str) -> list[Mapping[str, str]]:
        return [element.attrib for element in root.findall(f"{{*}}model/{{*}}{of}/{{*}}{what}")]

    assigned = {a.get("symbol") for a in found("listOfInitialAssignments", "initialAssignment")}
    return _Model(
        {
            p.get("id", ""): None if p.get("id") in assigned else _float(p.get("value", ""))
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


# Tables


@dataclass(frozen=True)
class _Row:
    """A row of a table: its cells as text, and where what is wrong with it is kept."""

    path: Path
    position: int
    cells: Mapping[str, str]
    wrong: _Wrong

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def refuse(self, column: str, expected: str) -> None:
        """Refuse a cell."""
        cell = self[column]
        found = f"found {_shown(cell)}" if cell else "the cell is empty"
        self.wrong.setdefault(
            (str(self.path), column, cell, expected),
            f"{self.path}, row {self.position}, column {_shown(column)}: {found}, expected "
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
        value = _float(cell)
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


def _sheet(path: Path, needed: Sequence[str], wrong: _Wrong) -> _Sheet:
    """Table of tab-separated values; what is wrong with it is kept."""
    content = _content(path, wrong)
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
        wrong["file", str(path)] = f"{path}: {_one_line(error)}, expected tab-separated values"
        return _Sheet(path, (), ())
    header, *lines = [[cell.strip() for cell in line] for line in cells.to_numpy().tolist()]
    for name in needed:
        if name not in header:
            wrong[str(path), "header", name] = (
                f"{path}, row 1: column {name!r} is missing, expected tab-separated values with it"
            )
    for name in dict.fromkeys(header):
        if header.count(name) > 1 or not name:
            is_named = f"column {_shown(name)} occurs twice" if name else "a column has no name"
            wrong[str(path), "header", name] = f"{path}, row 1: {is_named}, expected each once"
    rows = tuple(
        _Row(path, i, dict(zip(header, line, strict=True)), wrong)
        for i, line in enumerate(lines, 2)
        if any(line)
    )
    if not rows:
        wrong[str(path), "rows"] = f"{path}: found a header and no further row, expected some"
    return _Sheet(path, tuple(header), rows)


def _unique(sheet: _Sheet, column: str) -> dict[str, _Row]:
    """Rows by their ids, which are refused where they are none, or not the only ones."""
    found: dict[str, _Row] = {}
    for row in sheet.rows:
        name = row[column]
        if not _ID.fullmatch(name) or name in _TAKEN:
            row.refuse(column, _AN_ID)
        elif name in found:
            row.refuse(column, f"a name that is not in row {found[name].position}")
        found.setdefault(name, row)
    return found


@dataclass(frozen=True)
class _Measurements:
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


def _measurements(
    sheet: _Sheet, observables: Mapping[str, _Row], conditions: Mapping[str, _Row]
) -> _Measurements:
    """Read the table of measurements."""
    data = _Measurements()
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
        found = _some([f"{time:g}" for time in data.times])
        sheet.rows[0].wrong[str(sheet.path), "times"] = (
            f"{sheet.path}, column 'time': found {found}, expected one time for all measurements"
        )
    return data


def _parameters(
    sheet: _Sheet, model: _Model, settings: Collection[str]
) -> tuple[dict[str, dict[str, Any]], dict[str, float], dict[str, dict[str, Any]]]:
    """Parameters to find, values of the others, and columns for those that the model has not."""
    estimated: dict[str, dict[str, Any]] = {}
    fixed: dict[str, float] = {}
    columns: dict[str, dict[str, Any]] = {}
    for name, row in _unique(sheet, "parameterId").items():
        is_estimated = _float(row["estimate"])
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


def _settings(sheet: _Sheet, settings: Sequence[str], model: _Model) -> dict[str, dict[str, Any]]:
    """Columns that the conditions set."""
    columns: dict[str, dict[str, Any]] = {}
    for name in settings:
        is_id = _ID.fullmatch(name) and name not in _TAKEN
        target = model.target(name) if is_id else None
        if target is None:
            expected = "a parameter or species of the model that no rule determines"
            sheet.rows[0].wrong[str(sheet.path), "setting", name] = (
                f"{sheet.path}, row 1: found column {_shown(name)}, expected "
                f"{expected if is_id else _AN_ID}"
            )
        columns[name] = {"name": name, **({} if target == name else {"target": target})}
    return columns


def _objectives(
    sheet: _Sheet,
    taken: Collection[str],
    model: _Model,
    fixed: Mapping[str, float],
    data: _Measurements,
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


# What is written


def _notes(
    data: _Measurements,
    conditions: Sequence[str],
    observables: Iterable[str],
    objectives: Collection[str],
    constant: Iterable[str],
) -> tuple[str, ...]:
    """Sentences for the user."""
    notes = [
        "A tolerance is one standard deviation of the noise, which PEtab gives: decide how near is "
        "good enough."
    ]
    if any(len(values) > 1 for values in data.values.values()):
        notes.append("Repeated measurements of an observable in a condition are averaged.")
    measured = [name for name in conditions if name in data.conditions]
    some = [o for o in objectives if any((c, o) not in data.values for c in measured)]
    for names, said in (
        (
            [c for c in conditions if c not in data.conditions],
            "Nothing is measured in {}: left out.",
        ),
        ([o for o in observables if o not in objectives], "{} is never measured: left out."),
        (
            some,
            "{} is not measured in all conditions: its cells are empty, which only `vitolab "
            "personalize --allow-missing` goes without.",
        ),
        (constant, "{} is fixed at another value than the model's: a column with this value."),
    ):
        if names := list(names):
            notes.append(said.format(_some(names)))
    return tuple(notes)


def _problem(
    path: Path,
    notes: Iterable[str],
    estimated: Mapping[str, Mapping[str, Any]],
    objectives: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Mapping[str, Any]],
    times: Iterable[float],
) -> str:
    """Text of a problem file."""
    (duration,) = times
    title = re.sub(r"[^A-Za-z0-9._-]", "_", path.stem)[:58]
    remarks = [
        f"A problem from PEtab, {path.name!r}: what is personalised, by which measurements, "
        "with which model.",
        "",
        "  vitolab run problem --problem problem.toml --patients patients.csv",
        "",
        *notes,
        "PEtab has no units: add them here (unit), and in brackets to the header of patients.csv.",
        "Domains are explored uniformly: narrow one that spans several powers of ten.",
    ]
    lines = [
        f"# {line}".rstrip()
        for remark in remarks
        for line in textwrap.wrap(remark, 98, drop_whitespace=not remark.startswith(" ")) or [""]
    ]
    lines += ["", f"name = {_toml(f'petab-{title}')}", 'version = "1"']
    for table, entries in (
        ("parameters", estimated),
        ("objectives", objectives),
        ("columns", columns),
    ):
        for entry in entries.values():
            lines += ["", f"[[{table}]]"]
            lines += [f"{key} = {_toml(value)}" for key, value in entry.items()]
            if table == "columns":
                lines.append("# feature = true  # where answers change smoothly with it")
    lines += [
        "",
        "[model]",
        'adapter = "sbml"',
        f"file = {_toml(MODEL)}",
        f"duration = {_toml(duration)}  # the time of all measurements",
        "time_limit = 60.0  # s; a run that takes longer is ended, and is a failed run",
    ]
    return "\n".join(lines) + "\n"


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Text of a CSV file; an absent number is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _toml(value: str | float) -> str:
    """Value in TOML."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _label(text: str) -> dict[str, str]:
    """Label of an entry, where there is one that can be shown."""
    return {"label": text} if _LABEL.fullmatch(text) else {}


def _float(text: str) -> float | None:
    """Finite number that a text is; None if it is none."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def _some(names: Sequence[str]) -> str:
    """Names, the first of many."""
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _shown(value: Any) -> str:
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


def _one_line(error: Exception) -> str:
    """What a parser said, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
