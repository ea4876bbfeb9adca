"""A user's own patients: a CSV file, its units, and what looks like a missing value."""

from vitolab.patients.reading import (
    InputError,
    PatientTable,
    headed,
    read_patients,
    template,
)

__all__ = [
    "InputError",
    "PatientTable",
    "headed",
    "read_patients",
    "template",
]
