"""A user's own patients: a CSV file, its units, and what looks like a missing value."""

from vitolab.patients.reading import (
    DATA,
    RANGES,
    InputError,
    PatientTable,
    Range,
    headed,
    read_patients,
    template,
)

__all__ = [
    "DATA",
    "RANGES",
    "InputError",
    "PatientTable",
    "Range",
    "headed",
    "read_patients",
    "template",
]
