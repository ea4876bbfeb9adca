"""The synthetic cohort, frozen: measurements, and whether a search solved a patient; no truth.

38 synthetic patients, made by `vitolab.models.glucose.generate` with a richer model than the one
that is personalised. No result on them says anything about real patients.
"""

from __future__ import annotations

from pathlib import Path

from vitolab.models.frozen import Cohort, read_checked
from vitolab.models.glucose.model import OBJECTIVES
from vitolab.problem import Patient

CHECKSUM = "ead0004d29dfd64ff2e24e4112bc34cead4a0e50304a2bf646c90ec195e0ee58"


def _rows() -> list[dict[str, str]]:
    """Read the frozen table."""
    return read_checked(Path(__file__).with_name("cohort.csv"), CHECKSUM)


def cohort() -> Cohort:
    """Load the patients G01 to G38, 30 of them for evaluation.

    Each has the nine objectives, and ``glucose_dose`` (g/kg) in its data.

    Raises
    ------
    ValueError
        If the file was changed.
    """
    patients: dict[str, list[Patient]] = {"scouting": [], "evaluation": []}
    for row in _rows():
        measurements = {o.name: float(row[o.name]) for o in OBJECTIVES}
        data = {"glucose_dose": float(row["glucose_dose"])}
        patients[row["split"]].append(Patient(row["patient"], measurements, data))
    return Cohort(**patients)


def solvable() -> dict[str, bool]:
    """Tell by patient whether a search from many starts met all measurements.

    Where it did not, a solution may still exist.

    Raises
    ------
    ValueError
        If the file was changed.
    """
    return {row["patient"]: row["solvable"] == "1" for row in _rows()}
