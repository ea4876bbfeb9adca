"""A store with a run of a grid."""

from __future__ import annotations

import dashboard_runs as made
import pytest
from dashboard_runs import listed


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run with policies and one without, their identifiers, and what reads them."""
    root = tmp_path_factory.mktemp("kinds")
    ids = {"grid": made.grid(root), "scouting": made.scouting(root)}
    return listed(root), ids
