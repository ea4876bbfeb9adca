"""The Rosenbrock family: functions with a known minimum, and patients who are values of α."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vitolab.models.lazy import listed, loaded
from vitolab.models.rosenbrock.about import MODEL as MODEL

if TYPE_CHECKING:
    from vitolab.models.rosenbrock.model import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Load the model when it is first used (PEP 562)."""
    return loaded(__name__, "model", name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return listed(__name__, "model")
