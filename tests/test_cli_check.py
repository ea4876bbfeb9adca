"""A model is run once from the command line, which says how long that takes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import own_problem
import pytest
from test_cli import call

from vitolab.display import lasting

own = own_problem.own

#: What the example answers, after a while; each call leaves a mark, and prints.
MODEL = """
import time

def windkessel(x, patient):
    with open("calls", "a") as file:
        file.write("1")
    print("a model that talks")
    time.sleep(0.2)
    {ending}
"""
ANSWERS = 'return {"mean": 90.0, "systolic": 120.0, "diastolic": 70.0}'


def model_of(folder: Path, ending: str = ANSWERS) -> tuple[Path, str, Path]:
    """Arguments of the command for a model that ends so."""
    (folder / "model.py").write_text(MODEL.replace("{ending}", ending))
    return folder / "problem.toml", "--patients", folder / "patients.csv"


def n_calls(folder: Path) -> int:
    return len((folder / "calls").read_text())


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (2e-5, "0.02 ms"),
        (0.0999, "99.9 ms"),
        (0.25, "0.25 s"),
        (119.0, "119 s"),
        (300.0, "5 min"),
        (7200.0, "2 h"),
        (1e8, "27,778 h"),
    ],
)
def test_a_time_is_told_in_the_unit_that_fits(seconds, words):
    assert lasting(seconds) == words


def test_the_time_of_a_run_is_told_without_that_of_loading(own, capsys):
    assert call("check", *model_of(own)) == 0
    out = capsys.readouterr().out
    assert out.startswith("W01 at the default values: mean_pressure 90 mmHg (measured 103.6), ")
    found = re.search(r"one run took ([\d.]+) s \(the first, .*; 100 .* would take ([\d.]+) s", out)
    one, many = map(float, found.groups())
    assert 0.2 <= one < 5.0
    assert many == pytest.approx(100 * one, rel=0.01)
    assert "a model that talks" not in out
    assert n_calls(own) == 2


def test_a_model_that_takes_long_is_run_once(own, capsys, monkeypatch):
    monkeypatch.setattr(sys.modules["vitolab.cli.check"], "PATIENCE", 0.1)
    assert call("check", *model_of(own)) == 0
    assert n_calls(own) == 1
    assert "the first" not in capsys.readouterr().out


def test_a_run_that_fails_is_told_with_its_cause_and_its_time(own, capsys):
    assert call("check", *model_of(own, 'raise RuntimeError("no steady state")')) == 1
    said = capsys.readouterr()
    assert "W01 at the default values: the run failed, " in said.err
    assert "no steady state" in said.err
    assert said.out.startswith("one run took ")


def test_patients_of_a_model_of_ones_own_are_needed(own, capsys):
    assert call("check", own / "problem.toml") == 2
    assert capsys.readouterr().err == (
        "vitolab: --patients FILE.csv is missing, expected it for a model without synthetic ones\n"
    )


def test_a_built_in_model_is_run_for_a_synthetic_patient(capsys):
    assert call("check", "rosenbrock") == 0
    assert capsys.readouterr().out.startswith("F001 at the default values: t1 ")


def test_a_model_that_answers_otherwise_the_second_time_is_told(own, capsys):
    other = 'return {"mean": len(open("calls").read()), "systolic": 120.0, "diastolic": 70.0}'
    assert call("check", *model_of(own, other)) == 0
    assert capsys.readouterr().err.endswith(
        "vitolab: warning: the second run answered otherwise, by up to 0.5 tolerances: results will"
        " not be the same again\n"
    )
    assert call("check", *model_of(own)) == 0
    assert "otherwise" not in capsys.readouterr().err


def test_measurements_that_are_missing_are_told_before_a_patient_is_personalised(own, capsys):
    file = own / "patients.csv"
    rows = [line.split(",") for line in file.read_text().splitlines()]
    rows[2][-1] = ""
    file.write_text("\n".join(",".join(row) for row in rows))
    assert call("check", *model_of(own)) == 0
    said = capsys.readouterr().err
    name, column = rows[2][0], rows[0][-1].partition(" ")[0]
    assert said.startswith(
        f"vitolab: {file}, row 3: patient '{name}' lacks {column}, expected a number or "
        "--allow-missing\n"
    )


def test_a_file_that_cannot_be_understood_is_refused_though_only_its_first_patient_is_run(
    own, capsys
):
    file = own / "patients.csv"
    rows = file.read_text().splitlines()
    file.write_text("\n".join([*rows, rows[1].replace(rows[1].split(",")[1], "much")]))
    assert call("check", *model_of(own)) == 2
    assert f"{file}, row {len(rows) + 1}, column" in capsys.readouterr().err
