"""A patient of cardiac electrophysiology, and hearts that are built again."""

from __future__ import annotations

import pytest

from vitolab.problem import Patient


@pytest.fixture(scope="module")
def patient() -> Patient:
    """A coarse normal heart: fast, and good enough for what is claimed of any heart."""
    return Patient(
        "P", {"qrs_duration": 100.0, "electrical_axis": 20.0}, {"anatomy": "normal", "spacing": 5.0}
    )
