"""Training patients that a user's patient is one of, whatever they are called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitolab.files import digest
from vitolab.problem import Patient, Problem


def training_overlap(
    problem: Problem, patient: Patient, train_on: Sequence[Patient]
) -> tuple[str, ...]:
    """Names of the training patients who are, or may be, this patient.

    Parameters
    ----------
    problem : Problem
    patient : Patient
    train_on : sequence of Patient

    Returns
    -------
    tuple of str
        Those with the same name, and those with the same measurements (of this problem) and
        the same data, to 1e-9: a conversion of units may have changed the last digit. Angles are
        the same a whole turn apart.
    """
    z = problem.measured(patient)

    def is_same(other: Patient) -> bool:
        y = problem.measured(other)
        return bool(
            np.all(np.abs(problem.misfit(y, z)) <= 1e-9 * np.maximum(np.abs(y), np.abs(z)))
            and _known(other).keys() == _known(patient).keys()
            and all(_same(value, _known(patient)[name]) for name, value in _known(other).items())
        )

    return tuple(p.name for p in train_on if p.name == patient.name or is_same(p))


def _known(patient: Patient) -> dict[str, Any]:
    """Data of a patient, a mesh by its content whatever its name."""
    content = "mesh_checksum" in patient.data
    return {k: v for k, v in patient.data.items() if not (content and k == "anatomy")}


def _same(a: Any, b: Any) -> bool:
    """Whether two data are the same, numbers to 1e-9."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-9)
    return digest(a) == digest(b)
