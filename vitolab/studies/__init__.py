"""The studies, each in a file of its own, and `run`, which runs one.

A new study is a file here with its ``STUDY``, its notebook, and a place in `STUDIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitolab.studies import (
    continuous_convergence,
    ep_convergence,
    ep_initialization,
    ep_personalization,
    ep_scouting,
    from_nothing,
    hindsight,
    npe,
    other_models,
    prediction,
    problem,
    rosenbrock_grid,
    shared,
    stability,
    tour,
    uncertainty,
    wbc_12p,
    wbc_convergence,
    wbc_fit,
    wbc_scouting,
)
from vitolab.studies.base import GIVEN, Section, Study
from vitolab.studies.checking import checked_parameters
from vitolab.studies.running import run

__all__ = [
    "GIVEN",
    "OWN",
    "STUDIES",
    "Section",
    "Study",
    "checked_parameters",
    "find_study",
    "profile_of",
    "run",
    "sections_of",
]

#: All studies, in the order of every list.
STUDIES: tuple[Study, ...] = (
    tour.STUDY,
    rosenbrock_grid.STUDY,
    wbc_scouting.STUDY,
    wbc_convergence.STUDY,
    wbc_fit.STUDY,
    ep_scouting.STUDY,
    ep_personalization.STUDY,
    ep_initialization.STUDY,
    ep_convergence.STUDY,
    continuous_convergence.STUDY,
    npe.STUDY,
    hindsight.STUDY,
    wbc_12p.STUDY,
    from_nothing.STUDY,
    other_models.STUDY,
    uncertainty.STUDY,
    stability.STUDY,
    prediction.STUDY,
    problem.STUDY,
)
#: The study of a model and patients of the user's own.
OWN = problem.STUDY


def find_study(name: str) -> Study:
    """Study of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    known = {study.name: study for study in STUDIES}
    if name not in known:
        raise ValueError(f"there is no study {name!r}, expected one of {', '.join(known)}")
    return known[name]


def profile_of(study: str, parameters: Mapping[str, Any]) -> str:
    """Name of the profile whose parameters these are; empty if they are of none.

    Parameters
    ----------
    study : str
        Name of the study; no profile of any other is known.
    parameters : mapping of str to JSON value
    """
    for known in STUDIES:
        if known.name == study:
            for name, values in known.profiles.items():
                if values and all(parameters.get(k, None) == v for k, v in values.items()):
                    return name
    return ""


def sections_of(name: str) -> tuple[Section, ...]:
    """Sections of a study; for a name that is no study, those that any run can show."""
    known = {study.name: study.sections for study in STUDIES}
    return known.get(name, (shared.METHODS, shared.PATIENTS))
