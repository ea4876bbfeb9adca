"""A model of one's own, described in a TOML file: parameters, objectives, columns, simulator.

Everything that is wrong with a file is reported at once, one sentence each. What the answers
depend on (the file, and the sources of the model) is part of the version of the problem.
"""

from __future__ import annotations

import ast
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vitolab.files import digest, source_version
from vitolab.patients import InputError, Range, conversion
from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem, Simulate

if TYPE_CHECKING:
    from vitolab.adapters.rows import Function
    from vitolab.adapters.timecourse import TimeCourse

#: Names of built-in models: figures and the dashboard know these by name.
TAKEN = ("circulation", "electrophysiology", "rosenbrock", "bolus")
MOST_BYTES = 2**20
_WORD = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
_TITLE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

Word = Annotated[str, Field(pattern=f"^{_WORD}$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f<>]*$")]


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


class _Table(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ParameterTable(_Table):
    """``[[parameters]]``: see `vitolab.problem.Parameter`; ``target`` is its name in a format."""

    name: Word
    label: Text = ""
    target: Name | None = None
    unit: Text = ""
    lower: Number
    upper: Number
    default: Number | None = None
    step: Number | None = None
    scale: Literal["linear", "log"] = "linear"


class ObjectiveTable(_Table):
    """``[[objectives]]``: see `vitolab.problem.Objective`, and where its value comes from."""

    name: Word
    label: Text = ""
    unit: Text = ""
    tolerance: Number
    kind: Literal["difference", "angle"] = "difference"
    output: Name | None = None
    feature: Name | None = None
    output_unit: Text | None = None


class ColumnTable(_Table):
    """``[[columns]]``: what the model needs to know of a patient."""

    name: Word
    unit: Text = ""
    target: Name | None = None
    lower: Number = -math.inf
    upper: Number = math.inf
    feature: bool = False


class _Worked(_Table):
    """What all simulators may be given."""

    time_limit: Positive | None = None
    workers: Annotated[int, Field(ge=0, le=4096)] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] = 0
    sources: tuple[str, ...] = ()


class FunctionTable(_Worked):
    """``adapter = "function"``: a callable in a Python file, `OdeFunction` among them."""

    adapter: Literal["function"]
    file: str
    function: Word = "simulate"


class ProgramTable(_Worked):
    """``adapter = "program"``: an external program."""

    adapter: Literal["program"]
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    input: str = "input.json"
    output: str = "output.json"
    file: str | None = None
    write: Word | None = None
    read: Word | None = None
    memory_limit: Positive | None = None
    keep: str = "failed_runs"


class FormatTable(_Worked):
    """``adapter = "sbml"``, ``"cellml"`` (also MMT) or ``"fmu"``: a model in a file of a format.

    See `vitolab.adapters.timecourse.TimeCourse`.
    """

    adapter: Literal["sbml", "cellml", "fmu"]
    file: str
    duration: Positive
    points: Annotated[int, Field(ge=2, le=10**7)] = 1001
    skip: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    trusted: bool = False


ADAPTERS = ("function", "program", "sbml", "cellml", "fmu")
ModelTable = Annotated[FunctionTable | ProgramTable | FormatTable, Field(discriminator="adapter")]


class ProblemTable(_Table):
    """The whole file."""

    name: Annotated[str, Field(pattern=f"^{_TITLE}$")]
    version: Text = "1"
    multipliers: tuple[int, ...] = (1, 10, 100)
    border: Literal["clip", "reject", "free"] = "clip"
    parameters: Annotated[tuple[ParameterTable, ...], Field(min_length=1)]
    objectives: Annotated[tuple[ObjectiveTable, ...], Field(min_length=1)]
    columns: tuple[ColumnTable, ...] = ()
    model: ModelTable


@dataclass(frozen=True)
class OwnProblem:
    """A problem read from a file, and what a file of its patients must hold.

    Attributes
    ----------
    path : Path
    problem : Problem
    data : mapping of str to str
        Name and unit of the numbers that the model needs to know of a patient.
    ranges : mapping of str to (lower, upper, unit)
    """

    path: Path
    problem: Problem
    data: Mapping[str, str]
    ranges: Mapping[str, Range]

    @property
    def key(self) -> str:
        """Digest of all on which results depend."""
        return digest(self.described())[:16]

    def described(self) -> dict[str, Any]:
        """All on which results depend, as plain data."""
        limits = {
            name: [None if math.isinf(end) else end for end in ends]
            for name, (*ends, _) in self.ranges.items()
        }
        return {
            **self.problem.describe(),
            "columns": dict(self.data),
            "limits": limits,
            "features": list(self.problem.features),
        }

    def check_key(self, key: str) -> None:
        """Refuse to go on with another problem than the one a run was started with.

        Parameters
        ----------
        key : str
            `key` as it was; empty where nothing is known of it.

        Raises
        ------
        ProblemError
        """
        if key and key != self.key:
            raise ProblemError([f"{self.path}: was changed after the run was started"])


def read_problem(path: Path | str) -> OwnProblem:
    """Read a problem file and make its model.

    Parameters
    ----------
    path : Path or str
        TOML; the files that it names are found beside it.

    Returns
    -------
    OwnProblem

    Raises
    ------
    ProblemError
        If the file is refused, with one sentence for each thing that is wrong.
    """
    path = Path(path).absolute()
    table = _table(path)
    wrong = _contradictions(table)
    if wrong:
        raise ProblemError([f"{path}: {sentence}" for sentence in wrong])
    try:
        parameters = tuple(_parameter(p) for p in table.parameters)
        objectives = tuple(_objective(o) for o in table.objectives)
        simulate, sources = _model(path.parent, table)
        version = digest(table.version, table.model.model_dump(), source_version(*sources))[:12]
        problem = Problem(
            name=table.name,
            version=version,
            parameters=parameters,
            objectives=objectives,
            simulate=_scaled(simulate, table),
            multipliers=table.multipliers,
            border=table.border,
            features=tuple(c.name for c in table.columns if c.feature),
        )
    except ProblemError:
        raise
    except OSError as error:
        raise ProblemError([f"{path}: {error.filename}: {error.strerror}"]) from None
    except ValueError as error:
        raise ProblemError([f"{path}: {error}"]) from None
    return OwnProblem(
        path,
        problem,
        {c.name: c.unit for c in table.columns},
        {c.name: (c.lower, c.upper, c.unit) for c in table.columns},
    )


def _table(path: Path) -> ProblemTable:
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
        raise ProblemError([f"{path}: {_one_line(str(error))}, expected TOML"]) from None
    try:
        return ProblemTable.model_validate(_tuples(found))
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
        return f"{where} is {_shown(value)}, {said}"
    if kind == "string_pattern_mismatch":
        return f"{where} is {_shown(value)}, expected letters, digits and underscores"
    if kind == "union_tag_invalid":
        return (
            f"{where}, adapter is {_shown(value['adapter'])}, expected one of {', '.join(ADAPTERS)}"
        )
    message = error["msg"].removeprefix("Input should be ")
    return f"{where} is {_shown(value)}, expected {message}"


def _shown(value: Any) -> str:
    """Value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _one_line(text: str) -> str:
    """First line of a message."""
    return " ".join(text.split())[:200]


def _contradictions(table: ProblemTable) -> list[str]:
    """Everything that is wrong among values of the right types."""
    wrong: list[str] = []
    if table.name.split("-")[0] in TAKEN:
        wrong.append(f"name is {table.name!r}, which is a model of vitolab, expected another")
    if any(m < 1 for m in table.multipliers) or any(b <= a for a, b in pairwise(table.multipliers)):
        wrong.append(
            f"multipliers are {list(table.multipliers)}, expected rising positive whole numbers"
        )
    for p in table.parameters:
        wrong += [f"parameter {p.name!r}: {sentence}" for sentence in _domain(p)]
    for o in table.objectives:
        if not o.tolerance > 0:
            wrong.append(f"objective {o.name!r}: tolerance is {o.tolerance:g}, expected above 0")
        if o.output_unit is not None and conversion(o.output_unit, o.unit) is None:
            wrong.append(
                f"objective {o.name!r}: output_unit is {o.output_unit!r}, expected a unit that "
                f"converts to {o.unit!r}"
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
    return wrong


def _parameter(p: ParameterTable) -> Parameter:
    """Parameter of an entry; by default the middle, and five hundred steps across."""
    middle = math.sqrt(p.lower * p.upper) if p.scale == "log" else (p.lower + p.upper) / 2.0
    return Parameter(
        p.name,
        p.label or p.name,
        p.unit,
        p.lower,
        p.upper,
        middle if p.default is None else p.default,
        (p.upper - p.lower) / 500.0 if p.step is None else p.step,
        p.scale,
    )


def _objective(o: ObjectiveTable) -> Objective:
    """Objective of an entry."""
    return Objective(o.name, o.label or o.name, o.unit, o.tolerance, o.kind)


def _model(folder: Path, table: ProblemTable) -> tuple[Simulate, list[Path]]:
    """Simulator of the file, and the files on which its answers depend."""
    model = table.model
    outputs = tuple(o.output or o.name for o in table.objectives)
    sources = [_found(folder, name, "sources") for name in model.sources]
    if isinstance(model, ProgramTable):
        return _program(folder, table, model, outputs, sources)
    from vitolab.adapters import FileFunction, FunctionModel

    path = _found(folder, model.file, "model, file")
    function: Function
    if isinstance(model, FormatTable):
        outputs = tuple(o.name for o in table.objectives)
        function = _of_format(path, table, model)
        sources += function.sources
    else:
        function = FileFunction(path, model.function)
        _check_defined(path, model.function)
    made = FunctionModel(function, outputs, model.time_limit, model.workers, model.retries)
    return made, list(dict.fromkeys([path, *sources]))


def _of_format(path: Path, table: ProblemTable, model: FormatTable) -> TimeCourse:
    """Make a function of a model in a file of a format."""
    from vitolab import adapters

    of = {"sbml": "SbmlModel", "cellml": "CellmlModel", "fmu": "FmuModel"}[model.adapter]
    more = {"trusted": True} if model.trusted else {}
    made: TimeCourse = getattr(adapters, of)(
        path,
        tuple(p.target or p.name for p in table.parameters),
        {o.name: (o.output or o.name, o.feature or "final") for o in table.objectives},
        model.duration,
        model.points,
        model.skip,
        {c.name: c.target or c.name for c in table.columns},
        **more,
    )
    return made


def _program(
    folder: Path,
    table: ProblemTable,
    model: ProgramTable,
    outputs: tuple[str, ...],
    sources: list[Path],
) -> tuple[Simulate, list[Path]]:
    """Simulator that is an external program."""
    from vitolab.adapters import FileFunction, ProgramModel

    # what lies beside the file is named as from there, though each call has a folder of its own
    beside = [part for part in model.command if part and (folder / part).is_file()]
    command = tuple(
        str((folder / part).absolute()) if part in beside else part for part in model.command
    )
    sources = [*(folder / part for part in beside), *sources]
    functions: dict[str, Callable[..., Any]] = {}
    for what in ("write", "read"):
        name = getattr(model, what)
        if name is None:
            continue
        if model.file is None:
            raise ValueError(f"model, {what} is {name!r}, expected a file that defines it")
        path = _found(folder, model.file, "model, file")
        _check_defined(path, name)
        functions[what] = FileFunction(path, name)
        sources.append(path)
    made = ProgramModel(
        command,
        tuple(p.name for p in table.parameters),
        outputs,
        input=model.input,
        output=model.output,
        time_limit=model.time_limit,
        memory_limit=model.memory_limit,
        n_workers=model.workers,
        retries=model.retries,
        folder=folder / model.keep,
        **functions,
    )
    return made, sources


def _found(folder: Path, name: str, what: str) -> Path:
    """Path of a file that the problem file names."""
    path = folder / name
    if "\0" in name or not path.is_file():
        raise ValueError(f"{what} is {_shown(name)}, expected a file beside the problem file")
    return path.absolute()


def _check_defined(path: Path, name: str) -> None:
    """Refuse a name that a Python file does not define at its top level, without running it."""
    try:
        module = ast.parse(path.read_bytes(), filename=path.name)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise ValueError(f"{path.name}{line}: {_one_line(str(error))}, expected Python") from None
    names: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name) for alias in statement.names}
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names |= {
                node.id for t in targets for node in ast.walk(t) if isinstance(node, ast.Name)
            }
    if name not in names:
        known = ", ".join(sorted(names)) or "some function"
        raise ValueError(f"model: {path.name} defines no {name!r}, expected one of {known}")


def _scaled(simulate: Simulate, table: ProblemTable) -> Simulate:
    """Convert outputs to the units of the objectives, where they differ."""
    units = [(o.unit if o.output_unit is None else o.output_unit, o.unit) for o in table.objectives]
    factors = tuple(conversion(*pair) or 1.0 for pair in units)
    return simulate if set(factors) == {1.0} else Scaled(simulate, factors)


@dataclass(frozen=True)
class Scaled:
    """A batched model whose outputs are in other units.

    Attributes
    ----------
    simulate : callable
    factors : tuple of float
        By which outputs are multiplied.
    """

    simulate: Simulate
    factors: tuple[float, ...]

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model, shape (n, n_objectives)."""
        y: FloatArray = self.simulate(x, patient) * np.array(self.factors)
        return y

    @property
    def own_processes(self) -> bool:
        """Whether the model runs in processes of its own."""
        return bool(getattr(self.simulate, "own_processes", False))
