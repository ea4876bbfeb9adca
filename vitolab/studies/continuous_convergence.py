"""Agents beside what else would learn from the same walks, and least squares."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from vitolab.methods import HINDSIGHT_REPLAYS
from vitolab.studies import shared
from vitolab.studies.base import (
    ACTING,
    EP_STATES,
    N_CIRCULATION,
    N_HEARTS,
    N_STATES,
    OPPONENTS,
    PEERS,
    Study,
    check_acting,
    choices,
)

_AGENTS: Mapping[str, Any] = {
    **ACTING,
    "n_states": {**N_STATES, **EP_STATES},
    "mode": "table",
    "agents": ["vito", "vito-nearest", "vito-hindsight", "vito-continuous", *OPPONENTS],
    "n_replays": HINDSIGHT_REPLAYS,
    "episode": 1,
    "n_repeats": 1,
}


STUDY = Study(
    name="continuous-convergence",
    notebook="continuous_convergence.ipynb",
    title="What experience adds: agents, opponents that own the same runs, and optimisers",
    profiles={
        "quick": {
            **_AGENTS,
            "setups": ["2p", "6p"],
            "lead_fields": ["bem"],
            "n_patients": 8,
            "n_ep_patients": 6,
            "n_samples": {"2p": [2, 100], "6p": [2, 100], "bem": [2, 30]},
            "methods": ["least-squares-multistart", "least-squares-default"],
            "n_starts": 3,
        },
        "standard": {
            **_AGENTS,
            "setups": ["2p", "3p", "5p", "6p"],
            "lead_fields": ["bem"],
            "n_patients": N_CIRCULATION,
            "n_ep_patients": N_HEARTS,
            "n_samples": {
                "2p": [10, 100, 1000],
                "3p": [10, 100, 1000],
                "5p": [2, 10, 100, 1000],
                "6p": [2, 10, 100, 1000],
                "bem": [2, 10, 100],
            },
            "n_repeats": 3,
            "methods": [*PEERS, "least-squares-default"],
            "n_starts": 5,
        },
        "paper": {
            **_AGENTS,
            "setups": ["2p", "3p", "5p", "6p"],
            "lead_fields": ["bem", "infinite"],
            "mode": "exact",
            "n_patients": N_CIRCULATION,
            "n_ep_patients": N_HEARTS,
            "n_samples": {
                setup: [2, 10, 100, 1000, 10000]
                for setup in ("2p", "3p", "5p", "6p", "bem", "infinite")
            },
            "n_repeats": 5,
            "methods": [*PEERS, "least-squares-default"],
            "n_starts": 100,
        },
    },
    duration={"quick": "two minutes", "standard": "about half a day", "paper": "days"},
    sections=shared.EXPERIENCE,
    choices=choices("setups", "lead_fields", "mode", "agents", "methods"),
    least={"n_patients": 2, "n_ep_patients": 2},
    most={"n_patients": N_CIRCULATION, "n_ep_patients": N_HEARTS},
    check=partial(check_acting, "continuous-convergence"),
    traces=True,
    tiny={
        "setups": ["2p"],
        "n_patients": 3,
        "n_ep_patients": 2,
        "n_samples": {"2p": [10], "bem": [5]},
        "n_starts": 1,
    },
)
