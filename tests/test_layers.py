"""The order of imports is held: every module has its place, and the lowest import nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


def contracts() -> dict[str, dict[str, Any]]:
    """The import contracts by their id."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return {c["id"]: c for c in tomllib.loads(text)["tool"]["importlinter"]["contracts"]}


def named(layer: str) -> set[str]:
    """Modules of a layer."""
    return set(layer.replace("|", ":").replace(" ", "").split(":"))


@pytest.mark.parametrize("package", ["store", "parallel"])
def test_the_order_within_a_package_is_held(package: str) -> None:
    contract = contracts()[f"{package}-layers"]
    assert contract["containers"] == [f"vitolab.{package}"]
    assert contract["exhaustive"]


def test_kernels_import_nothing_of_the_package_but_kernels() -> None:
    """All above the lowest layer is out of their reach, and so is the rest of that layer."""
    whole, lowest = contracts()["layers"]["layers"], contracts()["lowest"]["layers"]
    assert named(whole[-1]) == set.union(*map(named, lowest))
    assert lowest[-1] == "files | kernels"
