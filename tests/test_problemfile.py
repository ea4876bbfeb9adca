"""A model of one's own from a file: what is read, and what is refused, all of it at once."""

import os
import random
import shlex
import shutil
import string
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from vitolab.dashboard import load_dashboards
from vitolab.patients import InputError, read_patients, template
from vitolab.problem import Patient
from vitolab.problemfile import ProblemError, read_problem
from vitolab.problemfile.starter import begin
from vitolab.store import list_runs, open_run
from vitolab.store.tables import patient_table
from vitolab.studies import OWN, sections_of
from vitolab.studies import running as studies
from vitolab.studies.notebooks import find_notebook
from vitolab.validation import leave_one_out


@pytest.fixture
def own(tmp_path):
    """The example, to be spoiled."""
    folder = tmp_path / "own"
    begin(find_notebook("starter/problem.toml").parent, folder)
    return folder


def spoil(folder, *changes):
    """Replace text of the problem file."""
    path = folder / "problem.toml"
    text = path.read_text()
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    path.write_text(text)
    return path


def refused(path):
    with pytest.raises(ProblemError) as caught:
        read_problem(path)
    for sentence in caught.value.sentences:
        assert sentence.startswith(str(path))
        assert "\n" not in sentence
    return [s.removeprefix(f"{path}: ") for s in caught.value.sentences]


def test_the_example_is_a_problem_that_meets_an_independent_solution(own):
    found = read_problem(own / "problem.toml")
    problem = found.problem
    assert [p.name for p in problem.parameters] == ["resistance", "compliance", "impedance"]
    assert problem.parameters[1].default == pytest.approx(np.sqrt(0.3 * 4.0))
    assert problem.parameters[2].step == pytest.approx(0.2 / 500)
    assert problem.features == ("heart_rate", "stroke_volume")
    table = read_patients(own / "patients.csv", problem, data=found.data, ranges=found.ranges)
    patient = table.patients[0]
    x = np.array([[1.1, 1.3, 0.05]])
    y = problem.run(x, patient).y[0]
    problem.simulate.close()
    beat, volume = 60.0 / patient.data["heart_rate"], patient.data["stroke_volume"]

    def flow(t):
        phase = t % beat
        size = volume * np.pi / (2 * beat / 3)
        return size * np.sin(np.pi * phase / (beat / 3)) * (phase < beat / 3)

    solved = solve_ivp(
        lambda t, p: (flow(t) - p / x[0, 0]) / x[0, 1],
        (0, 30 * beat),
        [90.0],
        t_eval=np.linspace(29 * beat, 30 * beat, 2001),
        max_step=beat / 200,
        rtol=1e-8,
    )
    aortic = solved.y[0] + x[0, 2] * flow(solved.t)
    expected = [aortic[:-1].mean(), aortic.max(), aortic.min()]
    np.testing.assert_allclose(y, expected, atol=0.02)


def test_patients_of_the_example_come_from_a_richer_model(own):
    """A compliance that falls with pressure, and noise: written down with the generator."""
    found = read_problem(own / "problem.toml")
    table = read_patients(own / "patients.csv", found.problem, data=found.data, ranges=found.ranges)
    assert len(table.patients) == 12
    for patient in table.patients:
        mean, systolic, diastolic = found.problem.measured(patient)
        assert diastolic < mean < systolic


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
            "no 'simulat', expected one of N,",
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


def test_the_version_follows_what_the_answers_depend_on(own):
    before = read_problem(own / "problem.toml")
    again = read_problem(own / "problem.toml")
    assert (again.key, again.problem.version) == (before.key, before.problem.version)
    (own / "model.py").write_text((own / "model.py").read_text() + "\n")
    touched = read_problem(own / "problem.toml")
    assert touched.problem.version != before.problem.version
    touched.check_key("")
    with pytest.raises(ProblemError, match="was changed after the run was started"):
        touched.check_key(before.key)
    spoil(own, ("tolerance = 2.0", "tolerance = 2.5"))
    wider = read_problem(own / "problem.toml")
    assert wider.problem.version == touched.problem.version  # walks are the same
    assert wider.key != touched.key


@pytest.mark.parametrize(
    "changes",
    [
        [('output = "mean"', 'output = "X"'), ('"systolic"', '"mean"'), ('"X"', '"systolic"')],
        [('output = "systolic"', 'output = "systolic"\noutput_unit = "kPa"')],
        [('name = "mean_pressure"', 'name = "pressure"')],
        [('name = "resistance"', 'name = "x1"'), ('name = "compliance"', 'name = "resistance"')],
        [("time_limit = 10.0 ", "time_limit = 11.0 ")],
        [('version = "1"', 'version = "2"')],
    ],
    ids=["outputs", "unit", "objective", "parameters", "limit", "version"],
)
def test_what_changes_an_answer_changes_the_version(own, changes):
    before = read_problem(own / "problem.toml")
    now = read_problem(spoil(own, *changes))
    assert now.problem.version != before.problem.version
    assert now.key != before.key


def test_a_template_has_the_columns_that_are_read_back(own, tmp_path):
    found = read_problem(own / "problem.toml")
    text = template(found.problem, data=found.data, ranges=found.ranges)
    (tmp_path / "template.csv").write_text(text)
    table = read_patients(
        tmp_path / "template.csv", found.problem, data=found.data, ranges=found.ranges
    )
    assert [patient.name for patient in table.patients] == ["example 1", "example 2"]


def test_order_is_part_of_the_version_and_number_of_workers_is_not(own):
    path = own / "problem.toml"
    before = read_problem(path)
    text = path.read_text()
    path.write_text(text.replace("# workers = 2 ", "workers = 2 "))
    assert read_problem(path).key == before.key
    head, first, second, rest = text.split("[[objectives]]")[0:4]
    path.write_text("[[objectives]]".join([head, second, first, rest]))
    assert read_problem(path).problem.version != before.problem.version


def test_what_a_model_imports_from_beside_it_is_part_of_the_version(own):
    (own / "constants.py").write_text("import deeper.inner\nK = 1.0\n")
    (own / "deeper").mkdir()
    (own / "deeper" / "inner.py").write_text("pass\n")
    (own / "model.py").write_text("from constants import K\n" + (own / "model.py").read_text())
    versions = {read_problem(own / "problem.toml").problem.version}
    (own / "constants.py").write_text("import deeper.inner\nK = 2.0\n")
    versions.add(read_problem(own / "problem.toml").problem.version)
    (own / "deeper" / "inner.py").write_text("...\n")
    versions.add(read_problem(own / "problem.toml").problem.version)
    (own / "other.py").write_text("nobody imports this\n")
    versions.add(read_problem(own / "problem.toml").problem.version)
    assert len(versions) == 3


def test_outputs_are_converted_to_the_units_of_the_objectives(own):
    x = np.array([[1.0, 1.0, 0.05]])
    patient = Patient("P", {}, {"heart_rate": 60.0, "stroke_volume": 70.0})
    plain = read_problem(own / "problem.toml").problem
    path = spoil(own, ('output = "systolic"', 'output = "systolic"\noutput_unit = "kPa"'))
    converted = read_problem(path).problem
    factors = converted.run(x, patient).y / plain.run(x, patient).y
    np.testing.assert_allclose(factors, [[1.0, 7.50062, 1.0]], rtol=1e-5)


PROGRAM = """
import json, sys
told = json.load(open(sys.argv[1]))
a = told["parameters"]["a"]
if a > 3: sys.exit("too large")
print(json.dumps({"y": 2 * a + told["patient"]["shift"]}), file=open(sys.argv[2], "w"))
"""


def test_an_external_program_is_found_beside_the_file(tmp_path):
    (tmp_path / "own.py").write_text(PROGRAM)
    (tmp_path / "problem.toml").write_text(
        f"""
name = "twice"
[[parameters]]
name = "a"
lower = 0
upper = 4
[[objectives]]
name = "y"
tolerance = 0.1
[[columns]]
name = "shift"
[model]
adapter = "program"
command = [{sys.executable!r}, "own.py", "{{input}}", "{{output}}"]
"""
    )
    own = read_problem(tmp_path / "problem.toml")
    y = own.problem.run(np.array([[1.0], [3.5]]), Patient("P", {}, {"shift": 0.5})).y
    assert y[0] == 2.5
    assert np.isnan(y[1])
    (kept,) = (tmp_path / "failed_runs").iterdir()
    assert (kept / "failed.txt").read_text() == "crashed: exit status 1: too large\n"
    version = own.problem.version
    (tmp_path / "own.py").write_text(PROGRAM + "# otherwise\n")
    assert read_problem(tmp_path / "problem.toml").problem.version != version


# From the file to a run


def test_the_documentation_leads_from_nothing_to_a_table_and_the_dashboard(tmp_path):
    """The commands of the README, in an empty folder, at the smallest size."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    block = readme.partition("## Your own model")[2].split("```")[1]
    commands = [shlex.split(line, comments=True) for line in block.strip().splitlines()]
    assert [command[:3] for command in commands] == [
        ["vitolab", "new", "problem"],
        ["vitolab", "run", "problem"],
        ["vitolab", "dashboard"],
    ]
    sizes = ['agents=["vito-continuous"]', "n_samples=[10]", 'methods=["least-squares"]']
    small = [word for size in [*sizes, "n_starts=1"] for word in ("-p", size)]
    for command, more in zip(commands[:2], ([], small), strict=True):
        done = subprocess.run(
            [sys.executable, "-m", *command, *more],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    from vitolab.store import Run

    (info,) = list_runs(tmp_path / "results")
    assert (info.status, info.study) == ("complete", "problem")
    stored = Run.load(info.path)
    rows = stored.personalizations
    assert set(rows["method"]) == {"vito-continuous", "least-squares"}
    assert rows["patient"].nunique() == 12
    assert rows[rows["method"] == "vito-continuous"]["solved"].mean() > 0.8
    assert stored.manifest.problems["windkessel"].parameters[0].name == "resistance"
    source = load_dashboards("kit.source").Source(tmp_path / "results")
    source.refresh()
    shown = load_dashboards("kit.stored").Stored(source, info.path.name)
    for section in sections_of("problem"):
        part = section.build(shown, 0)
        assert part.sentence
        assert "synthetic" not in part.sentence


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


def test_resuming_with_something_else_is_refused_field_by_field(own, tmp_path, monkeypatch):
    def begun(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(studies, "execute", begun)
    given = {"problem": str(own / "problem.toml"), "patients": str(own / "patients.csv")}
    results = tmp_path / "results"
    with pytest.raises(KeyboardInterrupt):
        studies.run(OWN, overrides=given, results=results)
    (before,) = list_runs(results)
    assert before.status == "interrupted"
    spoil(own, ("upper = 3.0", "upper = 3.5"), ("tolerance = 2.0", "tolerance = 2.5"))
    csv = own / "patients.csv"
    csv.write_text(csv.read_text().replace("103.6", "104.6"))
    (own / "model.py").write_text((own / "model.py").read_text() + "\n")
    with pytest.raises(ProblemError) as caught:
        studies.run(OWN, overrides=given, results=results)
    text = str(caught.value)
    assert "parameters, resistance, upper was 3.0, is 3.5" in text
    assert "objectives, mean_pressure, tolerance was 2.0, is 2.5" in text
    assert "version was" in text
    assert "model, files, model.py was" in text
    assert "patients.csv, row 2: was W01,95.0,62.0,103.6" in text
    assert "again=True" in text
    assert [run.path for run in list_runs(results)] == [before.path]
    with pytest.raises(KeyboardInterrupt):
        studies.run(OWN, overrides=given, results=results, seed=1)  # another run altogether
    monkeypatch.setattr(studies, "execute", lambda *arguments: "")
    done = studies.run(OWN, overrides=given, results=results, again=True)
    assert done.status == "complete"
    assert len(list_runs(results)) == 3
    # which the old one does not stand in the way of
    assert studies.run(OWN, overrides=given, results=results).path == done.path


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


def test_a_beginning_does_not_write_over_anything(tmp_path):
    source = find_notebook("starter/problem.toml").parent
    with pytest.raises(ValueError, match="it is there already"):
        begin(source, tmp_path)
    with pytest.raises(ValueError, match="expected a folder that exists"):
        begin(source, tmp_path / "none" / "own")
    shutil.rmtree(tmp_path)


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


def test_the_dashboard_tells_which_runs_failed(own, tmp_path):
    problem = replace(read_problem(own / "problem.toml").problem, simulate=_failing)
    patients = [Patient(f"P{i}", {o.name: 90.0 for o in problem.objectives}) for i in range(3)]
    run = open_run("problem", {}, results=tmp_path, seed=0, version="1")
    problems = {"own": problem}
    leave_one_out(
        run,
        problems,
        patients,
        n_samples={"own": [20]},
        n_states={"own": [10]},
        methods=["vito"],
        max_runs=20,
    )
    stored = run.finish(problems=problems, patients=patient_table(problems, patients))
    source = load_dashboards("kit.source").Source(tmp_path)
    source.refresh()
    shown = load_dashboards("kit.stored").Stored(source, stored.path.name)
    sections = {s.name: s for s in sections_of("problem")}
    part = sections["failures"].build(shown, 0)
    n_failed = stored.personalizations["n_failed"].sum()
    n_runs = stored.personalizations["n_runs"].sum()
    assert f"{n_failed} of {n_runs} of the personalisations" in part.sentence
    assert f"(raised: {stored.failures['n_runs'].sum()})" in part.sentence
    assert len(part.tables[0][1]) == len(stored.failures) > 0


def _failing(x, patient):
    if (x[:, 0] > 1.5).any():
        raise ArithmeticError("diverged")
    return 80.0 + 10.0 * x
