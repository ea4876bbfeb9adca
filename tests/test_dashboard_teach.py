"""The page Teach without a server: buttons, addresses, the scoreboard."""

from __future__ import annotations

import re
import threading

import games
import numpy as np
import pytest
from games import make

from vitolab.dashboard import load_dashboards
from vitolab.fit import StopReason

started = games.started
vito = games.vito

game = load_dashboards("pages.teach.game")
lessons = load_dashboards("pages.teach.lessons")
scores = load_dashboards("pages.teach.scores")
selection = load_dashboards("kit.selection")
worker = load_dashboards("kit.worker")
page = load_dashboards("pages.teach.page")


def opened(**values):
    """The page, its selection and its worker, after all work is done."""
    chosen, working = selection.Selection(page="teach", **values), worker.Worker()
    view = page.TeachView(chosen, None, working)
    view.panel()
    working.wait()
    return view, chosen, working


def words(markup: str) -> str:
    """Text of HTML."""
    return re.sub(r"<[^>]*>", " ", markup)


def test_buttons_run_the_model(started):
    """One press, one run; sliders run when told to, and lead the address nowhere."""
    view, chosen, working = opened(model="rosenbrock", patient="F002")
    assert view.game.n_runs == 1
    view.board.controls.buttons[5].clicks += 1
    working.wait()
    assert view.game.here.x.tolist() == [1.0, 0.0]
    assert "2 forward runs" in words(view.status.object)
    np.testing.assert_allclose(view.board.bars.source.data["c"], view.game.misfits / 0.05)
    view.board.controls.sliders[1].value = 2.0
    working.wait()
    assert view.game.n_runs == 2
    assert not view.board.controls.run.disabled
    view.board.controls.run.clicks += 1
    working.wait()
    assert view.game.here.x.tolist() == [1.0, 2.0]
    assert view.board.controls.run.disabled
    view._go(1)
    assert view.board.controls.sliders[1].value == 0.0
    assert chosen.query() == "page=teach&patient=F002&model=rosenbrock"


def test_quick_presses_are_all_obeyed():
    """Each move goes on from where the one before has led; a new game forgets those that wait."""
    view, _, working = opened(model="rosenbrock", patient="F002")
    for action in (5, 5, 11):
        view.board.controls.buttons[action].clicks += 1
    working.wait()
    assert [move.x.tolist() for move in view.game.moves[1:]] == [[1, 0], [2, 0], [2, 1]]
    view.board.controls.buttons[5].clicks += 1
    view.board.controls.buttons[5].clicks += 1
    view.again.clicks += 1
    working.wait()
    assert view.game.n_runs == 1


def test_vito_that_is_stopped_while_it_learns_makes_no_move(monkeypatch):
    view, _, working = opened(model="rosenbrock", patient="F002")
    agent, go_on = lessons.agent, threading.Event()
    monkeypatch.setattr(lessons, "agent", lambda *given: go_on.wait(10) and agent(*given))
    view._toggle()
    assert "Vito learns" in view.advice.object
    view._toggle()
    assert view.advice.object == ""
    assert not view.ask.disabled
    view._act(0)
    go_on.set()
    working.wait()
    assert [m.who for m in view.game.moves][1:] == [game.YOU]


def test_a_press_at_the_border_costs_nothing():
    """It says that nothing changes; moves that wait are made all the same."""
    view, _, working = opened(model="circulation-2p", patient="C01")
    controls = view.board.controls
    assert "from 200 to 1000, one step is 4 mL" in words(controls.headings[0].object)
    view._slide([200.0, 2.4])
    working.wait()
    controls.buttons[2].clicks += 1  # one step down
    working.wait()
    assert view.game.n_runs == 2
    assert "no forward run was made" in words(view.status.object)
    for action in (3, 5, 0, 0, 0, 3):  # far down: within, to the border, at the border
        controls.buttons[action].clicks += 1
    working.wait()
    assert [move.x[0] for move in view.game.moves] == [400, 200, 204, 604, 204, 200, 204]
    assert [move.words.endswith("the border") for move in view.game.moves[-2:]] == [True, False]


def test_a_look_at_another_page_ends_no_game():
    view, chosen, working = opened(model="circulation-2p", patient="C01")
    view.board.controls.buttons[0].clicks += 1
    working.wait()
    chosen.param.update(page="patient", patient="C03")
    chosen.page = "teach"
    view.refresh()
    working.wait()
    assert view.game.patient.name == "C01"
    assert view.game.n_runs == 2
    view.patient.value = "C03"  # as the other page had it
    working.wait()
    assert view.game.patient.name == "C03"


def test_an_address_that_asks_for_no_game_keeps_the_one_that_is_open():
    """As Back may bring it."""
    view, chosen, working = opened(model="rosenbrock", patient="F003")
    view._act(0)
    working.wait()
    assert view.address == {"model": "rosenbrock", "patient": "F003"}
    chosen.param.update(model="", patient="")
    working.wait()
    assert (view.game.n_runs, view.game.patient.name) == (2, "F003")


def test_what_an_address_asks_in_vain_is_said():
    view, *_ = opened(model="heart", patient="C99")
    assert "Not on this page: model heart, patient C99" in words(view.lacks.object)
    view, *_ = opened(model="circulation-2p", patient="C01")
    assert view.lacks.object == ""


def test_the_start_is_nobodys_move(started, vito):
    """It counts as a forward run, neither as yours nor as Vito's."""
    assert "Run 1: the start" in words(started.status_html())
    make(started, started.step(5))
    assert "2 forward runs;" in words(started.status_html())
    make(started, started.vito_move(vito))
    assert "3 forward runs (the start, 1 by you, 1 by Vito)" in words(started.status_html())


def test_vito_solves_from_the_page():
    """Ask, move, play; the status says who did what."""
    view, _, working = opened(model="rosenbrock", patient="F002")
    view.ask.clicks += 1
    working.wait()
    assert "Vito would take" in words(view.advice.object)
    assert "never saw this patient" in words(view.advice.object)
    assert view.game.n_runs == 1
    view.move.clicks += 1
    working.wait()
    assert view.game.n_runs == 2
    view.play.clicks += 1
    working.wait()
    assert view.game.solved_at
    assert not view.playing
    assert "Solved in" in words(view.status.object)
    assert "by Vito" in words(view.status.object)


def test_the_scoreboard_has_every_method():
    """Each from the start of the game; what it says is what the method does."""
    view, _, working = opened(model="circulation-2p", patient="C01")
    view.compare.clicks += 1
    working.wait()
    shown = words(view.scoreboard.pane.object)
    for method in game.methods(view.game.problem):
        assert method in shown
        assert "cascade" not in method
    fit = game.reference(
        "nelder-mead", view.game.problem, view.game.patient, view.game.moves[0].x, 100
    )
    assert np.array_equal(fit.trace.x[0], view.game.problem.default)
    row = view.scoreboard.scores["nelder-mead"]
    assert (row["runs"], row["solved"]) == (fit.n_runs, "yes" if fit.solved else "no")
    assert fit.solved == (fit.stop_reason is StopReason.SOLVED)
    assert "Vito, from its own start" in shown
    assert shown.index("you") < shown.index("Vito")


def test_a_new_game_throws_the_scoreboard_away(monkeypatch):
    """Methods that have not begun never do: they would keep the new game waiting."""
    view, _, working = opened(model="rosenbrock")
    begun, go = [], threading.Event()
    for module, name in ((game, "reference"), (scores, "_vito")):
        monkeypatch.setattr(module, name, lambda *a: begun.append(a) or go.wait(10))
    view.compare.clicks += 1
    view.again.clicks += 1
    go.set()
    working.wait()
    assert view.game.n_runs == 1
    assert len(begun) <= 2  # one in each thread
    assert view.scoreboard.scores == {}
    assert "Press the button" in words(view.scoreboard.pane.object)


def test_another_patient_is_another_game():
    """What was worked on for the one before is thrown away."""
    view, chosen, working = opened(model="circulation-2p", patient="C01")
    view.board.controls.buttons[0].clicks += 1
    chosen.patient = "C03"
    working.wait()
    assert view.game.patient.name == "C03"
    assert view.game.n_runs == 1
    chosen.param.update(model="circulation-3p", patient="nobody")
    working.wait()
    assert view.game.problem.name == "circulation-3p"
    assert view.patient.value == view.game.patient.name == "C01"
    chosen.page = "runs"
    chosen.model = "rosenbrock"
    working.wait()
    assert view.game.problem.name == "circulation-3p"
    chosen.page = "teach"
    view.refresh()
    working.wait()
    assert view.game.problem.name == "rosenbrock"


@pytest.mark.parametrize("name", [n for n in lessons.offered() if n.startswith("circulation")])
def test_every_setup_opens(name):
    """Each with as many blocks of buttons as parameters."""
    view, *_ = opened(model=name)
    n = view.game.problem.n_parameters
    assert f"{n} parameters" in lessons.offered()[name].title
    assert len(view.board.controls.sliders) == n
    assert len(view.board.controls.buttons) == view.game.problem.n_actions


def test_a_heart_can_be_personalised_by_hand():
    """The page says whether a solution is known, and shows what the heart answers."""
    view, _, working = opened(model="electrophysiology-bem")
    assert "found a solution" in words(view.hint.object)
    before = list(view.board.picture.segments.data["time"])
    view.board.controls.buttons[5].clicks += 1
    working.wait()
    assert view.game.n_runs == 2
    assert list(view.board.picture.segments.data["time"]) != before


def test_the_map_is_hidden_until_asked_for():
    """It gives the solution away."""
    view, *_ = opened(model="rosenbrock")
    assert not view.board.picture.shown.visible
    assert not view.board.picture.goal_shown.visible
    view.board.reveal.value = True
    assert view.board.picture.shown.visible
