"""The Rosenbrock family, the paper's synthetic experiment (section 3.1).

f(x) = (α − x₁)² + 100 (x₂ − x₁²)² has its minimum at (α, α²), where both terms vanish.
The "patients" are values of α.
"""

from __future__ import annotations

import numpy as np

from vitolab.files import source_version, stream
from vitolab.kernels import rosenbrock as kernels
from vitolab.problem import Border, FloatArray, Objective, Parameter, Patient, Problem

__all__ = ["OBJECTIVES", "PARAMETERS", "cohort", "grid", "optimum", "problem", "values"]

PARAMETERS = (
    Parameter("x1", "x₁", "", -5.0, 5.0, 0.0, 0.01),
    Parameter("x2", "x₂", "", -5.0, 5.0, 0.0, 0.01),
)
OBJECTIVES = (
    Objective("t1", "T₁ = α − x₁", "", 0.05),
    Objective("t2", "T₂ = x₂ − x₁²", "", 0.05),
)


def _signed(x: FloatArray, patient: Patient) -> FloatArray:
    """Both terms with their sign."""
    y: FloatArray = kernels.terms(np.ascontiguousarray(x), float(patient.data["alpha"]))
    return y


def _absolute(x: FloatArray, patient: Patient) -> FloatArray:
    """Both terms without their sign, as the paper prints its objectives."""
    return np.abs(_signed(x, patient))


def values(x: FloatArray, patient: Patient) -> FloatArray:
    """Values of a function of the family.

    Parameters
    ----------
    x : ndarray, shape (n, 2)
    patient : Patient
        With ``alpha`` in its data.

    Returns
    -------
    ndarray, shape (n,)
    """
    f: FloatArray = _signed(x, patient) ** 2 @ np.array([1.0, 100.0])
    return f


def problem(*, extended: bool = False, absolute: bool = False, border: Border = "free") -> Problem:
    """Build the problem of minimising a function of the family.

    Parameters
    ----------
    extended : bool
        Add the actions of ±500 steps (section 3.1.2).
    absolute : bool
        Objectives |T₁|, |T₂| as printed; the state then loses the direction. The default
        keeps the signs, the paper's own c = y − z.
    border : {"free", "clip", "reject"}
        The paper's agent can leave Ω (its largest error is about 110): free by default.
    """
    return Problem(
        name="rosenbrock",
        version=f"1-{'absolute' if absolute else 'signed'}-{source_version(kernels.__file__)}",
        parameters=PARAMETERS,
        objectives=OBJECTIVES,
        simulate=_absolute if absolute else _signed,
        multipliers=(1, 10, 100, 500) if extended else (1, 10, 100),
        border=border,
    )


def cohort(n: int = 100) -> list[Patient]:
    """Draw functions of the family, α uniform in [−2, 2]; the first n of one fixed sequence.

    Parameters
    ----------
    n : int
        The paper uses 100.

    Returns
    -------
    list of Patient
        Data ``alpha``; both measurements are zero.
    """
    alphas = np.round(stream("rosenbrock", "cohort").uniform(-2.0, 2.0, size=n), 6)
    return [
        Patient(f"F{i + 1:03d}", {"t1": 0.0, "t2": 0.0}, {"alpha": float(alpha)})
        for i, alpha in enumerate(alphas)
    ]


def optimum(patient: Patient) -> FloatArray:
    """True minimum (α, α²), shape (2,)."""
    alpha = float(patient.data["alpha"])
    return np.array([alpha, alpha**2])


def grid(n: int = 21) -> FloatArray:
    """Uniform n × n grid of starts over Ω, x₁ varying slowest, shape (n², 2)."""
    axes = [np.linspace(p.lower, p.upper, n) for p in PARAMETERS]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
