"""Electrophysiology: how many training samples (section 3.2.6)."""

from __future__ import annotations

from functools import partial

from vitolab.studies import shared
from vitolab.studies.base import (
    ACTING,
    BOBYQA_AND_PEERS,
    EP,
    N_HEARTS,
    Content,
    StoredRun,
    Study,
    check_acting,
    choices,
)


def _numbers(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots

    rows = stored.personalizations
    tables = (
        ("Beside the paper", plots.ep_table(rows, stored.patients)),
        ("Samples needed", plots.samples_needed(rows, target=49.0)),
        ("Who can be solved at all", plots.solvable_table(rows)),
        ("All numbers", plots.convergence_table(rows)),
    )
    return Content("Results of this run beside those of the paper.", tables=tables)


STUDY = Study(
    name="ep-convergence",
    notebook="ep_convergence.ipynb",
    title="Electrophysiology: how many training samples (section 3.2.6)",
    profiles={
        "quick": {
            **EP,
            "lead_fields": ["bem"],
            "mode": "table",
            "n_patients": 6,
            "n_samples": [10, 100, 1000],
            **ACTING,
            "n_repeats": 1,
            "methods": BOBYQA_AND_PEERS,
            "n_starts": 5,
        },
        "standard": {
            **EP,
            "lead_fields": ["bem"],
            "mode": "table",
            "n_patients": N_HEARTS,
            "n_samples": [10, 30, 100, 300, 1000, 3000, 10_000],
            **ACTING,
            "n_repeats": 3,
            "methods": BOBYQA_AND_PEERS,
            "n_starts": 20,
        },
        "paper": {
            **EP,
            "lead_fields": ["bem"],
            "mode": "exact",
            "n_patients": N_HEARTS,
            "n_samples": [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000],
            **ACTING,
            "n_repeats": 5,
            "methods": BOBYQA_AND_PEERS,
            "n_starts": 100,
        },
    },
    duration={"quick": "a minute", "standard": "20 minutes", "paper": "two days"},
    sections=shared.convergence(
        ("bobyqa-simple", "bobyqa-cascade-stable", "least-squares-multistart"), _numbers
    ),
    choices=choices("lead_fields", "mode", "methods"),
    least={"n_patients": 2},
    most={"n_patients": N_HEARTS},
    check=partial(check_acting, "ep-convergence"),
    traces=True,
    tiny={
        "n_patients": 2,
        "n_samples": [10, 20],
        "max_runs": 20,
        "methods": ["bobyqa-simple", "least-squares-multistart"],
        "n_starts": 2,
    },
)
