"""Problems in PEtab: a reaction with a closed form, and what has no counterpart."""

from __future__ import annotations

import math
import random
import string
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from vitolab.agent import ContinuousVito
from vitolab.exploration import explore
from vitolab.patients import PatientTable, read_patients
from vitolab.problem import Problem
from vitolab.problemfile import OwnProblem, ProblemError, read_problem
from vitolab.problemfile.petab import begin_from_petab, read_petab
from vitolab.reference import LeastSquares

VOLUME, DURATION, GAIN = 2.0, 3.0, 5.0
MATH = 'xmlns="http://www.w3.org/1998/Math/MathML"'

#: A <-> B at the rates k1 and k2. A is a concentration, B an amount, and they are not the same.
SBML = f"""<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2">
<model id="conversion">
<listOfCompartments>
  <compartment id="cell" size="{VOLUME}" constant="true" spatialDimensions="3"/>
</listOfCompartments>
<listOfSpecies>
  <species id="A" compartment="cell" initialConcentration="1" constant="false"
    boundaryCondition="false" hasOnlySubstanceUnits="false"/>
  <species id="B" compartment="cell" initialAmount="0" constant="false"
    boundaryCondition="false" hasOnlySubstanceUnits="true"/>
</listOfSpecies>
<listOfParameters>
  <parameter id="k1" value="1" constant="true"/>
  <parameter id="k2" value="1" constant="true"/>
  <parameter id="gain" value="1" constant="true"/>
  <parameter id="same" value="7" constant="true"/>
  <parameter id="turnover" constant="false"/>
</listOfParameters>
<listOfRules><assignmentRule variable="turnover"><math {MATH}>
  <apply><times/><ci>gain</ci><apply><plus/>
    <apply><times/><ci>k1</ci><ci>cell</ci><ci>A</ci></apply>
    <apply><times/><ci>k2</ci><ci>B</ci></apply></apply></apply></math></assignmentRule>
</listOfRules>
<listOfReactions><reaction id="convert" reversible="true">
  <listOfReactants><speciesReference species="A" stoichiometry="1" constant="true"/>
  </listOfReactants>
  <listOfProducts><speciesReference species="B" stoichiometry="1" constant="true"/>
  </listOfProducts>
  <kineticLaw><math {MATH}><apply><minus/>
    <apply><times/><ci>k1</ci><ci>cell</ci><ci>A</ci></apply>
    <apply><times/><ci>k2</ci><ci>B</ci></apply></apply></math></kineticLaw>
</reaction></listOfReactions>
</model></sbml>"""

YAML = """format_version: 1
parameter_file: parameters.tsv
problems:
- sbml_files: [reaction.xml]
  condition_files: [conditions.tsv]
  observable_files: [observables.tsv]
  measurement_files: [measurements.tsv]
"""

PARAMETERS = """\
parameterId parameterName parameterScale lowerBound upperBound nominalValue estimate
k1 forward log10 0.01 2 0.2 1
k2 - lin 0 1.5 - 1
gain - lin - - 5.0 0
same - lin - - 7 0
sigma - lin - - 0.002 0
"""

OBSERVABLES = """\
observableId observableName observableFormula observableTransformation noiseFormula
left substrate A lin 0.001
made - 1.0*B - noiseParameter1_made
rate - turnover - sigma
"""

STARTS = {"c1": (1.0, 0.0), "c2": (2.0, 0.5), "c3": (0.5, 1.0), "c4": (1.5, 0.25), "c5": (1.0, 0.5)}
TRUTH = {name: (0.15 + 0.04 * i, 0.25 - 0.03 * i) for i, name in enumerate(STARTS)}  # k1, k2


def closed_form(k1: float, k2: float, start: tuple[float, float]) -> tuple[float, float, float]:
    """Concentration of A, amount of B, and turnover at the end."""
    total = VOLUME * start[0] + start[1]
    settled = total * k1 / (k1 + k2)
    b = settled + (start[1] - settled) * math.exp(-(k1 + k2) * DURATION)
    return (total - b) / VOLUME, b, GAIN * (k1 * (total - b) + k2 * b)


def tsv(text: str) -> str:
    """Table with tabs, of one with spaces in which a dash is an empty cell."""
    lines = (line.split(" ") for line in text.splitlines())
    return "".join("\t".join("" if c == "-" else c for c in line) + "\n" for line in lines)


def measurements() -> str:
    rows = ["observableId simulationConditionId measurement time noiseParameters"]
    for name, start in STARTS.items():
        left, made, rate = closed_form(*TRUTH[name], start)
        rows += [
            f"left {name} {left - 0.25!r} 3 -",  # measured twice: the mean is the truth
            f"left {name} {left + 0.25!r} 3.0 NaN",
            f"made {name} {made!r} 3 2e-3",
            f"rate {name} {rate!r} 3 -",
        ]
    return "\n".join(rows) + "\n"


CONDITIONS = "conditionId conditionName A B\n" + "".join(
    f"{name} any {a} {b}\n" for name, (a, b) in STARTS.items()
)


@pytest.fixture
def petab(tmp_path: Path) -> Path:
    """The reaction in PEtab, to be spoiled."""
    folder = tmp_path / "petab"
    folder.mkdir()
    (folder / "reaction.xml").write_text(SBML, encoding="utf-8")
    for name, text in (
        ("parameters", PARAMETERS),
        ("observables", OBSERVABLES),
        ("conditions", CONDITIONS),
        ("measurements", measurements()),
    ):
        (folder / f"{name}.tsv").write_text(tsv(text), encoding="utf-8")
    (folder / "conversion.yaml").write_text(YAML, encoding="utf-8")
    return folder / "conversion.yaml"


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


def spoil(petab: Path, name: str, *changes: tuple[str, str]) -> None:
    """Replace text of a file, in which spaces stand for tabs."""
    path = petab.parent / name
    text = path.read_text()
    for old, new in changes:
        if name.endswith("tsv"):
            old, new = (
                "\n".join("\t".join(part.split(" ")) for part in side.split("\n"))
                for side in (old, new)
            )
        assert old in text, old
        text = text.replace(old, new, 1)
    path.write_text(text)


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


def refused(petab: Path) -> list[str]:
    with pytest.raises(ProblemError) as caught:
        read_petab(petab)
    for sentence in caught.value.sentences:
        assert sentence.startswith(str(petab.parent))
        assert "\n" not in sentence
    return [s.removeprefix(f"{petab.parent}/") for s in caught.value.sentences]


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        (
            "parameters.tsv",
            "k1 forward log10 0.01",
            "k1 forward log10 0",
            "row 2, column 'lowerBound': found '0', expected a number above 0 on a log scale",
        ),
        (
            "parameters.tsv",
            "lin 0 1.5",
            "lin 2 1.5",
            "row 3, column 'upperBound': found '1.5', expected a number above lowerBound, 2",
        ),
        (
            "parameters.tsv",
            "lin 0 1.5",
            "lin 0 inf",
            "row 3, column 'upperBound': found 'inf', expected a number",
        ),
        (
            "parameters.tsv",
            "2 0.2 1",
            "2 3 1",
            "row 2, column 'nominalValue': found '3', expected a number within the bounds, "
            "0.01 to 2",
        ),
        (
            "parameters.tsv",
            "log10",
            "log2",
            "row 2, column 'parameterScale': found 'log2', expected lin, log or log10",
        ),
        (
            "parameters.tsv",
            "5.0 0",
            "5.0 yes",
            "row 4, column 'estimate': found 'yes', expected 0 or 1",
        ),
        (
            "parameters.tsv",
            "k2 ",
            "k3 ",
            "row 3, column 'parameterId': found 'k3', expected a parameter of the model, since it "
            "is estimated",
        ),
        (
            "parameters.tsv",
            "k2 ",
            "turnover ",
            "row 3, column 'parameterId': found 'turnover', expected a parameter that no rule of "
            "the model determines",
        ),
        (
            "parameters.tsv",
            "k2 ",
            "k1 ",
            "row 3, column 'parameterId': found 'k1', expected a name that is not in row 2",
        ),
        (
            "parameters.tsv",
            "k2 ",
            "A ",
            "row 3, column 'parameterId': found 'A', expected a parameter that is no column of "
            "the conditions",
        ),
        (
            "parameters.tsv",
            "k2 ",
            "2k ",
            "row 3, column 'parameterId': found '2k', expected at most 64 letters, digits and "
            "underscores, no digit first, and not patient",
        ),
        (
            "observables.tsv",
            "substrate A",
            "substrate 2*A",
            "row 2, column 'observableFormula': found '2*A', expected the id of one parameter, "
            "species or compartment of the model",
        ),
        (
            "observables.tsv",
            "substrate A",
            "substrate time",
            "row 2, column 'observableFormula': found 'time', expected the id of one parameter, "
            "species or compartment of the model",
        ),
        (
            "observables.tsv",
            "A lin",
            "A log10",
            "row 2, column 'observableTransformation': found 'log10', expected lin: misfits are "
            "differences",
        ),
        (
            "observables.tsv",
            "0.001",
            "0.1*A",
            "row 2, column 'noiseFormula': found '0.1*A', expected a number above 0, a parameter "
            "with estimate 0, or noiseParameter1_left",
        ),
        (
            "observables.tsv",
            "0.001",
            "k1",
            "row 2, column 'noiseFormula': found 'k1', expected a number above 0, a parameter "
            "with estimate 0, or noiseParameter1_left",
        ),
        (
            "observables.tsv",
            "0.001",
            "0",
            "row 2, column 'noiseFormula': found '0', expected a number above 0, a parameter with "
            "estimate 0, or noiseParameter1_left",
        ),
        (
            "conditions.tsv",
            "any 2.0",
            "any k1",
            "row 3, column 'A': found 'k1', expected a number, or a parameter with estimate 0",
        ),
        (
            "conditions.tsv",
            "any 2.0",
            "any ",
            "row 3, column 'A': the cell is empty, expected a number, or a parameter with "
            "estimate 0",
        ),
        (
            "conditions.tsv",
            " B\n",
            " cell\n",
            "row 1: found column 'cell', expected a parameter or species of the model that no "
            "rule determines",
        ),
        (
            "conditions.tsv",
            " B\n",
            " patient\n",
            "row 1: found column 'patient', expected at most 64 letters, digits and underscores, "
            "no digit first, and not patient",
        ),
        (
            "conditions.tsv",
            " B\n",
            " A\n",
            "row 1: column 'A' occurs twice, expected each once",
        ),
        (
            "conditions.tsv",
            "conditionId",
            "condition",
            "row 1: column 'conditionId' is missing, expected tab-separated values with it",
        ),
        (
            "measurements.tsv",
            " 3 2e-3",
            " 3 1;2",
            "row 4, column 'noiseParameters': found '1;2', expected one number above 0, or a "
            "parameter with estimate 0",
        ),
        (
            "measurements.tsv",
            " 3 2e-3",
            " 3 0.1",
            "row 8, column 'noiseParameters': found '2e-3', expected 0.1 as in the first row of "
            "made",
        ),
        (
            "measurements.tsv",
            "3.0 NaN",
            "3.0 0.1",
            "row 3, column 'noiseParameters': found '0.1', expected none: the noise of left has "
            "no noiseParameter1_left",
        ),
        (
            "measurements.tsv",
            "3.0 ",
            "4 ",
            "column 'time': found 3, 4, expected one time for all measurements",
        ),
        (
            "measurements.tsv",
            "3.0 ",
            "inf ",
            "row 3, column 'time': found 'inf', expected a finite time above 0",
        ),
        (
            "measurements.tsv",
            "made c1",
            "made c9",
            "row 4, column 'simulationConditionId': found 'c9', expected a condition of its table",
        ),
        (
            "measurements.tsv",
            "made c1",
            "B c1",
            "row 4, column 'observableId': found 'B', expected an observable of its table",
        ),
        (
            "measurements.tsv",
            "3.0 NaN",
            "3.0 NaN more",
            "Error tokenizing data. C error: Expected 5 fields in line 3, saw 6, expected "
            "tab-separated values",
        ),
    ],
)
def test_a_table_that_does_not_map_is_refused(
    petab: Path, name: str, old: str, new: str, says: str
):
    spoil(petab, name, (old, new))
    assert refused(petab)[:1] == [f"{name}{', ' if says[0].islower() else ': '}{says}"]


def added(petab: Path, name: str, column: str, value: str) -> None:
    """Give a table a further column."""
    path = petab.parent / name
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{head}\t{column}", *(f"{row}\t{value}" for row in rows)]))


@pytest.mark.parametrize(
    ("name", "column", "value", "expected"),
    [
        (
            "measurements",
            "preequilibrationConditionId",
            "c1",
            "none: a model starts as it is",
        ),
        (
            "measurements",
            "observableParameters",
            "0.5",
            "none: an observable is a quantity of the model",
        ),
        (
            "parameters",
            "objectivePriorType",
            "laplace",
            "none: a domain is all that is known of a parameter",
        ),
        (
            "parameters",
            "initializationPriorParameters",
            "1;2",
            "none: a domain is all that is known of a parameter",
        ),
        ("observables", "noiseDistribution", "laplace", "normal"),
    ],
)
def test_a_column_that_means_something_else_is_refused_once(
    petab: Path, name: str, column: str, value: str, expected: str
):
    added(petab, f"{name}.tsv", column, "")
    read_petab(petab)
    path = petab.parent / f"{name}.tsv"
    path.write_text(path.read_text().replace(f"\t{column}", "\tbefore"))
    added(petab, f"{name}.tsv", column, value)
    said = f"{name}.tsv, row 2, column '{column}': found '{value}', expected {expected}"
    assert refused(petab) == [said]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("format_version: 1", "format_version: 2", "format_version is 2, expected 1"),
        (
            "[reaction.xml]",
            "[reaction.xml, other.xml]",
            "sbml_files is a list of 2, expected the name of one file",
        ),
        (
            "[conditions.tsv]",
            "[none.tsv]",
            "condition_files is 'none.tsv', expected a file beside it",
        ),
        (
            "parameter_file: parameters.tsv\n",
            "",
            "parameter_file is missing, expected the name of one file",
        ),
        (
            "problems:\n",
            "extensions: {}\nproblems:\n",
            "'extensions' is not known, expected format_version, parameter_file, problems",
        ),
        ("- sbml_files", "- {}\n- sbml_files", "problems is a list of 2, expected a list of one"),
        ("format_version: 1", "a: &a [1]\nb: *a", "found an alias, expected each value written"),
        ("format_version: 1", "a: !!int ''", "string index out of range, expected YAML in UTF-8"),
        ("format_version: 1", "a: [", "while parsing a flow"),
    ],
)
def test_a_description_that_does_not_map_is_refused(petab: Path, old: str, new: str, says: str):
    spoil(petab, petab.name, (old, new))
    assert any(s.startswith(f"conversion.yaml: {says}") for s in refused(petab))


def test_files_that_are_too_large_or_no_model_are_refused(petab: Path):
    (petab.parent / "reaction.xml").write_text("<sbml>")
    (petab.parent / "parameters.tsv").write_bytes(b"x" * (2**24 + 1))
    (petab.parent / "observables.tsv").write_bytes(b"\xff")
    (petab.parent / "measurements.tsv").write_bytes(b"")
    assert refused(petab) == [
        "reaction.xml: no element found: line 1, column 6, expected SBML",
        "observables.tsv: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte, "
        "expected tab-separated values",
        "measurements.tsv: No columns to parse from file, expected tab-separated values",
        "parameters.tsv: more than 16 MB, expected a smaller file",
    ]
    petab.write_bytes(b"#" * (2**16 + 1))
    assert refused(petab) == ["conversion.yaml: more than 64 kB, expected a smaller file"]


def test_everything_wrong_is_said_at_once(petab: Path):
    spoil(petab, "parameters.tsv", ("0.01", "x"), ("lin 0 1.5", "lin 2 1.5"))
    spoil(petab, "observables.tsv", ("substrate A", "substrate A+B"), ("sigma", "-1"))
    spoil(petab, "conditions.tsv", ("any 2.0", "any none"))
    spoil(petab, "measurements.tsv", ("3.0 ", "4 "), ("made c1", "made c9"))
    said = refused(petab)
    assert len(said) == 7
    assert {sentence.partition(".tsv")[0] for sentence in said} == {
        "parameters",
        "observables",
        "conditions",
        "measurements",
    }


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


# --- files that a cat wrote --------------------------------------------------------------

SIGNS = string.printable + "\0\ufeff°é[]&*!|>#;\t\n"
CELLS = ["", "x", "-5", "1e999", '"', "nan", "7", "time", "A", "k1", "0", "1e308", "patient", "c1"]


def mangled(text: str, rng: random.Random) -> str:
    """A table after some accidents."""
    for _ in range(rng.randint(1, 3)):
        lines = text.splitlines(keepends=True) or [""]
        i = rng.randrange(len(lines))
        way = rng.randrange(5)
        if way == 0:
            lines[i] = ""
        elif way == 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[i])
        elif way == 2:
            k = rng.randrange(len(lines[i]) + 1)
            lines[i] = lines[i][:k] + rng.choice(SIGNS) + lines[i][k:]
        elif way == 3:
            cells = lines[i].rstrip("\n").split("\t")
            cells[rng.randrange(len(cells))] = rng.choice(CELLS)
            lines[i] = "\t".join(cells) + "\n"
        else:
            lines[i] = lines[i].replace(rng.choice(SIGNS), rng.choice(SIGNS))
        text = "".join(lines)
    return text


def test_two_hundred_malformed_problems_are_read_or_refused(petab: Path, tmp_path: Path):
    """What is read is a problem file and patients that are read again."""
    pytest.importorskip("roadrunner")
    rng = random.Random(0)
    tables = ("parameters", "observables", "conditions", "measurements")
    names = [*(f"{name}.tsv" for name in tables), petab.name]
    good = {name: (petab.parent / name).read_text(encoding="utf-8") for name in names}
    said: list[tuple[str, ...]] = []
    n_read = 0
    for i in range(200):
        name = names[i % len(names)]
        (petab.parent / name).write_text(mangled(good[name], rng), encoding="utf-8")
        try:
            begin_from_petab(petab, tmp_path / f"own{i}")
        except ProblemError as error:
            said.append(error.sentences)
            assert not (tmp_path / f"own{i}").exists()
        else:
            own = read_problem(tmp_path / f"own{i}" / "problem.toml")
            path = tmp_path / f"own{i}" / "patients.csv"
            read_patients(path, own.problem, data=own.data, ranges=own.ranges, allow_missing=True)
            n_read += 1
        (petab.parent / name).write_text(good[name], encoding="utf-8")
    assert n_read > 20
    assert len(said) > 100
    assert all(s and "\n" not in s and len(s) < 1000 for s in chain(*said))
