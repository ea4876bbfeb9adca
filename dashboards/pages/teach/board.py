"""What the page Teach shows of a game: charts, buttons and sliders, the picture of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn

from vitolab.problem import Problem

from ...charts import answers
from ...charts.bokeh import MisfitBars, in_one_message, row
from ...charts.histories import MisfitHistory
from ...charts.pictures import Picture, Plane, picture
from ...kit.worker import Worker
from .controls import Controls
from .game import Game


class Board:
    """A game as it stands, and what changes its parameters.

    Parameters
    ----------
    worker : Worker
        Runs the model for the picture.
    act, slide : callable
        See `Controls`.
    go : callable
        Called with a run, from 0, to go on from.
    """

    def __init__(
        self,
        worker: Worker,
        act: Callable[[int], None],
        slide: Callable[[Any], None],
        go: Callable[[int], None],
    ) -> None:
        self.worker, self._act, self._slide, self._go = worker, act, slide, go
        self._game: Game | None = None
        self._problem = ""  # that the charts are built for
        self._is_new = False
        self.picture: Picture | None = None
        self.reveal = pn.widgets.Checkbox(
            label="Show the map and the minimum (gives the solution away)", value=False
        )
        self.reveal.param.watch(lambda _: self._reveal(), "value")
        self.panel = pn.Column(sizing_mode="stretch_width", margin=0)

    def open(self, now: Game, known: answers.Answer) -> None:
        """Take up another game; charts are built where its problem is another."""
        self._game = now
        if self._problem != now.problem.name:
            self._build(now.problem)
        assert self.picture is not None
        self.picture.patient(now.patient, known)
        self._reveal()

    def _build(self, problem: Problem) -> None:
        """Build the charts and controls of another model."""
        self._problem, self._is_new = problem.name, True
        self.bars = MisfitBars(problem)
        self.history = MisfitHistory(problem, lambda run: self._go(run - 1))
        self.controls = Controls(problem, self._act, self._slide)
        self.picture = picture(problem)

    def lock(self, locked: bool) -> None:
        """Take no input, or take it again."""
        if self._problem:
            self.controls.lock(locked)

    @in_one_message
    def show(self, answer: answers.Answer | None = None) -> None:
        """Show the game as it stands; the model is asked where its answer is not known."""
        now = self._game
        assert now is not None
        assert self.picture is not None
        self.bars.show(now.misfits)
        self.history.show(now.c, [m.jump for m in now.moves])
        self.history.at(now.at + 1)
        self.controls.show(now.here.x)
        if isinstance(self.picture, Plane):
            self.picture.walked([m.x for m in now.moves], [m.jump for m in now.moves])
        at = now.at
        if answer is not None:
            self.picture.show(answer, now.misfits)
        else:
            self.worker.submit(
                answers.simulate, now.problem, now.here.x, now.patient,
                done=lambda answer: self._answered(now, at, answer),
                failed=lambda why: self._answered(now, at, {}),
                key="teach-answer", pool=answers.pool_of(now.problem),
            )  # fmt: skip
        if self._is_new:  # with their data, or the browser complains of empty axes
            self._is_new = False
            self.panel.objects = [
                row(self.bars.pane, self.history.pane),
                self.controls.panel,
                *([self.reveal] if isinstance(self.picture, Plane) else []),
                self.picture.pane,
            ]

    @in_one_message
    def _answered(self, now: Game, at: int, answer: answers.Answer) -> None:
        """Show what the model answers."""
        if now is self._game and self.picture is not None:
            self.picture.show(answer, now.c[at])

    @in_one_message
    def _reveal(self) -> None:
        """Show the map of a function, or hide it."""
        if isinstance(self.picture, Plane):
            self.picture.reveal(self.reveal.value)
