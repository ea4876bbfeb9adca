"""Names mean one thing, and stand in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from vitolab.methods import PAPER

ROOT = Path(__file__).resolve().parents[1]


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Every module of some folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_the_agent_of_the_paper_is_compared_by_its_constant() -> None:
    """Elsewhere its name is data: a profile of a study, the default of an option."""
    for path, tree in trees("vitolab", "dashboards"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                found = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
                assert PAPER not in found, f"{path}, line {node.lineno}"
