"""Models in standard formats: closed forms, an oracle, and what is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from vitolab.adapters.cellml import CellmlModel
from vitolab.adapters.features import FEATURES, feature
from vitolab.adapters.fmu import FmuModel
from vitolab.adapters.sbml import SbmlModel
from vitolab.adapters.timecourse import TimeCourse
from vitolab.problem import FloatArray, Patient
from vitolab.problemfile import read_problem

EXAMPLES = Path(__file__).resolve().parents[1] / "notebooks" / "examples"
NOBODY = Patient("P", {})
SYSTOLE = 0.35
BEATS, PER_BEAT = 20, 200  # of the Windkessel
FAILED = r"CVODE Error|numerical error|fmi2ExitInitializationMode failed"

# --- features ----------------------------------------------------------------------------


def test_features_of_a_half_sine_have_their_closed_forms():
    t = np.linspace(0.0, 2.0, 2001)
    v = 3.0 * np.sin(np.pi * t / 2.0)
    expected = {
        "initial": 0.0,
        "final": 0.0,
        "minimum": 0.0,
        "maximum": 3.0,
        "mean": 3.0 * 2.0 / np.pi,
        "time of maximum": 1.0,
    }
    assert set(expected) == set(FEATURES)
    for name, value in expected.items():
        assert feature(name, t, v) == pytest.approx(value, abs=1e-6)


def test_mean_is_over_time_however_the_points_lie():
    t = np.array([0.0, 0.1, 0.2, 0.3, 4.0])
    assert feature("mean", t, 5.0 - t) == pytest.approx(3.0, rel=1e-14)


def test_features_of_a_broken_series_are_not_numbers():
    t, v = np.arange(3.0), np.array([1.0, np.nan, 2.0])
    for name in ("minimum", "maximum", "mean", "time of maximum"):
        assert np.isnan(feature(name, t, v))
    assert feature("final", t, v) == 2.0


def test_an_unknown_feature_is_refused():
    with pytest.raises(ValueError, match=r"feature is 'median', expected one of initial, final"):
        feature("median", np.arange(2.0), np.arange(2.0))


# --- models ------------------------------------------------------------------------------


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


def oracle(x: FloatArray, patient: Patient) -> dict[str, float]:
    """Pressures of the last beat: SciPy, each pulse and each diastole by itself."""
    total, impedance, compliance = x
    period, volume = 60.0 / patient.data["heart_rate"], patient.data["stroke_volume"]
    peak = np.pi * volume / (2.0 * SYSTOLE * period)

    def flow(u: FloatArray) -> FloatArray:
        return peak * np.sin(np.pi * u / SYSTOLE)

    def pulse(u: float, p: FloatArray) -> FloatArray:
        return period * (flow(u) - p / (total - impedance)) / compliance

    def decay(u: FloatArray) -> FloatArray:
        return np.exp(-period * (u - SYSTOLE) / ((total - impedance) * compliance))

    u = np.linspace(0.0, 1.0, PER_BEAT + 1)
    early = u < SYSTOLE
    start = total * volume / period
    for _ in range(BEATS):
        ejected = solve_ivp(
            pulse, (0.0, SYSTOLE), [start], t_eval=[*u[early], SYSTOLE], rtol=1e-10, atol=1e-10
        ).y[0]
        start = ejected[-1] * decay(1.0)
    pressure = ejected[-1] * decay(u)
    pressure[early] = ejected[:-1] + impedance * flow(u[early])
    mean = np.mean((pressure[1:] + pressure[:-1]) / 2.0)
    return {"mean": mean, "systolic": pressure.max(), "diastolic": pressure.min()}


POINTS = [
    ([1.1, 0.05, 1.4], person()),
    ([2.0, 0.1, 3.0], person(50.0, 95.0)),
    ([0.6, 0.02, 0.5], person(110.0, 45.0)),
]


@pytest.mark.parametrize(("x", "patient"), POINTS)
def test_windkessel_agrees_with_scipy_to_a_thousandth_of_a_mmhg(
    format_: Format, x: list[float], patient: Patient
):
    assert format_.windkessel()(np.array(x), patient) == pytest.approx(
        oracle(np.array(x), patient), abs=1e-3
    )


def test_a_problem_file_runs_a_model_of_each_format_in_processes_of_its_own(
    format_: Format, tmp_path: Path
):
    kind = {".xml": "sbml", ".mmt": "cellml", ".fmu": "fmu"}[format_.path.suffix]
    shutil.copy(format_.path, tmp_path)
    text = (EXAMPLES.parent / "starter" / "problem.toml").read_text(encoding="utf-8")
    for name, own in (("resistance", "R"), ("impedance", "Zc"), ("compliance", "C")):
        text = text.replace(
            f'name = "{name}"', f'name = "{name}"\ntarget = "{format_.artery}{own}"'
        )
    for name, own in zip(("heart_rate", "stroke_volume"), format_.heart, strict=True):
        text = text.replace(f'name = "{name}"', f'name = "{name}"\ntarget = "{own}"')
    for name, what in (("mean", "mean"), ("systolic", "maximum"), ("diastolic", "minimum")):
        wanted = f'output = "{format_.artery}pressure"\nfeature = "{what}"'
        text = text.replace(f'output = "{name}"', wanted)
    head, _, _ = text.partition("[model]")
    (tmp_path / "problem.toml").write_text(
        f"""{head}[model]
adapter = "{kind}"
file = "{format_.path.name}"
duration = {BEATS}.0
points = {BEATS * PER_BEAT + 1}
skip = {BEATS - 1}
time_limit = 60.0
workers = 1
{"trusted = true" if kind == "fmu" else ""}
""",
        encoding="utf-8",
    )
    problem = read_problem(tmp_path / "problem.toml").problem
    x, patient = POINTS[0]
    total, impedance, compliance = x
    y = problem.run(np.array([[total, compliance, impedance]]), patient).y[0]
    problem.simulate.close()
    assert y == pytest.approx(list(oracle(np.array(x), patient).values()), abs=1e-3)


def test_windkessel_starts_at_the_mean_pressure_and_decays_exponentially(format_: Format):
    stored = f"{format_.artery}stored"
    model = format_.windkessel(
        duration=1.0,
        n_points=401,
        skip=0.0,
        outputs={"start": (stored, "initial"), "end": (stored, "final")},
    )
    late = replace(model, skip=SYSTOLE)
    x = np.array([1.5, 0.2, 0.9])
    y, beyond = model(x, person(80.0, 60.0)), late(x, person(80.0, 60.0))
    assert y["start"] == pytest.approx(1.5 * 60.0 * 80.0 / 60.0, rel=1e-12)
    assert beyond["end"] == y["end"]
    decay = np.exp(-(1.0 - SYSTOLE) * 0.75 / (1.3 * 0.9))
    assert y["end"] / beyond["start"] == pytest.approx(decay, rel=1e-5)


def test_mean_pressure_is_resistance_times_output_once_beats_have_settled(format_: Format):
    x = np.array([0.9, 0.05, 0.6])
    mean = format_.windkessel()(x, person(60.0, 80.0))["mean"]
    assert mean == pytest.approx(0.9 * 80.0, abs=0.02)  # of points, not of the flow itself


def test_answers_do_not_depend_on_what_ran_before(format_: Format):
    model = format_.windkessel(n_points=401)
    other = format_.windkessel(  # sets other names of the same file
        n_points=101, duration=5.0, skip=0.0, parameters=(f"{format_.artery}C",), data={}
    )
    a, b = np.array([1.1, 0.05, 1.4]), np.array([2.0, 0.1, 3.0])
    first, own = model(a, person()), other(np.array([2.0]), NOBODY)
    assert model(b, person(50.0, 95.0)) != first
    with pytest.raises(Exception, match=FAILED):  # which leaves nothing behind
        model(np.array([np.nan, 0.05, 1.4]), person())
    assert other(np.array([2.0]), NOBODY) == own
    assert model(a, person()) == first


def test_model_travels_to_other_processes(format_: Format):
    model = format_.windkessel(n_points=401)
    copy = ForkingPickler.loads(ForkingPickler.dumps(model))
    assert copy == model
    x = np.array([1.1, 0.05, 1.4])
    assert copy(x, person()) == model(x, person())


def test_model_tells_which_file_it_is(format_: Format, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(format_.path.parent)
    relative = replace(format_, path=Path(format_.path.name)).windkessel()
    assert relative.sources == (format_.path,)


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

CELLML = """<model xmlns="http://www.cellml.org/cellml/1.0#"
  xmlns:cellml="http://www.cellml.org/cellml/1.0#" name="decay">
<units name="per_second"><unit units="second" exponent="-1"/></units>
<component name="decay">
  <variable name="time" units="second"/>
  <variable name="k" units="per_second" initial_value="2"/>
  <variable name="x" units="dimensionless" initial_value="1"/>
  <variable name="twice" units="dimensionless"/>
  <math xmlns="http://www.w3.org/1998/Math/MathML">
    <apply><eq/><apply><diff/><bvar><ci>time</ci></bvar><ci>x</ci></apply>
      <apply><times/><apply><minus/><ci>k</ci></apply><ci>x</ci></apply></apply>
    <apply><eq/><ci>twice</ci>
      <apply><times/><cn cellml:units="dimensionless">2</cn><ci>x</ci></apply></apply>
  </math>
</component></model>"""


@pytest.fixture
def decay(tmp_path: Path) -> Path:
    """Exponential decay in SBML."""
    pytest.importorskip("roadrunner")
    (tmp_path / "decay.xml").write_text(SBML, encoding="utf-8")
    return tmp_path / "decay.xml"


def test_sbml_decays_exponentially_from_the_value_that_is_set(decay: Path):
    outputs = {
        "x": ("x", "final"),
        "twice": ("twice", "mean"),
        "amount": ("S", "final"),
        "concentration": ("[S]", "final"),
        "flux": ("loss", "initial"),
    }
    model = SbmlModel(decay, ("k", "x", "[S]"), outputs, duration=1.5, n_points=3001)
    for k, x, s in [(2.0, 1.0, 3.0), (0.7, 5.0, 0.5)]:
        left = np.exp(-1.5 * k)
        expected = {
            "x": x * left,
            "twice": 2.0 * x * (1.0 - left) / (1.5 * k),
            "amount": 2.0 * s * left,
            "concentration": s * left,
            "flux": 2.0 * k * s,
        }
        assert model(np.array([k, x, s]), NOBODY) == pytest.approx(expected, rel=1e-6)


def test_sbml_initial_assignments_follow_what_is_set_and_give_way_to_it(decay: Path):
    outputs = {"tenfold": ("tenfold", "final")}
    follows = SbmlModel(decay, ("k",), outputs, 1.0, 11)
    given = SbmlModel(decay, ("k", "tenfold"), outputs, 1.0, 11)
    assert follows(np.array([3.0]), NOBODY) == {"tenfold": 30.0}
    assert given(np.array([3.0, 7.0]), NOBODY) == {"tenfold": 7.0}
    assert follows(np.array([4.0]), NOBODY) == {"tenfold": 40.0}


def test_sbml_events_of_one_run_leave_nothing_for_the_next(decay: Path):
    outputs = {"first": ("switch", "initial"), "last": ("switch", "final")}
    model = SbmlModel(decay, ("k",), outputs, 1.0, 11)
    for _ in range(2):
        assert model(np.array([1.0]), NOBODY) == {"first": 4.0, "last": 9.0}


def test_cellml_decays_exponentially_from_the_value_that_is_set(
    tmp_path: Path, myokit_compiles: None
):
    path = tmp_path / "decay.cellml"
    path.write_text(CELLML, encoding="utf-8")
    outputs = {"x": ("decay.x", "final"), "twice": ("decay.twice", "mean")}
    model = CellmlModel(path, ("decay.k", "decay.x"), outputs, duration=1.5, n_points=3001)
    for k, x in [(2.0, 1.0), (0.7, 5.0)]:
        left = np.exp(-1.5 * k)
        expected = {"x": x * left, "twice": 2.0 * x * (1.0 - left) / (1.5 * k)}
        assert model(np.array([k, x]), NOBODY) == pytest.approx(expected, rel=1e-6)


def test_a_file_that_changes_is_read_again(decay: Path):
    model = SbmlModel(decay, ("k",), {"x": ("x", "initial")}, 1.0, 11)
    assert model(np.array([1.0]), NOBODY) == {"x": 1.0}
    changed = SBML.replace('<parameter id="x" value="1"', '<parameter id="x" value="12"')
    decay.write_text(changed, encoding="utf-8")
    assert model(np.array([1.0]), NOBODY) == {"x": 12.0}


# --- what is refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"parameters": ("tenfol",)}, "no parameter 'tenfol', expected one like tenfold"),
        ({"parameters": ("twice",)}, "no parameter 'twice', expected one like"),
        ({"parameters": ("cell",)}, "no parameter 'cell', expected one like"),
        ({"data": {"age": "kk"}}, "decay.xml: there is no parameter 'kk', expected one like k"),
        ({"data": {"age": "k"}}, "decay.xml: 'k' is set twice, expected once"),
        (
            {"outputs": {"y": ("swich", "final")}},
            "decay.xml: there is no variable 'swich', expected one like switch",
        ),
        (
            {"outputs": {"y": ("x", "median")}},
            "decay.xml: output 'y' is the feature 'median', expected one of initial, final",
        ),
        ({"outputs": {}}, "decay.xml: there are no outputs, expected at least one"),
        ({"duration": 0.0}, "decay.xml: duration is 0, expected above 0"),
        ({"duration": float("nan")}, "decay.xml: duration is nan, expected above 0"),
        ({"n_points": 1}, "decay.xml: n_points is 1, expected at least 2"),
        ({"skip": 0.95}, "decay.xml: skip is 0.95, expected from 0 up to a time that leaves two"),
        ({"skip": -1.0}, "decay.xml: skip is -1, expected from 0"),
    ],
)
def test_fields_that_mean_nothing_are_refused(decay: Path, changes: dict[str, object], reason: str):
    fields = {
        "parameters": ("k",),
        "outputs": {"x": ("x", "final")},
        "duration": 1.0,
        "n_points": 11,
    }
    with pytest.raises(ValueError, match=re.escape(reason)):
        SbmlModel(decay, **(fields | changes))


@pytest.mark.parametrize("build", [SbmlModel, CellmlModel, trusted])
def test_files_that_are_absent_or_hold_no_model_are_refused(
    tmp_path: Path, build: Callable[..., TimeCourse]
):
    needed = {SbmlModel: "roadrunner", CellmlModel: "myokit", trusted: "fmpy"}
    pytest.importorskip(needed[build])
    rest = {"parameters": (), "outputs": {"x": ("x", "final")}, "duration": 1.0}
    with pytest.raises(ValueError, match=r"absent\.xml is absent, expected a file with a model"):
        build(tmp_path / "absent.xml", **rest)
    with pytest.raises(ValueError, match=r"is a folder, expected a file with a model"):
        build(tmp_path, **rest)
    for text in ("", "<html/>", "[[model]]\nx = "):
        for name in ("a.xml", "a.mmt", "a.cellml"):
            (tmp_path / name).write_text(text, encoding="utf-8")
            with pytest.raises(ValueError, match=rf"^{name} cannot be read \(.+\), expected a "):
                build(tmp_path / name, **rest)


@pytest.mark.parametrize(
    ("build", "library", "message"),
    [
        (
            SbmlModel,
            "roadrunner",
            "reading SBML needs libroadrunner, expected `pip install vitolab[sbml]`",
        ),
        (
            CellmlModel,
            "myokit",
            "reading CellML and MMT needs myokit, expected `pip install vitolab[cellml]`",
        ),
        (trusted, "fmpy", "reading FMUs needs fmpy, expected `pip install vitolab[fmu]`"),
    ],
)
def test_a_library_that_is_absent_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    build: Callable[..., TimeCourse],
    library: str,
    message: str,
):
    path = tmp_path / "model.mmt"
    path.write_text("[[model]]\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        build(path, parameters=(), outputs={"x": ("x", "final")}, duration=1.0)


def test_calls_that_do_not_fit_are_refused(format_: Format):
    model = format_.windkessel()
    with pytest.raises(ValueError, match=r"x has shape \(2,\), expected \(3,\)"):
        model(np.ones(2), person())
    with pytest.raises(ValueError, match=r"patient 'P': heart_rate is None, expected a finite"):
        model(np.ones(3), NOBODY)


def test_an_fmu_is_refused_before_it_is_opened_unless_it_is_trusted(tmp_path: Path):
    path = tmp_path / "absent.fmu"
    with pytest.raises(ValueError, match=r"absent\.fmu is native code .* expected trusted to be"):
        FmuModel(path, (), {"x": ("x", "final")}, 1.0)


def test_an_fmu_that_cannot_run_here_is_refused(fmu: Path, tmp_path: Path):
    description = (EXAMPLES / "windkessel_fmu.xml").read_text(encoding="utf-8")
    exchanged = description.replace(
        'CoSimulation modelIdentifier="windkessel" canHandleVariableCommunicationStepSize="true"',
        'ModelExchange modelIdentifier="windkessel"',
    )
    elsewhere, exchange = tmp_path / "elsewhere.fmu", tmp_path / "exchange.fmu"
    for path, text, binary in (
        (elsewhere, description, "binaries/win32/windkessel.dll"),
        (exchange, exchanged, "binaries/linux64/windkessel.so"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("modelDescription.xml", text)
            archive.writestr(binary, b"")
    with pytest.raises(ValueError, match=r"elsewhere\.fmu is for win32, expected linux64"):
        Format(trusted, elsewhere).windkessel()
    with pytest.raises(ValueError, match=r"exchange\.fmu is for model exchange only, expected co-"):
        Format(trusted, exchange).windkessel()


def test_a_run_that_fails_raises(format_: Format):
    with pytest.raises(Exception, match=FAILED):
        format_.windkessel(n_points=101)(np.array([np.nan, 0.05, 1.4]), person())
