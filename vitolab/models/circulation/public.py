"""Whole-body circulation: the model as a problem, and a synthetic heart-failure cohort."""

from __future__ import annotations

from vitolab.models.circulation.frozen import cohort, measured_curves
from vitolab.models.circulation.inputs import heart_rate
from vitolab.models.circulation.model import Numerics, Runs, curves, problem, run
from vitolab.models.circulation.parameters import OBJECTIVES, PARAMETERS, SETUPS
from vitolab.models.frozen import Cohort

__all__ = [
    "OBJECTIVES",
    "PARAMETERS",
    "SETUPS",
    "Cohort",
    "Numerics",
    "Runs",
    "cohort",
    "curves",
    "heart_rate",
    "measured_curves",
    "problem",
    "run",
]
