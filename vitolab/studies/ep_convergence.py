"""Electrophysiology: how many training samples (section 3.2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitolab.studies import shared
from vitolab.studies.base import N_HEARTS, Part, StoredRun, Study, choices

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
        ("Beside the paper", plots.ep_table(rows, stored.patients)),
        ("Samples needed", plots.samples_needed(rows, target=49.0)),
        ("Who can be solved at all", plots.solvable_table(rows)),
        ("All numbers", plots.convergence_table(rows)),
    )
    return Part("Results of this run beside those of the paper.", tables=tables)


STUDY = Study(
    name="ep-convergence",
    notebook="ep_convergence.ipynb",
    title="Electrophysiology: how many training samples (section 3.2.6)",
    profiles={
        "quick": {
            **_EP,
            "lead_fields": ["bem"],
            "mode": "table",
            "n_patients": 6,
            "n_samples": [10, 100, 1000],
            "n_repeats": 1,
            "methods": _METHODS,
            "n_starts": 5,
        },
        "standard": {
            **_EP,
            "lead_fields": ["bem"],
            "mode": "table",
            "n_patients": 75,
            "n_samples": [10, 30, 100, 300, 1000, 3000, 10_000],
            "n_repeats": 1,
            "methods": _METHODS,
            "n_starts": 20,
        },
        "paper": {
            **_EP,
            "lead_fields": ["bem"],
            "mode": "exact",
            "n_patients": 75,
            "n_samples": [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000],
            "n_repeats": 5,
            "methods": _METHODS,
            "n_starts": 100,
        },
    },
    duration={"quick": "a minute", "standard": "15 minutes", "paper": "two days"},
    sections=shared.convergence(
        ("bobyqa-simple", "bobyqa-cascade-stable", "least-squares-multistart"), _numbers
    ),
    choices=choices("lead_fields", "mode", "methods"),
    least={"n_patients": 2},
    most={"n_patients": N_HEARTS},
    traces=True,
    tiny={
        "n_patients": 2,
        "n_samples": [10, 20],
        "max_runs": 20,
        "methods": ["bobyqa-simple", "least-squares-multistart"],
        "n_starts": 2,
    },
)
