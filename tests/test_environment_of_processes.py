"""Processes are started from threads: each is given a copy of the environment."""

from __future__ import annotations

import ast
from pathlib import Path

import vitolab

STARTS = {"Popen", "run", "call", "check_call", "check_output"}


def test_whatever_starts_a_process_hands_over_an_environment():
    """Else it is read while another thread may change it: the system says "Bad address"."""
    starts = []
    for path in sorted(Path(vitolab.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            of = node.func.value
            if isinstance(of, ast.Name) and of.id == "subprocess" and node.func.attr in STARTS:
                given = "env" in {keyword.arg for keyword in node.keywords}
                starts.append((f"{path.name}:{node.lineno}", given))
    assert len(starts) >= 3
    assert [place for place, given in starts if not given] == []
