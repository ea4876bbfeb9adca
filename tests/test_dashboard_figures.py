"""The page Results without a server: figures of each kind of study, and their points."""

from __future__ import annotations

import gc
import weakref

import holoviews as hv
import numpy as np
import pytest
import result_pages
from bokeh.models import HoverTool
from dashboard_runs import figure_of, labels_of

from vitolab.dashboard import load_dashboards
from vitolab.models import rosenbrock

runs = result_pages.runs

figures = load_dashboards("charts.figures")
report = load_dashboards("pages.results.report")


@pytest.fixture(scope="module")
def curves(runs):
    """The learning curves, drawn."""
    found, ids = runs
    return report.prepare(found, [ids["convergence"]], "curves", None, False)


@pytest.mark.parametrize(
    ("kind", "section", "n_panels", "label"),
    [
        ("convergence", "curves", 4, "training samples per patient"),
        ("convergence", "draws", 2, "mean forward runs, all patients"),
        ("convergence", "restarts", 1, "share of all patients [%]"),
        ("scouting", "curves", 2, "representative states n_S"),
        ("initialization", "boxes", 2, "absolute misfit [ms], √ scale"),
        ("personalization", "methods", 2, "mean forward runs, all; line: 95 %"),
        ("grid", "errors", 1, "start x₁"),
        ("grid", "success", 1, "start x₁"),
        ("grid", "paths", 1, "x₂"),
        ("fit", "fit", 2, "aortic pressure [mmHg]"),
        ("fit", "loops", 1, "LV pressure [mmHg]"),
        ("agents", "curves", 9, "training samples per patient"),
        ("many", "scaling", 3, "free parameters"),
        ("uncertainty", "solutions", 1, "range of solutions / domain"),
        ("uncertainty", "coverage", 1, "probability of the region [%]"),
        ("stability", "spread", 1, "standard deviation / domain"),
        ("prediction", "forecast", 3, "measured change [mmHg]"),
    ],
)
def test_each_kind_of_study_has_its_figures(runs, kind, section, n_panels, label):
    found, ids = runs
    shown = report.prepare(found, [ids[kind]], section, None, False)
    assert (shown.section, shown.failed) == (section, False)
    assert len(shown.pictures) == n_panels
    assert label in set().union(*(labels_of(p) for p in shown.pictures))
    assert shown.sentence
    assert "<details" in shown.tables  # the numbers stand beside


@pytest.mark.parametrize("kind", ["convergence", "scouting", "personalization", "grid"])
def test_numbers_stand_beside_those_of_the_paper(runs, kind):
    found, ids = runs
    shown = report.prepare(found, [ids[kind]], "numbers", None, False)
    assert "paper" in shown.tables
    assert not shown.pictures


def test_sentences_tell_the_numbers(curves):
    told = curves.sentence
    assert "2p: Vito solves 0 % (0 to 56) with 10 and 100 % (44 to 100) with 100 samples" in told
    assert "nelder-mead 50 % (50 to 50)" in told  # one of two starts of each patient


def test_learning_curves_have_a_log_axis_and_bands(curves):
    first = figure_of(curves.pictures[0])
    assert type(first.below[0]).__name__ == "LogAxis"
    glyphs = [type(renderer.glyph).__name__ for renderer in first.renderers]
    assert "Patch" in glyphs or "VArea" in glyphs


def test_the_error_map_tells_start_worst_function_and_error(runs):
    found, ids = runs
    shown = report.prepare(found, [ids["grid"]], "errors", None, False)
    (hover,) = figure_of(shown.pictures[0]).select({"type": HoverTool})
    names = [name for name, _ in hover.tooltips]
    assert names == ["start x₁", "start x₂", "worst function", "its error", "solved [%]"]
    data = hover.renderers[0].data_source.data
    starts = rosenbrock.grid(3)
    worst = {(x, y): e for x, y, e in zip(data["c0"], data["c1"], data["c3"], strict=True)}
    for k, (x1, x2) in enumerate(starts):
        assert worst[x1, x2] == pytest.approx(0.01 + 0.3 * k)
    assert list(data["c2"][1:]) == ["F002"] * (len(starts) - 1)


def test_figures_follow_the_page_into_the_dark(runs):
    found, ids = runs
    light = report.prepare(found, [ids["initialization"]], "boxes", None, False).pictures[0]
    dark = report.prepare(found, [ids["initialization"]], "boxes", None, True).pictures[0]
    assert figure_of(light).background_fill_color == "#ffffff"
    assert figure_of(dark).background_fill_color != "#ffffff"
    for name in ("line_color", "fill_color"):
        colors = [getattr(r.glyph, name, None) for r in figure_of(dark).renderers]
        assert "#222222" not in colors


def test_a_shared_legend_has_the_colours_of_its_figure_in_the_dark():
    panels = [
        hv.Overlay(
            [
                hv.Curve([(0, 1), (1, 2)], label=label).opts(color=color, backend="bokeh")
                for label, color in (("agent", "#000000"), ("reference", "#00523C"))
            ]
        ).opts(legend_limit=100, backend="bokeh")
        for _ in range(2)
    ]
    for dark in (False, True):
        pictures = figures.draw(hv.Layout(panels), dark)
        key = dict(pictures[0].key)
        drawn = {r.glyph.line_color for r in figure_of(pictures[0]).renderers}
        assert set(key.values()) == {getattr(c, "value", c) for c in drawn}
        assert ("#000000" in key.values()) is not dark


def test_figures_take_the_width_of_the_page_and_leave_the_wheel_to_it(curves):
    for figure in map(figure_of, curves.pictures):
        assert figure.sizing_mode == "stretch_width"
        assert figure.frame_width is None
        assert figure.toolbar.active_scroll is None
        assert figure.toolbar.active_drag is None


def test_above_the_limit_points_are_left_out_and_that_is_said():
    n = 2 * figures.MOST_POINTS + 11
    (picture,) = figures.draw(hv.Points(np.random.default_rng(0).random((n, 2))))
    (renderer,) = figure_of(picture).renderers
    kept = len(renderer.data_source.data["x"])
    assert kept <= figures.MOST_POINTS
    assert f"{kept:,} of {n:,} points are drawn" in picture.note


@pytest.mark.parametrize("one", [True, False])
def test_of_many_lines_points_are_left_out_in_each(one):
    """Short ones too; ends stay."""
    n_lines, n = 150, 200
    lines = [np.column_stack([np.arange(n), np.full(n, k)]) for k in range(n_lines)]
    figure = hv.Path(lines) if one else hv.Overlay([hv.Curve(line) for line in lines])
    (picture,) = figures.draw(figure)
    total = kept = 0
    for renderer in figure_of(picture).renderers:
        data = renderer.data_source.data
        drawn = data["xs"] if one else [data["x"]]
        for line in map(np.asarray, drawn):
            assert {0, n - 1} <= set(line.tolist())
            total, kept = total + n, kept + len(line)
    assert kept < 0.6 * total
    assert f"{kept:,} of {total:,} points are drawn" in picture.note


def test_beside_a_cloud_no_size_of_a_curve_and_no_bar_is_left_out():
    cloud = hv.Points(np.random.default_rng(0).random((3 * figures.MOST_POINTS, 2)))
    curve = hv.Curve([(10.0**k, k) for k in range(5)])
    bars = hv.Rectangles([(k, 0.0, k + 0.5, 1.0) for k in range(60)])
    (picture,) = figures.draw(cloud * curve * bars)
    sizes = {max(map(len, r.data_source.data.values())) for r in figure_of(picture).renderers}
    assert {5, 60} < sizes
    assert "points are drawn" in picture.note


def test_up_to_the_limit_all_points_are_drawn():
    (picture,) = figures.draw(hv.Points(np.random.default_rng(0).random((5_000, 2))))
    assert picture.note == ""
    assert len(figure_of(picture).renderers[0].data_source.data["x"]) == 5_000


def test_images_are_not_thinned():
    (picture,) = figures.draw(hv.Image(np.zeros((300, 300))))
    assert picture.note == ""
    assert figure_of(picture).renderers[0].data_source.data["image"][0].shape == (300, 300)


def test_what_was_drawn_is_let_go():
    """A page has the text of its figures: neither it nor Bokeh or HoloViews keeps their models."""
    models = []
    figure = hv.Curve([1, 2]) + hv.Curve([3, 1])
    pictures = figures.draw(figure, change=lambda model: models.append(weakref.ref(model)))
    gc.collect()
    assert len(pictures) == len(models) == 2
    assert not any(model() for model in models)
