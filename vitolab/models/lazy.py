"""Packages of models that load when they are first used: their facts are read without numba."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def loaded(package: str, home: str, name: str) -> Any:
    """Public name of a package (PEP 562), which lives in one of its modules.

    Parameters
    ----------
    package : str
    home : str
        Module of the package that holds its public names.
    name : str

    Raises
    ------
    AttributeError
        If there is no such name.
    """
    missing = AttributeError(f"module {package!r} has no attribute {name!r}")
    if name.startswith("__"):
        raise missing
    public = import_module(f"{package}.{home}")
    if hasattr(public, name):
        return getattr(public, name)
    submodule = sys.modules.get(f"{package}.{name}")
    if submodule is None:
        raise missing
    return submodule


def listed(package: str, home: str) -> list[str]:
    """Public names of a package, loaded or not."""
    public = import_module(f"{package}.{home}")
    return sorted({*getattr(public, "__all__", ()), "MODEL"})
