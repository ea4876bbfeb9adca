"""Packages of models that load when they are first used: their facts are read without numba."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
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
    if not name.startswith("__"):
        if find_spec(f"{package}.{name}") is not None:  # a module, which may not need the others
            return import_module(f"{package}.{name}")
        public = import_module(f"{package}.{home}")
        if hasattr(public, name):
            value = getattr(public, name)
            setattr(sys.modules[package], name, value)  # found there from now on
            return value
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def listed(package: str, home: str) -> list[str]:
    """Public names of a package, loaded or not."""
    public = import_module(f"{package}.{home}")
    return sorted({*getattr(public, "__all__", ()), "MODEL"})
