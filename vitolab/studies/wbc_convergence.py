"""Circulation: how many training samples (section 3.3.4)."""

from __future__ import annotations

from functools import partial

from vitolab.studies import shared
from vitolab.studies.base import (
    ACTING,
    N_CIRCULATION,
    N_STATES,
    SIMPLEX_AND_PEERS,
    Content,
    StoredRun,
    Study,
    check_acting,
    choices,
)


def _numbers(stored: StoredRun, repeat: int) -> Content:
    from vitolab import plots
    from vitolab.plots import paper

    rows = stored.personalizations
    known = set(rows["method"])
    tables = [("Samples needed", plots.samples_needed(rows))]
    for name, claims in ((paper.SIMPLEX, True), ("least-squares-multistart", False)):
        if name in known:
            title = f"Vito beside {plots.method_label(name)}"
            tables.append((title, plots.reference_table(rows, reference=name, claims=claims)))
    if paper.SIMPLEX_PLAIN in known:
        tables.append(("Normalised or plain misfit", plots.weighting_table(rows)))
    tables.append(("Who can be solved at all", plots.solvable_table(rows)))
    tables.append(("All numbers", plots.convergence_table(rows)))
    return Content("Results of this run beside those of the paper.", tables=tuple(tables))


STUDY = Study(
    name="wbc-convergence",
    notebook="wbc_convergence.ipynb",
    title="Circulation: how many training samples (section 3.3.4)",
    profiles={
        "quick": {
            "setups": ["2p", "6p"],
            "n_patients": 12,
            "n_samples": {"2p": [10, 300], "6p": [10, 300]},
            "n_states": N_STATES,
            **ACTING,
            "n_repeats": 1,
            "methods": ["nelder-mead", "least-squares", "least-squares-multistart"],
            "n_starts": 3,
        },
        "standard": {
            "setups": ["2p", "3p", "5p", "6p"],
            "n_patients": N_CIRCULATION,
            "n_samples": {
                "2p": [10, 100, 1000],
                "3p": [10, 100, 1000],
                "5p": [100, 1000, 4000],
                "6p": [100, 1000, 4000],
            },
            "n_states": N_STATES,
            **ACTING,
            "n_repeats": 3,
            "methods": SIMPLEX_AND_PEERS,
            "n_starts": 10,
        },
        "paper": {
            "setups": ["2p", "3p", "5p", "6p"],
            "n_patients": N_CIRCULATION,
            "n_samples": {
                setup: [1, 10, 100, 1000, 10000, 100000] for setup in ("2p", "3p", "5p", "6p")
            },
            "n_states": N_STATES,
            **ACTING,
            "n_repeats": 5,
            "methods": SIMPLEX_AND_PEERS,
            "n_starts": 100,
        },
    },
    duration={"quick": "a minute", "standard": "20 minutes", "paper": "two to three days"},
    sections=shared.convergence(("nelder-mead", "least-squares-multistart"), _numbers),
    choices=choices("setups", "methods"),
    least={"n_patients": 2},
    most={"n_patients": N_CIRCULATION},
    check=partial(check_acting, "wbc-convergence"),
    traces=True,
    policy=True,
    tiny={
        "setups": ["2p"],
        "n_patients": 3,
        "n_samples": {"2p": [10, 20]},
        "methods": ["nelder-mead", "nelder-mead-unweighted", "least-squares-multistart"],
        "n_starts": 2,
    },
)
