"""Each study's notebook declares exactly what the study's profiles set, and records all of it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest

from vitolab.store import latest
from vitolab.studies import GIVEN, OWN, STUDIES, Study, checked_parameters, find_study
from vitolab.studies.notebooks import declared_parameters

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"

each_study = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)


def test_every_notebook_is_a_study_or_a_lesson_and_every_study_has_its_notebook():
    lessons = {path.name for path in NOTEBOOKS.glob("own_*.ipynb")}  # see test_lessons.py
    notebooks = {path.name for path in NOTEBOOKS.glob("*.ipynb")}
    assert notebooks - lessons == {s.notebook for s in (*STUDIES, OWN)}
    assert all(study.notebook == f"{study.name.replace('-', '_')}.ipynb" for study in STUDIES)


@each_study
def test_profiles_set_what_the_notebook_declares(study: Study):
    declared = declared_parameters(NOTEBOOKS / study.notebook)
    own = set(declared) - set(GIVEN)
    assert set(GIVEN) <= set(declared)
    for name, profile in study.profiles.items():
        assert set(profile) == own, name


@each_study
def test_notebook_opened_by_hand_runs_the_quick_profile(study: Study):
    declared = declared_parameters(NOTEBOOKS / study.notebook)
    for name, value in study.profiles["quick"].items():
        assert declared[name][1] == value, name


@each_study
def test_notebook_records_all_parameters_of_its_study(study: Study):
    cells = nbformat.read(NOTEBOOKS / study.notebook, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    calls = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "open_run"
    ]
    assert len(calls) == 1
    name, parameters = calls[0].args
    assert ast.literal_eval(name) == study.name
    assert isinstance(parameters, ast.Dict)
    recorded = {
        ast.literal_eval(key): ast.unparse(value)
        for key, value in zip(parameters.keys, parameters.values, strict=True)
        if key is not None
    }
    assert set(recorded) == set(study.profiles["quick"])
    assert all(key == value for key, value in recorded.items()), "recorded under another name"


@each_study
def test_cells_have_names(study: Study):
    cells = nbformat.read(NOTEBOOKS / study.notebook, as_version=4).cells
    names = [cell.id for cell in cells]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() and not name.isdigit() for name in names)


#: A minute of all studies that no demonstration and no other test runs.
TINY = {
    "hindsight": {
        "n_functions": 3,
        "setups": ["2p"],
        "n_patients": 3,
        "n_ep_patients": 2,
        "n_samples": {"rosenbrock": [10], "2p": [10], "bem": [5]},
        "n_starts": 1,
    },
    "continuous-convergence": {
        "setups": ["2p"],
        "n_patients": 3,
        "n_ep_patients": 2,
        "n_samples": {"2p": [10], "bem": [5]},
        "n_starts": 1,
    },
    "wbc-12p": {
        "setups": ["2p", "3p"],
        "n_patients": 3,
        "n_samples": {"2p": [10], "3p": [10]},
        "n_starts": 1,
    },
    "uncertainty": {
        "setups": ["2p"],
        "n_patients": 3,
        "n_simulated": 2,
        "n_starts": 2,
        "n_samples": 10,
        "n_steps": 20,
        "n_burn": 5,
        "n_draws": 10,
    },
    "stability": {"setups": ["2p"], "n_patients": 3, "n_perturbations": 2, "n_samples": 10},
    "prediction": {"n_samples": 5},
}


@pytest.mark.parametrize("name", TINY)
def test_the_cells_run_from_top_to_bottom_and_leave_a_complete_run(name: str, tmp_path: Path):
    parameters = checked_parameters(find_study(name), "quick", TINY[name])
    cells = nbformat.read(NOTEBOOKS / find_study(name).notebook, as_version=4).cells
    space: dict[str, Any] = {}
    for cell in (cell for cell in cells if cell.cell_type == "code"):
        exec(compile(cell.source, f"{name}: {cell.id}", "exec"), space)
        if "parameters" in cell.metadata.get("tags", []):
            space |= parameters | {"results": str(tmp_path)}
    run = latest(tmp_path, name)
    assert set(space["methods"]) <= set(run.personalizations["method"])
