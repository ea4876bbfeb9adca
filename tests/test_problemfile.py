"""A model of one's own from a file: what is read, run and shown."""

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import own_problem
import pytest
from own_problem import spoil
from scipy.integrate import solve_ivp

from vitolab.dashboard import load_dashboards
from vitolab.patients import read_patients, template
from vitolab.problem import Patient
from vitolab.problemfile import read_problem
from vitolab.problemfile.starter import begin
from vitolab.store import list_runs, open_run
from vitolab.store.tables import patient_table
from vitolab.studies import sections_of
from vitolab.studies.notebooks import find_notebook
from vitolab.validation import leave_one_out

own = own_problem.own


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


def test_a_template_has_the_columns_that_are_read_back(own, tmp_path):
    found = read_problem(own / "problem.toml")
    text = template(found.problem, data=found.data, ranges=found.ranges)
    (tmp_path / "template.csv").write_text(text)
    table = read_patients(
        tmp_path / "template.csv", found.problem, data=found.data, ranges=found.ranges
    )
    assert [patient.name for patient in table.patients] == ["example 1", "example 2"]


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
        ["vitolab", "check", "my_problem/problem.toml"],
        ["vitolab", "run", "problem"],
        ["vitolab", "dashboard"],
    ]
    sizes = ['agents=["vito-continuous"]', "n_samples=[10]", 'methods=["least-squares"]']
    small = [word for size in [*sizes, "n_starts=1"] for word in ("-p", size)]
    for command, more in zip(commands[:3], ([], [], small), strict=True):
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


def test_a_beginning_does_not_write_over_anything(tmp_path):
    source = find_notebook("starter/problem.toml").parent
    with pytest.raises(ValueError, match="it is there already"):
        begin(source, tmp_path)
    with pytest.raises(ValueError, match="expected a folder that exists"):
        begin(source, tmp_path / "none" / "own")
    shutil.rmtree(tmp_path)


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
