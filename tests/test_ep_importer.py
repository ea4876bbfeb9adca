"""Hearts from files: what is written is read, damage is repaired or refused in one sentence."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from functools import lru_cache

import meshio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from vitolab.kernels import activation as kernel
from vitolab.models.electrophysiology.anatomy import EPI, INTERIOR, LV_ENDO, RV_ENDO, boundary
from vitolab.models.electrophysiology.graph import connect
from vitolab.models.electrophysiology.hearts import in_torso
from vitolab.models.electrophysiology.importer import COORDINATES, load_anatomy, save_anatomy
from vitolab.models.electrophysiology.leadfield import LEADS, electrical_axis, orient, prepare
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS

ENDINGS = ("vtu", "vtk", "msh", "xdmf")
TURN = Rotation.from_euler("xyz", (40.0, -70.0, 110.0), degrees=True).as_matrix()


@lru_cache
def heart(spacing=6.0):
    return generate(PRESETS["dilated"], spacing)


@lru_cache
def triangles():
    """Boundary of the heart."""
    return boundary(heart().tets)


def sheet(tag):
    """Triangles of one surface of the heart; the base for None."""
    a = heart()
    of_base = a.base[triangles()].all(axis=1)
    own = of_base if tag is None else ~of_base & (a.surface[triangles()] == tag).all(axis=1)
    return triangles()[own]


def write(path, points=None, tets=None, cells=(), at_cells=None, **at_points):
    """Write a mesh, by default that of the heart with its tags and fibres."""
    a = heart()
    points = a.nodes if points is None else points
    tets = a.tets if tets is None else tets
    given = {"surface": a.surface, "fibres": a.fibres, **at_points}
    given = {name: values for name, values in given.items() if values is not None}
    blocks = [("tetra", tets), *cells]
    meshio.Mesh(points, blocks, point_data=given, cell_data=at_cells).write(path)
    return path


def load(path, **options):
    """Load a heart that needs no repair: a warning fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return load_anatomy(path, **options)


def repaired(path, said, **options):
    """Load a heart whose repair is announced."""
    with pytest.warns(UserWarning, match=said) as caught:
        found = load_anatomy(path, **options)
    assert len(caught) == 1
    return found


def refusal(path, **options):
    """Sentence with which a file is refused; it names the file and stays on one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(ValueError, match=r"expected|accept") as caught:
            load_anatomy(path, **options)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert "\n" not in sentence
    return sentence


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


def angles(one, other):
    """Degrees between directions without sign."""
    return np.degrees(np.arccos(np.clip(np.abs((one * other).sum(axis=1)), 0.0, 1.0)))


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


# -------------------------------------------------------------------------------------- repairs


@pytest.mark.parametrize(("units", "factor"), [("cm", 10.0), ("m", 1000.0)])
def test_units_are_told_by_the_size(tmp_path, units, factor):
    path = write(tmp_path / "small.vtu", heart().nodes / factor)
    for options in ({}, {"units": units}):
        np.testing.assert_allclose(load(path, **options).nodes, heart().nodes, rtol=1e-12)
    assert f"fits {units}" in refusal(path, units="mm")
    assert "expected one of mm, cm, m" in refusal(path, units="inch")
    assert "diagonal" in refusal(write(tmp_path / "rat.vtu", heart().nodes / 4.0))


def test_inverted_tetrahedra_are_turned(tmp_path):
    tets = heart().tets.copy()
    tets[::3] = tets[::3, ::-1][:, [0, 1, 3, 2]]
    found = repaired(write(tmp_path / "a.vtu", tets=tets[:, [1, 0, 2, 3]]), "inverted")
    assert (found.volumes > 0.0).all()
    np.testing.assert_allclose(found.volumes, heart().volumes)
    np.testing.assert_array_equal(found.surface, heart().surface)


def test_duplicate_nodes_are_merged_and_orphans_dropped(tmp_path):
    """Two halves meet in nodes of their own, one of each pair without tag and fibre."""
    a = heart()
    n, apart = a.n_nodes, a.nodes[a.tets][:, :, 0].mean(axis=1) > 0.0
    tets = np.where(apart[:, None], a.tets + n, a.tets)
    seam = np.intersect1d(a.tets[apart], a.tets[~apart])
    surface, fibres = np.tile(a.surface, 2), np.tile(a.fibres, (2, 1))
    surface[seam[::2]] = surface[n + seam[1::2]] = INTERIOR
    points = np.concatenate([a.nodes, a.nodes + 1e-7, [[np.nan, 0.0, 0.0]]])
    path = write(
        tmp_path / "a.vtu",
        points,
        tets,
        surface=np.append(surface, LV_ENDO),
        fibres=np.concatenate([fibres, [[0.0, 0.0, 0.0]]]),
    )
    found = repaired(path, f"{n + 1 - len(seam)} nodes of no.*{len(seam)} duplicate nodes merged")
    original = np.concatenate([np.unique(a.tets[~apart]), np.setdiff1d(a.tets[apart], seam)])
    np.testing.assert_allclose(found.nodes, a.nodes[original], atol=1e-6)
    np.testing.assert_array_equal(found.surface, a.surface[original])
    np.testing.assert_array_equal(original[found.tets], a.tets)
    assert angles(found.fibres, a.fibres[original]).max() < 1e-4


def test_small_fragments_are_dropped_and_a_second_part_refused(tmp_path):
    a = heart()
    crumb = a.tets[a.volumes.argmax()]
    points = np.concatenate([a.nodes, a.nodes[crumb] + np.array([500.0, 0.0, 0.0])])
    more = {
        name: np.concatenate([values, values[crumb]])
        for name, values in {"surface": a.surface, "fibres": a.fibres}.items()
    }
    tets = np.concatenate([a.tets, [np.arange(4) + a.n_nodes]])
    found = repaired(write(tmp_path / "a.vtu", points, tets, **more), "^.*1 fragments with")
    np.testing.assert_array_equal(found.tets, a.tets)
    np.testing.assert_array_equal(found.surface, a.surface)

    points = np.concatenate([a.nodes, a.nodes + np.array([0.0, 0.0, 500.0])])
    more = {"surface": np.tile(a.surface, 2), "fibres": np.tile(a.fibres, (2, 1))}
    tets = np.concatenate([a.tets, a.tets + a.n_nodes])
    assert "2 parts are not connected and the second holds 50.0 %" in refusal(
        write(tmp_path / "a.vtu", points, tets, **more)
    )


def test_a_wall_with_holes_is_refused(tmp_path):
    """The sides of a hole would conduct as endocardium does."""
    a = generate(PRESETS["hypertrophic"], 4.5)
    outside = (a.surface != INTERIOR) | a.base
    inner = np.flatnonzero(~outside[a.tets].any(axis=1))
    gone = np.delete(a.tets, inner[len(inner) // 2], axis=0)
    path = write(tmp_path / "heart.vtu", a.nodes, gone, surface=a.surface, fibres=a.fibres)
    with pytest.raises(ValueError, match="the wall has 1 hole inside, expected a mesh"):
        load_anatomy(path)


def test_flat_repeated_and_other_cells_are_dropped(tmp_path):
    """Among them a tetrahedron of four nodes of the plane base, as Delaunay meshes have them."""
    a = heart()
    lid = sheet(None)
    first, second = next(
        (one, other) for one in lid for other in lid if len(np.intersect1d(one, other)) == 2
    )
    flat = [*first, *np.setdiff1d(second, first)]
    path = write(
        tmp_path / "a.vtu",
        tets=np.concatenate([a.tets, [flat], a.tets[:5]]),
        cells=[("hexahedron", np.arange(8)[None]), ("line", np.array([[0, 1]]))],
    )
    found = repaired(path, "1 cells of type hexahedron dropped.*5 repeated.*1 flat tetrahedra")
    np.testing.assert_array_equal(found.tets, a.tets)
    np.testing.assert_array_equal(found.base, load(write(tmp_path / "whole.vtu")).base)


def test_second_order_tetrahedra_keep_their_corners(tmp_path):
    a = heart()
    middle = a.nodes[a.tets[:, [[0, 1], [1, 2], [0, 2], [0, 3], [1, 3], [2, 3]]]].mean(axis=2)
    extra = a.n_nodes + np.arange(6 * len(a.tets)).reshape(-1, 6)
    mesh = meshio.Mesh(
        np.concatenate([a.nodes, middle.reshape(-1, 3)]),
        [("tetra10", np.concatenate([a.tets, extra], axis=1))],
        point_data={"surface": np.append(a.surface, np.zeros(extra.size, int))},
    )
    mesh.write(tmp_path / "a.vtu")
    found = repaired(tmp_path / "a.vtu", f"{extra.size} nodes of no tetrahedron dropped")
    np.testing.assert_array_equal(found.tets, a.tets)


def test_tags_inside_the_wall_and_gaps_are_mended(tmp_path):
    a = heart()
    surface = a.surface.copy()
    outer = np.zeros(a.n_nodes, bool)
    outer[triangles()] = True
    surface[np.flatnonzero(~outer)[:3]] = LV_ENDO
    gaps = np.random.default_rng(0).choice(np.flatnonzero(outer & ~a.base), 20, replace=False)
    surface[gaps] = INTERIOR
    found = repaired(write(tmp_path / "a.vtu", surface=surface), "3 nodes inside.*20 nodes took")
    assert (found.surface != a.surface).sum() <= 3


# --------------------------------------------------------------------------------------- fibres


def test_fibres_of_any_length_and_sign_are_unit_vectors(tmp_path):
    flips = np.random.default_rng(0).choice((-20.0, 20.0), heart().n_nodes)[:, None]
    found = load(write(tmp_path / "a.vtu", fibres=heart().fibres * flips))
    np.testing.assert_allclose(np.linalg.norm(found.fibres, axis=1), 1.0, rtol=1e-12)
    assert angles(found.fibres, heart().fibres).max() < 1e-4


def test_bad_fibres_follow_their_neighbours_whatever_their_signs(tmp_path):
    rng = np.random.default_rng(0)
    fibres = np.where(rng.random(heart().n_nodes) < 0.5, 1.0, -1.0)[:, None] * [0.6, 0.0, 0.8]
    bad = rng.choice(heart().n_nodes, 400, replace=False)  # a quarter: some lie side by side
    fibres[bad] = np.where(np.arange(400)[:, None] % 2, 0.0, np.nan)
    found = repaired(write(tmp_path / "a.vtu", fibres=fibres), "400 fibres taken")
    assert angles(found.fibres, np.array([[0.6, 0.0, 0.8]])).max() < 1e-4
    assert "zero or no number" in refusal(write(tmp_path / "a.vtu", fibres=0.0 * fibres))


def test_fibres_of_tetrahedra_are_averaged_as_tensors(tmp_path):
    a, rng = heart(), np.random.default_rng(0)
    cellwise = rng.normal(size=(len(a.tets), 3))
    cellwise /= np.linalg.norm(cellwise, axis=1, keepdims=True)
    signs = rng.choice((-7.0, 7.0), (len(a.tets), 1))
    path = write(tmp_path / "a.vtu", fibres=None, at_cells={"f": [cellwise * signs]})
    found = load(path, fibres="f")
    volumes = a.volumes
    for node in rng.choice(a.n_nodes, 50, replace=False):
        mean = np.zeros((3, 3))
        for cell in np.flatnonzero((a.tets == node).any(axis=1)):
            mean += volumes[cell] * np.outer(cellwise[cell], cellwise[cell])
        expected = np.linalg.eigh(mean)[1][:, 2]
        np.testing.assert_allclose(abs(expected @ found.fibres[node]), 1.0, rtol=1e-9)
    assert "no array 'g'" in refusal(path, fibres="g")
    assert "surface has shape" in refusal(path, fibres="surface")


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
