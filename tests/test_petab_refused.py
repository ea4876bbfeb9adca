"""Problems in PEtab: descriptions and files that are refused, and files that a cat wrote."""

from __future__ import annotations

import random
import string
from itertools import chain
from pathlib import Path

import petab_reaction
import pytest
from petab_reaction import refused, spoil

from vitolab.patients import read_patients
from vitolab.problemfile import ProblemError, read_problem
from vitolab.problemfile.petab import begin_from_petab

petab = petab_reaction.petab


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
