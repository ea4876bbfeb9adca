"""A study of a notebook of four cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from vitolab.studies import (
    Study,
)

GIVEN = """seed: int = 0
n_jobs: int = 2
results: str = "results"
run_folder: str = ""
"""
PARAMETERS = """n: int = 3
sizes: dict[str, list[int]] = {
    "a": [1, 2],  # "#" and "=" within
}
share: float = 0.5
names: list[str] | None = None
plain = ["x"]
"""


def study(
    folder: Path, *cells: str, parameters: str = GIVEN + PARAMETERS, profile: Any = None
) -> Study:
    """Study of a small notebook, stored without outputs and kernel, as ours are."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "t.ipynb"
    tagged = new_code_cell(parameters, metadata={"tags": ["parameters"]})
    code = [new_code_cell(cell) for cell in cells]
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Try"), tagged, *code]), path)
    return Study("try", str(path), "Try", {"quick": profile or {}}, {"quick": "a second"})
