"""The page Teach: personalise a patient yourself, with Vito's advice, or let it play."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from vitolab.models.description import Lesson

from ...charts.answers import Answer
from ...charts.bokeh import in_one_message
from ...kit import safe
from ...kit.selection import Selection
from ...kit.source import Source
from ...kit.worker import Worker
from . import game, lessons
from .board import Board
from .scores import Opened, Scoreboard, open_game

PACE = 600  # ms between two moves of Vito
MOST_RUNS = 500  # of one game
HOW = (
    "The model starts at its default values, or elsewhere if they solve the patient; each press "
    "of a button is an action of the paper and one forward run, unless it changes nothing. The "
    "game is won when every bar ends in the green band: in as few runs as possible. Sliders change "
    "several values at once; the model runs when you say so. Click the chart of misfits to go back "
    "to an earlier run: that is free. A game lasts as long as the page: reloading begins a new one."
)


class TeachView:
    """A game: one patient, you, Vito and the reference methods.

    Parameters
    ----------
    selection : Selection
    source : Source
        Not used: the game needs no stored run.
    worker : Worker
    """

    def __init__(self, selection: Selection, source: Source, worker: Worker) -> None:
        self.selection, self.worker = selection, worker
        self.game: game.Game | None = None
        self.playing = False
        self._open = ""  # model and patient of the game
        self._next: deque[Callable[[], game.Move]] = deque()  # moves that wait for their turn
        self._busy = False
        self._stale = False
        self._clock: Any = None
        self.model = safe.select(
            label="Model", options={v.title: k for k, v in lessons.offered().items()}, width=220
        )
        self.patient = safe.select(label="Patient", width=120)
        self.again = pn.widgets.Button(label="New game", width=110)
        self.ask = pn.widgets.Button(label="Ask Vito", color="primary", width=110)
        self.move = pn.widgets.Button(label="Let Vito move", width=130)
        self.play = pn.widgets.Button(label="Let Vito play", width=130)
        self.back = pn.widgets.Button(label="Back to the best run", width=160)
        self.compare = pn.widgets.Button(label="Compute the scoreboard", width=190)
        self.status, self.hint, self.lacks = safe.html(""), safe.html(""), safe.html("")
        self.advice = safe.html("")
        self.scoreboard = Scoreboard(worker)
        self.board = Board(worker, self._act, self._slide, self._go)
        self._bind()

    def _bind(self) -> None:
        """Let widgets, selection and game follow each other."""
        self.model.param.watch(lambda e: self._pick(model=e.new, patient=""), "value")
        self.patient.param.watch(lambda e: self._pick(patient=e.new), "value")
        self.again.on_click(lambda _: self._begin())
        self.ask.on_click(lambda _: self._with_vito(self._advise))
        self.move.on_click(lambda _: self._with_vito(self._let_move))
        self.play.on_click(lambda _: self._toggle())
        self.back.on_click(lambda _: self._go(self.game.best if self.game else 0))
        self.compare.on_click(lambda _: self._compare())
        self.selection.watch(self._follow, "model", "patient")

    def _compare(self) -> None:
        """Let every method play the same game."""
        if self.game is not None:
            self.scoreboard.compute(self.game, self.lesson)

    def panel(self) -> Any:
        """The page."""
        self._follow()
        return pn.Column(
            safe.html(f"<div class='faint'>{HOW}</div>"),
            pn.FlexBox(self.model, self.patient, self.again, align_items="flex-end", margin=0),
            self.lacks,
            self.hint,
            self.status,
            self.board.panel,
            safe.html("<h3>Vito</h3>"),
            pn.FlexBox(self.ask, self.move, self.play, self.back, margin=0),
            self.advice,
            safe.html("<h3>Scoreboard: the same patient, the same start</h3>"),
            pn.FlexBox(self.compare, margin=0),
            self.scoreboard.pane,
            sizing_mode="stretch_width",
        )

    def refresh(self) -> None:
        """Open what was chosen while another page was shown."""
        if not self._stale:
            return
        if self.game is not None and self.selection.model in ("", self.model.value):
            self._stale = False  # the game goes on: its patient is not that of another page
            self.lacks.object = ""
        else:
            self._follow()

    @property
    def address(self) -> dict[str, str]:
        """What an address holds of the game; nothing before there is one."""
        if self.game is None:
            return {}
        return {"model": self.model.value, "patient": self.patient.value}

    def _pick(self, **values: Any) -> None:
        """The user chose a model or a patient."""
        if self._busy:
            return
        same = all(getattr(self.selection, name) == value for name, value in values.items())
        self.selection.param.update(**values)
        if same:  # as another page had left it
            self._follow()

    def _follow(self) -> None:
        """Open the model and the patient of the selection, or the first."""
        self._stale = self.selection.page != "teach"
        asks = self.selection.model or self.selection.patient
        if self._stale or (self.game is not None and not asks):
            return  # who asks for no game keeps the one that is open
        name = self.selection.model if self.selection.model in lessons.offered() else lessons.FIRST
        self.worker.submit(
            lessons.patients_of, name, done=partial(self._offer, name), failed=self._failed,
            key="teach-patients",
        )  # fmt: skip

    def _offer(self, name: str, patients: Any) -> None:
        """Offer the patients of a model, and begin where another is wanted."""
        chosen = self.selection.patient if self.selection.patient in patients else ""
        chosen = chosen or lessons.offered()[name].first or next(iter(patients))
        wanted = {"model": self.selection.model, "patient": self.selection.patient}
        taken = {"model": name, "patient": chosen}
        lacks = [f"{what} {v}" for what, v in wanted.items() if v and v != taken[what]]
        words = safe.lacking("on this page", lacks)
        self.lacks.object = safe.note_html("info", words) if words else ""
        self._busy = True
        try:
            self.model.value = name
            self.patient.param.update(options=list(patients), value=chosen)
        finally:
            self._busy = False
        if self._open != f"{name}/{chosen}":
            self._begin()

    @property
    def lesson(self) -> Lesson:
        """Lesson of the game."""
        return lessons.offered()[self.model.value]

    def _begin(self) -> None:
        """Begin a new game."""
        self._stop()
        name, who = self.model.value, self.patient.value
        self._open = f"{name}/{who}"
        self.game = None
        self._next.clear()
        self.advice.object = self.hint.object = ""
        self.scoreboard.clear()
        self.board.panel.visible = False
        self.status.object = safe.note_html(
            "loading", f"the model of {who} is made ready … {self.lesson.note}"
        )
        # what goes on is of the game before
        self.worker.drop("teach-run", "teach-vito", "teach-answer")
        self.worker.submit(
            open_game,
            name,
            who,
            done=self._begun,
            failed=self._failed,
            key="teach-run",
            pool="long",
        )
        self._enable()

    @in_one_message
    def _begun(self, opened: Opened) -> None:
        """Show a new game."""
        self.game = opened.game
        self.board.open(self.game, opened.known)
        self.hint.object = safe.fill("<div class='faint'>{hope}</div>", hope=opened.hope)
        self.game.record(opened.move, opened.y)
        self._show(opened.answer)
        self.board.panel.visible = True

    def _failed(self, why: str) -> None:
        """Say what went wrong."""
        self._stop()
        self._next.clear()
        self.status.object = safe.note_html("error", why)
        self._enable()

    def _enable(self) -> None:
        """Offer what is possible now."""
        ready = self.game is not None and self.game.n_runs > 0
        running = self.worker.is_busy("teach-run") or self.worker.is_busy("teach-vito")
        free = ready and not running and not self.playing
        full = ready and self.game is not None and self.game.n_runs >= MOST_RUNS
        for button in (self.ask, self.move):
            button.disabled = not free or full
        self.back.disabled = not free
        self.play.disabled = not ready or full or (running and not self.playing)
        self.play.label = "Pause" if self.playing else "Let Vito play"
        self.compare.disabled = not ready
        self.board.lock(not ready or self.playing or full)

    def _act(self, action: int) -> None:
        """You take an action."""
        if self.game is not None and not self.playing:
            self._run(partial(self.game.step, action))

    def _slide(self, x: Any) -> None:
        """You set parameters by hand."""
        if self.game is not None and not self.playing:
            self._run(partial(self.game.slide, x))

    def _go(self, at: int) -> None:
        """Go on from an earlier run."""
        if self.game is not None and not self.playing and 0 <= at < self.game.n_runs:
            self.game.at = at
            self._show()

    def _run(self, choose: Callable[[], game.Move]) -> None:
        """Make a forward run, after those that were asked for before."""
        self._next.append(choose)
        self._go_on()

    def _go_on(self) -> None:
        """Make the next forward run: a move goes on from where the one before has led."""
        now = self.game
        if now is None or now.n_runs >= MOST_RUNS:
            self._next.clear()
        if now is None or not self._next or self.worker.is_busy("teach-run"):
            return
        move = self._next.popleft()()
        while move.who == game.YOU and now.is_idle(move):
            words = f"{move.words}: nothing changes, as at the border; no forward run was made."
            self.status.object = now.status_html() + safe.note_html("info", words)
            if not self._next:
                return
            move = self._next.popleft()()
        if move.who == game.VITO:
            self.advice.object = safe.note_html("info", f"Vito: {move.words}.")
        self.worker.submit(
            game.run_model, now.problem, now.patient, move.x,
            done=partial(self._record, move), failed=self._failed, key="teach-run",
        )  # fmt: skip

    def _record(self, move: game.Move, y: Any) -> None:
        """Keep a forward run and show it."""
        assert self.game is not None
        self.game.record(move, y)
        if move.who == game.YOU:
            self.advice.object = ""
        if self.playing and (self.game.solved_at or self.game.n_runs >= MOST_RUNS):
            self._stop()
        self._show()
        self._go_on()
        if self.playing and self._clock is None:  # without a server there is no clock
            self._tick()

    @in_one_message
    def _show(self, answer: Answer | None = None) -> None:
        """Show the game as it stands."""
        assert self.game is not None
        self.board.show(answer)
        self.status.object = self.game.status_html()
        self.scoreboard.show(self.game, self.lesson)
        self._enable()

    def _with_vito(self, act: Any) -> None:
        """Have the agent learned, then act."""
        now = self.game
        if now is None:
            return
        if not self.advice.object:
            self.advice.object = safe.note_html(
                "loading", "Vito learns from other patients, once: this can take 20 s …"
            )
        self.worker.submit(
            lessons.agent, self.model.value, now.patient.name,
            done=act, failed=self._failed, key="teach-vito", pool="long",
        )  # fmt: skip
        self._enable()

    def _advise(self, vito: Any) -> None:
        """Show what Vito would do and why."""
        assert self.game is not None
        words, table = self.game.advise(vito)
        shown = safe.note_html("info", words)
        if len(table):
            shown += safe.table_html(table, caption="Vito's best actions in this state")
        self.advice.object = shown + safe.fill(
            "<div class='faint'>{words}</div>", words=lessons.learning(self.lesson)
        )
        self._enable()

    def _let_move(self, vito: Any) -> None:
        """Vito makes a move."""
        assert self.game is not None
        self._run(partial(self.game.vito_move, vito))

    def _toggle(self) -> None:
        """Let Vito play, or stop it."""
        if self.playing:
            self._stop()
            self._enable()
            return
        self.playing = True
        if pn.state.curdoc is not None and pn.state.curdoc.session_context is not None:
            self._clock = pn.state.add_periodic_callback(self._tick, period=PACE)
        self._tick()

    def _stop(self) -> None:
        """Let Vito play no further, not even the move that it is about to make."""
        if self.playing and self.worker.is_busy("teach-vito"):
            self.worker.drop("teach-vito")
            self.advice.object = ""
        self.playing = False
        if self._clock is not None:
            self._clock.stop()
            self._clock = None

    def _tick(self) -> None:
        """Vito's turn."""
        if self.selection.page != "teach":
            self._stop()
            self._enable()
            return
        busy = self.worker.is_busy("teach-run") or self.worker.is_busy("teach-vito")
        if self.playing and not busy:
            self._with_vito(self._let_move)
