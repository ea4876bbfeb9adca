"""What a problem is made of: parameters, objectives and patients, and the arrays of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from vitolab.asked import shown
from vitolab.files import digest
from vitolab.objects import Value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
_Array = TypeVar("_Array", bound=NDArray[Any])
Border = Literal["clip", "reject", "free"]
#: Tolerances beyond which an output is no answer: squares of misfits so large leave nothing of a
#: tolerance in double precision, and whoever learns from them learns nothing.
LARGEST = 2.0**26
#: Tolerances beyond which nothing that is learned from answers lies: their square.
BEYOND = LARGEST**2
#: Steps across a domain that whole numbers in double precision still tell apart.
MOST_STEPS = 2.0**53
#: Multiple of a step that walks of any length add up without an overflow of 64 bits.
LARGEST_MULTIPLIER = 10**9


@dataclass(frozen=True)
class Parameter:
    """One parameter of the model.

    Attributes
    ----------
    name, label, unit : str
        Identifier, text for axes, unit as printed.
    lower, upper, default : float
        Domain and the value used where the parameter is not personalised.
    step : float
        Reference value δ of the actions (section 2.2.2).
    scale : {"linear", "log"}
        Whether the parameter acts by difference or by ratio.

    Raises
    ------
    ValueError
        If the domain is empty or its width overflows, the default lies outside it, or the step is
        not positive or fits into the domain more than `MOST_STEPS` times.

    Examples
    --------
    >>> import vitolab as vl
    >>> resistance = vl.Parameter("r", "resistance", "mmHg s/mL", 0.4, 3.0, 1.0, 0.005)
    >>> resistance.upper
    3.0
    """

    name: str
    label: str
    unit: str
    lower: float
    upper: float
    default: float
    step: float
    scale: Literal["linear", "log"] = "linear"

    def __post_init__(self) -> None:
        if not all(np.isfinite([self.lower, self.upper, self.default, self.step])):
            raise ValueError(
                f"parameter {self.name!r}: lower, upper, default and step are {self.lower}, "
                f"{self.upper}, {self.default} and {self.step}, expected finite numbers"
            )
        if not self.lower < self.upper:
            raise ValueError(
                f"parameter {self.name!r}: lower is {self.lower:g}, expected less than "
                f"upper {self.upper:g}"
            )
        if not np.isfinite(float(self.upper) - float(self.lower)):
            raise ValueError(
                f"parameter {self.name!r}: lower is {self.lower:g} and upper {self.upper:g}, "
                "expected a width below 1.8e308"
            )
        if not self.lower <= self.default <= self.upper:
            raise ValueError(
                f"parameter {self.name!r}: default is {self.default:g}, expected within "
                f"[{self.lower:g}, {self.upper:g}]"
            )
        if self.step <= 0:
            raise ValueError(f"parameter {self.name!r}: step is {self.step:g}, expected above 0")
        if float(self.upper) - float(self.lower) > MOST_STEPS * float(self.step):
            raise ValueError(
                f"parameter {self.name!r}: step is {self.step:g}, expected at most "
                f"{MOST_STEPS:.0e} steps in the domain"
            )
        if self.scale == "log" and self.lower <= 0:
            raise ValueError(
                f"parameter {self.name!r}: lower is {self.lower:g}, expected above 0 on a log scale"
            )


@dataclass(frozen=True)
class Objective:
    """One output of the model that is to match a measurement.

    Attributes
    ----------
    name, label, unit : str
        Identifier, text for axes, unit as printed.
    tolerance : float
        Largest acceptable misfit ψ.
    kind : {"difference", "angle"}
        ``angle`` wraps the misfit to (-180, 180] degrees.

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> import vitolab as vl
    >>> vl.Objective("mean", "mean pressure", "mmHg", tolerance=2.0).kind
    'difference'
    """

    name: str
    label: str
    unit: str
    tolerance: float
    kind: Literal["difference", "angle"] = "difference"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.tolerance) and self.tolerance > 0):
            raise ValueError(
                f"objective {self.name!r}: tolerance is {self.tolerance:g}, expected above 0"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Patient(Value):
    """Measurements of one patient, by objective name, and what the model needs to know of them.

    Attributes
    ----------
    name : str
    measurements : mapping of str to float
        Measured value of each objective, in the objective's unit.
    data : mapping of str to number, text or list of these
        What ``simulate`` needs of the patient (heart rate, anatomy, α).

    Raises
    ------
    ValueError
        If the name is empty or a measurement is not a finite number.

    Examples
    --------
    >>> import vitolab as vl
    >>> vl.Patient("P1", {"mean": 95.0}, data={"heart_rate": 72.0})
    Patient
      name          P1
      measurements  mean: 95
      data          heart_rate: 72
    """

    name: str
    measurements: Mapping[str, float]
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("patient: name is empty, expected text")
        if not isinstance(self.name, str):
            raise ValueError(f"patient: name is {shown(self.name)}, expected text")
        for what in ("measurements", "data"):
            given = getattr(self, what)
            if not isinstance(given, Mapping):
                raise ValueError(
                    f"patient {self.name!r}: {what} is {shown(given)}, expected values by name"
                )
        for key, value in self.measurements.items():
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not (is_number and _is_finite(value)):
                raise ValueError(
                    f"patient {self.name!r}: {key} is {shown(value)}, expected a finite number"
                )
        object.__setattr__(self, "measurements", MappingProxyType(dict(self.measurements)))
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))


def checksum_of(patient: Patient) -> str:
    """Checksum of measurements and data, whatever the name; empty if data are no plain values."""
    try:
        return digest(patient.measurements, patient.data)[:16]
    except (TypeError, ValueError):
        return ""


def _is_finite(value: float) -> bool:
    """Whether a number is finite in double precision, which whole numbers of Python may not be."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


Simulate = Callable[[FloatArray, Patient], FloatArray]
Featuring = Callable[[Patient], FloatArray]


def fixed(values: _Array) -> _Array:
    """Make an array that is shared read-only."""
    values.flags.writeable = False
    return values
