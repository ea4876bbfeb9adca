"""What `vitolab personalize --learn-as-you-go` says while it works and in the end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from test_cli import call

from vitolab.store import OpenRun


def test_a_round_of_more_patients_than_there_are_is_all_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "A,-0.67,0.57,0.1\nB,0.6667,0.5667,0.09\n"
    (tmp_path / "f.csv").write_text(f"patient,t1,t2,alpha\n{rows}", encoding="utf-8")
    options = ["--patients", tmp_path / "f.csv", "--results", tmp_path, "--learn-as-you-go"]
    assert call("personalize", "rosenbrock", *options, "--at-a-time", "999999999999") == 0
    said = capsys.readouterr().err
    assert "in the order of the file, all patients at once: " in said
    assert "999999999999" not in said


def test_a_command_shows_its_own_progress_whatever_others_do_in_the_same_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vitolab.validation.continuing import Continuing

    personalizer = Continuing.personalizer

    def meanwhile(*given: Any) -> Any:
        other = OpenRun.start(tmp_path, "personalize", {"n": given[1].name}, 0, "1", again=True)
        other.progress("of another command", 1, 7)
        time.sleep(1.2)
        return personalizer(*given)

    monkeypatch.setattr(Continuing, "personalizer", meanwhile)
    (tmp_path / "f.csv").write_text("patient,t1,t2,alpha\nA,-0.67,0.57,0.1\n", encoding="utf-8")
    options = ["--patients", tmp_path / "f.csv", "--results", tmp_path, "--learn-as-you-go"]
    assert call("personalize", "rosenbrock", *options) == 0
    said = capsys.readouterr().err
    assert "personalising one after the other: 1 of 1" in said
    assert "of another command" not in said
    # of one that is complete there is no progress
    assert call("personalize", "rosenbrock", *options) == 0
    assert "personalising" not in capsys.readouterr().err
