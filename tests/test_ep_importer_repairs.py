"""Hearts from files: damage is repaired, fibres are made whole."""

from __future__ import annotations

import meshio
import numpy as np
import pytest
from heart_files import angles, heart, load, refusal, repaired, sheet, triangles, write

from vitolab.models.electrophysiology.anatomy import INTERIOR, LV_ENDO
from vitolab.models.electrophysiology.importer import load_anatomy
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS

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
