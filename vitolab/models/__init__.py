"""Built-in problems; each loads when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitolab.models import bolus, circulation, electrophysiology, glucose, rosenbrock

__all__ = ["bolus", "circulation", "electrophysiology", "glucose", "rosenbrock"]


def __getattr__(name: str) -> Any:
    """Load a model when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """List the models, loaded or not."""
    return sorted(__all__)
