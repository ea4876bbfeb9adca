"""What the page Teach computes in a worker: a new game, and the scoreboard of all methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from vitolab.models.description import Lesson

from ...charts import answers
from ...kit import safe
from ...kit.worker import Worker
from . import game, lessons
from .game import Game, Move


@dataclass(frozen=True)
class Opened:
    """A new game, with its first run."""

    game: Game
    known: answers.Answer
    hope: str
    move: Move
    y: Any
    answer: answers.Answer


def open_game(name: str, who: str) -> Opened:
    """Everything that a new game needs; in a worker."""
    patient = lessons.patients_of(name)[who]
    now = game.Game(lessons.problem_of(name), patient)
    known = answers.background(now.problem, patient)
    move, y = now.begin()
    try:
        answer = answers.simulate(now.problem, move.x, patient)
    except ValueError:  # no answer there
        answer = {}
    return Opened(now, known, lessons.hope(patient, now.problem), move, y, answer)


class Scoreboard:
    """You, Vito and each reference method on the same patient.

    Parameters
    ----------
    worker : Worker
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.pane = safe.html("")
        self.scores: dict[str, dict[str, Any]] = {}
        self._game: game.Game | None = None
        self._lesson: Lesson | None = None

    def clear(self) -> None:
        """Forget everything, and throw away what was still to be computed."""
        self.worker.drop(*map(_key, self.scores))
        self.scores, self._game = {}, None
        self.pane.object = ""

    def compute(self, now: game.Game, lesson: Lesson) -> None:
        """Let every method personalise the patient of a game, from where that started."""
        name, most, start = lesson.name, lesson.max_runs, now.moves[0].x
        jobs = {
            "Vito": partial(_vito, name, now.patient, start, most),
            "Vito, from its own start": partial(_vito, name, now.patient, None, most),
        }
        jobs |= {
            method: partial(game.reference, method, now.problem, now.patient, start, most)
            for method in game.methods(now.problem)
        }
        for who, job in jobs.items():
            self.scores[who] = {"who": who, "solved": "…"}
            self.worker.submit(
                job,
                done=partial(self._scored, now, who),
                failed=partial(self._not_scored, now, who),
                key=_key(who),
                pool="long",
            )
        self.show(now, lesson)

    def _scored(self, now: game.Game, who: str, fit: Any) -> None:
        """A method has ended."""
        if now is self._game:
            self.scores[who] = game.score(who, fit, now.problem)
            self._draw()

    def _not_scored(self, now: game.Game, who: str, why: str) -> None:
        """A method has failed."""
        if now is self._game:
            self.scores[who] = {"who": who, "solved": why}
            self._draw()

    def show(self, now: game.Game, lesson: Lesson) -> None:
        """Show how a game stands beside the methods."""
        self._game, self._lesson = now, lesson
        self._draw()

    def _draw(self) -> None:
        """Show the table, the best first."""
        assert self._game is not None
        assert self._lesson is not None
        rows = sorted(self.scores.values(), key=_rank)
        table = pd.DataFrame([game.own_score(self._game), *rows])
        note = (
            f"Methods may take {self._lesson.max_runs} forward runs; they start where you "
            "started, unless their name says otherwise."
            if self.scores
            else "Press the button to let Vito and the reference methods play."
        )
        self.pane.object = safe.table_html(table, caption=f"This game first. {note}")


def _key(who: str) -> str:
    """Of a method, for the worker."""
    return f"teach-score {who}"


def _rank(score: dict[str, Any]) -> tuple[bool, float]:
    """Order of the scoreboard: solved in few runs first."""
    return score["solved"] != "yes", float(score.get("runs", np.inf))


def _vito(name: str, patient: Any, start: Any, max_runs: int) -> Any:
    """Personalise by Vito, from a start or from its own; in a worker."""
    vito = lessons.agent(name, patient.name)
    if start is None:
        return vito.personalize(patient, max_runs=max_runs, seed=lessons.SEED)
    starts = np.array(start)[np.newaxis]
    return vito.personalize_from(patient, starts, max_runs=max_runs, seed=lessons.SEED)[0]
