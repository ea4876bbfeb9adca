"""A game of the page Teach that has begun."""

from __future__ import annotations

import pytest

from vitolab.dashboard import load_dashboards

game = load_dashboards("pages.teach.game")
lessons = load_dashboards("pages.teach.lessons")


@pytest.fixture
def started():
    """A game on a Rosenbrock function."""
    problem, patient = lessons.problem_of("rosenbrock"), lessons.patients_of("rosenbrock")["F002"]
    now = game.Game(problem, patient)
    now.record(*now.begin())
    return now


@pytest.fixture(scope="module")
def vito():
    """The agent of that function."""
    return lessons.agent("rosenbrock", "F002")


def make(now, move):
    """Make a move."""
    now.record(move, game.run_model(now.problem, now.patient, move.x))
