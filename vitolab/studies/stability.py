"""How stable: whether a patient who is measured again gets the same answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitolab.studies import shared
from vitolab.studies.base import (
    N_CIRCULATION,
    N_STATES,
    PEERS,
    SIMPLEX_AND_PEERS,
    Content,
    Section,
    StoredRun,
    Study,
    choices,
)

#: The error of a measurement, in tolerances, and what the continuous agent learns from.
_STABLE: Mapping[str, Any] = {"deviation_share": 0.5, "episode": 1, "n_states": N_STATES}


def _spread(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.uncertainty import summary

    rows, problems = stored.personalizations, shared.problems(stored)
    asked = [str(m) for m in stored.parameters.get("methods") or []]
    reference = next((m for m in reversed(asked) if m in set(rows["method"])), None)
    reference = reference or str(rows["method"].iloc[0])
    sentence = (
        "Each patient was measured again and again with new errors: the standard deviation of the "
        "parameters over the solved fits, as a share of the domain. A method that seldom succeeds "
        "has its spread of few patients; the last columns compare it with "
        f"{reference} over what both solved."
    )
    table = summary.stability_table(rows, problems, reference=reference)
    return Content(sentence, plots.stability_spread(rows, problems), (("All numbers", table),))


STUDY = Study(
    name="stability",
    notebook="stability.ipynb",
    title="How stable: measured again, would the answer be the same?",
    profiles={
        "quick": {
            **_STABLE,
            "setups": ["2p", "6p"],
            "n_patients": 4,
            "n_perturbations": 8,
            "n_samples": 100,
            "methods": ["nelder-mead", "least-squares"],
        },
        "standard": {
            **_STABLE,
            "setups": ["2p", "3p", "5p", "6p"],
            "n_patients": N_CIRCULATION,
            "n_perturbations": 20,
            "n_samples": 1000,
            "methods": PEERS,
        },
        "paper": {
            **_STABLE,
            "setups": ["2p", "3p", "5p", "6p"],
            "n_patients": N_CIRCULATION,
            "n_perturbations": 100,
            "n_samples": 10000,
            "methods": SIMPLEX_AND_PEERS,
        },
    },
    duration={"quick": "a minute", "standard": "about an hour", "paper": "about a day"},
    sections=(Section("spread", "Spread", _spread),),
    choices=choices("setups", "methods"),
    least={"n_patients": 2, "n_perturbations": 2},
    most={"n_patients": N_CIRCULATION},
    perturbed=True,
    tiny={"setups": ["2p"], "n_patients": 3, "n_perturbations": 2, "n_samples": 10},
)
