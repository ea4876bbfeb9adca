"""Names mean one thing, and stand in one place."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from vitolab.methods import AGENTS, REFERENCES
from vitolab.studies import STUDIES

ROOT = Path(__file__).resolve().parents[1]
NAMES = {*AGENTS, *REFERENCES}
#: The tour is a lesson, which looks up in tables of its own.
NOTEBOOKS = {study.notebook for study in STUDIES} - {"tour.ipynb"}


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """The code of every module of some folders, and of the notebooks of studies."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    for name in sorted(NOTEBOOKS):
        cells = json.loads((ROOT / "notebooks" / name).read_text(encoding="utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        yield f"notebooks/{name}", "\n".join(code)


def switched(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names of methods that are compared, looked up or selected by, with their lines."""
    for node in ast.walk(tree):
        places: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            places = [node]
        elif isinstance(node, ast.Subscript):
            places = [node.slice]
        elif isinstance(node, ast.MatchValue):
            places = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            places = list(node.args) if node.func.attr in ("isin", "get", "eq") else []
        for place in places:
            for found in ast.walk(place):
                if isinstance(found, ast.Constant) and found.value in NAMES:
                    yield found.lineno, str(found.value)


@pytest.mark.parametrize(
    "code",
    [
        "if name == 'vito': pass",
        "rows[rows['method'].isin(['vito', 'vito-hindsight'])]",
        "rate['gp-emulator']",
        "found = known.get((setup, 'nelder-mead'))",
        "match name:\n    case 'vito': pass",
    ],
)
def test_a_switch_is_seen(code: str) -> None:
    assert list(switched(ast.parse(code)))


def test_a_method_is_compared_by_a_constant_or_by_its_row() -> None:
    """Elsewhere its name is data: a profile of a study, the default of an option."""
    for path, code in sources("vitolab", "dashboards"):
        for line, name in switched(ast.parse(code)):
            raise AssertionError(f"{path}, line {line}: {name}")
