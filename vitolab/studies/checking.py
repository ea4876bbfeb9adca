"""Parameters of a study, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitolab.studies.base import FILES, GIVEN, Study
from vitolab.studies.notebooks import checked_value, declared_parameters, find_notebook


def checked_parameters(study: Study, profile: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a run, each declared by the notebook and of its type.

    Raises
    ------
    ValueError
        With one sentence that names the parameter, its value and what was expected.
    """
    if profile not in study.profiles:
        raise ValueError(
            f"{study.name}: there is no profile {profile!r}, expected one of "
            f"{', '.join(study.profiles)}"
        )
    declared = declared_parameters(find_notebook(study.notebook))
    for name in GIVEN:
        if name not in declared:
            raise ValueError(f"{study.name}: {study.notebook} does not declare {name!r}")
        if name in overrides:
            raise ValueError(f"{study.name}: {name!r} is not set as a parameter, use its option")
    own = {name: known for name, known in declared.items() if name not in GIVEN}
    parameters = {name: default for name, (_, default) in own.items()}
    for name, value in {**study.profiles[profile], **overrides}.items():
        if name not in own:
            expected = f"expected one of {', '.join(own)}" if own else "it has none"
            raise ValueError(f"{study.name}: there is no parameter {name!r}, {expected}")
        parameters[name] = checked_value(f"{study.name}: {name}", value, own[name][0])
        _check_counts(f"{study.name}: {name}", parameters[name], study.least.get(name, 1))
    parameters |= study.check(parameters)
    _check_choices(study, parameters)
    for name in FILES:
        if parameters.get(name):
            file = Path(parameters[name]).absolute()  # a notebook runs in another folder
            if not file.is_file():
                raise ValueError(f"{study.name}: {name} is {file}, expected a file that exists")
            parameters[name] = str(file)
            if study.read is not None:
                study.read(file)
    return parameters


def _check_counts(what: str, value: Any, least: int) -> None:
    """Refuse too small a number and an empty list: numbers of studies are counts and shares."""
    if isinstance(value, Mapping | list):
        if not value:
            raise ValueError(f"{what} is empty, expected at least one value")
        for item in value.values() if isinstance(value, Mapping) else value:
            _check_counts(what, item, least)
    elif isinstance(value, float) and value <= 0:
        raise ValueError(f"{what} holds {value:g}, expected above 0")
    elif isinstance(value, int) and not isinstance(value, bool) and value < least:
        raise ValueError(f"{what} holds {value}, expected at least {least}")


def _check_choices(study: Study, parameters: Mapping[str, Any]) -> None:
    """Refuse what is none of the choices, and sizes that lack what was chosen."""
    for name, known in study.choices.items():
        value = parameters[name]
        if isinstance(value, list) and len(set(value)) < len(value):
            raise ValueError(f"{study.name}: {name} is {value}, expected each once")
        for item in value if isinstance(value, list) else [value]:
            if item not in known:
                raise ValueError(
                    f"{study.name}: {name} holds {item!r}, expected one of {', '.join(known)}"
                )
    for name, most in study.most.items():
        if parameters[name] > most:
            raise ValueError(
                f"{study.name}: {name} holds {parameters[name]}, expected at most {most}, as many "
                "as the cohort has"
            )
    own = ("setups", "lead_fields")
    chosen = [item for name in own if name in study.choices for item in parameters[name]]
    for name in ("n_samples", "n_states"):
        sizes = parameters.get(name)
        missing = [item for item in chosen if isinstance(sizes, Mapping) and item not in sizes]
        if missing:
            raise ValueError(
                f"{study.name}: {name} holds nothing for {missing[0]!r}, expected a size for each "
                f"of {', '.join(chosen)}"
            )
