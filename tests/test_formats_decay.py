"""Models in SBML and CellML that decay exponentially, and a file that changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import standard_models
from standard_models import SBML

from vitolab.adapters.cellml import CellmlModel
from vitolab.adapters.sbml import SbmlModel
from vitolab.problem import Patient

myokit_compiles = standard_models.myokit_compiles
decay = standard_models.decay

NOBODY = Patient("P", {})
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
