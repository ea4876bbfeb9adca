"""Cardiac electrophysiology: anatomies, the model as a problem, and a synthetic cohort."""

from __future__ import annotations

from vitolab.models.electrophysiology.anatomy import Anatomy
from vitolab.models.electrophysiology.description import mesh_checksum
from vitolab.models.electrophysiology.frozen import cohort
from vitolab.models.electrophysiology.hearts import LEAD_FIELDS, Heart, heart, prepare
from vitolab.models.electrophysiology.importer import load_anatomy, save_anatomy
from vitolab.models.electrophysiology.leadfield import LEADS
from vitolab.models.electrophysiology.mesh import generate as generate_anatomy
from vitolab.models.electrophysiology.model import (
    OBJECTIVES,
    PARAMETERS,
    activation,
    ecg,
    features,
    problem,
)
from vitolab.models.electrophysiology.shapes import PRESETS, Shape
from vitolab.models.electrophysiology.solvability import is_solvable, solvable
from vitolab.models.frozen import Cohort

__all__ = [
    "LEADS",
    "LEAD_FIELDS",
    "OBJECTIVES",
    "PARAMETERS",
    "PRESETS",
    "Anatomy",
    "Cohort",
    "Heart",
    "Shape",
    "activation",
    "cohort",
    "ecg",
    "features",
    "generate_anatomy",
    "heart",
    "is_solvable",
    "load_anatomy",
    "mesh_checksum",
    "prepare",
    "problem",
    "save_anatomy",
    "solvable",
]
