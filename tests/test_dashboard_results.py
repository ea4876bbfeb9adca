"""The page Results without a server: figures, comparison, files, states of a page."""

from __future__ import annotations

import gc
import io
import re
import shutil
import weakref
import xml.etree.ElementTree as ET

import dashboard_runs as made
import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import pytest
import stores
from bokeh.models import HoverTool
from dashboard_runs import figure_of, labels_of, listed, opened, plots_of

from vitolab.dashboard import load_dashboards
from vitolab.models import rosenbrock
from vitolab.store import OpenRun
from vitolab.store.tables import table

compare = load_dashboards("pages.results.compare")
choice = load_dashboards("kit.choice")
explain = load_dashboards("pages.policy.explain")
export = load_dashboards("kit.export")
figures = load_dashboards("charts.figures")
policy = load_dashboards("pages.policy.learned")
report = load_dashboards("pages.results.report")
row_tables = load_dashboards("pages.runs.rows")
selection = load_dashboards("kit.selection")
source = load_dashboards("kit.source")
worker = load_dashboards("kit.worker")
policy_page = load_dashboards("pages.policy.page")
results_page = load_dashboards("pages.results.page")

KINDS = {
    "convergence": made.convergence,
    "scouting": made.scouting,
    "initialization": made.initialization,
    "personalization": made.personalization,
    "grid": made.grid,
    "fit": made.fit,
    "agents": made.agents,
    "many": lambda root: made.agents(root, "wbc-12p"),
    "uncertainty": made.uncertainty,
    "stability": made.stability,
    "prediction": made.prediction,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of each kind, their identifiers by kind, and what reads them."""
    root = tmp_path_factory.mktemp("kinds")
    ids = {kind: make(root) for kind, make in KINDS.items()}
    return listed(root), ids


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
        ("personalization", "methods", 2, "mean forward runs, all"),
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
    assert "2p: Vito solves 0 % with 10 and 100 % with 100 samples per patient" in told
    assert "nelder-mead 50 %" in told


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


def test_the_page_shows_figures_words_and_numbers(runs):
    found, ids = runs
    view, content = opened(results_page.ResultsView, found, runs=[ids["convergence"]])
    assert len(plots_of(view.gallery)) == 4
    assert "Vito solves" in view.sentence.object
    assert view.message.object == ""
    assert view.sections.value == "curves"
    assert {k for k, b in view.saver.buttons.items() if not b.disabled} == {
        *("csv", "png", "svg", "html")
    }
    assert content.sizing_mode == "stretch_width"


def test_a_part_is_chosen_by_the_address_and_by_the_user(runs):
    found, ids = runs
    view, _ = opened(results_page.ResultsView, found, runs=[ids["grid"]], view="numbers")
    assert view.sections.value == "numbers"
    assert plots_of(view.gallery) == []
    view.sections.value = "success"
    view.worker.wait(60)
    assert view.selection.view == "success"
    assert len(plots_of(view.gallery)) == 1


def test_results_that_were_left_do_not_come_back(runs):
    found, ids = runs
    chosen, working = selection.Selection(page="results", runs=[ids["grid"]]), worker.Worker()
    view = results_page.ResultsView(chosen, found, working)
    view.panel()
    chosen.runs = ["gone"]
    working.wait(60)
    assert view.sentence.object == ""
    assert "Not in this store: gone" in view.message.object


def test_results_of_a_run_do_not_stand_under_the_words_of_another(runs):
    found, ids = runs
    view, _ = opened(results_page.ResultsView, found, runs=[ids["scouting"]])
    assert view.sentence.object
    view.selection.runs = [ids["grid"]]
    assert view.sentence.object == view.tables.object == ""
    view.worker.wait(60)
    assert view.sentence.object


def test_what_an_address_asks_in_vain_falls_back(runs):
    found, ids = runs
    view, _ = opened(
        results_page.ResultsView, found, runs=[ids["scouting"]], view="nonsense", repeat=99
    )
    assert view.sections.value == "curves"
    assert "Not in this run: part nonsense, repeat 99." in view.message.object


def test_without_a_choice_the_newest_run_is_shown_and_the_address_stays(runs):
    found, _ = runs
    view, _ = opened(results_page.ResultsView, found)
    assert view.selection.runs == []
    assert "newest run" in view.legend.object
    assert plots_of(view.gallery)


def test_a_part_chosen_in_the_newest_run_keeps_that_run(tmp_path):
    """Though a newer one is complete, and though its first part fails."""
    run = made.convergence(tmp_path)
    found = listed(tmp_path)
    view, _ = opened(results_page.ResultsView, found)
    view.sections.value = "numbers"
    view.worker.wait(60)
    assert view.selection.runs == [run]
    newer = made.grid(tmp_path)
    found.refresh(older_than=0.0)
    view.refresh()
    view.worker.wait(60)
    assert view._ids() == [run]
    view.selection.param.update(runs=[], view="", repeat=None)
    view.worker.wait(60)
    assert view._ids() == [newer]
    view.sections.value = "success"
    assert view.selection.runs == [newer]


def test_a_hidden_page_does_no_work_until_it_is_shown(runs):
    found, ids = runs
    view, _ = opened(results_page.ResultsView, found, runs=[ids["scouting"]])
    view.selection.page = "runs"
    view.selection.runs = [ids["grid"]]
    assert not view.worker._jobs
    view.selection.page = "results"
    view.refresh()
    view.worker.wait(60)
    assert view.sections.value == "errors"


def test_nothing_is_drawn_again_while_nothing_changes(runs):
    found, ids = runs
    view, _ = opened(results_page.ResultsView, found, runs=[ids["scouting"]])
    before = plots_of(view.gallery)
    found.refresh(older_than=0)
    view.refresh()
    assert not view.worker._jobs
    assert plots_of(view.gallery) == before


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs of one study that differ in a parameter and in their outcome."""
    root = tmp_path_factory.mktemp("two")
    ids = [
        made.convergence(root, solved=3, seed=0),
        made.convergence(root, solved=1, seed=7, parameters={"n_starts": 5}),
    ]
    return listed(root), ids


def test_two_runs_lie_over_each_other_in_their_colours(two):
    found, ids = two
    view, _ = opened(results_page.ResultsView, found, runs=ids)
    assert view.sections.value == "compare"
    plots = plots_of(view.gallery)
    assert len(plots) == 4  # success and runs in both setups
    place = compare.places(ids)
    for item in plots:
        assert all(compare.SERIES_COLORS[place[run]] in item for run in ids)
    for run in ids:
        assert compare.SERIES_COLORS[place[run]] in view.legend.object
    assert "n_starts" in view.differences.object
    assert "n_patients" not in view.differences.object


def test_what_differs_between_runs_is_told_and_nothing_else(two):
    found, ids = two
    table = row_tables.differences([found.entry(run) for run in ids])
    assert table[""].tolist() == ["seed", "parameter n_starts"]
    assert table[ids[0]].tolist() == ["0", "2"]
    assert table[ids[1]].tolist() == ["7", "5"]


def test_a_run_keeps_its_colour_while_others_come_and_go():
    names = [f"2026010{k}T000000Z-{k:08x}" for k in range(7)]
    all_places = compare.places(names)
    assert sorted(all_places.values()) == list(range(7))  # seven runs, seven colours
    assert compare.places(names[::-1]) == all_places
    kept = [name for name in names if compare.places([name])[name] == all_places[name]]
    assert compare.places(kept) == {name: all_places[name] for name in kept}


def test_runs_without_a_common_size_are_compared_method_by_method(runs):
    found, ids = runs
    chosen = [ids["grid"], ids["personalization"]]
    shown = report.prepare(found, chosen, "compare", None, False)
    assert not shown.failed
    assert any("mean forward runs, all" in labels_of(p) for p in shown.pictures)


def test_a_further_run_is_added_and_left_out_again(two):
    found, ids = two
    view, _ = opened(results_page.ResultsView, found, runs=ids[:1], view="restarts")
    view.add.value = ids[1]
    view.worker.wait(60)
    assert view.selection.runs == ids
    assert view.sections.value == "compare"
    assert view.differences.object
    view.selection.runs = view.selection.runs[:1]
    view.worker.wait(60)
    assert view.differences.object == ""
    assert "compare" not in view.sections.options.values()


@pytest.mark.parametrize("page", [results_page.ResultsView, policy_page.PolicyView])
def test_an_empty_store_gives_a_command(tmp_path, page):
    view, _ = opened(page, listed(tmp_path / "none"))
    assert "vitolab " in view.message.object
    assert str(tmp_path) in view.message.object


@pytest.mark.parametrize("page", [results_page.ResultsView, policy_page.PolicyView])
def test_a_run_that_the_store_lacks_is_named(runs, page):
    view, _ = opened(page, runs[0], runs=["20990101T000000Z-ffffffff"])
    assert "Not in this store: 20990101T000000Z-ffffffff" in view.message.object
    assert not (view.plane.item if hasattr(view, "plane") else plots_of(view.gallery))


@pytest.mark.parametrize("page", [results_page.ResultsView, policy_page.PolicyView])
def test_a_failed_run_shows_its_reason_as_text(tmp_path, page):
    run = made.convergence(tmp_path, status="failed")
    view, _ = opened(page, listed(tmp_path), runs=[run])
    panes = [getattr(view, n) for n in ("message", "legend", "notes") if hasattr(view, n)]
    shown = "".join(pane.object for pane in panes)
    assert "&lt;b&gt;no&lt;/b&gt;" in shown
    assert "<b>no" not in shown


def test_a_damaged_table_is_told_and_the_page_goes_on(tmp_path):
    good, bad = made.scouting(tmp_path), made.personalization(tmp_path)
    found = listed(tmp_path)
    (found.entry(bad).info.path / "personalizations.parquet").write_bytes(b"PAR1")
    view, _ = opened(results_page.ResultsView, found, runs=[bad])
    assert "note-error" in view.message.object
    assert "personalizations.parquet" in view.message.object
    view.selection.runs = [good]
    view.worker.wait(60)
    assert view.message.object == ""
    assert plots_of(view.gallery)


def test_of_a_run_that_goes_on_what_is_finished_is_shown(tmp_path):
    run = made.convergence(tmp_path, status="running")
    view, _ = opened(results_page.ResultsView, listed(tmp_path), runs=[run])
    assert "1 of 4" in view.legend.object
    assert len(plots_of(view.gallery)) == 4


def test_a_run_that_goes_on_is_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(results_page, "PATIENCE", 0.0)
    run = made.scouting(tmp_path, status="running")
    found = listed(tmp_path)
    view, _ = opened(results_page.ResultsView, found, runs=[run])
    assert "with 70 states" in view.sentence.object
    folder = OpenRun.attach(found.entry(run).info.path)
    problem = made.circulation.problem("2p")
    folder.write_part("more", table([made.row(problem, n_states=90)]))
    folder.progress("folds", 2, 4)
    found.refresh(older_than=0)
    view.refresh()
    view.worker.wait(60)
    assert "with 90 states" in view.sentence.object
    assert "2 of 4" in view.legend.object


def test_hostile_names_are_text_in_the_page_and_in_its_files(tmp_path):
    payload = stores.PAYLOADS[0]
    problem = made.EP
    rows = [
        made.row(problem, setup=payload, patient=payload, method=method)
        for method in ("vito", payload)
    ]
    run = made.store(tmp_path, "hostile", rows, problems={payload: problem})
    found = listed(tmp_path)
    _, content = opened(results_page.ResultsView, found, runs=[run])
    shown = [pane.object for pane in content.select(pn.pane.HTML)]
    assert any("onerror" in str(text) for text in shown)  # it is there, as text
    assert not any("<img src=x" in str(text) for text in shown)
    page = report.make_file(found, [run], "methods", None, "html")[1].decode()
    assert "<img src=x" not in page


def test_a_page_says_whose_patients_it_shows(runs, tmp_path):
    found, ids = runs
    _, content = report.make_file(found, [ids["prediction"]], "forecast", None, "html")
    assert "<td>synthetic</td>" in content.decode()
    run = made.prediction(tmp_path, parameters={"data": "surgery.csv"})
    _, content = report.make_file(listed(tmp_path), [run], "forecast", None, "html")
    assert "<td>of a user</td>" in content.decode()


def test_a_section_is_drawn_once(runs):
    found, ids = runs
    drawn = [report.prepare(found, [ids["scouting"]], *asked, False) for asked in ASKED]
    assert all(shown is drawn[0] for shown in drawn)
    dark = report.prepare(found, [ids["scouting"]], "curves", None, True)
    assert dark.pictures[0].item != drawn[0].pictures[0].item


#: The same section and repeat, as addresses may ask for them.
ASKED = (("curves", None), ("curves", 0), ("", None), ("nothing", 99))


def test_a_section_is_drawn_anew_when_the_files_of_its_run_changed(tmp_path):
    ids = [made.convergence(tmp_path / f"store {solved}", solved=solved) for solved in (1, 3)]
    one, three = (tmp_path / f"store {n}" / "wbc-convergence" for n in (1, 3))
    found = listed(tmp_path / "store 1")
    before = report.prepare(found, [ids[0]], "curves", None, False)
    shutil.rmtree(one / ids[0])
    shutil.copytree(three / ids[1], one / ids[0])
    after = report.prepare(found, [ids[0]], "curves", None, False)
    assert "33 % with 100" in before.sentence
    assert "100 % with 100" in after.sentence


def test_a_table_as_csv_holds_all_rows_and_no_formula():
    frame = pd.DataFrame({"name": ["=1+1", "plain", "@x"], "value": [-1.5, 2.0, 3.0]})
    text = export.csv((("one", frame),)).decode("utf-8-sig")
    back = pd.read_csv(io.StringIO(text))
    assert back["name"].tolist() == ["'=1+1", "plain", "'@x"]
    assert back["value"].tolist() == [-1.5, 2.0, 3.0]
    long = pd.DataFrame({"k": range(1_000)})
    assert len(pd.read_csv(io.StringIO(export.csv((("k", long),)).decode("utf-8-sig")))) == 1_000
    assert "200 of 1,000 rows" in export.short_table("k", long)


def test_figures_are_saved_as_png_and_svg(runs):
    found, ids = runs
    name, png = report.make_file(found, [ids["scouting"]], "curves", None, "png")
    assert name == f"wbc-scouting-{ids['scouting']}-curves-synthetic.png"
    assert png.startswith(b"\x89PNG")
    _, svg = report.make_file(found, [ids["scouting"]], "curves", None, "svg")
    assert ET.fromstring(svg).tag.endswith("svg")


def test_a_saved_page_holds_its_pictures_and_asks_no_other_machine(runs):
    found, ids = runs
    name, content = report.make_file(found, [ids["initialization"]], "boxes", None, "html")
    page = content.decode("utf-8")
    assert name.endswith(".html")
    assert page.count('<img src="data:image/png;base64,') == 2
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", page)
    assert "<script" not in page
    for title in ("Errors of the start", "Methods"):
        assert f"<h2>{title}</h2>" in page


@pytest.mark.parametrize("words", [("../../etc", "pass wd"), ("<b>", ""), ("", "")])
def test_names_of_files_hold_no_path(words):
    name = export.file_name(*words, kind="csv")
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*\.csv", name)
    assert ".." not in name


def test_what_was_drawn_is_let_go():
    """A page has the text of its figures: neither it nor Bokeh or HoloViews keeps their models."""
    models = []
    figure = hv.Curve([1, 2]) + hv.Curve([3, 1])
    pictures = figures.draw(figure, change=lambda model: models.append(weakref.ref(model)))
    gc.collect()
    assert len(pictures) == len(models) == 2
    assert not any(model() for model in models)
