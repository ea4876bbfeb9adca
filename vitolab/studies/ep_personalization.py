"""Electrophysiology: full personalisation (section 3.2.4)."""

from __future__ import annotations

from functools import partial

from vitolab.studies import shared
from vitolab.studies.base import (
    ACTING,
    BOBYQA_AND_PEERS,
    EP,
    N_HEARTS,
    Content,
    Section,
    StoredRun,
    Study,
    check_acting,
    choices,
)


def _numbers(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots

    rows = stored.personalizations
    tables = (
        ("Success, errors and cost, beside the paper's", plots.ep_table(rows, stored.patients)),
        ("Who can be solved at all", plots.solvable_table(rows)),
    )
    return Content("Results of this run beside those of the paper.", tables=tables)


STUDY = Study(
    name="ep-personalization",
    notebook="ep_personalization.ipynb",
    title="Electrophysiology: full personalisation (section 3.2.4)",
    profiles={
        "quick": {
            **EP,
            "lead_fields": ["bem"],
            "mode": "table",
            "n_patients": 6,
            "n_samples": 1000,
            **ACTING,
            "n_repeats": 1,
            "methods": BOBYQA_AND_PEERS,
            "n_starts": 3,
        },
        "standard": {
            **EP,
            "lead_fields": ["bem", "infinite"],
            "mode": "table",
            "n_patients": N_HEARTS,
            "n_samples": 10_000,
            **ACTING,
            "n_repeats": 3,
            "methods": BOBYQA_AND_PEERS,
            "n_starts": 20,
        },
        "paper": {
            **EP,
            "lead_fields": ["bem", "infinite"],
            "mode": "exact",
            "n_patients": N_HEARTS,
            "n_samples": 100_000,
            **ACTING,
            "n_repeats": 5,
            "methods": BOBYQA_AND_PEERS,
            "n_starts": 100,
        },
    },
    duration={"quick": "a minute", "standard": "20 minutes", "paper": "most of a day"},
    sections=(shared.METHODS, shared.PAIRED, Section("numbers", "Numbers", _numbers)),
    choices=choices("lead_fields", "mode", "methods"),
    least={"n_patients": 2},
    most={"n_patients": N_HEARTS},
    check=partial(check_acting, "ep-personalization"),
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
