"""The simulator that a problem file describes, and the files on which its answers depend."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitolab.patients.units import conversion
from vitolab.problem import FloatArray, Patient, Simulate
from vitolab.problemfile.reading import one_line, shown
from vitolab.problemfile.schema import FormatTable, ProblemTable, ProgramTable
from vitolab.running import Answers, asked

if TYPE_CHECKING:
    from vitolab.adapters.rows import Function
    from vitolab.adapters.timecourse import TimeCourse


def simulator(folder: Path, table: ProblemTable) -> tuple[Simulate, dict[Path, str]]:
    """Simulator of the file, and short hashes of the files on which its answers depend."""
    model = table.model
    outputs = tuple(o.output or o.name for o in table.objectives)
    sources = [_found(folder, name, "sources") for name in model.sources]
    if isinstance(model, ProgramTable):
        return _program(folder, table, model, outputs, sources)
    from vitolab.adapters import FileFunction, FunctionModel, KnownFiles

    path = _found(folder, model.file, "model, file")
    function: Function
    if isinstance(model, FormatTable):
        files = KnownFiles.of([path, *sources])  # before the file is read by its library
        outputs = tuple(o.name for o in table.objectives)
        function = _of_format(path, table, model)
        code: dict[Path, str] = {}
    else:
        _check_defined(path, model.function)
        files = KnownFiles.of(sources)
        function = FileFunction(path, model.function, folder, tuple(sources))
        code = function.sources
    made = FunctionModel(function, outputs, model.time_limit, model.workers, model.retries, files)
    return made, {**files.contents, **code}


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
) -> tuple[Simulate, dict[Path, str]]:
    """Simulator that is an external program."""
    from vitolab.adapters import FileFunction, KnownFiles, ProgramModel

    # what lies beside the file is named as from there, though each call has a folder of its own
    beside = [part for part in model.command if part and (folder / part).is_file()]
    command = tuple(
        str((folder / part).absolute()) if part in beside else part for part in model.command
    )
    files = KnownFiles.of([*((folder / part).absolute() for part in beside), *sources])
    code: dict[Path, str] = {}
    functions: dict[str, Callable[..., Any]] = {}
    for what in ("write", "read"):
        name = getattr(model, what)
        if name is None:
            continue
        if model.file is None:
            raise ValueError(f"model, {what} is {name!r}, expected a file that defines it")
        path = _found(folder, model.file, "model, file")
        _check_defined(path, name)
        function = FileFunction(path, name, folder, tuple(sources))
        functions[what] = function
        code |= function.sources
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
        files=files,
        **functions,
    )
    return made, {**files.contents, **code}


def _found(folder: Path, name: str, what: str) -> Path:
    """Path of a file that the problem file names."""
    path = folder / name
    if "\0" in name or not path.is_file():
        raise ValueError(f"{what} is {shown(name)}, expected a file beside the problem file")
    return path.absolute()


def _check_defined(path: Path, name: str) -> None:
    """Refuse a name that a Python file does not define at its top level, without running it."""
    try:
        module = ast.parse(path.read_bytes(), filename=path.name)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise ValueError(f"{path.name}{line}: {one_line(str(error))}, expected Python") from None
    names: set[str] = set()
    functions: list[str] = []
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
            functions.append(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name) for alias in statement.names}
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names |= {
                node.id for t in targets for node in ast.walk(t) if isinstance(node, ast.Name)
            }
    if name not in names:
        known = ", ".join(sorted(set(functions)))
        expected = f"one of {known}" if known else "a function of this name"
        raise ValueError(f"model: {path.name} defines no {name!r}, expected {expected}")


def scaled(simulate: Simulate, table: ProblemTable) -> Simulate:
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
        return self.answers(x, patient).y

    def answers(self, x: FloatArray, patient: Patient) -> Answers:
        """Run the model, with its reasons."""
        found = asked(self.simulate, x, patient)
        return Answers(found.y * np.array(self.factors), found.reasons)

    @property
    def own_processes(self) -> bool:
        """Whether the model runs in processes of its own."""
        return bool(getattr(self.simulate, "own_processes", False))
