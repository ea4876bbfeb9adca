"""Files of patients for a problem of three volumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitolab import patients
from vitolab.catalogue import CIRCULATION
from vitolab.patients import PatientTable
from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem

HEADER = "patient,heart_rate [1/min],lv_edv [mL],lv_esv [mL],aortic_mean [mmHg]"
GOOD = "P1,72,180,110,95"


def answer(x: FloatArray, patient: Patient) -> FloatArray:
    """Outputs that rise with the parameters and fall with the heart rate."""
    return np.array([180.0, 110.0, 95.0]) + 10 * x - 0.1 * patient.data["heart_rate"]


PROBLEM = Problem(
    name="volumes",
    version="1",
    parameters=tuple(Parameter(name, name, "", 0.0, 1.0, 0.5, 0.01) for name in "abc"),
    objectives=(
        Objective("lv_edv", "end-diastolic volume", "mL", 20.0),
        Objective("lv_esv", "end-systolic volume", "mL", 20.0),
        Objective("aortic_mean", "mean pressure", "mmHg", 10.0),
    ),
    simulate=answer,
)


def read_patients(path: Path, problem: Problem, **options: Any) -> PatientTable:
    """Read what the circulation model needs, within its limits."""
    facts = {"data": CIRCULATION.data, "ranges": CIRCULATION.ranges, "rising": CIRCULATION.rising}
    return patients.read_patients(path, problem, **{**facts, **options})


def template(problem: Problem) -> str:
    """Template with what the circulation model needs."""
    facts = {"data": CIRCULATION.data, "ranges": CIRCULATION.ranges}
    return patients.template(problem, **facts, examples=CIRCULATION.examples)


@pytest.fixture
def write(tmp_path: Path):
    """Put text or bytes into a file."""

    def put(content: str | bytes) -> Path:
        path = tmp_path / "clinic.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put
