"""Glucose, insulin and beta cells: the model as a problem, and a synthetic cohort."""

from __future__ import annotations

from vitolab.models.frozen import Cohort
from vitolab.models.glucose.frozen import cohort, solvable
from vitolab.models.glucose.model import OBJECTIVES, PARAMETERS, course, problem

__all__ = ["OBJECTIVES", "PARAMETERS", "Cohort", "cohort", "course", "problem", "solvable"]
