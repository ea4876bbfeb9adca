"""The project as files: what it declares, what it imports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def python(code: str, *, cwd: Path = ROOT, path: Path | None = None) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    env = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported(code: str) -> Iterator[str]:
    """Modules that code imports, wherever in it."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
