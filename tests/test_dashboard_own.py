"""The page Your own model without a server: its inputs, its numbers, its states."""

from __future__ import annotations

import shlex
from itertools import pairwise

import dashboard_runs as made
import pytest
import stores
import typer
from dashboard_runs import figure_of, listed, opened, plots_of

from vitolab.cli import app
from vitolab.dashboard import load_dashboards
from vitolab.plots.style import METHOD_COLORS

asked = load_dashboards("pages.own.asked")
estimate = load_dashboards("pages.own.estimate")
figures = load_dashboards("charts.figures")
own_page = load_dashboards("pages.own.page")
selection = load_dashboards("kit.selection")

TYPED = {"run_time": "5", "n_patients": "4", "n_parameters": "6", "n_workers": "1", "hours": "1"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A store with one run of from-nothing."""
    root = tmp_path_factory.mktemp("own")
    made.from_nothing(root)
    return listed(root)


def test_the_page_says_what_the_budget_buys(runs):
    """An hour of runs of five minutes is twelve runs: all four patients in either order."""
    view, _ = opened(own_page.OwnView, runs, **TYPED)
    assert "1 h buy 12 forward runs of 5 min; from nothing" in view.sentence.object
    assert "solve 4 of 4 patients with them (4 to 4 in 2 stored orders)" in view.sentence.object
    assert view.message.object == view.lacking.object == ""
    assert len(plots_of(view.gallery)) == 1
    table = view.table.object
    assert "<td>vito-continuous</td>" in table
    assert "<td>least-squares-multistart</td>" in table
    assert "explored" not in table
    notes = view.notes.object
    assert "with 6 parameters, as yours: 6p (4 patients in 2 orders)" in notes
    assert "These patients are synthetic; another model, or other patients, may" in notes
    assert "No stored run of this size: gp-emulator, least-squares-nearest." in notes


def test_a_smaller_budget_buys_less(runs):
    """Eight runs: three patients in the first order, one in the second."""
    view, _ = opened(own_page.OwnView, runs, **TYPED | {"hours": "0.67"})
    assert "solve 2 of 4 patients with them (1 to 3 in 2 stored orders)" in view.sentence.object


def test_the_user_changes_a_number_and_the_address_follows(runs):
    view, _ = opened(own_page.OwnView, runs, **TYPED)
    view.inputs["hours"].value = "0.25"
    view.unit.value = "s"
    view.worker.wait(60)
    assert "0.25 h buy 180 forward runs of 5 s" in view.sentence.object
    query = view.selection.query()
    assert query == "page=own&unit=s&n_patients=4&hours=0.25"
    again = selection.Selection()
    again.read(query)
    assert (again.hours, again.unit, again.refused) == ("0.25", "s", ())
    view.selection.hours = "2"
    assert view.inputs["hours"].value == "2"


@pytest.mark.parametrize("name", list(TYPED))
def test_what_is_no_number_that_can_be_gets_one_sentence(runs, name):
    view, _ = opened(own_page.OwnView, runs, **TYPED)
    for typed in ("", " ", "0", "-3", "nan", "1e300", "inf", "x", "<b>", "9" * 99):
        view.inputs[name].value = typed
        view.worker.wait(60)
        said = view.message.object
        assert f"&quot;{asked.LABELS[name]}&quot; is " in said
        assert said.count("expected a") == 1
        assert "<b>" not in said
        panes = (view.sentence, view.lacking, view.table, view.commands, view.notes)
        assert [pane.object for pane in panes] == [""] * 5
        assert plots_of(view.gallery) == []
    view.inputs[name].value = TYPED[name]
    view.worker.wait(60)
    assert view.message.object == ""
    assert "1 h buy 12 forward runs" in view.sentence.object


@pytest.mark.parametrize("name", ["n_patients", "n_parameters", "n_workers"])
def test_half_a_patient_is_none(name):
    with pytest.raises(ValueError, match="expected a whole number from 1 to"):
        asked.plan_of(TYPED | {name: "2.5"}, "min")


@pytest.mark.parametrize(("unit", "seconds"), [("s", 5.0), ("min", 300.0), ("h", 18000.0)])
def test_the_time_of_a_run_has_a_unit(unit, seconds):
    assert asked.plan_of(TYPED, unit).seconds == seconds


def test_the_commands_spend_the_budget(runs):
    plan = asked.plan_of(TYPED | {"n_workers": "3"}, "min")
    *_, last = asked.commands(plan, runs.results / "with space")
    words = shlex.split(last)
    assert words[:3] == ["vitolab", "personalize", "my_problem/problem.toml"]
    options = dict(pairwise(words))
    assert options["--total-runs"] == "36"
    assert options["--at-a-time"] == options["--jobs"] == "3"
    assert options["--results"] == str(runs.results / "with space")


@pytest.mark.parametrize("nearest", [None, 2])
def test_the_command_line_takes_every_command(runs, nearest):
    plan = asked.plan_of(TYPED | {"n_workers": "3"}, "min")
    more, _ = asked.command_for_runs(plan, runs.results, nearest)
    known = typer.main.get_command(app).commands
    for command in (*asked.commands(plan, runs.results), more):
        program, name, *rest = shlex.split(command)
        assert program == "vitolab"
        known[name].make_context(name, rest)  # refuses what is no option


def test_no_more_runs_are_allowed_than_the_patients_may_take(runs):
    """Fifty per parameter each: 1,200 for four patients with six."""
    view, _ = opened(own_page.OwnView, runs, **TYPED | {"hours": "1000"})
    assert "--total-runs 1200 " in view.commands.object
    assert "may take 1,200 runs at most, 50 per parameter each" in view.notes.object


def test_a_budget_without_a_run_has_no_command_to_spend_it(runs):
    view, _ = opened(own_page.OwnView, runs, **TYPED | {"hours": "0.01"})
    assert "0.01 h buy no forward run: one takes 5 min." in view.sentence.object
    assert "--total-runs" not in view.commands.object


def test_without_stored_runs_the_page_says_which_command_makes_them(tmp_path):
    view, _ = opened(own_page.OwnView, listed(tmp_path), **TYPED)
    assert view.sentence.object == "<p>1 h buy 12 forward runs of 5 min.</p>"
    assert "vitolab run from-nothing --profile quick --results" in view.lacking.object
    assert view.table.object == ""
    assert "--total-runs 12 " in view.commands.object


def test_stored_runs_of_another_size_are_used_and_nearer_ones_proposed(runs):
    view, _ = opened(own_page.OwnView, runs, **TYPED | {"n_parameters": "11"})
    assert "with 6 parameters, nearest to your 11: 6p" in view.notes.object
    assert "vitolab run from-nothing -p" in view.lacking.object
    assert "12p" in view.lacking.object
    view.inputs["n_parameters"].value = "7"
    view.worker.wait(60)
    assert view.lacking.object == ""


def test_a_run_that_comes_is_taken_up(tmp_path):
    found = listed(tmp_path)
    view, _ = opened(own_page.OwnView, found, **TYPED)
    assert view.table.object == ""
    made.from_nothing(tmp_path)
    found.refresh(older_than=0)
    view.refresh()
    view.worker.wait(60)
    assert "vito-continuous" in view.table.object


def test_the_agent_that_gives_up_otherwise_is_not_that_of_the_command_line(tmp_path):
    made.from_nothing(tmp_path, give_up=0.1)
    view, _ = opened(own_page.OwnView, listed(tmp_path), **TYPED)
    assert "vito-continuous --give-up 0 is expected" in view.sentence.object


def test_runs_that_are_not_complete_or_cannot_be_read_are_left_out(tmp_path):
    made.from_nothing(tmp_path)
    made.from_nothing(tmp_path, seed=1, status="running")
    lost = made.from_nothing(tmp_path, seed=2)
    (tmp_path / "from-nothing" / lost / "personalizations.parquet").write_bytes(b"PAR1")
    view, _ = opened(own_page.OwnView, listed(tmp_path), **TYPED)
    assert "(4 to 4 in 2 stored orders)" in view.sentence.object
    assert "A run is left out: " in view.notes.object


def test_a_hostile_store_does_no_harm(tmp_path):
    stores.hostile_study(tmp_path, stores.PAYLOADS)
    view, _ = opened(own_page.OwnView, listed(tmp_path), **TYPED)
    assert "1 h buy 12 forward runs" in view.sentence.object


def test_the_paper_agent_stands_beside_them_where_it_is_stored(tmp_path):
    made.from_nothing(tmp_path, setup="2p")
    made.convergence(tmp_path)
    view, _ = opened(own_page.OwnView, listed(tmp_path), **TYPED | {"n_parameters": "2"})
    assert "explored before, per patient" in view.table.object
    assert "The paper&#x27;s agent explores first" in view.notes.object
    assert "2p (3 patients)" in view.notes.object


def test_the_figure_marks_the_budget(runs):
    plan = asked.plan_of(TYPED, "min")
    found = estimate.estimate(runs, estimate.runs_of(runs.entries), plan, "5 min", False)
    (picture,) = found.pictures
    legend = {figures._label(item) for item in figures._items(figure_of(picture))}
    assert legend == {"vito-continuous", "least-squares-multistart", "budget"}


def luminance(color: str) -> float:
    """Relative luminance of a colour ``#RRGGBB`` (WCAG 2.1)."""
    parts = [int(color[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("method", list(METHOD_COLORS))
def test_every_method_can_be_seen_in_the_dark(method):
    """Three to one, as graphical objects need (WCAG 2.1, 1.4.11)."""
    shown = luminance(figures._seen_in_the_dark(METHOD_COLORS[method]))
    ground = luminance(figures._INK[True][2])
    assert (shown + 0.05) / (ground + 0.05) >= 3.0
