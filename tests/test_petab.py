"""Problems in PEtab: what is read of a reaction with a closed form, and what is written."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import petab_reaction
import pytest
from petab_reaction import GAIN, STARTS, TRUTH, closed_form, spoil

from vitolab.agent import ContinuousVito
from vitolab.exploration import explore
from vitolab.patients import PatientTable, read_patients
from vitolab.problem import Problem
from vitolab.problemfile import OwnProblem, ProblemError, read_problem
from vitolab.problemfile.petab import begin_from_petab, read_petab
from vitolab.reference import LeastSquares

petab = petab_reaction.petab


@pytest.fixture
def begun(petab: Path, tmp_path: Path) -> tuple[OwnProblem, PatientTable]:
    """What was written, read again."""
    pytest.importorskip("roadrunner")
    begin_from_petab(petab, tmp_path / "own")
    own = read_problem(tmp_path / "own" / "problem.toml")
    table = read_patients(
        tmp_path / "own" / "patients.csv", own.problem, data=own.data, ranges=own.ranges
    )
    return own, table


@pytest.fixture
def here(begun: tuple[OwnProblem, PatientTable]) -> Problem:
    """The problem that was written, run in this process."""
    problem = begun[0].problem
    return replace(problem, simulate=replace(problem.simulate, n_workers=0, time_limit=None))


# --- what is read ------------------------------------------------------------------------


def test_simulated_values_equal_the_closed_form(
    begun: tuple[OwnProblem, PatientTable], here: Problem
):
    for x in ([0.2, 0.3], [1.5, 0.0], [0.01, 1.5]):
        for patient in begun[1].patients:
            y = here.run(np.array([x]), patient).y[0]
            assert y == pytest.approx(closed_form(*x, STARTS[patient.name]), rel=1e-5)


def test_parameters_objectives_and_patients_are_those_of_the_tables(
    begun: tuple[OwnProblem, PatientTable],
):
    own, table = begun
    found = [(p.name, p.label, p.lower, p.upper, p.scale) for p in own.problem.parameters]
    assert found == [
        ("k1", "forward", 0.01, 2.0, "log"),
        ("k2", "k2", 0.0, 1.5, "linear"),
    ]
    assert [p.default for p in own.problem.parameters] == [0.2, 0.75]
    found = [(o.name, o.label, o.tolerance) for o in own.problem.objectives]
    assert found == [
        ("left", "substrate", 0.001),
        ("made", "made", 0.002),
        ("rate", "rate", 0.002),
    ]
    assert own.problem.name == "petab-conversion"
    assert [p.name for p in table.patients] == list(STARTS)
    for patient in table.patients:
        a, b = STARTS[patient.name]
        # what is fixed as in the model is no column, what is fixed at another value is one
        assert dict(patient.data) == {"gain": GAIN, "A": a, "B": b}
        expected = closed_form(*TRUTH[patient.name], (a, b))
        assert own.problem.measured(patient) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("method", ["vito-continuous", "least-squares-multistart"])
def test_parameters_are_recovered(
    begun: tuple[OwnProblem, PatientTable], here: Problem, method: str
):
    patients = begun[1].patients
    if method == "vito-continuous":
        walks = explore(here, patients[1:], n_episodes=20, n_steps=1, seed=0)
        solver = ContinuousVito.learn(here, walks)
    else:
        solver = LeastSquares(here, multistart=True)
    fit = solver.personalize(patients[0], max_runs=200, seed=0)
    assert fit.solved
    assert fit.x == pytest.approx(TRUTH["c1"], rel=0.02)


def test_the_model_is_copied_as_it_is_and_nothing_else_lies_there(
    begun: tuple[OwnProblem, PatientTable], petab: Path
):
    folder = begun[0].path.parent
    assert sorted(p.name for p in folder.iterdir()) == ["model.xml", "patients.csv", "problem.toml"]
    assert (folder / "model.xml").read_bytes() == (petab.parent / "reaction.xml").read_bytes()


def test_order_of_rows_and_columns_and_unknown_columns_change_nothing(petab: Path):
    first = read_petab(petab)
    for name in ("parameters", "observables", "measurements"):
        path = petab.parent / f"{name}.tsv"
        lines = [line.split("\t") for line in path.read_text().splitlines()]
        mirrored = ["\t".join([*reversed(line), "more"]) for line in lines]
        path.write_text("\r\n".join(mirrored) + "\r\n\r\n", encoding="utf-8-sig")
    path = petab.parent / "measurements.tsv"
    head, *rows = path.read_text(encoding="utf-8-sig").strip().splitlines()
    path.write_text("\n".join([head, *reversed(rows)]))
    assert read_petab(petab).problem == first.problem
    assert read_petab(petab).patients == first.patients


def test_what_its_user_should_know_is_noted(petab: Path):
    spoil(
        petab,
        "measurements.tsv",
        *((f"made {name} ", f"left {name} ") for name in ("c1", "c2", "c3", "c4", "c5")),
        *((" 2e-3\n", " NaN\n"),) * 5,
    )
    rows = [
        r for r in (petab.parent / "measurements.tsv").read_text().splitlines() if "c4" not in r
    ]
    rows = [r for r in rows if not r.startswith("rate\tc2")]
    (petab.parent / "measurements.tsv").write_text("\n".join(rows))
    found = read_petab(petab)
    assert found.notes == (
        "A tolerance is one standard deviation of the noise, which PEtab gives: decide how near is "
        "good enough.",
        "Repeated measurements of an observable in a condition are averaged.",
        "Nothing is measured in c4: left out.",
        "made is never measured: left out.",
        "rate is not measured in all conditions: its cells are empty, which only `vitolab "
        "personalize --allow-missing` goes without.",
        "gain is fixed at another value than the model's: a column with this value.",
    )
    said = " ".join(found.problem.replace("#", " ").split())
    assert all(note in said for note in found.notes)
    assert found.patients.splitlines()[0] == "patient,gain,A,B,left,rate"
    assert found.patients.splitlines()[2].startswith("c2,5.0,2.0,0.5,")
    assert found.patients.splitlines()[2].endswith(",")


def test_conditions_may_name_a_fixed_parameter(petab: Path):
    first = read_petab(petab).patients
    spoil(petab, "parameters.tsv", ("sigma ", "start - lin - - 2.0 0\nsigma "))
    spoil(petab, "conditions.tsv", ("c2 any 2.0 ", "c2 any start "))
    assert read_petab(petab).patients == first


# --- what is refused ---------------------------------------------------------------------


def test_nothing_is_written_where_something_is_refused(petab: Path, tmp_path: Path):
    folder = tmp_path / "own"
    with pytest.raises(ValueError, match="it is there already"):
        begin_from_petab(petab, tmp_path)
    spoil(petab, "parameters.tsv", ("0.01", "x"))
    with pytest.raises(ProblemError, match="lowerBound"):
        begin_from_petab(petab, folder)
    spoil(petab, "parameters.tsv", ("x", "0.01"))
    spoil(petab, "reaction.xml", ("<ci>gain</ci>", "<ci>unknown</ci>"))
    with pytest.raises(ProblemError, match=r"conversion\.yaml: "):  # what runs it refuses it
        begin_from_petab(petab, folder)
    assert [p.name for p in tmp_path.iterdir()] == ["petab"]


def test_the_command_line_says_what_was_written_or_all_that_is_wrong(petab: Path, tmp_path: Path):
    pytest.importorskip("roadrunner")
    command = [sys.executable, "-m", "vitolab", "new", "problem", str(tmp_path / "own")]
    command += ["--petab", str(petab)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = ("model.xml", "patients.csv", "problem.toml")
    assert done.stdout.split() == [str(tmp_path / "own" / name) for name in names]
    assert "one standard deviation" in done.stderr
    spoil(petab, "parameters.tsv", ("0.01", "x"), ("lin 0 1.5", "lin 2 1.5"))
    command[5] = str(tmp_path / "another")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert [line.startswith("vitolab: ") for line in done.stderr.splitlines()] == [True, True]
