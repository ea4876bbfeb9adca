"""A file to start from: the header that a problem needs, and two example patients."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from vitolab.models.description import Range
from vitolab.patients.cells import headed
from vitolab.problem import Patient, Problem


def template(
    problem: Problem,
    *,
    data: Mapping[str, str] = MappingProxyType({}),
    texts: Mapping[str, str] = MappingProxyType({}),
    ranges: Mapping[str, Range] = MappingProxyType({}),
    examples: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> str:
    """CSV text with the header of a problem and two example patients.

    The examples are what the model itself answers at its default parameters, and ten steps
    beside them, rounded to four digits.

    Parameters
    ----------
    problem : Problem
    data : mapping of str to str
        Name and unit of the numbers that the model needs to know of each patient.
    texts : mapping of str to str
        Name of the texts that the model needs to know, and an example.
    ranges : mapping of str to (lower, upper, unit)
        Limits by name of quantity, within which examples lie.
    examples : mapping of str to sequence of float
        Numbers of `data` for the two example patients, where others than a third and two thirds
        of the way through their range are better examples.

    Returns
    -------
    str
    """
    units = {**data, **{o.name: o.unit for o in problem.objectives}}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["patient", *(headed(name, unit) for name, unit in units.items()), *texts])
    start = problem.default[np.newaxis]
    for i in range(2):
        told = {
            name: examples[name][i] if name in examples else _example(name, i, ranges)
            for name in data
        }
        x = np.clip(start + 10 * i * problem.step, problem.lower, problem.upper)
        y = problem.simulate(x, Patient("example", {}, {**texts, **told}))[0]
        numbers = [f"{value:.4g}" for value in (*told.values(), *y.tolist())]
        writer.writerow([f"example {i + 1}", *numbers, *texts.values()])
    return text.getvalue()


def _example(name: str, i: int, ranges: Mapping[str, Range]) -> float:
    """Value of an example patient: a third or two of the way through its range."""
    low, high, _ = ranges.get(name, (-math.inf, math.inf, ""))
    if math.isinf(high):
        return 1.0 + i if math.isinf(low) else low + 1.0 + i
    return high - 1.0 - i if math.isinf(low) else low + (high - low) * (i + 1) / 3.0
