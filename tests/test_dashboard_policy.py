"""The page Policy without a server: choices, clicks, what is not there, files."""

from __future__ import annotations

import io

import dashboard_runs as made
import pandas as pd
import policy_pages
import pytest
import stores
from bokeh.models import Legend
from dashboard_runs import figure_of, labels_of, listed, opened, plots_of

from vitolab.dashboard import load_dashboards

runs = policy_pages.runs

explain = load_dashboards("pages.policy.explain")
figures = load_dashboards("charts.figures")
further = load_dashboards("pages.policy.further")
policy = load_dashboards("pages.policy.learned")
selection = load_dashboards("kit.selection")
worker = load_dashboards("kit.worker")
policy_page = load_dashboards("pages.policy.page")


def test_of_a_run_that_goes_on_there_is_no_policy_as_yet(tmp_path):
    run = stores.start_run(tmp_path, "rosenbrock-grid")
    view, _ = opened(policy_page.PolicyView, listed(tmp_path), runs=[run.path.name])
    assert "is not finished: this can be shown once it is" in view.message.object


def test_the_policy_page_shows_states_a_state_and_the_convergence(runs):
    found, ids = runs
    view, _ = opened(policy_page.PolicyView, found, runs=[ids["grid"]])
    assert view.plane.item
    assert labels_of(view.shown.plane) == {"misfit: T₁ = α − x₁", "misfit: T₂ = x₂ − x₁²"}
    assert len(plots_of(view.state_plot)) == 1
    assert len(plots_of(view.further.gallery)) == 2  # convergence, and the map over parameters
    assert "Value iteration is repeated here" in view.further.note.object
    assert "Its actions" in view.state_tables.object


def test_a_policy_that_was_left_while_it_was_read_is_whole_on_return(runs):
    found, ids = runs
    chosen = selection.Selection(page="policy", runs=[ids["grid"]], state=3)
    working = worker.Worker()
    view = policy_page.PolicyView(chosen, found, working)
    view.panel()
    chosen.page = "runs"
    working.wait(60)
    chosen.page = "policy"
    view.refresh()
    working.wait(60)
    assert "State 3 stands for misfits" in view.state_note.object
    assert len(plots_of(view.state_plot)) == 1
    assert len(plots_of(view.further.gallery)) == 2


def test_another_policy_takes_nothing_over_from_the_one_before(tmp_path):
    """Neither its state nor its words, also while it is being read."""
    first, second = made.grid(tmp_path), made.grid(tmp_path, transitions=False)
    view, _ = opened(policy_page.PolicyView, listed(tmp_path), runs=[first], state=3)
    assert view.content.visible
    view.choice.widget.value = second
    assert view.selection.state is None
    assert not view.content.visible
    assert view.state_note.object == view.state_tables.object == view.further.note.object == ""
    view.worker.wait(60)
    assert view.content.visible
    assert "State 3 stands for" not in view.state_note.object
    assert view.further.note.object


def test_the_newest_run_once_chosen_is_called_so_no_more(tmp_path):
    run = made.grid(tmp_path)
    view, _ = opened(policy_page.PolicyView, listed(tmp_path))
    assert "The newest run: " in view.notes.object
    view.choice.widget.value = run
    assert view.notes.object == ""


def test_what_stands_below_a_policy_fails_alone(runs, monkeypatch):
    """The states are shown where the map over parameters cannot be drawn."""

    tried = []

    def fail(*_):
        tried.append(1)
        raise ValueError("no map")

    monkeypatch.setattr(further, "prepare_further", fail)
    found, ids = runs
    view, _ = opened(policy_page.PolicyView, found, runs=[ids["grid"]])
    assert view.content.visible
    assert "no map" in view.further.note.object
    view.refresh()
    view.worker.wait(60)
    assert len(tried) == 1


def test_a_policy_that_was_left_does_not_come_back(runs):
    found, ids = runs
    chosen, working = selection.Selection(page="policy", runs=[ids["grid"]]), worker.Worker()
    view = policy_page.PolicyView(chosen, found, working)
    view.panel()
    chosen.runs = ["gone"]
    working.wait(60)
    assert not view.content.visible
    assert "Not in this store: gone" in view.message.object


def test_a_click_chooses_the_nearest_state(runs):
    found, ids = runs
    view, _ = opened(policy_page.PolicyView, found, runs=[ids["grid"]])
    at = view.shown.known.states.centroids[7]
    view.plane.tapped = {"x": float(at[0]), "y": float(at[1]), "count": 1}
    view.worker.wait(60)
    assert view.selection.state == 7
    assert view.state.value == 7
    assert "State 7 stands for misfits" in view.state_note.object
    assert view.plane.marks["ring"] == {"x": [at[0]], "y": [at[1]]}
    reached = policy.successors(view.shown.known, 7, int(view.shown.known.policy.greedy[7]))
    assert len(view.plane.marks["ways"]["to_x"]) == min(len(reached), explain.MOST_SUCCESSORS)


def test_a_state_chosen_in_the_newest_run_keeps_that_run(tmp_path):
    run = made.grid(tmp_path)
    found = listed(tmp_path)
    view, _ = opened(policy_page.PolicyView, found)
    assert view.selection.runs == []
    view.state.value = 5
    view.worker.wait(60)
    assert view.selection.runs == [run]
    made.grid(tmp_path)
    found.refresh(older_than=0.0)
    view.refresh()
    view.worker.wait(60)
    assert (view.shown.run, view.state.value) == (run, 5)


def test_colours_and_axes_come_from_the_address(runs):
    found, ids = runs
    view, _ = opened(
        policy_page.PolicyView,
        found,
        runs=[ids["grid"]],
        objectives=["t2", "t1"],
        color="action",
        view="near,labels",
        state=3,
    )
    assert view.shown.axes == (1, 0)
    assert (view.color.value, view.range.value, view.marks.value) == ("action", "near", "labels")
    assert view.state.value == 3
    assert figure_of(view.shown.plane).below[0].axis_label == "misfit: T₂ = x₂ − x₁²"
    view.color.value = "visits"
    assert view.selection.color == "visits"


def test_what_a_policy_lacks_is_said(runs):
    found, ids = runs
    asked = {"setup": "none", "state": 10**6, "objectives": ["t9", "t1"], "color": "pink"}
    view, _ = opened(policy_page.PolicyView, found, runs=[ids["grid"]], **asked)
    told = "setup none, state 1000000, color pink, objective t9"
    assert f"Not in this policy: {told}" in view.lacks.object
    view.selection.param.update(setup="", state=None, objectives=[], color="")
    view.worker.wait(60)
    assert view.lacks.object == ""


def test_what_was_learned_is_put_together_once(tmp_path, monkeypatch):
    """A change of colour, marks, range or axes draws the plane again, and nothing else."""
    learned, drawn = [], []
    for module, name, seen in (
        (policy, "learned", learned),
        (policy_page, "prepare_state", drawn),
        (further, "prepare_further", drawn),
    ):
        whole = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, f=whole, s=seen: s.append(f) or f(*a))
    run = made.grid(tmp_path)
    view, _ = opened(policy_page.PolicyView, listed(tmp_path), runs=[run])
    solved = view.shown.known.rounds
    planes = [view.plane.item]
    for values in (
        {"color": "action"},
        {"view": "near,labels"},
        {"objectives": ["t2", "t1"]},
        {"color": "value"},
    ):
        view.selection.param.update(**values)
        view.worker.wait(60)
        planes.append(view.plane.item)
    assert len(set(planes)) == len(planes)
    assert view.shown.known.rounds is solved
    assert (len(learned), len(drawn)) == (1, 2)
    view.selection.patient = "F002"
    view.worker.wait(60)
    assert "F002" in view.further.gallery[1][0].object
    assert (len(learned), len(drawn)) == (1, 3)
    view.selection.page = "patient"
    view.selection.patient = "F003"
    view.selection.page = "policy"
    view.refresh()
    view.worker.wait(60)
    assert "F003" in view.further.gallery[1][0].object


def test_what_was_learned_is_read_again_where_the_files_changed(tmp_path):
    run = made.grid(tmp_path)
    found = listed(tmp_path)
    view, _ = opened(policy_page.PolicyView, found, runs=[run])
    before = view.shown.known
    (found.entry(run).info.path / "note.txt").touch()
    view.refresh()
    view.worker.wait(60)
    assert view.shown.known is not before


def test_the_legend_tells_up_from_down(runs):
    found, ids = runs
    shown = explain.prepare(found, ids["grid"], "", [], "action", "", False)
    legend = next(part for part in figure_of(shown.plane).below if isinstance(part, Legend))
    marks = {
        item.label.value[-1]: item.renderers[0].glyph.marker.value for item in legend.items[1:]
    }
    assert marks == {"+": "triangle", "−": "inverted_triangle"}


def test_states_out_of_range_and_unknown_names_fall_back(runs):
    found, ids = runs
    view, _ = opened(
        policy_page.PolicyView,
        found,
        runs=[ids["grid"]],
        setup="base, free, restart",
        state=10**6,
        action=999,
        objectives=["x", "y", "z"],
        color="pink",
    )
    assert view.message.object == ""
    assert view.setup.value == "base, free"
    assert view.state.value < view.shown.known.states.n_states


def test_what_a_run_does_not_store_is_said(tmp_path):
    run = made.grid(tmp_path, transitions=False)
    view, _ = opened(policy_page.PolicyView, listed(tmp_path), runs=[run])
    assert "Where transitions lead is not stored" in view.state_note.object
    assert "there are no arrows" in view.plane_note.object
    assert "stored no transitions" in view.further.note.object
    assert view.marks.value == "labels"


def test_a_run_without_policy_says_which_have_one(runs):
    found, ids = runs
    view, _ = opened(policy_page.PolicyView, found, runs=[ids["scouting"]])
    assert "stored no policy" in view.message.object
    assert "rosenbrock-grid" in view.message.object
    assert not view.content.visible


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda path: path.unlink(), "the file is missing"),
        (lambda path: path.write_bytes(b"x"), "1 bytes, expected"),
    ],
)
def test_a_policy_that_was_stored_and_cannot_be_read_is_no_run_without_one(tmp_path, harm, why):
    run = made.grid(tmp_path)
    found = listed(tmp_path)
    harm(found.entry(run).info.path / "arrays.npz")
    view, _ = opened(policy_page.PolicyView, found, runs=[run])
    assert f"arrays.npz: {why}" in view.message.object
    assert "stored no policy" not in view.message.object


def test_the_plane_of_states_is_saved(runs):
    found, ids = runs
    view, _ = opened(policy_page.PolicyView, found, runs=[ids["grid"]])
    name, content = explain.make_file(view.shown, "csv")
    table = pd.read_csv(io.BytesIO(content))
    assert len(table) == view.shown.known.states.n_states
    assert name.endswith("-base-free-policy.csv")
    assert explain.make_file(view.shown, "svg")[1].lstrip().startswith(b"<?xml")
