"""Problems in PEtab: tables that have no counterpart."""

from __future__ import annotations

from pathlib import Path

import petab_reaction
import pytest
from petab_reaction import refused, spoil

from vitolab.problemfile.petab import read_petab

petab = petab_reaction.petab


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
