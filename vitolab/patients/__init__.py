"""A user's own patients: a CSV file, its units, and what looks like a missing value."""

from vitolab.patients.cells import InputError, headed
from vitolab.patients.reading import PatientTable, read_patients
from vitolab.patients.template import template

__all__ = [
    "InputError",
    "PatientTable",
    "headed",
    "read_patients",
    "template",
]
