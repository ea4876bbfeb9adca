"""Models in standard formats: fields, files and calls that are refused."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import standard_models
from standard_models import Format, person, trusted

from vitolab.adapters.cellml import CellmlModel
from vitolab.adapters.fmu import FmuModel
from vitolab.adapters.sbml import SbmlModel
from vitolab.adapters.timecourse import TimeCourse
from vitolab.problem import Patient

fmu = standard_models.fmu
myokit_compiles = standard_models.myokit_compiles
format_ = standard_models.format_
decay = standard_models.decay

EXAMPLES = Path(__file__).resolve().parents[1] / "notebooks" / "examples"
NOBODY = Patient("P", {})
FAILED = r"CVODE Error|numerical error|fmi2ExitInitializationMode failed"


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
