"""Problems as runs stored them."""

from __future__ import annotations

from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem
from vitolab.store.records import ProblemRecord


def as_stored(record: ProblemRecord) -> Problem:
    """A problem as it was stored: it is looked at, and cannot simulate.

    Raises
    ------
    ValueError
        If it is none.
    """

    def nothing(x: FloatArray, patient: Patient) -> FloatArray:
        raise ValueError(f"{record.name}: a stored problem is looked at, not run")

    return Problem(
        name=record.name,
        version=record.version,
        parameters=tuple(Parameter(**p.model_dump()) for p in record.parameters),
        objectives=tuple(Objective(**o.model_dump()) for o in record.objectives),
        simulate=nothing,
        multipliers=record.multipliers,
        border=record.border,
    )
