"""Hindsight: what the same walks teach when they count again."""

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
    PEERS,
    Study,
    check_acting,
    choices,
)

_HINDSIGHT: Mapping[str, Any] = {
    **ACTING,
    "n_states": {**N_STATES, "rosenbrock": 100, **EP_STATES},
    "mode": "table",
    "n_replays": HINDSIGHT_REPLAYS,
}

STUDY = Study(
    name="hindsight",
    notebook="hindsight.ipynb",
    title="Hindsight: what the same walks teach when they count again",
    profiles={
        "quick": {
            **_HINDSIGHT,
            "n_functions": 20,
            "setups": ["2p", "6p"],
            "lead_fields": ["bem"],
            "n_patients": 12,
            "n_ep_patients": 6,
            "n_samples": {
                "rosenbrock": [10, 100],
                "2p": [10, 100],
                "6p": [10, 100],
                "bem": [10, 30],
            },
            "n_repeats": 1,
            "methods": ["least-squares-multistart"],
            "n_starts": 3,
        },
        "standard": {
            **_HINDSIGHT,
            "n_functions": 40,
            "setups": ["2p", "3p", "5p", "6p"],
            "lead_fields": ["bem"],
            "n_patients": N_CIRCULATION,
            "n_ep_patients": N_HEARTS,
            "n_samples": {
                "rosenbrock": [10, 100, 1000],
                "2p": [10, 100, 1000],
                "3p": [10, 100, 1000],
                "5p": [10, 100, 1000],
                "6p": [10, 100, 1000],
                "bem": [10, 100, 1000],
            },
            "n_repeats": 3,
            "methods": PEERS,
            "n_starts": 5,
        },
        "paper": {
            **_HINDSIGHT,
            "n_functions": 100,
            "setups": ["2p", "3p", "5p", "6p"],
            "lead_fields": ["bem", "infinite"],
            "mode": "exact",
            "n_patients": N_CIRCULATION,
            "n_ep_patients": N_HEARTS,
            "n_samples": {
                setup: [10, 100, 1000, 10000]
                for setup in ("rosenbrock", "2p", "3p", "5p", "6p", "bem", "infinite")
            },
            "n_repeats": 5,
            "methods": PEERS,
            "n_starts": 100,
        },
    },
    duration={"quick": "two minutes", "standard": "about five hours", "paper": "days"},
    sections=(shared.AGENTS, shared.PAIRED, shared.PATIENTS),
    choices=choices("setups", "lead_fields", "mode", "methods"),
    least={"n_functions": 2, "n_patients": 2, "n_ep_patients": 2},
    most={"n_patients": N_CIRCULATION, "n_ep_patients": N_HEARTS},
    check=partial(check_acting, "hindsight"),
    traces=True,
    tiny={
        "n_functions": 3,
        "setups": ["2p"],
        "n_patients": 3,
        "n_ep_patients": 2,
        "n_samples": {"rosenbrock": [10], "2p": [10], "bem": [5]},
        "n_starts": 1,
    },
)
