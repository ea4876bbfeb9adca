"""Values that no file should hold end in one sentence, and what is ambiguous is not guessed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitolab.cli import main
from vitolab.dashboard import read_users
from vitolab.models import circulation
from vitolab.patients import InputError, read_patients
from vitolab.patients.markers import suspects
from vitolab.patients.units import conversion
from vitolab.personalization.outcomes import _own_names
from vitolab.problem import Objective, Parameter, Problem
from vitolab.problemfile import read_problem

HEADER = "patient,heart_rate [1/min],lv_edv [mL],share,axis [°]"


def _answer(x, patient):
    return np.repeat(x, 3, axis=1)


def problem(**changes) -> Problem:
    """Give a problem of one parameter."""
    return Problem(
        **{
            "name": "shares",
            "version": "1",
            "parameters": (Parameter("a", "a", "", 0.0, 1.0, 0.5, 0.01),),
            "objectives": (
                Objective("lv_edv", "volume", "mL", 1.0),
                Objective("share", "share", "", 0.1),
                Objective("axis", "axis", "°", 1.0, "angle"),
            ),
            "simulate": _answer,
            **changes,
        }
    )


def read(folder: Path, text: str):
    """Read patients of a text."""
    path = folder / "p.csv"
    path.write_text(text, encoding="utf-8")
    about = circulation.MODEL
    return read_patients(path, problem(), data=about.data, ranges=about.ranges, rising=about.rising)


# --- units -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "expected", "factor"),
    [
        ("rad", "°", 180 / np.pi),
        ("turn", "°", 360.0),
        ("ppm", "%", 1e-4),
        ("1", "", 1.0),
        ("cm3", "mL", 1.0),
        ("mm3", "mL", 1e-3),
        ("mmhg", "kPa", 0.133322387415),
        ("L/min/m2", "mL/min/m^2", 1000.0),
        ("Hz", "1/min", 60.0),
    ],
)
def test_units_of_one_kind_convert(unit, expected, factor):
    assert conversion(unit, expected) == pytest.approx(factor, rel=1e-6)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        *((unit, "") for unit in ("turn", "rad", "°", "%", "ppm", "count", "bit", "mg/g", "m/mm")),
        ("", "%"),
        ("bit", "%"),
        ("rpm", "1/min"),
        ("rad/s", "Hz"),
        ("count/min", "1/min"),
        ("mg/g", "%"),
    ],
)
def test_no_unit_changes_by_a_factor_without_dimension_that_nobody_asked_for(unit, expected):
    assert conversion(unit, expected) is None


def test_a_percentage_for_a_plain_number_is_refused_with_what_to_write(tmp_path):
    with pytest.raises(InputError) as refused:
        read(tmp_path, f"{HEADER.replace('share', 'share [%]')}\nP,72,180,39,30\n")
    assert str(refused.value) == (
        f"{tmp_path / 'p.csv'}, row 1, column 'share [%]': found unit '%', expected no unit or a "
        "unit that converts to it; angles, shares and counts are not converted to one another or "
        "to plain numbers, write the values as plain numbers, without brackets in the header"
    )


@pytest.mark.parametrize("pair", [("mL", "9**9**9"), ("9**9**9", "mL"), ("m**9**9**9", "m")])
def test_powers_of_powers_are_not_worked_out(pair):
    began = time.monotonic()
    assert conversion(*pair) is None
    assert time.monotonic() - began < 1.0


# --- shapes of files -------------------------------------------------------------------


@pytest.mark.parametrize("first", ["", "sep=,\n", '"sep=,"\n', "sep=,,,,\n"])
def test_what_a_spreadsheet_adds_is_passed_over(tmp_path, first):
    table = read(tmp_path, f"{first}{HEADER},,,\nP,72,180,0.3,30,,,\nQ,72,170,0.4,31\n")
    assert [p.name for p in table.patients] == ["P", "Q"]
    assert not list(table.extra)


def test_a_value_in_a_column_without_a_name_is_not_lost(tmp_path):
    with pytest.raises(InputError, match=r"row 2: found 'x' in column 7, which has no name"):
        read(tmp_path, f"{HEADER},,\nP,72,180,0.3,30,,x\n")


def test_columns_said_to_be_separated_otherwise_are_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"row 1: found semicolons between columns, expected commas"
    ):
        read(tmp_path, f"sep=;\n{HEADER}\nP,72,180,0.3,30\n")


@given(
    st.lists(
        st.sampled_from(["solved", "n", "x"]).flatmap(
            lambda name: st.integers(0, 3).map(lambda k: name + " (file)" * k)
        ),
        unique=True,
    )
)
def test_each_further_column_keeps_a_name_of_its_own(names):
    taken = ["patient", "solved", "n"]
    found = _own_names(names, taken)
    assert len({*found, *taken}) == len(names) + len(taken)
    assert all(new.startswith(old) for old, new in zip(names, found, strict=True))


# --- markers of missing values ---------------------------------------------------------


def test_a_plausible_999_is_used_and_said(tmp_path):
    table = read(tmp_path, f"{HEADER}\nP,75,999,0.3,30\nQ,60,150.6,0.4,31\n")
    assert table.patients[0].measurements["lv_edv"] == 999.0
    (warning,) = table.warnings
    assert f"{tmp_path / 'p.csv'}, row 2, column 'lv_edv [mL]': 999 looks like a marker" in warning


def test_an_implausible_999_is_refused_as_a_marker(tmp_path):
    with pytest.raises(InputError, match=r"to 1500 mL; it looks like a marker of a missing value"):
        read(tmp_path, f"{HEADER}\nP,75,-99,0.3,30\n")


@given(
    st.lists(st.integers(850, 1100).filter(lambda n: n != 999), min_size=3, unique=True),
    st.integers(0, 3),
)
def test_nines_among_their_neighbours_are_ordinary(others, place):
    near = [*others, 998]
    near.insert(place, 999)
    assert suspects([str(value) for value in near]) == []


@given(
    st.lists(st.floats(50, 80), min_size=3),
    st.sampled_from(["999", "9999", "-999", "-9999", "999.0"]),
    st.integers(0, 3),
)
def test_nines_far_from_all_others_are_suspects_wherever_they_stand(others, marker, place):
    cells = [repr(value) for value in others]
    cells.insert(place, marker)
    assert suspects(cells) == [place]


def test_short_nines_are_suspects_only_beside_values_that_are_alike():
    assert suspects(["99", "88", "85", "92"]) == []
    assert suspects(["9", "15", "18", "20"]) == []
    assert suspects(["99"]) == []
    assert suspects(["0.3", "0.4", "99", "0.35", "99"]) == [2, 4]


# --- numbers of any size ---------------------------------------------------------------

NASTY = [
    "9" * 1000,
    "9" * 5000,
    "1e999",
    "-1e999",
    "1e" + "9" * 30,
    "9**9**9",
    "nan",
    "[" * 10_000,
    "[" * 10_000 + "]" * 10_000,
    '{"a":' * 10_000 + "1" + "}" * 10_000,
    "0x" + "f" * 6000,
    "1_" * 2000 + "1",
]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Sentence with which the command line refuses, at once."""
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["vitolab", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    assert time.monotonic() - began < 5.0  # with imports, on a machine that is busy
    said = capsys.readouterr()
    assert ended.value.code == 2, said.err[:500]
    assert said.out == ""
    (line,) = said.err.splitlines()
    return line


@pytest.mark.parametrize("value", NASTY, ids=lambda value: value[:8])
@pytest.mark.parametrize("option", ["-p n_samples=", "--seed=", "--jobs=", "--max-hours="])
def test_options_refuse_numbers_of_any_size(capsys, tmp_path, option, value):
    name, equals, rest = option.partition("=")
    asked = [*f"{name}{equals}{rest}{value}".split(" ", 1)]
    line = refused(capsys, "run", "wbc-scouting", "--results", str(tmp_path / "r"), *asked)
    assert line.startswith("vitolab: ")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("value", NASTY, ids=lambda value: value[:8])
def test_cells_and_header_units_refuse_numbers_of_any_size(tmp_path, value):
    cell = '"' + value.replace('"', '""') + '"'
    for text in (
        f"{HEADER}\nP,72,{cell},0.3,30\n",
        HEADER.replace("lv_edv [mL]", '"' + f"lv_edv [{value}]".replace('"', '""') + '"') + "\nP",
    ):
        began = time.monotonic()
        with pytest.raises(InputError):
            read(tmp_path, text)
        assert time.monotonic() - began < 1.0


@pytest.mark.parametrize("value", NASTY, ids=lambda value: value[:8])
@pytest.mark.parametrize(
    "line", ["multipliers = [{}]", "version = {}", "a{} = 1", "[[columns]]\nname='n'\nlower = {}"]
)
def test_problem_files_refuse_numbers_of_any_size(tmp_path, line, value):
    path = tmp_path / "problem.toml"
    path.write_text(f"name = 'own'\n{line.format(value)}\n", encoding="utf-8")
    began = time.monotonic()
    with pytest.raises(InputError):
        read_problem(path)
    assert time.monotonic() - began < 1.0


def test_a_key_nested_without_end_is_refused(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text("name = 'own'\n" + ".".join("a" * 5000) + " = 1\n", encoding="utf-8")
    with pytest.raises(InputError):
        read_problem(path)


@pytest.mark.parametrize("value", NASTY, ids=lambda value: value[:8])
def test_password_files_refuse_numbers_of_any_size(tmp_path, value):
    path = tmp_path / "users.json"
    for text in (value, f'{{"ann": {value}}}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="expected JSON such as"):
            read_users(path)


# --- domains ---------------------------------------------------------------------------


def domain(folder: Path, lines: str) -> Path:
    """Problem file with one parameter."""
    (folder / "model.py").write_text("def simulate(x, patient):\n    return [x[0]]\n")
    path = folder / "problem.toml"
    path.write_text(
        f"name = 'own'\n[[parameters]]\nname = 'a'\n{lines}\n"
        "[[objectives]]\nname = 'u'\ntolerance = 1.0\n"
        "[model]\nadapter = 'function'\nfile = 'model.py'\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(
    "lines",
    [
        "lower = 1e308\nupper = 1.7e308",
        "lower = 1e200\nupper = 1e300\nscale = 'log'",
        "lower = 1e-300\nupper = 1e-200\nscale = 'log'",
    ],
)
def test_a_middle_that_overflows_is_still_the_middle(tmp_path, lines):
    (parameter,) = read_problem(domain(tmp_path, lines)).problem.parameters
    assert parameter.lower < parameter.default < parameter.upper


def test_a_width_that_overflows_is_named_and_no_default(tmp_path):
    with pytest.raises(InputError, match=r"'a': lower is -1.5e\+308 and upper 1.5e\+308"):
        read_problem(domain(tmp_path, "lower = -1.5e308\nupper = 1.5e308"))
    with pytest.raises(ValueError, match=r"'a': lower is -1.5e\+308 and upper 1.5e\+308"):
        Parameter("a", "a", "", -1.5e308, 1.5e308, 0.0, 1.0)


def test_steps_and_multipliers_that_no_walk_can_count_are_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="parameter 'a': step is 1e-300"):
        Parameter("a", "a", "", 0.0, 1.0, 0.5, 1e-300)
    with pytest.raises(ValueError, match=r"multipliers hold 1e\+20, expected at most 1000000000"):
        problem(multipliers=(1, 10**20))
    with pytest.raises(InputError, match="'a': step is 1e-300"):
        read_problem(domain(tmp_path, "lower = 0.0\nupper = 1.0\nstep = 1e-300"))


# --- encodings -------------------------------------------------------------------------


def test_a_redirected_template_is_utf_8_whatever_the_encoding_of_the_terminal(tmp_path):
    printed = subprocess.run(
        [sys.executable, "-m", "vitolab", "personalize", "electrophysiology", "--template"],
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    table = pd.read_csv(io.StringIO(printed.decode("utf-8")))
    assert "electrical_axis [°]" in table.columns
