"""A study is one file, one notebook and one place in the list: nothing else knows its name."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from dashboard_runs import listed
from nbformat.v4 import new_code_cell, new_notebook

from vitolab import cli, studies
from vitolab.dashboard import load_dashboards
from vitolab.models import circulation, electrophysiology, glucose
from vitolab.store import Run, list_runs
from vitolab.studies import GIVEN, STUDIES, Study, base
from vitolab.studies.notebooks import declared_parameters, find_notebook

ROOT = Path(studies.__file__).parents[2]
each_study = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)

MODULE = """
from vitolab.studies.base import Content, Section, Study


def _dots(stored, repeat):
    import holoviews as hv

    rows = stored.personalizations
    figure = hv.Scatter((rows["start"].astype(float), rows["n_runs"].astype(float)))
    sentence = f"{len(rows)} throws of {stored.parameters['coin']}."
    return Content(sentence, figure, (("All throws", rows[["start", "n_runs"]]),))


def _lacking(stored, repeat):
    raise ValueError("the run stored no edge of the coin")


STUDY = Study(
    name="coin-toss",
    notebook=NOTEBOOK,
    title="Throw a coin",
    profiles={"quick": {"coin": "penny", "n": 3}, "standard": {"coin": "penny", "n": 30}},
    duration={"quick": "a second", "standard": "a second"},
    sections=(Section("throws", "Throws", _dots), Section("edge", "Edge", _lacking)),
    choices={"coin": ("penny", "dime")},
    least={"n": 2},
    most={"n": 99},
)
"""
CELLS = (
    """from coin_toss import STUDY
from vitolab import plots
from vitolab.models import rosenbrock
from vitolab.store.tables import patient_table, table

plots.use("matplotlib")
problems = {"2d": rosenbrock.problem()}
functions = rosenbrock.cohort(2)""",
    """run = STUDY.open(globals())
label = {"setup": "2d", "patient": functions[0].name, "method": "vito", "solved": True}
keys = {"n_states": 1, "n_samples": 1, "repeat": 0, "n_restarts": 0, "n_states_used": 1}
if not run.has_part("throws"):
    run.write_part("throws", table([label | keys | {"start": k, "n_runs": k} for k in range(n)]))
stored = run.finish(problems=problems, patients=patient_table(problems, functions))""",
    'STUDY.show(stored, "throws")',
    'STUDY.show(stored, "throws", "All throws")',
    'STUDY.show(stored, "edge")',
)
PARAMETERS = 'coin = "penny"\nn = 3\nseed = 0\nn_jobs = 1\nresults = "results"\nrun_folder = ""\n'


@pytest.fixture
def coin_toss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    """A study that comes with its file and its notebook."""
    tagged = new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})
    cells = [tagged, *map(new_code_cell, CELLS)]
    nbformat.write(new_notebook(cells=cells), tmp_path / "coin_toss.ipynb")
    notebook = str(tmp_path / "coin_toss.ipynb")
    (tmp_path / "coin_toss.py").write_text(MODULE.replace("NOTEBOOK", repr(notebook)))
    monkeypatch.syspath_prepend(tmp_path)
    study: Study = importlib.import_module("coin_toss").STUDY
    monkeypatch.setattr(studies, "STUDIES", (*STUDIES, study))
    yield study
    del sys.modules["coin_toss"]


def call(*arguments: object) -> object:
    """What a command answers: None if it is done."""
    return cli.app([str(argument) for argument in arguments], standalone_mode=False)


def test_a_study_in_the_list_is_listed_run_and_shown(
    coin_toss: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    for given, why in (
        ("n=1", "coin-toss: n holds 1, expected at least 2"),
        ("coin=euro", "coin-toss: coin holds 'euro', expected one of penny, dime"),
        ("n=100", "coin-toss: n holds 100, expected at most 99"),
    ):
        with pytest.raises(ValueError, match=f"^{why}"):
            call("run", "coin-toss", "-p", given, "--results", results)
    assert not results.exists()
    assert call("run", "coin-toss", "--jobs", 1, "--results", results) is None
    (info,) = list_runs(results)
    assert (info.study, info.status, info.reason) == ("coin-toss", "complete", "")
    capsys.readouterr()
    assert call("list", "--results", results) is None
    said = capsys.readouterr().out
    assert "coin-toss: Throw a coin" in said
    assert f"last run: complete, {info.path}" in said

    found = listed(results)
    (entry,) = found.entries
    assert entry.profile == "quick"
    report = load_dashboards("pages.results.report")
    shown = report.prepare(found, [info.path.name], "throws", None, False)
    assert shown.sections == {"throws": "Throws", "edge": "Edge"}
    assert (shown.sentence, shown.failed, len(shown.pictures)) == ("3 throws of penny.", False, 1)
    lacks = report.prepare(found, [info.path.name], "edge", None, False)
    assert (lacks.sentence, lacks.failed) == ("the run stored no edge of the coin", True)
    _, page = report.make_file(found, [info.path.name], "throws", None, "html")
    assert b"3 throws of penny." in page
    assert b"no edge of the coin" in page


def test_a_notebook_says_and_shows_what_the_dashboard_does(
    coin_toss: Study, tmp_path: Path
) -> None:
    info = studies.run(coin_toss, n_jobs=1, results=tmp_path / "results")
    figure, table, edge = nbformat.read(info.path / "notebook.ipynb", as_version=4).cells[-3:]
    said, drawn = figure.outputs
    assert said.text == "3 throws of penny.\n"
    assert "data:image/png" in drawn.data["text/html"]
    assert "text/html" in table.outputs[0].data
    assert [output.text for output in edge.outputs] == ["the run stored no edge of the coin\n"]


def test_a_notebook_opened_by_hand_fills_and_shows_the_same_run(
    coin_toss: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driven = studies.run(coin_toss, n_jobs=1, results=tmp_path / "driven")
    space: dict[str, object] = {}
    exec(PARAMETERS, space)
    space["results"] = str(tmp_path / "by hand")
    for cell in CELLS:
        exec(cell, space)
    (info,) = list_runs(tmp_path / "by hand")
    assert (info.status, dict(info.parameters)) == ("complete", dict(driven.parameters))
    assert info.path.name.split("-")[-1] == driven.path.name.split("-")[-1]  # the fingerprint
    one, other = (Run.load(path).personalizations for path in (driven.path, info.path))
    assert one.equals(other)
    assert "3 throws of penny." in capsys.readouterr().out


def test_a_section_or_parameter_that_there_is_not_is_named(coin_toss: Study) -> None:
    with pytest.raises(ValueError, match="there is no section 'no', expected one of throws, edge"):
        coin_toss.show(None, "no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="coin-toss: the notebook has no 'n', 'results'"):
        coin_toss.open({"coin": "penny"})


def test_a_table_that_a_run_lacks_does_not_end_its_notebook(
    coin_toss: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    info = studies.run(coin_toss, n_jobs=1, results=tmp_path / "results")
    assert coin_toss.show(Run.load(info.path), "throws", "No throws") is None
    assert "'No throws'" in capsys.readouterr().out


# --- the studies of this package -----------------------------------------------------------


def test_every_file_with_a_study_is_in_the_list() -> None:
    files = (ROOT / "vitolab" / "studies").glob("*.py")
    with_study = {p.stem for p in files if re.search(r"^STUDY = ", p.read_text(), re.M)}
    assert [study.name.replace("-", "_") for study in STUDIES] == [
        Path(study.notebook).stem for study in STUDIES
    ]
    assert {Path(study.notebook).stem for study in STUDIES} == with_study
    assert len({study.name for study in STUDIES}) == len(STUDIES)


@each_study
def test_each_study_is_complete(study: Study) -> None:
    declared = set(declared_parameters(find_notebook(study.notebook))) - set(GIVEN)
    assert set(study.duration) == set(study.profiles) == {"quick", "standard", "paper"}
    for name, values in study.profiles.items():
        assert set(values) == declared, name
    for limits in (study.choices, study.least, study.most, study.tiny):
        assert set(limits) <= declared
    assert set(base.CHOICES) & declared <= set(study.choices)
    names = [section.name for section in study.sections]
    assert names
    assert len(set(names)) == len(names)
    assert study.title
    assert study.tiny or study.name in ("tour", "problem"), "other tests run these two"


@each_study
def test_patients_are_as_many_as_the_cohort_has(study: Study) -> None:
    hearts = study.name.startswith("ep-")
    n = {
        "n_patients": len((electrophysiology if hearts else circulation).cohort().evaluation),
        "n_ep_patients": len(electrophysiology.cohort().evaluation),
        "n_glucose_patients": len(glucose.cohort().evaluation),
    }
    counted = n.keys() & study.profiles["quick"].keys()
    assert dict(study.most) == {name: n[name] for name in counted}
    assert {name: study.least[name] for name in counted} == dict.fromkeys(counted, 2)


def test_no_other_file_knows_the_name_of_a_study() -> None:
    """But the demonstration, which is three of them."""
    # names of an option, a folder and a method: as such they are no names of studies
    known = {study.name for study in STUDIES} - {"problem", "uncertainty", "npe"}
    found = set()
    for path in [*ROOT.glob("vitolab/**/*.py"), *ROOT.glob("dashboards/**/*.py")]:
        own = path.stem.replace("_", "-")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in known - {own}:
                found.add((str(path.relative_to(ROOT)), node.value))
    found.discard(("vitolab/uncertainty/__init__.py", "stability"))  # a function
    demonstration = "vitolab/studies/demo.py"
    assert {name for file, name in found if file == demonstration} == set(
        importlib.import_module("vitolab.studies.demo").DEMO
    )
    assert {(file, name) for file, name in found if file != demonstration} == set()
