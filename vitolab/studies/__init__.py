"""The studies: their sizes, and how one is run through its notebook."""

from vitolab.studies.running import GIVEN, checked_parameters, demo, run
from vitolab.studies.sizes import DEMO, OWN, STUDIES, Study, find_study

__all__ = [
    "DEMO",
    "GIVEN",
    "OWN",
    "STUDIES",
    "Study",
    "checked_parameters",
    "demo",
    "find_study",
    "run",
]
