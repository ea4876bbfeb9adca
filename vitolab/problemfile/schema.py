"""What a problem file may hold: its tables, each value with its type."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_WORD = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
_TITLE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

Word = Annotated[str, Field(pattern=f"^{_WORD}$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f<>]*$")]


class _Table(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ParameterTable(_Table):
    """``[[parameters]]``: see `vitolab.problem.Parameter`; ``target`` is its name in a format.

    A parameter on a log scale is explored uniformly between its bounds, as any other: of 1e-5 to
    1e5 nearly all is the upper decade. For many decades, take the logarithm as the parameter.
    """

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
