"""A problem of one's own: what a file describes, as a `Problem`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from vitolab.files import digest, source_version
from vitolab.models.description import Range
from vitolab.problem import Objective, Parameter, Problem
from vitolab.problemfile.reading import ProblemError, contradictions, read_table
from vitolab.problemfile.schema import ObjectiveTable, ParameterTable, ProblemTable
from vitolab.problemfile.simulators import scaled, simulator

#: What runs a model in a format.
LIBRARIES = {"sbml": "libroadrunner", "cellml": "myokit", "fmu": "fmpy"}
ADAPTERS_FOLDER = Path(__file__).parents[1] / "adapters"


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
    settings : mapping of str to JSON value
        The simulator, and where outputs come from and parameters go to.
    """

    path: Path
    problem: Problem
    data: Mapping[str, str]
    ranges: Mapping[str, Range]
    settings: Mapping[str, Any]

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
            "model": dict(self.settings),
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
    table = read_table(path)
    wrong = contradictions(table)
    if wrong:
        raise ProblemError([f"{path}: {sentence}" for sentence in wrong])
    try:
        parameters = tuple(_parameter(p) for p in table.parameters)
        objectives = tuple(_objective(o) for o in table.objectives)
        simulate, sources = simulator(path.parent, table)
        settings = _settings(table) | {
            "files": {os.path.relpath(file, path.parent): known for file, known in sources.items()}
        }
        version = digest(
            table.version,
            settings,
            [(p.name, p.unit) for p in table.parameters],
            [(o.name, o.unit) for o in table.objectives],
            source_version(*sorted(ADAPTERS_FOLDER.glob("*.py"))),
            _library(table.model.adapter),
        )[:12]
        problem = Problem(
            name=table.name,
            version=version,
            parameters=parameters,
            objectives=objectives,
            simulate=scaled(simulate, table),
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
        settings,
    )


def _settings(table: ProblemTable) -> dict[str, Any]:
    """Everything in the file on which the answers of the model depend, as JSON."""
    # how many at once, and where failed calls are kept, changes none
    simulator = table.model.model_dump(mode="json", exclude={"workers", "keep"})
    return {
        **simulator,
        "targets": {
            **{p.name: p.target for p in table.parameters if p.target},
            **{c.name: c.target for c in table.columns if c.target},
        },
        "outputs": {
            o.name: [o.output or o.name, o.feature, o.output_unit] for o in table.objectives
        },
    }


def _library(adapter: str) -> str:
    """Version of the library that runs a format; empty where there is none."""
    if adapter not in LIBRARIES:
        return ""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(LIBRARIES[adapter])
    return ""


def _parameter(p: ParameterTable) -> Parameter:
    """Parameter of an entry; by default the middle, and five hundred steps across."""
    middle = math.sqrt(p.lower * p.upper) if p.scale == "log" else (p.lower + p.upper) / 2.0
    if not p.lower <= middle <= p.upper:  # the product or sum is beyond floating point
        halves = p.lower / 2.0 + p.upper / 2.0
        middle = math.sqrt(p.lower) * math.sqrt(p.upper) if p.scale == "log" else halves
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
