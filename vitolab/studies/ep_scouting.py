"""Electrophysiology: how many states (section 3.2.2)."""

from __future__ import annotations

from vitolab.studies import shared
from vitolab.studies.base import EP, Study, choices

STUDY = Study(
    name="ep-scouting",
    notebook="ep_scouting.ipynb",
    title="Electrophysiology: how many states (section 3.2.2)",
    profiles={
        "quick": {
            "lead_fields": ["bem"],
            "mode": "table",
            "n_states": [10, 50, 120, 300],
            "n_samples": 300,
            "n_repeats": 1,
            "max_runs": EP["max_runs"],
        },
        "standard": {
            "lead_fields": ["bem"],
            "mode": "table",
            "n_states": [10, 20, 35, 50, 75, 100, 120, 150, 200, 300, 400, 500],
            "n_samples": 10_000,
            "n_repeats": 3,
            "max_runs": EP["max_runs"],
        },
        "paper": {
            "lead_fields": ["bem"],
            "mode": "exact",
            "n_states": list(range(10, 501, 10)),
            "n_samples": 10_000,
            "n_repeats": 5,
            "max_runs": EP["max_runs"],
        },
    },
    duration={"quick": "a minute", "standard": "15 minutes", "paper": "about two hours"},
    sections=shared.SCOUTING,
    choices=choices("lead_fields", "mode"),
    traces=True,
    tiny={"n_states": [10, 20], "n_samples": 20, "max_runs": 20},
)
