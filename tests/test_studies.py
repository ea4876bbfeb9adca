"""A study is data; running it checks the input, owns the run, and alone says how it ended."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from vitolab import display
from vitolab.methods import AGENTS, REFERENCES
from vitolab.models import bolus, circulation, electrophysiology, rosenbrock
from vitolab.store import Run, RunInfo, list_runs
from vitolab.store.records import Progress
from vitolab.studies import (
    OWN,
    STUDIES,
    Study,
    checked_parameters,
    find_study,
    notebooks,
    run,
    running,
)
from vitolab.studies import demo as demonstration
from vitolab.studies.base import CHOICES
from vitolab.studies.demo import DEMO, demo, standing
from vitolab.studies.notebooks import checked_value, declared_parameters, execute

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
FILL = """import pandas as pd
from vitolab.store import open_run
parameters = {"n": n, "sizes": sizes, "share": share, "names": names, "plain": plain}
run = open_run("try", parameters, results=results, seed=seed, folder=run_folder)
keys = dict.fromkeys(["n_states", "n_samples", "repeat", "start"])
row = {"setup": "2p", "patient": "P1", "method": "vito", "solved": True, "n_runs": n}
if not run.has_part("p1"):
    run.write_part("p1", pd.DataFrame([row | keys]))
run.progress("parts", 1, 1)
"""
FINISH = """import os, sys
patients = pd.DataFrame({"setup": ["2p"], "patient": ["P1"]})
stored = run.finish(problems={}, patients=patients)
print(sys.executable, os.getcwd())
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


def refuse(*_: Any) -> str:
    raise AssertionError("a notebook was executed")


def test_a_study_is_run_once_by_the_running_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    other = {"argv": ["/bin/false", "{connection_file}"], "display_name": "", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(other))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.chdir(tmp_path)
    tried = study(tmp_path / "with {braces}", FILL, FINISH, profile={"n": 4})
    info = run(tried, results="out {x}")
    assert (info.status, info.reason) == ("complete", "")
    assert info.path.parent == tmp_path / "out {x}" / "try"
    assert info.parameters == {
        "n": 4,
        "sizes": {"a": [1, 2]},
        "share": 0.5,
        "names": None,
        "plain": ["x"],
    }
    stored = Run.load(info.path)
    assert list(stored.personalizations["n_runs"]) == [4]
    assert {"notebook.ipynb", "personalizations.parquet"} <= stored.manifest.files.keys()
    executed = nbformat.read(info.path / "notebook.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].text.split(maxsplit=1) == [
        sys.executable,
        f"{info.path}\n",
    ]
    assert not (info.path / "executing.ipynb").exists()
    assert "  parts: 1 of 1" in capfd.readouterr().err.splitlines()

    # the same again is said to be there; by hand its tables are looked at
    monkeypatch.setattr(running, "execute", refuse)
    assert run(tried, results="out {x}").path == info.path
    assert f"already complete: {info.path}" in capfd.readouterr().err
    scope: dict[str, Any] = {}
    by_hand = (GIVEN + PARAMETERS).replace('"results"', '"out {x}"').replace("n: int = 3", "n = 4")
    for cell in (by_hand, FILL, FINISH):
        exec(cell, scope)
    assert scope["stored"].path == info.path
    assert f"already complete: {info.path}" in capfd.readouterr().err
    with pytest.raises(AssertionError, match="was executed"):
        run(tried, results="out {x}", seed=1)


def test_a_notebook_that_raises_makes_a_failed_run_with_its_reason(tmp_path: Path) -> None:
    tried = study(tmp_path, FILL, "raise KeyError('the reason\\nand more')", FINISH)
    info = run(tried, results=tmp_path / "results")
    assert (info.status, info.reason) == ("failed", r"KeyError: 'the reason\nand more'")
    assert [p.name for p in (info.path / "parts").iterdir()] == ["p1.parquet"]
    executed = (info.path / "notebook.ipynb").read_text()
    assert "the reason" in executed


def test_a_killed_kernel_makes_a_failed_run(tmp_path: Path) -> None:
    tried = study(tmp_path, FILL, FINISH, "import os\nos.kill(os.getpid(), 9)")
    info = run(tried, results=tmp_path / "results")
    assert (info.status, info.reason) == ("failed", "the notebook kernel died")


def test_a_run_that_is_stopped_by_hand_is_interrupted_and_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> str:
        raise KeyboardInterrupt

    tried = study(tmp_path)
    monkeypatch.setattr(running, "execute", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(tried, results=tmp_path / "results")
    (info,) = list_runs(tmp_path / "results")
    assert info.status == "interrupted"
    monkeypatch.setattr(running, "execute", lambda *_: "")
    assert run(tried, results=tmp_path / "results").path == info.path


def test_a_kernel_that_does_not_start_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []

    def once(*_: Any) -> nbformat.NotebookNode:
        attempts.append("")
        if len(attempts) < wanted:
            raise RuntimeError("Kernel died before replying to kernel_info\nmore")
        return new_notebook(cells=[new_code_cell("1", execution_count=1)])

    monkeypatch.setattr(notebooks, "_execute_once", once)
    wanted = 3
    assert execute(tmp_path / "t", tmp_path, {}) == ""
    attempts.clear()
    wanted = 4
    expected = "RuntimeError: Kernel died before replying to kernel_info"
    assert execute(tmp_path / "t", tmp_path, {}) == expected
    assert len(attempts) == 3


def test_a_notebook_that_was_left_early_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [new_code_cell("sys.exit()", execution_count=1), new_code_cell("1")]
    monkeypatch.setattr(notebooks, "_execute_once", lambda *_: new_notebook(cells=cells))
    assert execute(tmp_path / "t", tmp_path, {}) == "the notebook ended before its last cell"


def test_a_notebook_is_found_in_the_installed_package_or_else_in_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        notebooks, "__file__", str(tmp_path / "vitolab" / "studies" / "notebooks.py")
    )
    with pytest.raises(ValueError, match=r"the notebook a\.ipynb is not installed"):
        notebooks.find_notebook("a.ipynb")
    for folder in (tmp_path / "notebooks", tmp_path / "vitolab" / "_notebooks"):
        folder.mkdir(parents=True)
        (folder / "a.ipynb").touch()
        assert notebooks.find_notebook("a.ipynb") == folder / "a.ipynb"


def test_a_log_whose_stream_is_closed_says_nothing_of_the_cells_of_a_run(tmp_path: Path) -> None:
    """A program that logs, and whose output went elsewhere meanwhile, runs a study."""
    program = f"""
import io, logging
stream = io.StringIO()
logging.basicConfig(level=logging.INFO, stream=stream)
stream.close()
from pathlib import Path
from vitolab.studies.notebooks import execute
print(repr(execute(Path({str(one_cell(tmp_path))!r}), Path({str(tmp_path)!r}), {{}})))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "''\n"
    assert "papermill" not in done.stderr


def one_cell(folder: Path) -> Path:
    """Notebook of one cell that prints."""
    path = folder / "one.ipynb"
    cells = [new_code_cell("n = 1", metadata={"tags": ["parameters"]}), new_code_cell("print(n)")]
    nbformat.write(new_notebook(cells=cells), path)
    return path


def test_the_duration_of_a_long_profile_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "execute", lambda *_: "")
    tried = study(tmp_path)
    long = replace(tried, profiles={"paper": {}}, duration={"paper": "several days"})
    run(long, "paper", results=tmp_path / "results")
    assert capsys.readouterr().err.splitlines()[0] == "try: this profile takes several days"


@pytest.mark.parametrize("show", [display._show_lines, display._show_bar])
def test_progress_is_shown_stage_by_stage(
    show: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    told = iter([None, ("", 0, 0), ("exploring", 0, 8), ("exploring", 3, 8), ("folds", 5, 9)])
    waits = iter([False, False, False, False, True])

    def read() -> Progress | None:
        said = next(told)
        if said is None:
            return None
        stage, done, total = said
        return Progress(schema_version=1, stage=stage, done=done, total=total, heartbeat=0.0)

    show(read, lambda _: next(waits))
    said = capsys.readouterr().err
    assert said.index("exploring") < said.index("folds")
    assert ("0 of 8" in said and "5 of 9" in said) or ("0/8" in said and "5/9" in said)


def test_a_notebook_declares_types_and_defaults(tmp_path: Path) -> None:
    declared = declared_parameters(Path(study(tmp_path).notebook))
    assert declared["n"] == ("int", 3)
    assert declared["sizes"] == ("dict[str, list[int]]", {"a": [1, 2]})
    assert declared["names"] == ("list[str] | None", None)
    assert declared["plain"] == ("list[str]", ["x"])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, "int"),
        (3, "float"),
        (None, "int | None"),
        ([True, False], "list[bool]"),
        ({"2p": [1]}, "dict[str, list[int]]"),
        ([[1.5]], "list[list[float]]"),
    ],
)
def test_values_of_the_declared_type_pass(value: Any, kind: str) -> None:
    assert checked_value("it", value, kind) == value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("3", "int"),
        (3.0, "int"),
        (True, "int"),
        (1, "bool"),
        (3, "str"),
        (float("nan"), "float"),
        ([float("inf")], "list[float]"),
        (None, "int"),
        (["a", 1], "list[str]"),
        ("ab", "list[str]"),
        ({"2p": 1}, "dict[str, list[int]]"),
    ],
)
def test_values_of_another_type_are_refused(value: Any, kind: str) -> None:
    with pytest.raises(ValueError, match="it is") as caught:
        checked_value("it", value, kind)
    assert str(caught.value).endswith(f", expected {kind}")


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ({"m": 1}, r"there is no parameter 'm', expected one of n, sizes, share, names, plain"),
        ({"n": "4"}, "try: n is '4', expected int"),
        ({"sizes": {"a": [1.5]}}, r"try: sizes is .*, expected dict\[str, list\[int\]\]"),
        ({"seed": 1}, "'seed' is not set as a parameter"),
        ({"run_folder": "x"}, "'run_folder' is not set as a parameter"),
    ],
)
def test_what_the_notebook_does_not_declare_is_refused_before_anything_is_stored(
    tmp_path: Path, overrides: Mapping[str, Any], error: str
) -> None:
    tried = study(tmp_path)
    with pytest.raises(ValueError, match=error) as caught:
        run(tried, overrides=overrides, results=tmp_path / "results")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"profile": "large"}, "there is no profile 'large', expected one of quick"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, r"seed is 1\.5"),
        ({"n_jobs": 0}, "number of jobs is 0"),
    ],
)
def test_other_arguments_are_checked(tmp_path: Path, arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        run(study(tmp_path), results=tmp_path / "results", **arguments)


def test_notebooks_that_cannot_be_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not declare 'seed'"):
        checked_parameters(study(tmp_path, parameters="n = 1"), "quick", {})
    with pytest.raises(ValueError, match="n is not a literal"):
        checked_parameters(study(tmp_path, parameters=f"{GIVEN}n = 1 + 1j * 2"), "quick", {})
    with pytest.raises(ValueError, match="there is no parameter 'n', it has none"):
        checked_parameters(study(tmp_path, parameters=GIVEN, profile={"n": 1}), "quick", {})
    (tmp_path / "t.ipynb").write_text("{}")
    with pytest.raises(ValueError, match="damaged, expected a notebook"):
        declared_parameters(tmp_path / "t.ipynb")
    with pytest.raises(ValueError, match="is not installed"):
        run(Study("no", "no.ipynb", "", {}, {}), results=tmp_path)
    with pytest.raises(ValueError, match="there is no study 'no', expected one of tour,"):
        find_study("no")


#: Those that need no files.
BUILT_IN = [study for study in STUDIES if study is not OWN]


@pytest.mark.parametrize("known", BUILT_IN, ids=lambda known: known.name)
def test_each_study_fits_its_notebook(known: Study) -> None:
    assert known.notebook == known.name.replace("-", "_") + ".ipynb"
    assert list(known.profiles) == ["quick", "standard", "paper"] == list(known.duration)
    for profile, values in known.profiles.items():
        parameters = checked_parameters(known, profile, {})
        assert parameters.keys() == values.keys(), "each profile names every parameter"


@pytest.mark.parametrize("known", BUILT_IN, ids=lambda known: known.name)
def test_each_profile_names_what_there_is(known: Study) -> None:
    """Setups, lead fields and modes, with a size for each of them."""
    for profile in known.profiles:
        parameters = checked_parameters(known, profile, {})
        for field in parameters.get("lead_fields", []):
            electrophysiology.problem(field, parameters["mode"])
        for setup in parameters.get("setups", []):
            circulation.problem(setup)


def test_the_choices_of_studies_are_what_there_is() -> None:
    assert set(CHOICES["setups"]) == set(circulation.SETUPS)
    assert CHOICES["lead_fields"] == electrophysiology.LEAD_FIELDS
    assert set(CHOICES["methods"]) == set(REFERENCES)
    assert set(CHOICES["agents"]) == set(AGENTS)
    for mode in CHOICES["mode"]:
        electrophysiology.problem("bem", mode)
    for border in find_study("rosenbrock-grid").choices["borders"]:
        rosenbrock.problem(border=border)


def test_a_file_is_named_from_where_the_user_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that is not there is refused before anything is stored."""
    prediction = find_study("prediction")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"data is .*measured\.csv, expected a file that exists"):
        run(prediction, overrides={"data": "measured.csv"}, results=tmp_path / "results")
    assert not (tmp_path / "results").exists()
    shutil.copy(bolus.SYNTHETIC, tmp_path / "measured.csv")
    parameters = checked_parameters(prediction, "quick", {"data": "measured.csv"})
    assert parameters["data"] == str(tmp_path / "measured.csv")


def test_a_changed_file_makes_another_run(tmp_path: Path) -> None:
    """What a run read is kept beside it, whatever becomes of the file."""
    notebook = study(tmp_path, "print(open(data).read())", parameters=f'{GIVEN}data = ""')
    file = tmp_path / "measured.csv"
    runs = []
    for content in ("a\n1\n", "a\n2\n", "a\n1\n"):
        file.write_text(content)
        info = run(notebook, overrides={"data": str(file)}, results=tmp_path / "results")
        kept = tmp_path / "results" / str(info.parameters["data"])
        assert (info.status, kept.read_text(), kept.name) == ("complete", content, "measured.csv")
        runs.append(info.path)
    assert runs[0] == runs[2] != runs[1]


def test_results_that_were_moved_are_found_and_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's file is kept among them, wherever they are."""
    cell = """
from vitolab.store import open_run
print(open(data).read())
open_run("try", {"data": data}, results=results, seed=seed, folder=run_folder)
"""
    notebook = study(tmp_path, cell, parameters=f'{GIVEN}data = ""')
    file = tmp_path / "measured.csv"
    file.write_text("a")
    begun = partial(run, notebook, overrides={"data": str(file)})

    def stopped(*arguments: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(running, "execute", stopped)
        with pytest.raises(KeyboardInterrupt):
            begun(results=tmp_path / "r")
    (tmp_path / "r").rename(tmp_path / "s")
    info = begun(results=tmp_path / "s")
    assert (info.status, info.reason) == ("complete", "")
    assert [path.path for path in list_runs(tmp_path / "s")] == [info.path]
    shutil.copytree(tmp_path / "s", tmp_path / "t")
    assert begun(results=tmp_path / "t").finished == info.finished
    assert len(list_runs(tmp_path / "t")) == 1


def test_a_run_that_an_upgrade_leaves_behind_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = study(tmp_path, "")

    def stopped(*arguments: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(running, "execute", stopped)
        patch.setattr(running, "code_version", lambda study: "older")
        with pytest.raises(KeyboardInterrupt):
            run(notebook, results=tmp_path / "results")
    (before,) = list_runs(tmp_path / "results")
    capsys.readouterr()
    monkeypatch.setattr(running, "execute", lambda *arguments: "")
    assert run(notebook, results=tmp_path / "results").status == "complete"
    said = capsys.readouterr().err
    assert (
        f"{before.path} was interrupted with another version of the code, and begins again" in said
    )
    run(notebook, seed=1, results=tmp_path / "results")
    assert "interrupted" not in capsys.readouterr().err


@pytest.mark.parametrize("length", [80, 88, 123])
def test_a_notebook_runs_whatever_the_folder_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """Paths of sockets are short, and batch systems have deep folders."""
    folder = tmp_path / ("t" * max(1, length - len(str(tmp_path)) - 1))
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    info = run(study(tmp_path, "print(1)"), results=tmp_path / "results")
    assert (info.status, info.reason) == ("complete", "")


def test_a_notebook_runs_where_no_folder_is_short_enough_for_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "_holds_sockets", lambda folder: False)
    info = run(study(tmp_path, "print(1)"), results=tmp_path / "results")
    assert (info.status, info.reason) == ("complete", "")


def table() -> pd.DataFrame:
    rows = [
        ("2p", "nelder-mead", None, None, True, 30),
        ("2p", "nelder-mead", None, None, False, 100),
        ("2p", "vito", 70, 10, False, 100),
        ("2p", "vito", 70, 300, True, 3),
        ("2p", "vito", 70, 300, True, 5),
        ("3p", "vito", 150, 300, False, 150),
    ]
    names = ["setup", "method", "n_states", "n_samples", "solved", "n_runs"]
    frame = pd.DataFrame(rows, columns=names).assign(n_restarts=0)
    frame["start"] = np.where(frame["method"] == "vito", None, 0)
    return frame.astype({"n_states": "Int64", "n_samples": "Int64", "start": "Int64"})


def test_methods_that_share_numbered_starts_are_compared_on_those() -> None:
    rows = [
        {"setup": "grid", "method": "vito", "start": start, "solved": start > 0, "n_runs": 10}
        for start in range(3)
    ]
    rows.append({"setup": "grid", "method": "simplex", "start": 0, "solved": True, "n_runs": 7})
    frame = pd.DataFrame(rows).assign(n_states=1, n_samples=1, n_restarts=0, patient="F1")
    found = standing(frame)
    assert list(found["method"]) == ["vito", "simplex"]
    assert list(found["n"]) == [1, 1]
    assert list(found["success"]) == [0.0, 100.0]


def test_vito_at_its_largest_training_size_stands_beside_the_references() -> None:
    found = standing(table())
    assert list(found["method"]) == ["vito", "nelder-mead", "vito"]
    assert list(found["n"]) == [2, 2, 1]
    assert list(found["success"]) == [100.0, 50.0, 0.0]
    assert list(found["runs_all"]) == [4.0, 65.0, 150.0]
    assert list(found["runs_solved"].fillna(-1)) == [4.0, 30.0, -1.0]


def test_the_demonstration_prints_a_table_and_where_the_results_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def quickly(study: Study, profile: str, results: Path) -> RunInfo:
        path = results / study.name
        path.mkdir()
        table().to_parquet(path / "personalizations.parquet")
        return RunInfo(path, study.name, "complete")

    def load(path: Path) -> Any:
        patients = pd.DataFrame({"setup": ["2p", "2p"], "solvable": [True, False]})
        tables = {"personalizations": pd.read_parquet(path / TABLE), "patients": patients}
        return type("Stored", (), tables)

    monkeypatch.setattr(demonstration, "run", quickly)
    monkeypatch.setattr(demonstration.Run, "load", load)
    infos = demo(tmp_path)
    assert [info.study for info in infos] == list(DEMO)
    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    assert ["2p", "vito", "100.0", "%", "4.0", "4.0", "2"] in lines
    assert ["2p", "nelder-mead", "50.0", "%", "65.0", "30.0", "2"] in lines
    assert ["3p", "vito", "0.0", "%", "150.0", "-", "1"] in lines
    assert "2p: 1 of 2 patients have a solution" in said
    assert "patients are synthetic" in said
    assert all(f"{info.study}: {info.path}" in said for info in infos)
    assert f"vitolab dashboard --results {tmp_path}" in said


TABLE = "personalizations.parquet"


def test_the_demonstration_ends_with_a_study_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = RunInfo(tmp_path, DEMO[0], "failed", "no")
    monkeypatch.setattr(demonstration, "run", lambda *_, **__: failed)
    assert demo(tmp_path) == [failed]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"n_patients": -1}, "wbc-convergence: n_patients holds -1, expected at least 2"),
        ({"n_samples": {"2p": [0]}}, "n_samples holds 0"),
        ({"setups": []}, "setups is empty"),
    ],
)
def test_too_small_counts_are_refused_before_anything_runs(
    overrides: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        checked_parameters(find_study("wbc-convergence"), "quick", overrides)


@pytest.mark.parametrize(
    ("study", "overrides", "says"),
    [
        ("wbc-12p", {"setups": ["7p"]}, "setups holds '7p', expected one of 2p, 3p, 5p, 6p, 9p"),
        ("wbc-12p", {"agents": ["foo"]}, "agents holds 'foo', expected one of vito,"),
        ("wbc-12p", {"methods": ["vito"]}, "methods holds 'vito', expected one of bobyqa-simple,"),
        ("wbc-12p", {"setups": ["9p"]}, "n_samples holds nothing for '9p', expected a size"),
        ("stability", {"n_perturbations": 1}, "n_perturbations holds 1, expected at least 2"),
        ("stability", {"deviation_share": -1.0}, "deviation_share holds -1, expected above 0"),
        ("stability", {"setups": ["2p", "2p"]}, r"setups is \['2p', '2p'\], expected each once"),
        ("uncertainty", {"n_walkers": 3}, "n_walkers holds 3, expected at least 4"),
        ("uncertainty", {"n_walkers": 5}, "n_walkers holds 5, expected an even number"),
        ("wbc-12p", {"n_patients": 49}, "n_patients holds 49, expected at most 48"),
        ("ep-convergence", {"n_patients": 76}, "n_patients holds 76, expected at most 75"),
        ("hindsight", {"n_ep_patients": 76}, "n_ep_patients holds 76, expected at most 75"),
        ("hindsight", {"mode": "fast"}, "mode holds 'fast', expected one of table, exact"),
        ("ep-scouting", {"lead_fields": ["exact"]}, "lead_fields holds 'exact', expected one of"),
        ("ep-personalization", {"n_patients": 1}, "n_patients holds 1, expected at least 2"),
    ],
)
def test_what_a_study_cannot_do_is_refused_before_anything_runs(
    study: str, overrides: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=f"{study}: {says}"):
        checked_parameters(find_study(study), "quick", overrides)


def test_a_malformed_file_is_refused_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"measured\.csv, row 1: column"):
        run(find_study("prediction"), overrides={"data": str(file)}, results=tmp_path / "results")
    assert not (tmp_path / "results").exists()
