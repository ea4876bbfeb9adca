"""Circulation: how many states (section 3.3.2)."""

from __future__ import annotations

from vitolab.studies import shared
from vitolab.studies.base import Study, choices

STUDY = Study(
    name="wbc-scouting",
    notebook="wbc_scouting.ipynb",
    title="Circulation: how many states (section 3.3.2)",
    profiles={
        "quick": {
            "setups": ["2p"],
            "n_states": {"2p": [20, 50, 70, 100]},
            "n_samples": 300,
            "n_repeats": 1,
        },
        "standard": {
            "setups": ["2p", "3p", "5p", "6p"],
            "n_states": {
                "2p": [10, 20, 35, 50, 70, 100, 150, 200],
                "3p": [20, 50, 75, 100, 150, 200, 300, 400],
                "5p": [50, 100, 200, 300, 400, 500, 600, 800],
                "6p": [100, 200, 300, 400, 500, 600, 700, 800],
            },
            "n_samples": 1000,
            "n_repeats": 3,
        },
        "paper": {
            "setups": ["2p", "3p", "5p", "6p"],
            # success and its neighbours alone take 2 n + 1 states
            "n_states": {
                setup: [fewest, 20, 50, 70, 100, 150, 200, 300, 400, 500, 600, 700, 800]
                for setup, fewest in (("2p", 10), ("3p", 10), ("5p", 12), ("6p", 14))
            },
            "n_samples": 10000,
            "n_repeats": 5,
        },
    },
    duration={"quick": "a minute", "standard": "15 minutes", "paper": "about half a day"},
    sections=shared.SCOUTING,
    choices=choices("setups"),
    traces=True,
    tiny={"n_states": {"2p": [10, 20]}, "n_samples": 20},
)
