"""The model of cardiac electrophysiology: features, definitions, table, hearts that are kept."""

from __future__ import annotations

import ast
import dataclasses
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from vitolab.kernels import activation as kernel
from vitolab.models import electrophysiology
from vitolab.models.electrophysiology import (
    cache,
    description,
    hearts,
    meshfile,
    model,
    ratios,
    solvability,
)
from vitolab.models.electrophysiology.leadfield import LEADS, electrical_axis
from vitolab.problem import FloatArray, Patient


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep hearts in a folder of these tests."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITOLAB_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def patient() -> Patient:
    """A coarse normal heart: fast, and good enough for what is claimed of any heart."""
    return Patient(
        "P", {"qrs_duration": 100.0, "electrical_axis": 20.0}, {"anatomy": "normal", "spacing": 5.0}
    )


SPEEDS = np.array([[500.0, 2000, 2000], [500, 500, 3000], [500, 3000, 500], [900, 700, 1500]])


def test_reported_features_are_those_of_activation_times_and_leads(patient: Patient):
    """Net areas by a sampled ECG, the axis from them; duration from the times themselves."""
    y = electrophysiology.problem().simulate(SPEEDS, patient)
    for speeds, (duration, axis) in zip(SPEEDS, y, strict=True):
        tau = electrophysiology.activation(speeds, patient)
        volume = electrophysiology.heart(patient).volume
        order = np.argsort(tau)
        share = np.cumsum(volume[order]) / volume.sum()
        assert duration == pytest.approx(tau[order][np.searchsorted(share, 0.995)], abs=1e-3)
        time, leads = electrophysiology.ecg(speeds, patient)
        area = leads.sum(axis=1) * (time[1] - time[0])
        sampled = electrical_axis(area[LEADS.index("I")], area[LEADS.index("aVF")])
        assert axis == pytest.approx(float(sampled), abs=0.01)


def test_leads_obey_einthoven_and_goldberger(patient: Patient):
    _, leads = electrophysiology.ecg(SPEEDS[0], patient)
    lead = dict(zip(LEADS, leads, strict=True))
    np.testing.assert_allclose(lead["I"] + lead["III"], lead["II"], atol=1e-9)
    np.testing.assert_allclose(lead["aVR"] + lead["aVL"] + lead["aVF"], 0.0, atol=1e-9)
    assert np.abs(leads[:, -1]).max() < 1e-9  # nothing after the last activation


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_common_factor_of_the_speeds_divides_all_times_and_keeps_the_axis(
    patient: Patient, factor: float
):
    problem = electrophysiology.problem()
    y, scaled = (problem.simulate(x, patient) for x in (SPEEDS, factor * SPEEDS))
    np.testing.assert_allclose(scaled[:, 0], y[:, 0] / factor, rtol=1e-5)
    np.testing.assert_allclose(scaled[:, 1], y[:, 1], atol=1e-3)


def test_the_table_is_near_the_exact_model_over_the_domain(patient: Patient):
    """Means and 95 % of the differences as measured on other hearts: 0.13 and 0.67 ms, 0.03°."""
    exact, table = electrophysiology.problem(), electrophysiology.problem(mode="table")
    x = exact.draw(np.random.default_rng(0), 300)
    difference = np.abs(exact.misfit(table.simulate(x, patient), exact.simulate(x, patient)))
    assert np.nanmean(difference[:, 0]) < 0.3
    assert np.nanmean(difference[:, 1]) < 0.3
    assert np.nanquantile(difference[:, 0], 0.95) < 1.2
    assert np.nanquantile(difference[:, 1], 0.95) < 1.0


def test_the_table_answers_beyond_the_domain_by_exact_runs(patient: Patient):
    beyond = np.array([[1000.0, 100.0, 100.0], [100.0, 9000.0, 9000.0]])
    found = electrophysiology.problem(mode="table").simulate(beyond, patient)
    np.testing.assert_array_equal(found, electrophysiology.problem().simulate(beyond, patient))


def test_a_success_by_the_table_is_one_of_the_exact_model(patient: Patient):
    table = electrophysiology.problem(mode="table")
    exact = electrophysiology.problem()
    x = SPEEDS[:1]
    y = exact.simulate(x, patient)[0]
    np.testing.assert_array_equal(table.run(x, patient, confirm=y).y, y[np.newaxis])


def test_definitions_differ_and_are_part_of_the_version(patient: Patient):
    found = electrophysiology.features(SPEEDS[1], patient)
    assert found["duration:robust"] < found["duration:span"]
    assert found["axis:area"] != found["axis:peak"]
    versions = {
        electrophysiology.problem(**options).version
        for options in ({}, {"mode": "table"}, {"duration": "ecg"}, {"axis": "peak"})
    }
    assert len(versions) == 4
    y = electrophysiology.problem(duration="ecg", axis="peak").simulate(SPEEDS[1:2], patient)[0]
    assert y.tolist() == [found["duration:ecg"], found["axis:peak"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lead_field": "finite"}, "lead_field is 'finite', expected one of bem, infinite"),
        ({"mode": "fast"}, "mode is 'fast', expected one of exact, table"),
        ({"mode": "table", "duration": "ecg"}, "whose smoothing does not scale"),
        ({"mode": "table", "axis": "peak"}, "whose smoothing does not scale"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str):
    with pytest.raises(ValueError, match=message):
        electrophysiology.problem(**options)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_a_speed_that_is_not_positive_is_refused(patient: Patient, wrong: float):
    with pytest.raises(ValueError, match=r"row 1: v_lv is .* expected a positive number"):
        electrophysiology.problem().simulate(np.array([SPEEDS[0], [500, wrong, 2000]]), patient)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "anatomy is None, expected normal"),
        ({"anatomy": "heart.vtu"}, "anatomy is 'heart.vtu', expected normal, .* path of a mesh"),
        ({"anatomy": "normal", "lv_radius": "big"}, "lv_radius is 'big', expected a finite number"),
        ({"anatomy": "normal", "lv_radius": True}, "lv_radius is True, expected a finite number"),
        ({"anatomy": "normal", "lv_radius": [1.0]}, r"lv_radius is \[1.0\], expected a finite"),
        ({"anatomy": "normal", "lv_radius": -3.0}, "shape: lv_radius is -3.0, expected a positive"),
        ({"anatomy": "normal", "lv_wall": 3.0}, "spacing is 3.6 mm, expected above 0"),
        ({"anatomy": "normal", "mesh_seed": 1.7}, "mesh_seed is 1.7, expected a whole number"),
        ({"anatomy": "normal", "mesh_seed": -1}, "mesh_seed is -1, expected a whole number of at"),
        ({"anatomy": "normal", "spacing": 0.5}, "spacing is 0.5, expected at least 1 mm"),
        ({"anatomy": "normal", "offset_x": 500.0}, "electrode|outside the torso"),
    ],
)
def test_a_patient_without_a_heart_is_refused_by_name(data: dict[str, object], message: str):
    with pytest.raises(ValueError, match=f"^patient 'P': .*({message})"):
        electrophysiology.heart(Patient("P", {}, data))


def test_an_axis_without_net_area_is_a_failed_run(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
):
    """Never a success: the direction of next to nothing is not defined."""

    def flat(*arguments: FloatArray) -> FloatArray:
        outputs = kernel.simulate(*arguments)
        for name in ("area_i", "area_avf"):
            outputs[0, kernel.OUTPUTS.index(name)] = 1e-6
        return outputs

    monkeypatch.setattr(model, "run", lambda x, ready: flat(*_all(x, ready)))
    y = electrophysiology.problem().simulate(SPEEDS[:2], patient)
    assert np.isnan(y[0, 1])
    assert np.isfinite(y[1]).all()


def _all(x: FloatArray, ready: hearts.Heart) -> tuple[object, ...]:
    """Arguments of the kernel."""
    leads = (ready.weights[LEADS.index(name)] for name in ("I", "aVF"))
    return (*ratios.arguments(ready), ready.volume, *leads, x)


def forget() -> None:
    """Empty the memory of hearts, not the cache on disk."""
    hearts._geometry.cache_clear()
    hearts._weights.cache_clear()
    ratios.table.cache_clear()


def test_hearts_come_from_the_cache_as_they_were_built(patient: Patient, folder: Path):
    built = electrophysiology.heart(patient)
    assert list(folder.rglob("*.npz"))
    forget()
    again = electrophysiology.heart(patient)
    assert again.weights is not built.weights
    for name in ("placed", "volume", "weights"):
        np.testing.assert_array_equal(getattr(again, name), getattr(built, name))
    np.testing.assert_array_equal(again.graph.length, built.graph.length)


def test_a_damaged_or_unwritable_cache_costs_time_only(
    patient: Patient, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    expected = electrophysiology.problem().simulate(SPEEDS, patient)
    for path in folder.rglob("*.npz"):
        path.write_bytes(path.read_bytes()[:-100])
    forget()
    np.testing.assert_array_equal(electrophysiology.problem().simulate(SPEEDS, patient), expected)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path / "file"))
    forget()
    np.testing.assert_array_equal(electrophysiology.problem().simulate(SPEEDS, patient), expected)


# (speeds, robust QRS duration in ms, axis in degrees) by an independent calculation on other meshes
# of 3.35 mm, infinite medium; meshes differ by their jitter
NAMED = {
    "normal": [(76, 27), (163, 19), (156, 41)],
    "dilated": [(83, 27), (206, 15), (170, 42)],
    "hypertrophic": [(77, 22), (153, 13), (164, 40)],
    "dilated-rv": [(75, 27), (147, 19), (211, 49)],
}


@pytest.mark.parametrize("preset", NAMED)
def test_named_anatomies_have_the_features_of_an_independent_calculation(preset: str):
    patient = Patient("P", {}, {"anatomy": preset, "spacing": 3.35})
    y = electrophysiology.problem("infinite").simulate(SPEEDS[:3], patient)
    expected = np.array(NAMED[preset], dtype=float)
    np.testing.assert_allclose(y[:, 0], expected[:, 0], rtol=0.1)
    np.testing.assert_allclose(y[:, 1], expected[:, 1], atol=6.0)


def test_features_converge_with_the_mesh():
    """From 4,300 to 10,100 nodes: QRS duration within 3.5 %, the axis within 4°."""

    def features(spacing: float) -> FloatArray:
        patient = Patient("P", {}, {"anatomy": "normal", "spacing": spacing})
        return electrophysiology.problem("infinite").simulate(SPEEDS[:3], patient)

    coarse, fine = features(3.6), features(2.6)
    np.testing.assert_allclose(coarse[:, 0], fine[:, 0], rtol=0.035)
    np.testing.assert_allclose(coarse[:, 1], fine[:, 1], atol=4.0)


def test_numbers_of_numpy_name_the_same_heart(patient: Patient):
    plain = Patient("P", {}, {"anatomy": "normal", "mesh_seed": 2, "lv_radius": 24.5})
    other = {"anatomy": "normal", "mesh_seed": np.int64(2), "lv_radius": np.float32(24.5)}
    assert description.described(plain) == description.described(Patient("Q", {}, other))


def test_every_module_that_builds_a_heart_is_in_its_version():
    """Follow the imports from `hearts`."""
    package = Path(hearts.__file__).parent
    prefix = "vitolab.models.electrophysiology."
    built, found = {p.stem for p in cache.sources()}, set()
    queue = ["hearts"]
    while queue:
        name = queue.pop()
        if name in found:
            continue
        found.add(name)
        tree = ast.parse((package / f"{name}.py").read_text(encoding="utf-8"))
        modules = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
        queue += [module.removeprefix(prefix) for module in modules if module.startswith(prefix)]
    assert {"scatter", "carve", "landmarks", "surfaces", "meshfile"} < found <= built


def test_a_heart_does_not_depend_on_the_number_of_blas_threads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    patient = Patient("P", {}, {"anatomy": "dilated", "spacing": 5.0})
    weights = []
    for n in (1, 2):
        forget()
        hearts._leads.cache_clear()
        monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path / str(n)))
        with threadpool_limits(n):
            weights.append(electrophysiology.heart(patient).weights)
    np.testing.assert_array_equal(*weights)


def test_arrays_of_a_heart_are_shared_and_cannot_be_changed(patient: Patient):
    heart, other = electrophysiology.heart(patient), electrophysiology.heart(patient, "infinite")
    assert heart.anatomy is other.anatomy
    assert heart.graph is other.graph
    parts = (heart, heart.anatomy, heart.graph)
    arrays = [getattr(part, f.name) for part in parts for f in dataclasses.fields(part)]
    writeable = [array.flags.writeable for array in arrays if isinstance(array, np.ndarray)]
    assert len(writeable) == 18
    assert not any(writeable)


def test_a_table_in_the_cache_answers_without_its_heart(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
):
    problem = electrophysiology.problem(mode="table")
    expected = problem.simulate(SPEEDS, patient)
    forget()
    monkeypatch.setattr(ratios, "prepared", None)
    np.testing.assert_array_equal(problem.simulate(SPEEDS, patient), expected)


def test_a_table_of_other_ratios_is_another_one(patient: Patient, monkeypatch: pytest.MonkeyPatch):
    found = description.described(patient)
    values = [ratios.table(found, "bem")[0](0.0, 0.0)]
    ratios.table.cache_clear()
    monkeypatch.setattr(ratios, "RATIOS", (0.4, 30.0))
    values.append(ratios.table(found, "bem")[0](0.0, 0.0))
    ratios.table.cache_clear()
    assert values[0] != values[1]
    assert values[0] == pytest.approx(values[1], rel=0.01)


def test_hearts_are_prepared_in_other_processes_as_they_would_be_built_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    patients = [
        Patient(f"P{i}", {}, {"anatomy": "normal", "spacing": 5.5, "mesh_seed": i})
        for i in range(2)
    ]
    monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path / "here"))
    here = [electrophysiology.heart(patient, "infinite") for patient in patients]
    monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path / "there"))
    electrophysiology.prepare(patients, ["infinite"], n_jobs=2)
    assert len(list((tmp_path / "there").rglob("*.npz"))) == 4  # geometry and weights of each
    monkeypatch.setattr(hearts, "_built", None)  # nothing is built any more
    electrophysiology.prepare(patients, ["infinite"])
    for patient, heart in zip(patients, here, strict=True):
        there = electrophysiology.heart(patient, "infinite")
        np.testing.assert_array_equal(there.weights, heart.weights)
        np.testing.assert_array_equal(there.graph.length, heart.graph.length)


def test_preparing_names_the_patient_whose_heart_cannot_be_built(patient: Patient):
    bad = Patient("bad", {}, {"anatomy": "normal", "lv_wall": -1.0})
    with pytest.raises(ValueError, match=r"patient 'bad': shape: lv_wall is -1\.0"):
        electrophysiology.prepare([patient, bad], ["bem"], n_jobs=2)
    with pytest.raises(ValueError, match="lead_field is 'none', expected one of bem, infinite"):
        electrophysiology.prepare([patient], ["none"])


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A coarse heart in a file."""
    pytest.importorskip("meshio")
    path = tmp_path_factory.mktemp("mesh") / "heart.vtu"
    preset = electrophysiology.PRESETS["normal"]
    electrophysiology.save_anatomy(electrophysiology.generate_anatomy(preset, 6.0), path)
    return path


def test_a_mesh_that_was_changed_is_another_heart_or_refused(mesh: Path, tmp_path: Path):
    path, copy = tmp_path / "heart.vtu", tmp_path / "copy.vtu"
    shutil.copy(mesh, path)
    shutil.copy(mesh, copy)
    one = Patient("P", {}, {"anatomy": str(path)})
    noted = dataclasses.replace(
        one, data={**one.data, "mesh_checksum": electrophysiology.mesh_checksum(path)}
    )
    before = description.described(noted)
    assert before == description.described(Patient("Q", {}, {"anatomy": str(copy)}))
    assert before.key == description.described(one).key
    preset = electrophysiology.PRESETS["normal"]
    electrophysiology.save_anatomy(electrophysiology.generate_anatomy(preset, 6.0, 1), path)
    assert description.described(one) != before
    with pytest.raises(ValueError, match=r"patient 'P': the mesh '.*heart.vtu' has the checksum"):
        electrophysiology.problem().simulate(SPEEDS, noted)


def test_the_arrays_beside_an_xdmf_are_part_of_the_mesh(tmp_path: Path):
    path = tmp_path / "heart.xdmf"
    path.write_text("<Xdmf/>")
    alone = electrophysiology.mesh_checksum(path)
    (tmp_path / "heart.h5").write_bytes(b"one")
    first = electrophysiology.mesh_checksum(path)
    (tmp_path / "heart.h5").write_bytes(b"two!")
    assert len({alone, first, electrophysiology.mesh_checksum(path)}) == 3


def test_a_mesh_without_meshio_is_refused_in_a_sentence(
    mesh: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    forget()
    monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(ValueError, match=r"patient 'P': .* needs meshio: pip install"):
        electrophysiology.heart(Patient("P", {}, {"anatomy": str(mesh)}))


def test_two_threads_that_read_meshes_leave_standard_output_as_it_was(
    mesh: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first ends before the second, which began meanwhile and would restore its capture."""
    import meshio

    waits, read, out = iter((0.1, 0.2)), meshio.read, sys.stdout

    def slow(*arguments: object, **options: object) -> object:
        time.sleep(next(waits))
        return read(*arguments, **options)

    monkeypatch.setattr(meshio, "read", slow)
    threads = [threading.Thread(target=meshfile.read, args=(mesh,)) for _ in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    found, sys.stdout = sys.stdout, out
    assert found is out


def test_solvable_patients_are_those_that_the_model_reaches(patient: Patient):
    problem = electrophysiology.problem()
    y = problem.simulate(SPEEDS[:1], patient)[0]
    reached = Patient("P", {"qrs_duration": y[0], "electrical_axis": y[1]}, patient.data)
    beyond = Patient("Q", {"qrs_duration": 390.0, "electrical_axis": -170.0}, patient.data)
    found = electrophysiology.solvable([reached, beyond], ["bem"])
    assert found["solvable"].tolist() == [True, False]


def test_the_best_speed_of_a_pair_of_ratios_is_found_in_closed_form(patient: Patient):
    """No speed of a dense line through Ω with the same ratios is nearer to the measurements."""
    problem = electrophysiology.problem()
    rng = np.random.default_rng(3)
    ratio = np.log(rng.uniform(*ratios.RATIOS, size=(20, 2)))
    x, worst = solvability._fitted(problem, patient, "bem", ratio)
    table, z = electrophysiology.problem(mode="table"), problem.measured(patient)
    for pair, own, least in zip(ratio, x, worst, strict=True):
        line = np.linspace(200.0, 1000.0, 2001)[:, np.newaxis] * np.exp([0.0, *pair])
        line = line[((line >= problem.lower) & (line <= problem.upper)).all(axis=1)]
        if np.isinf(least):
            assert not len(line)
            continue
        assert ((own >= problem.lower) & (own <= problem.upper)).all()
        c = np.abs(problem.misfit(table.simulate(line, patient), z)) / problem.tolerance
        assert least <= c.max(axis=1).min() + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_what_the_model_itself_answered_anywhere_in_the_domain_is_solvable(
    patient: Patient, seed: int
):
    problem = electrophysiology.problem()
    x = problem.draw(np.random.default_rng(seed), 3)
    for duration, axis in problem.simulate(x, patient):
        z = {"qrs_duration": duration, "electrical_axis": axis}
        assert electrophysiology.is_solvable(Patient("P", z, patient.data))
