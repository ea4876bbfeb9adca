"""Packaging: what is required and declared, and what an installer finds in the wheel."""

from __future__ import annotations

import re
import sys
import zipfile
from itertools import chain
from pathlib import Path

import pytest
import yaml
from house import imported, project, python

from vitolab.studies import STUDIES

ROOT = Path(__file__).resolve().parents[1]


def split(requirement: str) -> tuple[str, str]:
    """Split ``name>=bound`` into its two halves."""
    found = re.fullmatch(r"([a-z0-9_-]+)(>=[0-9.]+)", requirement)
    assert found, f"{requirement!r} is not a name with a lower bound"
    return found[1], found[2]


def test_conda_environment_asks_for_what_pyproject_asks_for():
    on_conda_forge = {
        "matplotlib": "matplotlib-base",
        "jupyter-client": "jupyter_client",
        "dask": "dask-core",
    }
    wanted = project()
    extras = wanted["optional-dependencies"]
    required = wanted["dependencies"] + extras["test"] + extras["dev"]
    required.remove("vitolab[test]")
    expected = {on_conda_forge.get(name, name): bound for name, bound in map(split, required)}
    expected["python"] = wanted["requires-python"]

    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    listed = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    listed.remove("pip")
    assert dict(map(split, listed)) == expected
    assert len(listed) == len(expected), "an entry of environment.yml occurs twice"


def test_every_requirement_has_a_lower_bound_and_nothing_else():
    wanted = project()
    extras = chain.from_iterable(wanted["optional-dependencies"].values())
    for requirement in chain(wanted["dependencies"], extras):
        if not requirement.startswith("vitolab["):
            split(requirement)


@pytest.mark.parametrize(
    ("files", "extras"),
    [
        ("vitolab/**/*.py", ["mesh", "sbml", "cellml", "fmu", "npe", "cluster", "dev"]),
        ("dashboards/**/*.py", []),
        ("tests/*.py", ["test"]),
        ("tests/benchmarks/*.py", ["test", "bench"]),
    ],
)
def test_what_is_imported_is_declared(files: str, extras: list[str]):
    distributions = {
        "sklearn": "scikit-learn",
        "yaml": "pyyaml",
        "importlinter": "import-linter",
        "zmq": "pyzmq",
        "jupyter_client": "jupyter-client",
        "roadrunner": "libroadrunner",
        "dask_jobqueue": "dask-jobqueue",
        "xdist": "pytest-xdist",
    }
    wanted = project()
    declared = [wanted["dependencies"], *(wanted["optional-dependencies"][e] for e in extras)]
    asked = [each for each in chain.from_iterable(declared) if not each.startswith("vitolab[")]
    known = {"vitolab", "dashboards"} | {split(requirement)[0] for requirement in asked}
    if files.startswith("tests"):
        known |= {path.stem for path in (ROOT / "tests").glob("*.py")}
    for path in ROOT.glob(files):
        for module in imported(path.read_text(encoding="utf-8")):
            top = module.partition(".")[0]
            if top not in sys.stdlib_module_names:
                assert distributions.get(top, top) in known, f"{path} imports {module}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel built from this source tree, unpacked as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    name = python(
        f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    ).splitlines()[-1]
    with zipfile.ZipFile(folder / name) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_wheel_holds_the_notebooks_the_data_and_the_types(wheel: Path):
    def files(folder: Path) -> set[Path]:
        found = (path.relative_to(folder) for path in folder.rglob("*.*") if path.is_file())
        return {path for path in found if ".ipynb_checkpoints" not in path.parts}

    stored = files(wheel / "vitolab" / "_notebooks")
    assert stored == files(ROOT / "notebooks")
    assert {Path("tour.ipynb"), Path("examples", "windkessel.xml")} <= stored

    source, built = ROOT / "vitolab", wheel / "vitolab"
    tables = {path.relative_to(source) for path in source.rglob("*.csv")}
    assert tables
    found = {path.relative_to(built) for path in built.rglob("*.csv")}
    assert tables == {path for path in found if path.parts[0] != "_notebooks"}
    assert (built / "py.typed").is_file()
    top = {path.name for path in wheel.iterdir() if not path.name.endswith(".dist-info")}
    assert top == {"vitolab"}, "tests, tools or results ended up in the wheel"


def test_wheel_runs_from_its_own_files(wheel: Path, tmp_path: Path):
    code = """
import sys, vitolab
from vitolab.cli import main
sys.argv = ["vitolab", "list"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(vitolab.__file__)
"""
    printed = python(code, cwd=tmp_path, path=wheel)
    assert printed.splitlines()[-1] == str(wheel / "vitolab" / "__init__.py")
    for study in STUDIES:
        assert study.name in printed
