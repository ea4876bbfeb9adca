"""Geometry of hearts as features of the problem of electrophysiology."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from threadpoolctl import threadpool_limits

from vitolab.agent.continuous import ContinuousVito
from vitolab.exploration import explore
from vitolab.models import electrophysiology
from vitolab.models.electrophysiology import geometry, hearts
from vitolab.problem import Patient, Problem

UNITS = np.array(list(geometry.GEOMETRY.values()))
NAMES = list(geometry.GEOMETRY)
ORIENTATION = np.array(["_axis_" in name for name in NAMES])
#: Two hearts that differ in all, coarse to be fast.
DATA = (
    {"anatomy": "normal", "spacing": 5.0},
    {"anatomy": "dilated", "spacing": 5.5, "roll": 20.0, "offset_x": 12.0, "offset_z": -5.0},
)
PATIENTS = [
    Patient(f"P{i}", {"qrs_duration": 100.0, "electrical_axis": 20.0}, data)
    for i, data in enumerate(DATA)
]
both = pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: patient.name)


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep hearts in a folder of these tests."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITOLAB_CACHE", str(folder))
        yield folder


@pytest.fixture
def problem() -> Problem:
    return electrophysiology.problem("infinite")


def forget() -> None:
    """Empty the memory of hearts, not the cache on disk."""
    geometry._kept.cache_clear()
    hearts._geometry.cache_clear()


def by_name(found: np.ndarray) -> dict[str, float]:
    return dict(zip(NAMES, found.tolist(), strict=True))


# --- the numbers -------------------------------------------------------------------------


@both
def test_the_numbers_of_a_generated_heart_are_those_of_its_shape(patient: Patient):
    """Extents of ellipsoids, and the turn that the data name."""
    shape = electrophysiology.PRESETS[patient.data["anatomy"]]
    found = by_name(geometry.of_patient(patient))
    radii = {name: both[1] for name, both in shape.ellipsoids.items()}
    assert found["lv_cavity_width"] == pytest.approx(2 * radii["lv_endo"][1], abs=1.5)
    assert found["rv_cavity_width"] == pytest.approx(2 * radii["rv_endo"][1], abs=3.0)
    assert found["lv_cavity_length"] == pytest.approx(shape.lv_length, abs=2.0)
    rv_length = shape.rv_length or 0.88 * shape.lv_length
    assert found["rv_cavity_length"] == pytest.approx(rv_length, abs=2.0)
    turn = hearts.orient(roll=patient.data.get("roll", 0.0))
    own = np.array(list(found.values()))
    np.testing.assert_allclose(own[ORIENTATION], [*turn[:, 2], *turn[:, 0]], atol=1e-9)


@both
def test_walls_together_are_the_whole_myocardium(patient: Patient):
    found = by_name(geometry.of_patient(patient))
    whole = electrophysiology.heart(patient, "infinite").anatomy.volumes.sum()
    assert found["lv_wall_volume"] + found["rv_wall_volume"] == pytest.approx(whole / 1000.0)
    assert found["lv_wall_volume"] > 2 * found["rv_wall_volume"] > 0


@both
def test_a_heart_twice_as_large_has_twice_the_lengths_and_eight_times_the_volumes(
    patient: Patient,
):
    heart = electrophysiology.heart(patient, "infinite")
    large = dataclasses.replace(heart.anatomy, nodes=2.0 * heart.anatomy.nodes)
    times = np.select([UNITS == "mm", UNITS == "mL"], [2.0, 8.0], 1.0)
    found = geometry.measured(large, 2.0 * heart.placed)
    expected = times * geometry.measured(heart.anatomy, heart.placed)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@both
def test_turning_a_heart_about_its_centre_changes_its_orientation_only(patient: Patient):
    heart = electrophysiology.heart(patient, "infinite")
    before = geometry.measured(heart.anatomy, heart.placed)
    centre = heart.volume @ heart.placed / heart.volume.sum()
    turn = Rotation.from_rotvec([0.3, -0.5, 0.8]).as_matrix()
    after = geometry.measured(heart.anatomy, (heart.placed - centre) @ turn.T + centre)
    np.testing.assert_allclose(after[~ORIENTATION], before[~ORIENTATION], atol=1e-9)
    axes = before[ORIENTATION].reshape(2, 3) @ turn.T
    np.testing.assert_allclose(after[ORIENTATION].reshape(2, 3), axes, atol=1e-9)
    assert np.abs(after - before)[ORIENTATION].min() > 0.01


@both
def test_where_a_heart_lies_is_none_of_its_features(patient: Patient):
    heart = electrophysiology.heart(patient, "infinite")
    moved = heart.placed + np.array([5.0, -3.0, 2.0])
    expected = geometry.measured(heart.anatomy, heart.placed)
    np.testing.assert_allclose(geometry.measured(heart.anatomy, moved), expected, atol=1e-9)


def test_where_a_heart_lies_matters_less_than_how_it_is_turned():
    """7 mm and 15° are about the spread of the cohort; so the position is no feature."""
    problem = electrophysiology.problem("bem")
    x = np.array([[500.0, 2000.0, 2000.0]])

    def moved(**changes: float) -> float:
        """Largest change of an output, in tolerances."""
        other = dataclasses.replace(PATIENTS[0], data={**DATA[0], **changes})
        y, before = problem.simulate(x, other), problem.simulate(x, PATIENTS[0])
        return float(np.abs(problem.misfit(y, before) / problem.tolerance).max())

    assert max(moved(**{name: 7.0}) for name in hearts.SHIFTS) < 0.4
    assert min(moved(**{name: 15.0}) for name in ("elevation", "roll")) > 1.0


def test_axes_of_a_heart_are_of_length_one_and_at_right_angles():
    found = geometry.of_patient(PATIENTS[1])[ORIENTATION].reshape(2, 3)
    np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-9)


def test_axes_of_the_file_and_the_order_of_its_nodes_do_not_matter():
    """A heart turned within its own coordinates, its nodes shuffled, is the same heart."""
    heart = electrophysiology.heart(PATIENTS[0], "infinite")
    a = heart.anatomy
    turn = Rotation.from_rotvec([1.0, 0.4, -0.6]).as_matrix()
    order = np.random.default_rng(0).permutation(a.n_nodes)
    place = np.argsort(order)
    at_nodes = ("surface", "base", "transmural", "apex_base", "rotation", "right")
    other = dataclasses.replace(
        a,
        nodes=(a.nodes @ turn.T + 7.0)[order],
        tets=place[a.tets],
        fibres=(a.fibres @ turn.T)[order],
        roots=place[a.roots],
        frame=a.frame @ turn.T,
        **{name: getattr(a, name)[order] for name in at_nodes},
    )
    expected = geometry.measured(a, heart.placed)
    found = geometry.measured(other, heart.placed[order])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_heart_in_a_file_has_the_features_of_the_one_it_was_written_from(
    problem: Problem, tmp_path: Path
):
    pytest.importorskip("meshio")
    path = tmp_path / "heart.vtu"
    anatomy = electrophysiology.heart(PATIENTS[0], "infinite").anatomy
    electrophysiology.save_anatomy(anatomy, path)
    imported = Patient("I", {}, {"anatomy": str(path)})
    expected = problem.featured(PATIENTS[0])
    np.testing.assert_allclose(problem.featured(imported), expected, atol=1e-6)


# --- the cache ---------------------------------------------------------------------------


def test_the_same_heart_has_the_same_bits_computed_kept_and_for_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    found = []
    for n in (1, 2):
        forget()
        monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path / str(n)))
        with threadpool_limits(n):
            found.append(geometry.of_patient(PATIENTS[1]))
    forget()
    found.append(geometry.of_patient(PATIENTS[1]))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert found[2] is not found[1]
    assert not any(array.flags.writeable for array in found)


def test_the_geometry_in_the_cache_is_read_without_its_heart(monkeypatch: pytest.MonkeyPatch):
    expected = geometry.of_patient(PATIENTS[0])
    forget()
    monkeypatch.setattr(geometry, "placed_anatomy", None)
    np.testing.assert_array_equal(geometry.of_patient(PATIENTS[0]), expected)


def test_no_lead_and_no_activation_is_computed_for_the_geometry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(hearts, "_weights", None)
    monkeypatch.setattr(electrophysiology.model.kernel, "activate", None)
    monkeypatch.setattr(electrophysiology.model.kernel, "simulate", None)
    forget()
    assert np.isfinite(geometry.of_patient(PATIENTS[0])).all()


# --- the problem -------------------------------------------------------------------------


def test_walks_hold_the_geometry_of_the_hearts_they_went_through(problem: Problem):
    walks = explore(problem, PATIENTS, n_episodes=2, n_steps=1, seed=0)
    assert walks.features is not None
    assert len(problem.features) == walks.features.shape[1]
    for row, patient in zip(walks.features, PATIENTS, strict=True):
        np.testing.assert_array_equal(row, geometry.of_patient(patient))


def test_an_agent_learns_with_the_geometry_and_is_read_again(problem: Problem, tmp_path: Path):
    walks = explore(problem, PATIENTS, n_episodes=10, n_steps=1, seed=0)
    agent = ContinuousVito.learn(problem, walks)
    agent.save(tmp_path / "agent")
    stored = json.loads((tmp_path / "agent" / "continuous.json").read_text(encoding="utf-8"))
    assert stored["features"] == list(problem.features)
    again = ContinuousVito.load(tmp_path / "agent", electrophysiology.problem("infinite"))
    fits = [one.personalize(PATIENTS[0], max_runs=3) for one in (agent, again)]
    np.testing.assert_array_equal(fits[0].trace.x, fits[1].trace.x)
    np.testing.assert_array_equal(again.problem.featured(PATIENTS[1]), walks.features[1])


def test_workers_in_other_processes_give_the_same_features(problem: Problem):
    from joblib import Parallel, delayed

    found = Parallel(n_jobs=2)(delayed(problem.featured)(patient) for patient in PATIENTS)
    for row, patient in zip(found, PATIENTS, strict=True):
        np.testing.assert_array_equal(row, problem.featured(patient))


def test_every_lead_field_and_mode_has_the_same_features():
    problems = [
        electrophysiology.problem(lead_field, mode)
        for lead_field in electrophysiology.LEAD_FIELDS
        for mode in ("exact", "table")
    ]
    for problem in problems:
        assert list(problem.features) == NAMES
        expected = problems[0].featured(PATIENTS[1])
        np.testing.assert_array_equal(problem.featured(PATIENTS[1]), expected)


@pytest.mark.parametrize(
    "data",
    [{}, {"anatomy": "none"}, {"anatomy": "normal", "lv_wall": -1.0}, {"anatomy": "gone.vtu"}],
)
def test_of_a_patient_whose_heart_cannot_be_built_nothing_is_known(problem: Problem, data: dict):
    patient = Patient("bad", PATIENTS[0].measurements, data)
    assert np.isnan(problem.featured(patient)).all()
    with pytest.raises(ValueError, match="patient 'bad': "):
        geometry.of_patient(patient)
    walks = explore(problem, [PATIENTS[0], patient], n_episodes=1, n_steps=2, seed=0)
    assert np.isnan(walks.features[1]).all()
    assert np.isfinite(walks.features[0]).all()
    assert np.isnan(walks.y[1]).all()


def test_other_geometry_is_another_version_of_the_problem(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    source = tmp_path / "geometry.py"
    source.write_text(
        Path(geometry.__file__).read_text(encoding="utf-8").replace("MM3_PER_ML = 1000.0", "X = 1")
    )
    monkeypatch.setattr(geometry, "__file__", str(source))
    assert electrophysiology.problem("infinite").version != problem.version


def test_what_is_stored_of_the_problem_has_the_fields_that_it_had(problem: Problem):
    plain = dataclasses.replace(problem, features=(), featuring=None)
    assert problem.describe() == plain.describe()
