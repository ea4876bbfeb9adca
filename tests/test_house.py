"""The house: import rules, notebooks, and the commands that the README promises."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import nbformat
import pytest
import yaml
from house import imported, project, python

import vitolab

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# may define functions
LESSONS = {"tour", "own_function", "own_equations", "own_program", "own_formats"}
HEAVY = (
    "panel",
    "holoviews",
    "numba",
    "sklearn",
    "pandas",
    "papermill",
    "scipy.optimize",
    "nlopt",
    "meshio",
    "roadrunner",
    "myokit",
    "fmpy",
    "torch",
    "sbi",
    "distributed",
)
PICKLES = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


# --- imports -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module",
    [f"vitolab{part}" for part in ("", ".problem", ".trajectories", ".files", ".studies", ".cli")],
)
def test_import_loads_nothing_heavy(module: str):
    printed = python(f"import sys, {module}; print([m for m in {HEAVY} if m in sys.modules])")
    assert printed.strip() == "[]"


def test_import_takes_less_than_half_a_second():
    code = "from time import process_time as t; a = t(); import vitolab; print(t() - a)"
    assert min(float(python(code)) for _ in range(3)) < 0.5


def test_public_names_resolve_and_are_listed():
    for name in vitolab.__all__:
        assert getattr(vitolab, name) is not None
    assert dir(vitolab) == sorted(vitolab.__all__)
    assert vitolab.__version__ == project()["version"]
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = vitolab.nonsense


def test_public_names_are_what_a_type_checker_sees():
    tree = ast.parse((ROOT / "vitolab" / "__init__.py").read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {}
    for node in guarded.body:
        if isinstance(node, ast.ImportFrom):
            seen |= {alias.name: node.module for alias in node.names}
    loaded = {
        name: f"vitolab.{home}" if (home := vitolab._HOMES.get(name)) else "vitolab"
        for name in vitolab.__all__
        if name != "__version__"
    }
    assert seen == loaded


def test_no_public_module_has_the_name_of_what_everybody_calls_so():
    code = "import vitolab as vl; vl.Problem; vl.Run; print(*dir(vl))"
    names = python(code).split()
    assert not {"problem", "states", "mdp", "agent", "exploration", "initialization"} & set(names)
    assert {"models", "plots", "store", "studies", "methods", "adapters"} <= set(names)


def test_import_contracts_hold():
    code = "from importlinter.cli import lint_imports; print('status', lint_imports(no_cache=True))"
    report = python(code)
    assert report.splitlines()[-1] == "status 0", report


def sources() -> Iterator[tuple[Path, str]]:
    """Every Python file of the project and the code of every notebook."""
    for folder in ("vitolab", "tests", "dashboards"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path, path.read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        yield path, code_of(path)


def test_nothing_is_pickled():
    for path, code in sources():
        assert not {"pickle", "cloudpickle", "dill", "marshal", "shelve"} & set(imported(code)), (
            path
        )
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path


def test_kernels_need_numpy_and_numba_only():
    for path in (ROOT / "vitolab" / "kernels").glob("*.py"):
        for module in imported(path.read_text(encoding="utf-8")):
            assert module.partition(".")[0] in sys.stdlib_module_names | {"numpy", "numba"}, path


# --- notebooks ---------------------------------------------------------------------------


def code_of(path: Path) -> str:
    """Code of a notebook, cells joined."""
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


@each_notebook
def test_notebook_is_stored_without_outputs(path: Path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@each_notebook
def test_notebook_defines_nothing(path: Path):
    kinds = [ast.ClassDef] if path.stem in LESSONS else [ast.ClassDef, ast.FunctionDef, ast.Lambda]
    for node in ast.walk(ast.parse(code_of(path))):
        assert not isinstance(node, tuple(kinds)), f"line {node.lineno} of the code defines"


@each_notebook
def test_notebook_has_one_parameters_cell_of_literals(path: Path):
    cells = nbformat.read(path, as_version=4).cells
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    assert tagged[0].cell_type == "code"
    for node in ast.parse(tagged[0].source).body:
        assert isinstance(node, (ast.Assign, ast.AnnAssign)), ast.unparse(node)
        assert node.value is not None
        ast.literal_eval(node.value)


# --- what the README promises ------------------------------------------------------------


def test_ci_runs_the_commands_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    tests = 'pip install ".[test]" && pytest'
    assert "pip install . && vitolab demo" in readme
    assert tests in readme
    commands = [line.strip() for line in script if line.strip() and not line.startswith("#")]
    assert commands[-1] == tests
    assert any(line.startswith("pip install") and line.endswith(" .") for line in commands)
    assert any("vitolab demo" in line for line in commands)


def test_ci_and_commit_hooks_run_the_same_checks():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
    for hook in hooks["repos"][0]["hooks"]:
        assert hook["entry"].replace(" --force-exclude", "") in script
        if hook["entry"] in ("mypy", "lint-imports"):
            for folder in ("vitolab", "dashboards"):
                assert re.search(hook["files"], f"{folder}/any.py"), hook["id"]


def test_the_layers_of_the_guide_are_those_of_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(c for c in contracts["tool"]["importlinter"]["contracts"] if c["id"] == "layers")
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = guide.partition("## Layers")[2].split("```")[1]
    named = [re.split(r"\s{2,}", line)[0] for line in table.strip().splitlines()]
    assert named == layers["layers"]


def additions() -> dict[str, list[str]]:
    """Files to touch for each addition, as the guide lists them."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = guide.partition("## I want to add")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| a")]
    return {
        name.strip(): re.findall(r"`((?:vitolab|dashboards|notebooks)/[^`]*)`", files)
        for name, files in rows
    }


def test_what_is_to_be_touched_for_an_addition_is_there_and_is_little():
    found = additions()
    assert len(found) == 11
    for name, files in found.items():
        for file in files:
            assert (ROOT / file).exists(), f"{name}: {file}"
    assert sum(len(files) <= 3 for files in found.values()) >= 9


def test_a_method_is_known_by_its_row_and_not_by_its_name():
    """Nothing but the table, and what shows one method in particular, guesses from a name."""
    guesses = re.compile(r"startswith\(.vito|.cascade. (?:not )?in |.vito. (?:not )?in name")
    for folder in ("vitolab", "dashboards"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not guesses.search(path.read_text(encoding="utf-8")), path


def test_layers_are_nine_at_most():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(c for c in contracts["tool"]["importlinter"]["contracts"] if c["id"] == "layers")
    assert len(layers["layers"]) <= 9


def test_files_hold_one_idea():
    """At most 350 lines, but kernels, which numba wants self-contained."""
    folders = (ROOT / "vitolab", ROOT / "dashboards", ROOT / "tests")
    files = chain.from_iterable(folder.rglob("*.py") for folder in folders)
    sizes = {p.relative_to(ROOT).as_posix(): len(p.read_text("utf-8").splitlines()) for p in files}
    assert not {name: n for name, n in sizes.items() if n > 350 and "/kernels/" not in name}
