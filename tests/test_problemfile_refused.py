"""A problem from a file is read, or refused with everything that is wrong."""

import random
import string
import subprocess
import sys

import own_problem
import pytest
from own_problem import spoil

from vitolab.patients import InputError, read_patients
from vitolab.problemfile import ProblemError, read_problem
from vitolab.studies import OWN
from vitolab.studies import running as studies

own = own_problem.own


def refused(path):
    with pytest.raises(ProblemError) as caught:
        read_problem(path)
    for sentence in caught.value.sentences:
        assert sentence.startswith(str(path))
        assert "\n" not in sentence
    return [s.removeprefix(f"{path}: ") for s in caught.value.sentences]


def test_everything_wrong_is_said_at_once(own):
    path = spoil(
        own,
        ("lower = 0.4", "lower = 4.0"),
        ("lower = 0.3\n", "lower = 0.0\n"),
        ("upper = 0.2", "upper = 0.2\nstep = 0.3"),
        ("tolerance = 2.0", "tolerance = 0"),
        ('name = "diastolic_pressure"', 'name = "resistance"'),
        ('output = "systolic"', 'output = "systolic"\noutput_unit = "mL"'),
        ("lower = 30.0 ", "lower = 330.0 "),
    )
    assert refused(path) == [
        "parameter 'resistance': lower is 4, expected less than upper 3",
        "parameter 'compliance': lower is 0, expected above 0 on a log scale",
        "parameter 'impedance': step is 0.3, expected above 0 and at most the width of the domain, "
        "0.2",
        "objective 'mean_pressure': tolerance is 0, expected above 0",
        "objective 'systolic_pressure': output_unit is 'mL', expected a unit that converts to "
        "'mmHg'",
        "column 'heart_rate': lower is 330, expected at most upper 220",
        "objective 'resistance': the name is taken by a parameter, expected another",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("upper = 3.0", "upper = 0.4", "'resistance': lower is 0.4, expected less than upper 0.4"),
        ("upper = 3.0", "upper = inf", "parameters 'resistance', upper is inf, expected a finite"),
        ("upper = 3.0", 'upper = "3"', "parameters 'resistance', upper is '3', expected a number"),
        ("upper = 3.0", "", "parameters 'resistance', upper is missing, expected a value"),
        ("upper = 3.0", "upper = 3.0\nuper = 2", "parameters 'resistance', uper is not known"),
        ("upper = 3.0", "upper = [", "line "),
        ("default = 1.0", "default = 9.0", "default is 9, expected within [0.4, 3]"),
        ("step = 0.005", "step = -1", "'resistance': step is -1, expected above 0"),
        ('scale = "log"', 'scale = "lin"', "scale is 'lin', expected 'linear' or 'log'"),
        (
            'name = "resistance"',
            'name = "a b"',
            "'a b', name is 'a b', expected letters",
        ),
        ('name = "resistance"', 'name = "patient"', "taken by the column of names"),
        ('name = "windkessel"', 'name = "circulation-own"', "which is a model of vitolab"),
        ('name = "windkessel"', "name = 7", "name is 7, expected a text in quotes"),
        ("tolerance = 2.0", "tolerance = -2.0", "tolerance is -2, expected above 0"),
        ('adapter = "function" ', 'adapter = "magic" ', "expected one of"),
        ('adapter = "function" ', "", "model has no adapter"),
        ('file = "model.py"', 'file = "none.py"', "file is 'none.py', expected a file beside"),
        (
            'function = "windkessel"',
            'function = "simulat"',
            "no 'simulat', expected one of windkessel",
        ),
        (
            "time_limit = 10.0 ",
            "time_limit = 0 ",
            "time_limit is 0, expected greater than 0",
        ),
        ("time_limit = 10.0 ", "time_limit = 1.0\nworkers = 0\n", "time_limit needs worker"),
        ("# multipliers = [1, 10, 100]", "multipliers = [10, 1]\n#", "expected rising positive"),
        ("# border", 'border = "bounce"\n#', "border is 'bounce', expected 'clip', 'reject' or"),
    ],
)
def test_each_fault_is_one_sentence_that_says_where(own, old, new, says):
    (sentence,) = refused(spoil(own, (old, new)))
    assert says in sentence


def test_files_that_are_none_are_refused(tmp_path, own):
    assert "there is no such file" in refused(tmp_path / "none.toml")[0]
    (tmp_path / "bytes.toml").write_bytes(b'name = "\xff"')
    assert "byte 9 is not UTF-8" in refused(tmp_path / "bytes.toml")[0]
    (tmp_path / "huge.toml").write_bytes(b"#" * 2_000_000)
    assert "more than 1 MB" in refused(tmp_path / "huge.toml")[0]
    assert "cannot be read" in refused(own)[0]
    (own / "model.py").write_text("def simulate(:\n")
    assert "model.py, line 1" in refused(own / "problem.toml")[0]


def test_of_a_function_that_is_not_there_the_functions_of_the_file_are_offered(own):
    (own / "model.py").write_text(
        "import numpy as np\nimport time\nN = 3\ndef simulate(x, p): ...\n"
    )
    (said,) = refused(own / "problem.toml")
    assert said.endswith("model.py defines no 'windkessel', expected one of simulate")
    (own / "model.py").write_text("import time\n")
    (said,) = refused(own / "problem.toml")
    assert said.endswith("defines no 'windkessel', expected a function of this name")


@pytest.mark.parametrize(
    ("missing", "says"),
    [("problem", "problem is missing, expected --problem"), ("patients", "expected --patients")],
)
def test_both_files_are_needed(own, missing, says):
    given = {"problem": str(own / "problem.toml"), "patients": str(own / "patients.csv")}
    given.pop(missing)
    with pytest.raises(ValueError, match=says):
        studies.checked_parameters(OWN, "quick", given)


def test_one_patient_is_too_few(own):
    rows = (own / "patients.csv").read_text().splitlines()
    (own / "patients.csv").write_text("\n".join(rows[:2]))
    given = {"problem": str(own / "problem.toml"), "patients": str(own / "patients.csv")}
    with pytest.raises(ValueError, match="found 1 patients with all measurements"):
        studies.checked_parameters(OWN, "quick", given)


def test_the_command_line_says_each_fault_on_a_line_of_its_own(own, tmp_path):
    spoil(own, ("lower = 0.4", "lower = 4.0"), ("tolerance = 2.0", "tolerance = 0"))
    command = [sys.executable, "-m", "vitolab", "run", "problem"]
    files = ["--problem", str(own / "problem.toml"), "--patients", str(own / "patients.csv")]
    done = subprocess.run(
        [*command, *files, "--results", str(tmp_path / "results")], capture_output=True, text=True
    )
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"vitolab: {own / 'problem.toml'}: ") for line in lines)
    assert not (tmp_path / "results" / "problem").exists()


# Files that a cat wrote

SIGNS = string.printable + "\0\ufeff°é[]=\"'#,;\n"


def _mangled(text, rng):
    """A file after some accidents."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 4)):
        way = rng.randrange(7)
        i = rng.randrange(len(lines))
        if way == 0:
            lines[i] = ""
        elif way == 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[i])
        elif way == 2:
            k = rng.randrange(len(lines[i]) + 1)
            lines[i] = lines[i][:k] + rng.choice(SIGNS) + lines[i][k:]
        elif way == 3:
            name, equals, _ = lines[i].partition("=")
            values = ["-1", "0", "1e400", "nan", "true", "[]", "{}", '""', '"x"', "9" * 400, "-inf"]
            lines[i] = f"{name}{equals} {rng.choice(values)}\n" if equals else lines[i]
        elif way == 4:
            cells = lines[i].rstrip("\n").split(",")
            cells[rng.randrange(len(cells))] = rng.choice(["", "x", "-5", "1e999", '"', "nan", "7"])
            lines[i] = ",".join(cells) + "\n"
        elif way == 5:
            lines = lines[: i + 1]
        else:
            lines[i] = lines[i].replace(rng.choice(SIGNS), rng.choice(SIGNS))
        if not lines:
            return ""
    return "".join(lines)


@pytest.mark.parametrize("block", range(4))
def test_a_thousand_malformed_inputs_are_read_or_refused(own, block):
    """Problem files, patients and parameters: each is taken, or refused with sentences."""
    rng = random.Random(block)
    toml, csv = ((own / name).read_text() for name in ("problem.toml", "patients.csv"))
    good = read_problem(own / "problem.toml")
    path, table = own / "problem.toml", own / "patients.csv"
    said = []
    for _ in range(100):
        path.write_text(_mangled(toml, rng), encoding="utf-8")
        try:
            read_problem(path)
        except ProblemError as error:
            said += error.sentences
    for _ in range(100):
        table.write_text(_mangled(csv, rng), encoding="utf-8")
        try:
            read_patients(table, good.problem, data=good.data, ranges=good.ranges)
        except InputError as error:
            said.append(str(error))
    path.write_text(toml)
    table.write_text(csv)
    values = [None, -1, 0, 1.5, "x", "", [], {}, [[]], [None], True, 10**30, float("nan"), ["vito"]]
    names = [*OWN.profiles["quick"], "seed", "run_folder", "none", ""]
    for _ in range(50):
        given = {"problem": str(path), "patients": str(table)}
        given[rng.choice(names)] = rng.choice(values)
        try:
            studies.checked_parameters(OWN, "quick", given)
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 100
    assert all(s and "\n" not in s and len(s) < 1000 for s in said)
