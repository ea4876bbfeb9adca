"""Each study's notebook declares exactly what the study's profiles set, and records all of it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest
from extras import AGENTS_HERE

from vitolab.store import latest
from vitolab.studies import GIVEN, STUDIES, Study, checked_parameters
from vitolab.studies.notebooks import declared_parameters

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"

each_study = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
#: The tour is a lesson, which may do otherwise.
each_thin = pytest.mark.parametrize("study", STUDIES[1:], ids=lambda study: study.name)


def test_every_notebook_is_a_study_or_a_lesson_and_every_study_has_its_notebook():
    lessons = {path.name for path in NOTEBOOKS.glob("own_*.ipynb")}  # see test_lessons.py
    notebooks = {path.name for path in NOTEBOOKS.glob("*.ipynb")}
    assert notebooks - lessons == {s.notebook for s in STUDIES}
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


@each_thin
def test_a_run_is_opened_with_the_parameters_as_they_were_given(study: Study):
    """They are taken from the notebook by their names: none of them is set again before."""
    cells = nbformat.read(NOTEBOOKS / study.notebook, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    tree = ast.parse(
        "\n".join(c.source for c in code if "parameters" not in c.metadata.get("tags", []))
    )
    opened = [node for node in ast.walk(tree) if ast.unparse(node) == "STUDY.open(globals())"]
    assert len(opened) == 1
    before = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.lineno < opened[0].lineno]
    stored = {node.id for node in before if isinstance(node.ctx, ast.Store)}
    assert not stored & {*study.profiles["quick"], *GIVEN}


@each_thin
def test_a_notebook_shows_sections_of_its_own_study(study: Study):
    cells = nbformat.read(NOTEBOOKS / study.notebook, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    module = study.notebook.removesuffix(".ipynb")
    assert f"from vitolab.studies.{module} import STUDY" in code
    assert {section for section, _ in shown(code)} <= {section.name for section in study.sections}
    assert shown(code)
    assert not {"def", "class"} & set(code.split())


def shown(code: str) -> list[tuple[str, str]]:
    """Sections that a notebook shows, with the captions of tables."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    found = [node.args[1:] for node in calls if ast.unparse(node.func) == "STUDY.show"]
    texts = [[str(ast.literal_eval(text)) for text in texts] for texts in found]
    return [(texts[0], "".join(texts[1:])) for texts in texts]


@each_study
def test_cells_have_names(study: Study):
    cells = nbformat.read(NOTEBOOKS / study.notebook, as_version=4).cells
    names = [cell.id for cell in cells]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() and not name.isdigit() for name in names)


@pytest.mark.parametrize("study", [s for s in STUDIES if s.tiny], ids=lambda study: study.name)
def test_the_cells_run_from_top_to_bottom_and_leave_a_run_with_all_its_sections(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    parameters = checked_parameters(study, "quick", study.tiny)
    if not {*parameters.get("agents", ())} <= {*AGENTS_HERE}:
        pytest.skip('sbi is missing: pip install "vitolab[npe]"')
    cells = nbformat.read(NOTEBOOKS / study.notebook, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    space: dict[str, Any] = {}
    for cell in code:
        exec(compile(cell.source, f"{study.name}: {cell.id}", "exec"), space)
        if "parameters" in cell.metadata.get("tags", []):
            space |= parameters | {"results": str(tmp_path)}
    run = latest(tmp_path, study.name)
    assert set(space.get("methods", ())) <= set(run.personalizations["method"])
    assert dict(run.parameters) == parameters
    parts = {section.name: section.build(run, 0) for section in study.sections}
    for name, part in parts.items():
        assert part.sentence, name
        assert part.figure is not None or part.tables, name
    for section, caption in shown("\n".join(cell.source for cell in code)):
        found = dict(parts[section].tables)[caption] if caption else parts[section].figure
        assert found is not None, (section, caption)
        assert len(found) > 0, (section, caption)
    if study.traces:
        assert len(run.traces) > 0
    assert study.policy == (
        "arrays.npz" in run.manifest.files and any(n.endswith("/q") for n in run.arrays)
    )
