"""Glucose, insulin and beta cells: a challenge of two hours, and what becomes of it in a year."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vitolab.models.glucose.about import MODEL as MODEL
from vitolab.models.lazy import listed, loaded

if TYPE_CHECKING:
    from vitolab.models.glucose.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Load the model when it is first used (PEP 562)."""
    return loaded(__name__, "public", name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return listed(__name__, "public")
