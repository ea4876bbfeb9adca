"""Each study's notebook declares exactly what the study's profiles set, and records all of it."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

from vitolab.notebooks import declared_parameters
from vitolab.studies import GIVEN, STUDIES, Study

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"

each_study = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)


def test_every_notebook_is_a_study_and_every_study_has_its_notebook():
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} == {s.notebook for s in STUDIES}
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
