"""Neural posterior estimation beside the agents and opponents that own the same runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitolab.methods import AGENTS, learns_states
from vitolab.studies import shared
from vitolab.studies.base import N_CIRCULATION, Study, choices

_SETUPS = ("2p", "3p", "5p", "6p")
_WITHOUT_STATES = tuple(name for name in AGENTS if not learns_states(name))
_AGENTS: Mapping[str, Any] = {
    "agents": ["vito-continuous", "least-squares-nearest", "gp-emulator", "npe"],
    "episode": 1,
    "n_repeats": 1,
    "methods": ["least-squares-multistart"],
}

STUDY = Study(
    name="npe",
    notebook="npe.ipynb",
    title="Neural posterior estimation beside methods that own the same runs",
    profiles={
        "quick": {
            **_AGENTS,
            "setups": ["2p", "6p"],
            "n_patients": 5,
            "n_samples": {"2p": [2, 10, 100], "6p": [2, 10, 100]},
            "n_starts": 3,
        },
        "standard": {
            **_AGENTS,
            "setups": list(_SETUPS),
            "n_patients": N_CIRCULATION,
            "n_samples": {setup: [2, 10, 100] for setup in _SETUPS},
            "n_starts": 5,
        },
        "paper": {
            **_AGENTS,
            "setups": list(_SETUPS),
            "n_patients": N_CIRCULATION,
            "n_samples": {setup: [2, 10, 100, 1000] for setup in _SETUPS},
            "n_repeats": 5,
            "n_starts": 100,
        },
    },
    duration={"quick": "three minutes", "standard": "some hours", "paper": "days"},
    sections=shared.EXPERIENCE,
    choices=choices("setups", "methods") | {"agents": _WITHOUT_STATES},
    least={"n_patients": 2},
    most={"n_patients": N_CIRCULATION},
    traces=True,
    tiny={"setups": ["2p"], "n_patients": 3, "n_samples": {"2p": [10]}, "n_starts": 1},
)
