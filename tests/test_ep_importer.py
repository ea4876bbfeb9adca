"""Hearts from files: what is written is read, or refused in one sentence."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from functools import lru_cache

import meshio
import numpy as np
import pytest
from heart_files import angles, heart, load, refusal, repaired, sheet, write
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from vitolab.kernels import activation as kernel
from vitolab.models.electrophysiology.anatomy import EPI, INTERIOR, LV_ENDO, RV_ENDO
from vitolab.models.electrophysiology.graph import connect
from vitolab.models.electrophysiology.hearts import in_torso
from vitolab.models.electrophysiology.importer import COORDINATES, load_anatomy, save_anatomy
from vitolab.models.electrophysiology.leadfield import LEADS, electrical_axis, orient, prepare

ENDINGS = ("vtu", "vtk", "msh", "xdmf")
TURN = Rotation.from_euler("xyz", (40.0, -70.0, 110.0), degrees=True).as_matrix()


def features(anatomy):
    """QRS duration (ms) and electrical axis (degrees) for four sets of speeds (mm/s)."""
    speeds = np.array([(500, 2000, 2000), (500, 500, 3000), (500, 3000, 500), (700, 4000, 1500.0)])
    g = connect(anatomy)
    w = prepare().weights(in_torso(anatomy, orient(), np.zeros(3)), anatomy.tets)
    out = kernel.simulate(
        g.start,
        g.neighbour,
        g.length,
        g.speed_class,
        anatomy.roots,
        np.zeros(2, np.float32),
        anatomy.lumped,
        w[LEADS.index("I")],
        w[LEADS.index("aVF")],
        speeds,
    )
    names = kernel.OUTPUTS
    axis = electrical_axis(out[:, names.index("area_i")], out[:, names.index("area_avf")])
    return out[:, names.index("qrs_robust")], axis


# ---------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_saved_heart_is_read_unchanged(tmp_path, ending):
    saved = heart()
    save_anatomy(saved, tmp_path / f"heart.{ending}")
    found = load(tmp_path / f"heart.{ending}")
    for field in dataclasses.fields(saved):
        expected = getattr(saved, field.name)
        assert getattr(found, field.name).dtype == expected.dtype, field.name
        np.testing.assert_array_equal(getattr(found, field.name), expected, field.name)
    assert [file.name for file in tmp_path.iterdir()] == [f"heart.{ending}"]


def test_tags_alone_give_nearly_the_same_features(tmp_path):
    """Within 2 ms and 4 degrees, where personalisation tolerates 5 ms and 10 degrees.

    Everything but tags is found anew, in a heart that lies elsewhere: fibres by another rule,
    roots, frame and base.
    """
    original = heart(4.4)
    path = write(
        tmp_path / "tags.vtu",
        original.nodes @ TURN.T + (100.0, -40.0, 30.0),
        original.tets,
        surface=original.surface,
        fibres=None,
    )
    found = load(path)
    duration, axis = features(original)
    found_duration, found_axis = features(found)
    assert np.abs(found_duration - duration).max() < 2.0
    assert np.abs(found_axis - axis).max() < 4.0

    assert np.degrees(np.arccos(np.diag(found.frame @ TURN))).max() < 1.0
    assert (found.right == original.right).mean() > 0.98
    assert (found.base == original.base).mean() > 0.995
    assert np.abs(found.apex_base - original.apex_base).max() < 0.02
    assert np.abs(found.transmural - original.transmural).mean() < 0.03
    turned = np.angle(np.exp(1j * (found.rotation - original.rotation)))
    assert np.abs(turned[original.apex_base > 0.2]).max() < np.radians(2.0)
    away = found.nodes[found.roots] - found.nodes[original.roots]
    assert np.linalg.norm(away, axis=1).max() < 2 * 4.4
    assert np.median(angles(found.fibres, original.fibres @ TURN.T)) < 10.0


# ----------------------------------------------------------------------------- ways to tell tags


def test_tags_of_triangles_and_of_nodes_give_the_same_surfaces(tmp_path):
    by_nodes = load(write(tmp_path / "nodes.vtu"))
    sheets = {7: sheet(LV_ENDO), 8: sheet(RV_ENDO), 9: sheet(EPI), 10: sheet(None)}
    path = write(
        tmp_path / "triangles.vtu",
        cells=[("triangle", own) for own in sheets.values()],
        at_cells={
            "part": [
                np.zeros(len(heart().tets), int),
                *(np.full(len(own), code) for code, own in sheets.items()),
            ]
        },
        surface=None,
    )
    codes = {"lv_endo": 7, "rv_endo": (8, 11), "epi": 9, "base": 10}
    found = load(path, tags="part", codes=codes)
    np.testing.assert_array_equal(found.surface, by_nodes.surface)
    np.testing.assert_array_equal(found.base, heart().base)
    assert "part holds 7, 8, 9, 10, expected 1 for lv_endo" in refusal(path, tags="part")
    assert "expected lv_endo, rv_endo" in refusal(path, tags="part", codes={"lv": 1})


@pytest.mark.parametrize("base_told", [True, False])
def test_tags_from_surface_files_tolerate_noise(tmp_path, base_told):
    rng = np.random.default_rng(0)
    files = {}
    for role, tag in {"lv_endo": LV_ENDO, "rv_endo": RV_ENDO, "epi": EPI, "base": None}.items():
        if role == "base" and not base_told:
            continue
        noisy = (heart().nodes + rng.normal(0.0, 0.15, heart().nodes.shape)) / 10.0
        files[role] = tmp_path / f"{role}.stl"
        meshio.Mesh(noisy, [("triangle", sheet(tag))]).write(files[role])
    path = write(tmp_path / "heart.vtu", heart().nodes / 10.0, surface=None)
    found = load(path, tags=files)
    assert (found.surface == heart().surface).mean() > 0.995
    assert (found.base == heart().base).mean() > 0.995

    meshio.Mesh(heart().nodes, [("triangle", sheet(EPI))]).write(files["epi"])
    assert "tags of epi: " in refusal(path, tags=files)
    assert "absent" in refusal(path, tags=files | {"epi": tmp_path / "none.stl"})
    assert "expected lv_endo" in refusal(path, tags={"rv": files["rv_endo"]})


def test_endocardia_suffice(tmp_path):
    surface = np.where(heart().surface == EPI, INTERIOR, heart().surface)
    found = load(write(tmp_path / "endocardia.vtu", surface=surface))
    np.testing.assert_array_equal(found.surface, heart().surface)
    np.testing.assert_array_equal(found.base, heart().base)


def test_a_base_need_not_be_flat(tmp_path):
    x, y, z = heart().nodes.T
    bent = np.stack([x + 0.002 * y**2, y + 0.1 * z, z + 0.15 * x - 0.003 * x**2], axis=1)
    found = repaired(write(tmp_path / "bent.vtu", bent), "inverted")
    np.testing.assert_array_equal(found.surface, heart().surface)
    assert (found.base == heart().base).mean() > 0.995
    assert "shape" not in refusal(write(tmp_path / "bare.vtu", bent, surface=None), confirm=True)


def test_a_base_tagged_instead_of_its_rims_gives_them_back(tmp_path):
    surface = np.where(heart().base, 4, heart().surface)
    found = load(write(tmp_path / "base.vtu", surface=surface))
    assert (found.surface == heart().surface).mean() > 0.98
    np.testing.assert_array_equal(found.base, heart().base)


def test_surfaces_told_by_the_shape_need_consent(tmp_path):
    path = write(tmp_path / "bare.vtu", surface=None)
    sentence = refusal(path)
    counts = [f"{int((heart().surface == LV_ENDO).sum())} nodes", "confirm=True", "arrays: fibres"]
    assert all(part in sentence for part in counts)
    found = load(path, confirm=True)
    np.testing.assert_array_equal(found.surface, heart().surface)
    assert "'other'" in refusal(path, tags="other")


# ------------------------------------------------------------------------------------- refusals


def swapped(surface):
    return np.choose(surface, (INTERIOR, RV_ENDO, LV_ENDO, EPI))


def without_septum(surface):
    return np.where((surface == RV_ENDO) & ~heart().right, EPI, surface)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"surface": lambda a: swapped(a.surface)}, "swapped"),
        ({"surface": lambda a: without_septum(a.surface)}, "right side of the septum"),
        ({"surface": lambda a: np.where(a.surface == RV_ENDO, 0, a.surface)}, "for rv_endo"),
        ({"surface": lambda a: np.where(a.surface == LV_ENDO, 0, a.surface)}, "for lv_endo"),
        ({"surface": lambda a: np.where(a.surface == EPI, LV_ENDO, a.surface)}, "as epicardium"),
        ({"surface": lambda a: np.random.default_rng(0).permutation(a.surface)}, "one piece"),
        ({"tets": lambda a: a.tets[a.nodes[a.tets, 0].mean(axis=1) > 0.0]}, "as RV endocardium"),
        ({"surface": lambda a: a.nodes}, "surface has shape"),
        ({"fibres": lambda a: a.fibres[:, :2]}, "fibres"),
        ({"points": lambda a: a.nodes * (1, 1, np.nan)}, "coordinates"),
        ({"points": lambda a: a.nodes * (1, 1, 0)}, "flat"),
        ({"points": lambda a: a.nodes * (5, 1, 1)}, "diagonal"),
        ({"tets": lambda a: a.tets[:, [0, 0, 2, 3]]}, "flat"),
        ({"tets": lambda a: a.tets + 1}, "name nodes"),
        ({"tets": lambda a: np.append(a.tets, a.tets[:9] ^ [0, 0, 0, 1], axis=0)}, "more than two"),
    ],
)  # fmt: skip
def test_what_needs_a_guess_is_refused(tmp_path, change, said):
    made = {name: make(heart()) for name, make in change.items()}
    assert said in refusal(write(tmp_path / "a.vtu", **made))


def test_roots_are_those_of_the_file_and_on_their_tags(tmp_path):
    a = heart()
    roots = np.zeros(a.n_nodes, int)
    chosen = [np.flatnonzero(a.surface == LV_ENDO)[5], np.flatnonzero(a.surface == RV_ENDO)[7]]
    roots[chosen] = 1, 2
    np.testing.assert_array_equal(load(write(tmp_path / "a.vtu", roots=roots)).roots, chosen)
    roots[chosen] = 2, 1
    sentence = refusal(write(tmp_path / "a.vtu", roots=roots))
    assert "(RV endocardium), expected one of the LV endocardium" in sentence
    assert "at 0 nodes" in refusal(write(tmp_path / "a.vtu", roots=0 * roots))


def test_damaged_coordinates_of_a_saved_heart_are_refused(tmp_path):
    data = {name: getattr(heart(), name) * 1.0 for name in COORDINATES if name != "frame"}
    data["frame"] = np.ones((heart().n_nodes, 9))
    assert "frame is no rotation" in refusal(write(tmp_path / "a.vtu", **data))
    data["transmural"] = data["transmural"] * np.nan
    assert "transmural" in refusal(write(tmp_path / "a.vtu", **data))


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_that_hold_no_mesh_are_refused_silently(tmp_path, capfd, ending):
    path = tmp_path / f"heart.{ending}"
    assert "absent" in refusal(path)
    path.touch()
    assert "empty" in refusal(path)
    path.write_bytes(b"\x00\xffno mesh\n" * 9)
    assert "cannot be read" in refusal(path)
    path.unlink()
    path.mkdir()
    assert "folder" in refusal(path)
    assert capfd.readouterr() == ("", "")
    assert "'.ply', expected one of .vtu, .vtk" in refusal(tmp_path / "heart.ply")
    with pytest.raises(ValueError, match=r"'.ply', expected one of"):
        save_anatomy(heart(), tmp_path / "heart.ply")


def test_a_legacy_vtk_file_without_cells_is_refused(tmp_path):
    path = tmp_path / "points.vtk"
    header = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\n"
    path.write_text(header + "POINTS 1 float\n0 0 0\nPOINT_DATA 1\nSCALARS a float 1\n"
                    "LOOKUP_TABLE default\n1\n")  # fmt: skip
    assert "Required section CELLS not found" in refusal(path)


@lru_cache
def saved_bytes(folder, ending):
    save_anatomy(heart(), folder / f"whole.{ending}")
    return (folder / f"whole.{ending}").read_bytes()


@given(ending=st.sampled_from(ENDINGS), data=st.data())
@settings(max_examples=25, deadline=None, derandomize=True)
def test_broken_bytes_give_a_heart_or_one_sentence(tmp_path_factory, ending, data):
    folder = tmp_path_factory.getbasetemp()
    content = bytearray(saved_bytes(folder, ending))
    places = data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8))
    for place in places:
        content[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        content = content[: max(places) + 1]
    path = folder / f"broken.{ending}"
    path.write_bytes(bytes(content))
    sentence = f"{path}: expected or a heart"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            load_anatomy(path)
        except ValueError as error:
            sentence = str(error)
    assert sentence.startswith(f"{path}: ")
    assert "expected" in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(("module", "ending"), [("meshio", "vtu"), ("h5py", "xdmf")])
def test_absent_packages_are_named_with_the_remedy(tmp_path, monkeypatch, module, ending):
    path = tmp_path / f"heart.{ending}"
    save_anatomy(heart(), path)
    monkeypatch.setitem(sys.modules, module, None)
    for call in (lambda: load_anatomy(path), lambda: save_anatomy(heart(), path)):
        with pytest.raises(ModuleNotFoundError, match=rf"needs {module}.*'vitolab\[mesh\]'"):
            call()
