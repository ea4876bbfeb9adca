"""Hearts of the model of electrophysiology: cache, processes, meshes of the user."""

from __future__ import annotations

import ast
import dataclasses
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import ep_patient
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from vitolab.models import electrophysiology
from vitolab.models.electrophysiology import (
    cache,
    description,
    hearts,
    meshfile,
    ratios,
)
from vitolab.problem import Patient

patient = ep_patient.patient


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep hearts in a folder of these tests."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITOLAB_CACHE", str(folder))
        yield folder


SPEEDS = np.array([[500.0, 2000, 2000], [500, 500, 3000], [500, 3000, 500], [900, 700, 1500]])


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
