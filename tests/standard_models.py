"""Models in standard formats: a Windkessel, and an exponential decay."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from vitolab.adapters.cellml import CellmlModel
from vitolab.adapters.fmu import FmuModel
from vitolab.adapters.sbml import SbmlModel
from vitolab.adapters.timecourse import TimeCourse
from vitolab.problem import Patient

EXAMPLES = Path(__file__).resolve().parents[1] / "notebooks" / "examples"
BEATS, PER_BEAT = 20, 200  # of the Windkessel


@dataclass(frozen=True)
class Format:
    """How one format names what the Windkessel has, and its file."""

    build: Callable[..., TimeCourse]
    path: Path
    artery: str = ""
    heart: tuple[str, str] = ("heart_rate", "stroke_volume")

    def windkessel(self, **changes: object) -> TimeCourse:
        pressure = f"{self.artery}pressure"
        fields = {
            "parameters": tuple(self.artery + name for name in ("R", "Zc", "C")),
            "outputs": {
                "mean": (pressure, "mean"),
                "systolic": (pressure, "maximum"),
                "diastolic": (pressure, "minimum"),
            },
            "duration": float(BEATS),
            "n_points": BEATS * PER_BEAT + 1,
            "skip": BEATS - 1.0,
            "data": dict(zip(("heart_rate", "stroke_volume"), self.heart, strict=True)),
        }
        return self.build(self.path, **(fields | changes))


def trusted(path: Path, **fields: object) -> FmuModel:
    return FmuModel(path, trusted=True, **fields)


@pytest.fixture(scope="session")
def fmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example of an FMU, compiled."""
    fmpy = pytest.importorskip("fmpy")
    if not shutil.which("gcc") or fmpy.platform != "linux64":
        pytest.skip("the example of an FMU is compiled by gcc on 64 bit Linux, which is not here")
    folder = tmp_path_factory.mktemp("fmu")
    library = folder / "windkessel.so"
    headers = Path(fmpy.__file__).parent / "c-code"
    source = EXAMPLES / "windkessel.c"
    command = ["gcc", "-shared", "-fPIC", "-O2", "-I", headers, source, "-o", library, "-lm"]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(folder / "windkessel.fmu", "w") as archive:
        archive.write(EXAMPLES / "windkessel_fmu.xml", "modelDescription.xml")
        archive.write(library, "binaries/linux64/windkessel.so")
    return folder / "windkessel.fmu"


@pytest.fixture(scope="session")
def myokit_compiles() -> None:
    """Skip where myokit is absent, or what it compiles with."""
    pytest.importorskip("myokit")
    heart = ("heart.rate", "heart.stroke_volume")
    try:
        Format(CellmlModel, EXAMPLES / "windkessel.mmt", "artery.", heart).windkessel()
    except ValueError as error:
        if "cannot be compiled" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=["sbml", "mmt", "fmu"])
def format_(request: pytest.FixtureRequest) -> Format:
    """Each format in turn."""
    if request.param == "sbml":
        pytest.importorskip("roadrunner")
        return Format(SbmlModel, EXAMPLES / "windkessel.xml")
    if request.param == "mmt":
        request.getfixturevalue("myokit_compiles")
        heart = ("heart.rate", "heart.stroke_volume")
        return Format(CellmlModel, EXAMPLES / "windkessel.mmt", "artery.", heart)
    return Format(trusted, request.getfixturevalue("fmu"))


def person(heart_rate: float = 70.0, stroke_volume: float = 70.0) -> Patient:
    return Patient("P", {}, {"heart_rate": heart_rate, "stroke_volume": stroke_volume})


SBML = """<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2">
<model id="decay">
<listOfCompartments>
  <compartment id="cell" size="2" constant="true" spatialDimensions="3"/>
</listOfCompartments>
<listOfSpecies>
  <species id="S" compartment="cell" initialConcentration="3" constant="false"
    boundaryCondition="false" hasOnlySubstanceUnits="false"/>
</listOfSpecies>
<listOfParameters>
  <parameter id="k" value="2" constant="true"/>
  <parameter id="tenfold" constant="true"/>
  <parameter id="x" value="1" constant="false"/>
  <parameter id="switch" value="4" constant="false"/>
  <parameter id="twice" constant="false"/>
</listOfParameters>
<listOfInitialAssignments><initialAssignment symbol="tenfold">
  <math xmlns="http://www.w3.org/1998/Math/MathML"><apply><times/><cn>10</cn><ci>k</ci></apply></math>
</initialAssignment></listOfInitialAssignments>
<listOfRules>
  <rateRule variable="x"><math xmlns="http://www.w3.org/1998/Math/MathML">
    <apply><times/><apply><minus/><ci>k</ci></apply><ci>x</ci></apply></math></rateRule>
  <assignmentRule variable="twice"><math xmlns="http://www.w3.org/1998/Math/MathML">
    <apply><times/><cn>2</cn><ci>x</ci></apply></math></assignmentRule>
</listOfRules>
<listOfReactions><reaction id="loss" reversible="false">
  <listOfReactants>
    <speciesReference species="S" stoichiometry="1" constant="true"/>
  </listOfReactants>
  <kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML">
    <apply><times/><ci>k</ci><ci>cell</ci><ci>S</ci></apply></math></kineticLaw>
</reaction></listOfReactions>
<listOfEvents><event id="e" useValuesFromTriggerTime="true">
  <trigger initialValue="true" persistent="true">
    <math xmlns="http://www.w3.org/1998/Math/MathML"><apply><gt/>
    <csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/time">t</csymbol>
    <cn>0.5</cn></apply></math></trigger>
  <listOfEventAssignments><eventAssignment variable="switch">
    <math xmlns="http://www.w3.org/1998/Math/MathML"><cn>9</cn></math>
  </eventAssignment></listOfEventAssignments>
</event></listOfEvents>
</model></sbml>"""


@pytest.fixture
def decay(tmp_path: Path) -> Path:
    """Exponential decay in SBML."""
    pytest.importorskip("roadrunner")
    (tmp_path / "decay.xml").write_text(SBML, encoding="utf-8")
    return tmp_path / "decay.xml"
