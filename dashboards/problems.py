"""Problems as pages see them: of the program, or as a run stored them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from vitolab.problem import Objective, Parameter
from vitolab.records import ObjectiveRecord, ParameterRecord


class AnyProblem(Protocol):
    """What `vitolab.problem.Problem` and `vitolab.records.ProblemRecord` have in common."""

    @property
    def name(self) -> str:
        """Name, the setup at its end."""

    @property
    def version(self) -> str:
        """Version of the model."""

    @property
    def border(self) -> Literal["clip", "reject", "free"]:
        """What happens at the borders of the domain."""

    @property
    def multipliers(self) -> tuple[int, ...]:
        """Multiples of the steps that actions take."""

    @property
    def parameters(self) -> Sequence[Parameter | ParameterRecord]:
        """Free parameters."""

    @property
    def objectives(self) -> Sequence[Objective | ObjectiveRecord]:
        """Objectives."""
