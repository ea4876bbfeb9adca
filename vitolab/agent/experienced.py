"""What is checked of an experience in the file of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.experience import TEXTS
from vitolab.problem import Problem
from vitolab.quantities import BEYOND
from vitolab.saved import check_arrays, check_limits, check_range
from vitolab.walks import ROUNDING


def check_experience(path: Path, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays of a file that are no experience with this problem.

    Raises
    ------
    ValueError
        If an array is missing or of another kind or shape, holds a number beyond all measure or
        a point outside the domain, or a run belongs to no patient.
    """
    n, n_known = (
        len(arrays[name]) if name in arrays and arrays[name].ndim else None
        for name in ("u", "known")
    )
    check_arrays(
        path,
        arrays,
        {
            "u": ("f", (n, problem.n_parameters)),
            "y": ("f", (n, problem.n_objectives)),
            "patient": ("i", (n,)),
            "known": ("f", (n_known, len(problem.features))),
        },
        may_fail=("known",),
        optional={"made": ("i", (n_known,)), **dict.fromkeys(TEXTS, ("U", (n_known,)))},
    )
    # where walks may leave the domain, runs lie outside it
    beyond = BEYOND if problem.border == "free" else ROUNDING
    check_limits(path, "u", arrays["u"], -beyond, 1.0 + beyond)
    check_limits(path, "y", arrays["y"], -BEYOND, BEYOND)
    check_range(path, "patient", arrays["patient"], 0, len(arrays["known"]) - 1)
    if "made" in arrays:
        answered = np.bincount(arrays["patient"], minlength=len(arrays["known"]))
        check_limits(path, "made", arrays["made"], answered, 2**40)
