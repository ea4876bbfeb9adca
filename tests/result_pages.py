"""A store with a run of each kind of study."""

from __future__ import annotations

import dashboard_runs as made
import pytest
from dashboard_runs import listed

KINDS = {
    "convergence": made.convergence,
    "scouting": made.scouting,
    "initialization": made.initialization,
    "personalization": made.personalization,
    "grid": made.grid,
    "fit": made.fit,
    "agents": made.agents,
    "many": lambda root: made.agents(root, "wbc-12p"),
    "uncertainty": made.uncertainty,
    "stability": made.stability,
    "prediction": made.prediction,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of each kind, their identifiers by kind, and what reads them."""
    root = tmp_path_factory.mktemp("kinds")
    ids = {kind: make(root) for kind, make in KINDS.items()}
    return listed(root), ids
