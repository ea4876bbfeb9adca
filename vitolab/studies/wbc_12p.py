"""Circulation: more than ten parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from vitolab.catalogue import CIRCULATION
from vitolab.methods import HINDSIGHT_REPLAYS
from vitolab.studies import shared
from vitolab.studies.base import (
    ACTING,
    N_CIRCULATION,
    OPPONENTS,
    PEERS,
    SIMPLEX_AND_PEERS,
    Content,
    Section,
    StoredRun,
    Study,
    check_acting,
    choices,
)

_MANY: Mapping[str, Any] = {
    **ACTING,
    "n_states": dict(CIRCULATION.n_states),
    "n_replays": HINDSIGHT_REPLAYS,
    "episode": 1,
}


def _scaling(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.studies import words

    rows = stored.personalizations
    table = plots.agent_table(rows)
    figure = plots.scaling_curves(rows, shared.problems(stored))
    return Content(words.agents(table), figure, (("All numbers", table),))


STUDY = Study(
    name="wbc-12p",
    notebook="wbc_12p.ipynb",
    title="Circulation: more than ten parameters",
    profiles={
        "quick": {
            **_MANY,
            "setups": ["2p", "6p", "12p"],
            "n_patients": 8,
            "n_samples": {"2p": [100], "6p": [100], "12p": [5, 100]},
            "agents": ["vito", "vito-continuous", "least-squares-nearest"],
            "n_repeats": 1,
            "methods": ["nelder-mead", "least-squares-multistart"],
            "n_starts": 2,
        },
        "standard": {
            **_MANY,
            "setups": ["2p", "3p", "5p", "6p", "9p", "12p"],
            "n_patients": N_CIRCULATION,
            "n_samples": {
                **{setup: [100] for setup in ("2p", "3p", "5p", "6p", "9p")},
                "12p": [5, 100, 1000],
            },
            "agents": ["vito", "vito-hindsight", "vito-continuous", *OPPONENTS],
            "n_repeats": 3,
            "methods": PEERS,
            "n_starts": 3,
        },
        "paper": {
            **_MANY,
            "setups": ["2p", "3p", "5p", "6p", "9p", "12p"],
            "n_patients": N_CIRCULATION,
            "n_samples": {
                setup: [5, 100, 1000, 10000] for setup in ("2p", "3p", "5p", "6p", "9p", "12p")
            },
            "agents": ["vito", "vito-hindsight", "vito-continuous", *OPPONENTS],
            "n_repeats": 5,
            "methods": SIMPLEX_AND_PEERS,
            "n_starts": 100,
        },
    },
    duration={"quick": "two minutes", "standard": "some hours", "paper": "days"},
    sections=(
        Section("scaling", "Number of parameters", _scaling),
        shared.AGENTS,
        shared.PAIRED,
        shared.PATIENTS,
    ),
    choices=choices("setups", "agents", "methods"),
    least={"n_patients": 2},
    most={"n_patients": N_CIRCULATION},
    check=partial(check_acting, "wbc-12p"),
    traces=True,
    tiny={
        "setups": ["2p", "3p"],
        "n_patients": 3,
        "n_samples": {"2p": [10], "3p": [10]},
        "n_starts": 1,
    },
)
