"""The game of the page Teach: its rules, and Vito's moves."""

from __future__ import annotations

import games
import numpy as np
import pytest
from games import make

from vitolab.dashboard import load_dashboards
from vitolab.methods import Training
from vitolab.models import circulation, rosenbrock
from vitolab.problem import Patient

started = games.started
vito = games.vito

game = load_dashboards("pages.teach.game")
lessons = load_dashboards("pages.teach.lessons")


def test_actions_are_the_papers(started):
    """Each takes its parameter by whole steps; the way back leads to the very same point."""
    problem = started.problem
    for action in range(problem.n_actions):
        before = started.here.x
        make(started, started.step(action))
        moved = (started.here.x - before) / problem.step
        np.testing.assert_allclose(moved, problem.actions[action], atol=1e-9)
        back = int(np.flatnonzero((problem.actions == -problem.actions[action]).all(axis=1))[0])
        assert np.array_equal(started.step(back).x, before)
    assert started.n_runs == 1 + problem.n_actions


def test_misfits_are_of_the_model(started):
    """The recorded misfits are the model's at the recorded parameters."""
    make(started, started.step(11))
    make(started, started.slide(np.array([1.5, 2.0])))
    z = started.problem.measured(started.patient)
    for move, c in zip(started.moves, started.c, strict=True):
        y = started.problem.simulate(move.x[None], started.patient)[0]
        np.testing.assert_array_equal(c, started.problem.misfit(y, z))


def test_sliders_stay_in_the_domain(started):
    """And actions go on from where they led."""
    make(started, started.slide(np.array([99.0, -99.0])))
    assert started.here.x.tolist() == [5.0, -5.0]
    assert started.here.jump
    make(started, started.step(0))
    assert started.here.x.tolist() == [4.0, -5.0]
    assert not started.here.jump


def test_the_first_success_counts(started):
    """Runs after it do not change how many it took."""
    assert started.solved_at is None
    make(started, started.slide(rosenbrock.optimum(started.patient)))
    make(started, started.step(0))
    assert started.solved_at == 2
    assert started.best == 1
    assert started.worst == pytest.approx(0.0, abs=1e-9)
    assert game.own_score(started)["runs"] == 2


def test_one_may_go_back_for_free(started):
    """The next move goes on from the run that was chosen."""
    first = started.here.x
    make(started, started.step(5))
    started.at = 0
    make(started, started.step(3))
    assert started.n_runs == 3
    np.testing.assert_allclose(started.here.x - first, started.problem.step * [1, 0], atol=1e-12)


def test_no_game_begins_with_a_solution():
    """Where the defaults are one, it begins elsewhere, always at the same point."""
    problem = circulation.problem("2p")
    blank = Patient("S1", {"lv_edv": 0.0, "lv_esv": 0.0}, {"heart_rate": 70.0})
    y = problem.simulate(problem.default[None], blank)[0]
    solved = Patient("S1", dict(zip(("lv_edv", "lv_esv"), y, strict=True)), blank.data)
    moves = [game.Game(problem, solved).begin() for _ in range(2)]
    assert np.array_equal(moves[0][0].x, moves[1][0].x)
    assert not problem.is_solved(problem.misfit(moves[0][1], problem.measured(solved)))


@pytest.mark.parametrize("name", ["F001", "F003", "F005"])
def test_vito_never_saw_the_patient(monkeypatch, name):
    """What it learns from holds as many others, whoever is left out."""
    seen = []
    monkeypatch.setattr(lessons, "POLICY", Training(lambda _, walks, *a: seen.append(walks)))
    lessons._agent.__wrapped__("rosenbrock", name)
    assert name in lessons._walks("rosenbrock").patients
    assert name not in seen[0].patients
    assert len(seen[0].patients) == lessons.offered()["rosenbrock"].n_training


def test_vito_takes_candidates_and_never_repeats(started, vito):
    """Its actions are candidates of its policy; a point that recurs is left for a fresh start."""
    while started.solved_at is None and started.n_runs < 200:
        c = started.misfits
        state = int(vito.states.quantize(c[None])[0])
        move = started.vito_move(vito)
        if not move.jump:
            taken = [a for a in range(started.problem.n_actions)
                     if np.array_equal(started.step(a).x, move.x)]  # fmt: skip
            assert any(vito.policy.probabilities[state, a] > 0 for a in taken)
            since = max(k for k, m in enumerate(started.moves) if m.jump or k == 0)
            assert not any(np.array_equal(m.x, move.x) for m in started.moves[since:])
        make(started, move)
    assert started.solved_at is not None


def test_the_same_game_is_played_the_same_way(vito):
    """What Vito draws depends on patient and run, not on when it is asked."""
    paths = []
    for _ in range(2):
        now = game.Game(vito.problem, lessons.patients_of("rosenbrock")["F002"])
        now.record(*now.begin())
        for _ in range(5):
            now.advise(vito)
            make(now, now.vito_move(vito))
        paths.append([move.x.tolist() for move in now.moves])
    assert paths[0] == paths[1]


def test_advice_names_the_best_action(started, vito):
    """With its value, its chance and where it led."""
    told, table = started.advise(vito)
    state = int(vito.states.quantize(started.misfits[None])[0])
    best = int(np.argmax(vito.policy.q[state]))
    named = started.problem.describe_action(best).replace("-", "−")
    assert told.startswith(f"Vito would take {named}, because in state {state}")
    assert table["action"][0] == named
    assert table["value"][0] == f"{vito.policy.q[state, best]:.2f}"
    assert list(table["value"].astype(float)) == sorted(table["value"].astype(float), reverse=True)
    make(started, started.slide(rosenbrock.optimum(started.patient)))
    assert "state 0" in started.advise(vito)[0]


def test_a_failed_run_is_survived(started, vito):
    """The model may give no answer; Vito then begins anew."""
    started.record(started.step(0), np.full(2, np.nan))
    assert started.solved_at is None
    assert started.best == 0
    assert "no answer" in started.advise(vito)[0]
    assert started.vito_move(vito).jump
