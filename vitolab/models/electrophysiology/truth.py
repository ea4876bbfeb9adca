"""What the synthetic patients are made of, for figures; nothing that personalises imports this.

Their speeds are those of a richer model: the personalised model at the true speeds does not meet
the measurements in general, so recovering them is no measure of success.
"""

from __future__ import annotations

from pathlib import Path

from vitolab.models.electrophysiology.model import PARAMETERS
from vitolab.models.frozen import read_checked

CHECKSUM = "e14819e88bb55518288e5769e3e75d6fadd1c513c9a058bd75e6dc4600de367f"


def rows() -> list[dict[str, str]]:
    """Everything that is known, as written."""
    return read_checked(Path(__file__).with_name("truth.csv"), CHECKSUM)


def truth() -> dict[str, dict[str, float]]:
    """True speeds, by patient and parameter, mm/s.

    Raises
    ------
    ValueError
        If the file was changed.
    """
    return {row["patient"]: {p.name: float(row[p.name]) for p in PARAMETERS} for row in rows()}


def groups() -> dict[str, str]:
    """Group of each patient, with a fascicular block where there is one, e.g. ``dcm, anterior``."""
    return {
        row["patient"]: row["group"] + ("" if row["block"] == "none" else f", {row['block']}")
        for row in rows()
    }
