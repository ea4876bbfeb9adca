"""The demonstration: tables that compare methods, and where the results are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vitolab.store import RunInfo
from vitolab.studies import (
    Study,
)
from vitolab.studies import demo as demonstration
from vitolab.studies.demo import DEMO, demo, standing


def table() -> pd.DataFrame:
    rows = [
        ("2p", "A", "nelder-mead", None, None, True, 30),
        ("2p", "B", "nelder-mead", None, None, False, 100),
        ("2p", "A", "vito", 70, 10, False, 100),
        ("2p", "A", "vito", 70, 300, True, 3),
        ("2p", "B", "vito", 70, 300, True, 5),
        ("3p", "A", "vito", 150, 300, False, 150),
    ]
    names = ["setup", "patient", "method", "n_states", "n_samples", "solved", "n_runs"]
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
    # shares with Wilson's intervals, runs with those of resampled patients, which two bound
    assert [
        "2p",
        "vito",
        "100.0",
        "%",
        "34.2",
        "to",
        "100.0",
        "4.0",
        "3.0",
        "to",
        "5.0",
        "4.0",
        "2",
    ] in lines
    assert [
        "2p",
        "nelder-mead",
        "50.0",
        "%",
        "9.5",
        "to",
        "90.5",
        "65.0",
        "30.0",
        "to",
        "100.0",
        "30.0",
        "2",
    ] in lines
    assert ["3p", "vito", "0.0", "%", "0.0", "to", "79.3", "150.0", "-", "1"] in lines
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
