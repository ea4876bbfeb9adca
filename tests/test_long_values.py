"""Values of any length in messages: one sentence, in which both ends of the value are shown."""

from __future__ import annotations

import sys

import pytest

from vitolab import cli
from vitolab.failures import abridged

LONG = "m" * 100_000


@pytest.mark.parametrize("text", ["short 'one'", "it's " * 60, "/a/path/of/a.csv: is a folder"])
def test_a_message_without_long_values_stays(text):
    assert abridged(text) == " ".join(text.split())


@pytest.mark.parametrize(
    "value", ["x" * 300, "'" + "a b " * 100 + "'", '"' + "a b " * 100 + '"', "[" + "1," * 999 + "]"]
)
def test_of_a_long_value_both_ends_are_shown(value):
    found = abridged(f"n is {value}, expected 1")
    assert found.startswith(f"n is {value[:60]}…")
    assert found.endswith(", expected 1")
    assert len(found) < 200


@pytest.fixture
def table(tmp_path):
    """A file of patients with a unit that is long."""
    path = tmp_path / "patients.csv"
    path.write_text(f"patient,u [{LONG}],w\nA,1,1\n")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "rosenbrock-grid", "-p", f"n_samples={LONG}"],
        ["run", "tour", "-p", LONG],
        ["run", "tour", "-p", f"{LONG}=1"],
        ["run", LONG],
        ["run", "tour", "--profile", LONG],
        ["run", "tour", "--results", f"{{folder}}/{LONG}"],
        ["run", "tour", "--scheduler", LONG],
        [
            "run",
            "problem",
            "--problem",
            f"{{folder}}/{LONG}.toml",
            "--patients",
            "{folder}/good.csv",
        ],
        ["personalize", LONG],
        ["personalize", "rosenbrock", "--setup", LONG],
        ["personalize", "rosenbrock", "--patients", f"{{folder}}/{LONG}"],
        ["personalize", "rosenbrock", "--patients", "{folder}/patients.csv"],
        [
            "personalize",
            "rosenbrock",
            "--patients",
            "{folder}/good.csv",
            "--out",
            f"{{folder}}/{LONG}",
        ],
        ["personalize", "rosenbrock", "--patients", "{folder}/good.csv", "--method", LONG],
        ["dashboard", "--results", f"{{folder}}/{LONG}"],
        ["dashboard", "--prefix", f"?{LONG}"],
        ["dashboard", "--origin", f"?{LONG}"],
        ["dashboard", "--address", f"{LONG}:"],
        ["dashboard", "--basic-auth", f"{{folder}}/{LONG}"],
        ["new", "problem", f"{{folder}}/{LONG}"],
        ["new", LONG],
    ],
    ids=lambda arguments: " ".join(arguments)[:60].replace("m" * 10, ""),
)
def test_a_long_value_is_one_short_sentence(arguments, tmp_path, monkeypatch, capsys, table):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["vitolab", "personalize", "rosenbrock", "--template"])
    with pytest.raises(SystemExit):
        cli.main()
    (tmp_path / "good.csv").write_text(capsys.readouterr().out)
    before = sorted(tmp_path.iterdir())
    given = [argument.replace("{folder}", str(tmp_path)) for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["vitolab", *given])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert stopped.value.code == 2
    assert len(line) < 800
    assert "mmm" in line
    assert sorted(tmp_path.iterdir()) == before
