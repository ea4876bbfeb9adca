"""A run that is given so much wall time ends with what is finished, says so, and can go on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from vitolab import cli
from vitolab.files import digest
from vitolab.store import OpenRun, Run
from vitolab.store.claims import OutOfTime
from vitolab.store.info import RunInfo, inspect_run, read_progress
from vitolab.store.records import SCHEMA, Progress
from vitolab.studies import Study, run
from vitolab.studies import running as studies
from vitolab.validation.parts import work_through

PATIENTS = pd.DataFrame({"setup": "2p", "patient": [f"P{i}" for i in range(8)]})
KEYS = dict.fromkeys(["n_states", "n_samples", "repeat", "start"])


def fold(patient: str, begun: list[str], pause: float) -> tuple[pd.DataFrame, None]:
    """A part that takes its time."""
    begun.append(patient)
    time.sleep(pause)
    row = {"setup": "2p", "patient": patient, "method": "vito", "solved": True, "n_runs": 1}
    return pd.DataFrame([row | KEYS]), None


def fill(folder: OpenRun, begun: list[str], pause: float = 0.0, n_jobs: int = 1) -> Run:
    """What a notebook does, in two stages."""
    for stage, names in (("first", range(6)), ("second", range(6, 8))):
        work = {digest(i): (f"P{i}", begun, pause) for i in names}
        work_through(folder, stage, work, fold, n_jobs)
    return folder.finish(problems={}, patients=PATIENTS)


def start(root: Path) -> OpenRun:
    return OpenRun.start(root, "s", {}, 0, "1")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_when_the_time_is_spent_nothing_is_begun_and_the_rest_is_counted(
    tmp_path: Path, n_jobs: int
) -> None:
    whole = fill(start(tmp_path / "whole"), [])
    own = start(tmp_path / "short")
    own.allow(2.0 / 3600)
    begun: list[str] = []
    pause = 0.7
    until = OpenRun.attach(own.path).until
    with pytest.raises(OutOfTime) as caught:
        fill(OpenRun.attach(own.path), begun, pause, n_jobs)
    done = len(begun)
    assert 1 <= done <= 3 * n_jobs  # as many as begin within two seconds
    said = f"stopped at its limit of {2.0 / 3600:g} h"
    assert str(caught.value) == f"{said}: {done} of 8 parts are finished"
    assert time.time() >= until
    told = read_progress(own.path)
    assert told is not None
    assert (told.stage, told.done, told.total) == (said, done, 8)
    own.release()
    assert inspect_run(own.path).status == "interrupted"
    assert sorted(Run.load(own.path).personalizations["patient"]) == sorted(begun)

    following = start(tmp_path / "short")
    assert (following.state, following.limit) == ("resumed", None)
    more: list[str] = []
    fill(following, more)
    assert sorted(begun + more) == [f"P{i}" for i in range(8)]
    for name in ("personalizations.parquet", "patients.parquet"):
        assert (own.path / name).read_bytes() == (whole.path / name).read_bytes()
    assert "limit.json" not in Run.load(own.path).manifest.files
    assert not (own.path / "limit.json").exists()


def test_time_that_suffices_makes_no_difference(tmp_path: Path) -> None:
    own = start(tmp_path)
    own.allow(1.0)
    fill(OpenRun.attach(own.path), [])
    own.close("complete")
    assert len(Run.load(own.path).personalizations) == 8


def test_walks_are_not_explored_when_the_time_is_spent(tmp_path: Path) -> None:
    own = start(tmp_path)
    own.allow(1e-9)
    time.sleep(0.01)

    def explore() -> Any:
        raise AssertionError("explored")

    work_through(own, "folds", {"a": ()}, fold, 1, walks=explore)
    with pytest.raises(OutOfTime, match="0 of 1 parts"):
        own.finish(problems={}, patients=PATIENTS)
    own.release()


NOTEBOOK = (
    "import pandas as pd\nimport time\nfrom vitolab.store import open_run\n"
    "from vitolab.validation.parts import work_through\n"
    "run = open_run('try', {'n': n}, results=results, seed=seed, folder=run_folder)",
    "row = dict.fromkeys(['n_states', 'n_samples', 'repeat', 'start'])\n"
    "row |= {'setup': '2p', 'method': 'vito', 'solved': True, 'n_runs': 1}\n"
    "part = lambda i: (time.sleep(0.5), (pd.DataFrame([row | {'patient': f'P{i}'}]), None))[1]\n"
    "work_through(run, 'parts', {f'p{i}': (i,) for i in range(n)}, part, n_jobs)",
    "patients = pd.DataFrame({'setup': ['2p'], 'patient': ['P0']})\n"
    "stored = run.finish(problems={}, patients=patients)",
    "assert len(stored.personalizations) == n, 'a figure was drawn of what is not there'",
)


def notebook(path: Path, cells: Sequence[str]) -> Study:
    own = 'n = 4\nseed = 0\nn_jobs = 1\nresults = ""\nrun_folder = ""'
    tagged = new_code_cell(own, metadata={"tags": ["parameters"]})
    nbformat.write(new_notebook(cells=[tagged, *map(new_code_cell, cells)]), path)
    return Study("try", str(path), "Try", {"quick": {}}, {"quick": "a second"})


def test_a_study_that_is_out_of_time_is_interrupted_and_goes_on(tmp_path: Path) -> None:
    tried = notebook(tmp_path / "t.ipynb", NOTEBOOK)
    info = run(tried, results=tmp_path / "results", max_hours=1e-6)
    assert info.status == "interrupted"
    assert info.progress is not None
    assert (info.progress.stage, info.progress.total) == ("stopped at its limit of 1e-06 h", 4)
    assert info.progress.done == 0  # spent before the kernel was there
    assert list(Run.load(info.path).patients["patient"]) == ["P0"]
    again = run(tried, results=tmp_path / "results")
    assert (again.path, again.status) == (info.path, "complete")
    assert len(Run.load(again.path).personalizations) == 4


@pytest.mark.parametrize("hours", [0.0, -1.0, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, hours: float) -> None:
    tried = notebook(tmp_path / "t.ipynb", NOTEBOOK)
    with pytest.raises(ValueError, match=r"max_hours is .*, expected above 0"):
        run(tried, results=tmp_path / "results", max_hours=hours)
    assert not (tmp_path / "results").exists()


def test_the_command_line_says_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}
    told = Progress(
        schema_version=SCHEMA, stage="stopped at its limit of 2 h", done=37, total=96, heartbeat=0
    )

    def answer(*_: Any, **arguments: Any) -> RunInfo:
        asked.update(arguments)
        return RunInfo(tmp_path, "tour", "interrupted", progress=told)

    monkeypatch.setattr(studies, "run", answer)
    monkeypatch.setattr("sys.argv", ["vitolab", "run", "tour", "--max-hours", "2"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, asked["max_hours"]) == (cli.OUT_OF_TIME, 2.0)
    assert capsys.readouterr().err == (
        "vitolab: stopped at its limit of 2 h: 37 of 96 parts are finished; the same command "
        f"goes on from here; see {tmp_path}\n"
    )
