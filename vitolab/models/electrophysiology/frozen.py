"""The synthetic cohort, frozen: measurements and personalised anatomies, no truth.

83 synthetic patients, made by `vitolab.models.electrophysiology.generate` with a richer model than
the one that is personalised; results on them are not comparable to the paper's success rates.

Not every patient need have a solution: `vitolab.models.electrophysiology.is_solvable` tells for
whom a grid over the domain holds one.
"""

from __future__ import annotations

from pathlib import Path

from vitolab.models.electrophysiology.hearts import NUMBERS
from vitolab.models.frozen import Cohort, read_checked
from vitolab.problem import Patient

CHECKSUM = "96285f2aaacc01f307baa0f845788615b647ed9fdf08e883758b2fb1fdb1d69b"


def cohort() -> Cohort:
    """Load the patients E01 to E83, 75 of them for evaluation.

    Each has ``qrs_duration`` (ms) and ``electrical_axis`` (degrees), and in its data the anatomy as
    segmented and registered.

    Raises
    ------
    ValueError
        If the file was changed.
    """
    patients: dict[str, list[Patient]] = {"scouting": [], "evaluation": []}
    for row in read_checked(Path(__file__).with_name("cohort.csv"), CHECKSUM):
        measurements = {name: float(row[name]) for name in ("qrs_duration", "electrical_axis")}
        data = {"anatomy": row["anatomy"], **{name: float(row[name]) for name in NUMBERS}}
        patients[row["split"]].append(Patient(row["patient"], measurements, data))
    return Cohort(**patients)
