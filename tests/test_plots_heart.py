"""Figures of the heart: segments, bullseye, surface and views."""

from __future__ import annotations

import drawn_hearts
import holoviews as hv
import numpy as np
import pytest
from drawn_hearts import elements, ventricle

from vitolab import plots
from vitolab.models.electrophysiology.anatomy import boundary
from vitolab.models.electrophysiology.leadfield import orient
from vitolab.models.electrophysiology.segments import SEGMENTS
from vitolab.plots import segments, surface

ball = drawn_hearts.ball


@pytest.mark.parametrize(
    ("apex_base", "degrees", "segment"),
    [
        (0.9, -1, "basal anteroseptal"),
        (0.9, 1, "basal inferoseptal"),
        (0.9, 90, "basal inferior"),
        (0.9, 150, "basal inferolateral"),
        (0.9, -150, "basal anterolateral"),
        (0.9, -90, "basal anterior"),
        (0.55, -90, "mid anterior"),
        (0.55, 180, "mid anterolateral"),
        (0.25, 0, "apical septal"),
        (0.25, 90, "apical inferior"),
        (0.25, 180, "apical lateral"),
        (0.25, -90, "apical anterior"),
        (0.05, 10, "apex"),
    ],
)
def test_segment_of_a_place(apex_base: float, degrees: float, segment: str):
    where = (np.array([apex_base]), np.radians([degrees]))
    assert SEGMENTS[segments.segments(*where, np.array([False]))[0] - 1] == segment
    assert segments.segments(*where, np.array([True]))[0] == 0


def test_the_picture_of_segments_is_the_heart_seen_from_its_apex():
    assert (orient() @ (0.0, 1.0, 0.0))[2] < -0.8  # +y of the heart is inferior
    middle = {name: at for name, (_, at) in zip(SEGMENTS, segments._shapes(), strict=True)}
    # rightwards is +x, to the LV free wall; upwards is -y: x × (apex to base) = -y
    np.testing.assert_allclose(middle["apical septal"], (-0.375, 0.0), atol=1e-12)
    np.testing.assert_allclose(middle["basal anterior"], (0.0, 0.875), atol=1e-12)
    np.testing.assert_allclose(middle["mid inferior"], (0.0, -0.625), atol=1e-12)


def test_bullseye_shows_means_weighted_by_volume():
    nodes = ventricle()
    nodes["tau"][7] = np.nan
    (polygons,) = elements(plots.bullseye(**nodes), hv.Polygons)
    label = segments.segments(nodes["apex_base"], nodes["rotation"], nodes["right"])
    expected = []
    for segment in range(1, 18):
        own = (label == segment) & np.isfinite(nodes["tau"])
        expected.append(np.average(nodes["tau"][own], weights=nodes["volume"][own]))
    shown = [polygon["time"] for polygon in polygons.data]
    np.testing.assert_allclose(shown, expected)
    written = [text.data[2] for text in elements(plots.bullseye(**nodes), hv.Text)]
    assert written[:17] == [f"{value:.0f}" for value in expected]
    assert written[17:] == ["anterior", "septal", "inferior", "lateral"]


def test_segment_without_nodes_has_no_value():
    nodes = ventricle()
    nodes["right"] |= nodes["apex_base"] < 0.2
    (polygons,) = elements(plots.bullseye(**nodes), hv.Polygons)
    assert np.isnan(polygons.data[16]["time"])


def test_outer_triangles_enclose_the_volume(ball: dict[str, np.ndarray]):
    nodes, tets = ball["nodes"], ball["tets"]
    triangles = boundary(tets)
    assert len(triangles) == len(ball["faces"])  # none of the inner ones
    volume = np.linalg.det(nodes[tets[:, 1:]] - nodes[tets[:, :1]]).sum() / 6
    assert volume > 0
    assert np.linalg.det(nodes[triangles]).sum() / 6 == pytest.approx(volume)


def test_surface_shows_values_where_they_are(ball: dict[str, np.ndarray]):
    pixels = np.linspace(-35.0, 35.0, 141)
    value, light = surface.drawn_surface(
        ball["nodes"], boundary(ball["tets"]), ball["tau"], pixels, pixels
    )
    u, v = np.meshgrid(pixels, pixels)
    shown = np.isfinite(value)
    # the value is linear in u, and linear on every triangle
    np.testing.assert_allclose(value[shown], 40.0 + u[shown])
    assert shown.sum() * 0.25 == pytest.approx(np.pi * 900, rel=0.02)
    assert not shown[np.hypot(u, v) > 30.0].any()
    np.testing.assert_array_equal(shown, np.isfinite(light))
    assert light[shown].min() >= 0.0
    assert light[shown].max() <= 1.0


def test_what_is_nearer_hides_what_is_farther():
    tet = np.array([(0.0, 0, 0), (4, 0, 0), (0, 4, 0), (0, 0, 4)])
    nodes = np.vstack([tet, tet + np.array((0, 0, 10))])
    order = np.array([(0, 1, 2, 3), (4, 5, 6, 7)])
    values = np.repeat([1.0, 2.0], 4)
    for tets in (order, order[::-1]):
        triangles = boundary(tets)
        image, _ = surface.drawn_surface(nodes, triangles, values, np.arange(5.0), np.arange(5.0))
        assert image[1, 1] == pytest.approx(2.0)


def test_views_put_the_patients_left_on_the_right_and_share_a_scale(ball: dict[str, np.ndarray]):
    mesh = {name: ball[name] for name in ("nodes", "tets", "tau")}
    figure = plots.activation_view(**mesh, views=("anterior", "posterior", "left"), n_pixels=80)
    anterior, posterior, left = elements(figure, hv.Image)
    assert anterior[20.0, 0.0] == pytest.approx(60.0, abs=0.5)  # tau = 40 + x
    assert posterior[20.0, 0.0] == pytest.approx(20.0, abs=0.5)
    assert left[0.0, 0.0] == pytest.approx(70.0, abs=0.5)
    limits = {
        hv.Store.lookup_options("bokeh", image, "plot").kwargs["clim"]
        for image in (anterior, posterior, left)
    }
    assert limits == {(mesh["tau"].min(), mesh["tau"].max())}
    with pytest.raises(ValueError, match="view is 'above', expected one of anterior"):
        plots.activation_view(**mesh, views=("above",))
