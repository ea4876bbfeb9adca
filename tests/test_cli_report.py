"""The last line of `vitolab personalize`: how many were solved, and how sure that share is."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitolab import cli
from vitolab.intervals import wilson


def test_the_share_of_patients_stands_with_wilsons_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "functions.csv"
    file.write_text("patient,alpha,t1,t2\nA,0.5,0.5,0\nB,1.0,1.0,0\nC,0.5,900,900\n")
    asked = ["vitolab", "personalize", "rosenbrock", "--patients", str(file)]
    asked += ["--method", "least-squares", "--results", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", asked)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    low, high = (100 * end for end in wilson(2 / 3, 3))
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"2 of 3 patients solved (95 % interval: {low:.0f} to {high:.0f} %), 0")
