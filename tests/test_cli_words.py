"""The package speaks of arguments, the command line of its options."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vitolab import dashboard
from vitolab.catalogue import find_model, read_table, template_for
from vitolab.cli.options import in_options
from vitolab.patients import InputError

ROOT = Path(__file__).resolve().parents[1]


def options() -> set[str]:
    """Options that the commands declare."""
    declared = {"--" + n for n in ("setup", "out", "method", "prefix", "origin", "address", "port")}
    for path in (ROOT / "vitolab" / "cli").glob("*.py"):
        declared |= set(re.findall(r'"(--[a-z-]+)"', path.read_text(encoding="utf-8")))
    return declared | {"--basic-auth", "--train-on", "--max-hours", "--scheduler", "--cluster"}


def test_errors_of_the_package_name_no_option() -> None:
    for path in sorted((ROOT / "vitolab").rglob("*.py")):
        if path.parent.name == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise):
                said = set(re.findall(r"--[a-z][a-z-]+", ast.unparse(node)))
                assert not said & options(), f"{path.relative_to(ROOT)}, line {node.lineno}"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("setup is '4p', expected one of 2p", "--setup is '4p', expected one of 2p"),
        ("origins hold '*', expected a host", "--origin is '*', expected a host"),
        ("a number (allow_missing=True goes without it)", "a number (--allow-missing goes without"),
        ("a.toml: the setup is 1, expected 2", "a.toml: the setup is 1, expected 2"),
        ("setup_file is missing", "setup_file is missing"),
    ],
)
def test_the_command_line_says_its_options(sentence: str, expected: str) -> None:
    assert in_options(sentence).startswith(expected)


def test_an_empty_cell_is_refused_in_the_words_of_who_asked(tmp_path: Path) -> None:
    """The function names its argument, the command its option."""
    path, model = tmp_path / "patients.csv", find_model("rosenbrock")
    header, row, *_ = template_for(model, model.setup).splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True)) | {"t2": ""}
    path.write_text(f"{header}\n{','.join(cells.values())}\n")
    with pytest.raises(InputError, match=r"expected a number \(allow_missing=True goes without it"):
        read_table(model, path, model.setup)
    command = [sys.executable, "-m", "vitolab", "personalize", "rosenbrock", "--patients"]
    done = subprocess.run(
        [*command, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert "expected a number (--allow-missing goes without it)" in done.stderr


def test_who_serves_to_all_is_warned_without_an_option(tmp_path, capsys, monkeypatch) -> None:
    class Server:
        @staticmethod
        def serve(*args: object, **kwargs: object) -> None: ...

    monkeypatch.setattr(dashboard, "load_dashboards", lambda module: Server)
    dashboard.serve(tmp_path, address="0.0.0.0")
    said = capsys.readouterr().err
    assert "nobody is asked for a password" in said
    assert "--" not in said
