"""A reaction with a closed form, as a problem in PEtab."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from vitolab.problemfile import ProblemError
from vitolab.problemfile.petab import read_petab

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


def refused(petab: Path) -> list[str]:
    with pytest.raises(ProblemError) as caught:
        read_petab(petab)
    for sentence in caught.value.sentences:
        assert sentence.startswith(str(petab.parent))
        assert "\n" not in sentence
    return [s.removeprefix(f"{petab.parent}/") for s in caught.value.sentences]
