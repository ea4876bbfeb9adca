"""Electrophysiology: full personalisation (section 3.2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitolab.studies import shared
from vitolab.studies.base import N_HEARTS, Part, Section, StoredRun, Study, choices

#: Reference methods.
_METHODS = [
    *("bobyqa-simple", "bobyqa-cascade", "bobyqa-cascade-stable"),
    *("least-squares", "least-squares-multistart"),
]
#: The paper's number of states and largest number of forward runs (sections 3.2.2, 3.2.4).
_EP: Mapping[str, Any] = {"n_states": 120, "max_runs": 100}


def _numbers(stored: StoredRun, repeat: int) -> Part:
    from vitolab import plots

    rows = stored.personalizations
    tables = (
        ("Success, errors and cost, beside the paper's", plots.ep_table(rows, stored.patients)),
        ("Who can be solved at all", plots.solvable_table(rows)),
    )
    return Part("Results of this run beside those of the paper.", tables=tables)


STUDY = Study(
    name="ep-personalization",
    notebook="ep_personalization.ipynb",
    title="Electrophysiology: full personalisation (section 3.2.4)",
    profiles={
        "quick": {
            **_EP,
            "lead_fields": ["bem"],
            "mode": "table",
            "n_patients": 6,
            "n_samples": 1000,
            "n_repeats": 1,
            "methods": _METHODS,
            "n_starts": 3,
        },
        "standard": {
            **_EP,
            "lead_fields": ["bem", "infinite"],
            "mode": "table",
            "n_patients": 75,
            "n_samples": 10_000,
            "n_repeats": 1,
            "methods": _METHODS,
            "n_starts": 20,
        },
        "paper": {
            **_EP,
            "lead_fields": ["bem", "infinite"],
            "mode": "exact",
            "n_patients": 75,
            "n_samples": 100_000,
            "n_repeats": 1,
            "methods": _METHODS,
            "n_starts": 100,
        },
    },
    duration={"quick": "a minute", "standard": "15 minutes", "paper": "most of a day"},
    sections=(shared.METHODS, Section("numbers", "Numbers", _numbers)),
    choices=choices("lead_fields", "mode", "methods"),
    least={"n_patients": 2},
    most={"n_patients": N_HEARTS},
    traces=True,
    policy=True,
    tiny={
        "n_patients": 2,
        "n_samples": 20,
        "max_runs": 20,
        "methods": ["bobyqa-simple", "least-squares"],
        "n_starts": 2,
    },
)
