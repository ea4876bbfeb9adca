"""Running a study owns the run, and alone says how it ended."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from small_studies import GIVEN, PARAMETERS, study

from vitolab import display
from vitolab.store import Run, list_runs
from vitolab.store.records import Progress
from vitolab.studies import (
    notebooks,
    run,
    running,
)
from vitolab.studies.notebooks import execute

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
