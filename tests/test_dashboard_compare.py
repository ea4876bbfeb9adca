"""The page Results without a server: runs beside each other."""

from __future__ import annotations

import dashboard_runs as made
import pytest
import result_pages
from dashboard_runs import labels_of, listed, opened, plots_of

from vitolab.dashboard import load_dashboards

runs = result_pages.runs

compare = load_dashboards("pages.results.compare")
report = load_dashboards("pages.results.report")
row_tables = load_dashboards("pages.runs.rows")
results_page = load_dashboards("pages.results.page")


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


def test_runs_on_the_same_patients_are_compared_in_pairs(two):
    """With its largest training Vito solves three of three in the first run, one in the other."""
    found, ids = two
    runs = report.Report(found, ids).runs
    groups = [(run.id, run.personalizations) for run in runs]
    patients = {run.id: run.patients.assign(**{"z:lv_edv": [1.0, 2.0, 3.0] * 2}) for run in runs}
    content = compare.compared(groups, {run: run for run in ids}, patients)
    table = dict(content.tables)["In pairs, Vito with its largest training"].set_index("setup")
    assert (table["solved more often"] == 2).all()
    assert (table["less often"] == 0).all()
    assert (table["p (McNemar)"] == 0.5).all()
    assert "(44 to 100) with" in content.sentence  # Wilson's of three of three
    assert "2 repeats (bands: 0.5 and 1 standard deviation)" in content.sentence
    # other patients of the same names, in one setup
    other = patients[ids[1]].assign(**{"z:lv_edv": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    assert compare.pairs(groups, patients | {ids[1]: other})["setup"].tolist() == ["2p"]
    assert compare.pairs(groups, {run.id: run.patients for run in runs}).empty  # without any
    assert compare.pairs(groups, {}).empty


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
    assert any("mean forward runs, all; line: 95 %" in labels_of(p) for p in shown.pictures)


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
