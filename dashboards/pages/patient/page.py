"""The page Patient: one personalisation run by run, and all patients beside it."""

from __future__ import annotations

import shlex
from typing import Any

import panel as pn

from ...charts.bokeh import in_one_message
from ...kit import safe
from ...kit.choice import RunChoice, label_of
from ...kit.selection import Selection
from ...kit.source import Source, fingerprint
from ...kit.stored import Stored
from ...kit.worker import Worker
from . import fits
from .cohort import Cohort
from .film import Film
from .screen import Screen

INTERVAL = 700  # ms between two runs of the film
#: Values of the selection that name a personalisation within a run.
WITHIN = ("setup", "patient", "method", "samples", "states", "repeat", "start")


class PatientView:
    """One personalisation run by run, and all patients.

    Parameters
    ----------
    selection : Selection
    source : Source
    worker : Worker
    """

    def __init__(self, selection: Selection, source: Source, worker: Worker) -> None:
        self.selection, self.source, self.worker = selection, source, worker
        self._stored: Stored | None = None
        self._film: Film | None = None
        self.screen: Screen | None = None
        self._seen: Any = None  # files of the run when it was read
        self._asked: Any = None  # what was asked of the worker
        self._listed: Any = None  # setup and method of the list
        self._built: Any = None  # run and setup that the charts are built for
        self._stale = True
        self._busy = False
        self.choice = RunChoice(selection, source, fits.STUDIES, (*WITHIN, "step"))
        self.setup = safe.select(label="Setup", width=150)
        self.patient = safe.select(label="Patient", width=120)
        self.method = safe.select(label="Method", width=200)
        self.fit = safe.select(label="Fit", width=290)
        self.before = pn.widgets.Button(label="◀ previous", width=90)
        self.after = pn.widgets.Button(label="next ▶", width=90)
        self.player = pn.widgets.Player(
            label="Forward run",
            start=1,
            end=2,
            value=1,
            interval=INTERVAL,
            loop_policy="once",
            show_loop_controls=False,
            show_value=False,
            visible_buttons=["first", "previous", "pause", "play", "next", "last"],
            sizing_mode="stretch_width",
            max_width=560,
            margin=(4, 0),
        )
        self.newest = safe.html("")
        self.message = safe.note("loading", "the patients are being read …")
        self.outcome, self.count = safe.html(""), safe.html("")
        self.solutions = safe.html("")
        self.charts = pn.Column(sizing_mode="stretch_width", margin=0)
        self.cohort = Cohort(lambda name: self._set(patient=name))
        self.content = pn.Column(sizing_mode="stretch_width", margin=0, visible=False)
        self.widgets = pn.FlexBox(
            self.setup, self.patient, self.before, self.after, self.method, self.fit,
            align_items="flex-end", margin=0, visible=False,
        )  # fmt: skip
        self._bind()

    def _bind(self) -> None:
        """Let widgets and selection follow each other."""
        for widget, act in (
            (self.setup, lambda v: self._set(setup=v)),
            (self.patient, lambda v: self._set(patient=v)),
            (self.method, lambda v: self._set(method=v)),
            (self.fit, lambda v: self._set(**_of_key(v))),
            (self.player, lambda v: self._set(step=v - 1)),
        ):
            widget.param.watch(lambda event, act=act: self._changed(act, event.new), "value")
        self.before.on_click(lambda _: self._turn(-1))
        self.after.on_click(lambda _: self._turn(1))
        self.selection.watch(self._reload, "runs", *WITHIN)
        self.selection.watch(self._step, "step")

    def panel(self) -> Any:
        """The page."""
        self.content.extend(
            [
                self.outcome,
                self.count,
                self.player,
                self.charts,
                self.solutions,
                self.cohort.panel,
            ]
        )
        self.refresh()
        return pn.Column(
            self.choice.widget,
            self.newest,
            self.widgets,
            self.message,
            self.content,
            sizing_mode="stretch_width",
        )

    def refresh(self) -> None:
        """Read what has changed."""
        self.choice.offer()
        entries, lost = self.choice.entries()
        any_ended = any(entry.info.status == "complete" for entry in entries)
        to_show = bool(self.selection.runs) or any_ended
        notes = self.choice.lost_html() + self.choice.first_html() + self.choice.newest_html()
        self.newest.object = notes if to_show else ""
        if not entries or not to_show or not entries[0].readable:
            self._seen = None
            self.worker.drop("patient-run", "patient-film")
        if lost and not entries:
            self._hide("")
            return
        if not to_show:
            folder = shlex.quote(str(self.source.results))
            command = f"vitolab run rosenbrock-grid --results {folder}"
            self._say("empty", "there is no finished run to look at; this makes one:", command)
            return
        entry = entries[0]
        if not entry.readable:
            self._say("error", f"{label_of(entry)}: {entry.info.reason or entry.info.status}")
            return
        seen = (entry.id, fingerprint(entry.info.path))
        if self._stale or seen != self._seen:
            if seen != self._seen:
                self._asked = self._listed = self._built = None
            self._seen, self._stale = seen, False
            if self._stored is None or self._stored.id != entry.id:
                self.worker.drop("patient-film")
                self._say("loading", f"the patients of {entry.info.study} are being read …")
            self.worker.submit(
                fits.load, self.source, entry.id, done=self._loaded, failed=self._failed,
                key="patient-run",
            )  # fmt: skip

    def _fill(self, widget: Any, options: dict[str, Any], value: Any) -> None:
        """Offer options without a change by the user."""
        self._busy = True
        try:
            if widget.options != options:
                widget.param.update(options=options, value=value)
            elif widget.value != value:
                widget.value = value
        finally:
            self._busy = False

    def _changed(self, act: Any, value: Any) -> None:
        """The user changed a widget."""
        if not self._busy and value is not None:
            act(value)

    def _set(self, **values: Any) -> None:
        """Change the selection at one stroke; a new fit is shown from its first run."""
        if self._stored is not None:
            values |= self.choice.pinned(self._stored.id)
        if "step" not in values:
            values["step"] = None
        if values.keys() & {"setup", "patient", "method"}:
            values |= _of_key((None,) * 4)
        self.selection.param.update(**values)

    def _turn(self, by: int) -> None:
        """Go to another patient of the list."""
        names = list(self.patient.options.values())
        if names and self.patient.value in names:
            self._set(patient=names[(names.index(self.patient.value) + by) % len(names)])

    def _say(self, kind: Any, words: str, command: str = "") -> None:
        """Show a state of the page instead of its content."""
        self._hide(safe.note_html(kind, words, command))

    def _hide(self, markup: str) -> None:
        """Show HTML instead of the content."""
        self.message.object = markup
        self.content.visible = self.widgets.visible = False

    def _failed(self, why: str) -> None:
        """Show why nothing is shown."""
        self._say("error", why)

    def _reload(self) -> None:
        """The selection has changed."""
        if self.selection.page != "patient":
            self._stale = True
            return
        entries, _ = self.choice.entries()
        if self._seen is None or not entries or entries[0].id != self._seen[0]:
            self._stale = True
            self.refresh()
        elif self._stored is not None and self._stored.id == self._seen[0]:
            self._choose()  # else it is being read, and this is done then

    def _loaded(self, stored: Stored) -> None:
        """A run was read."""
        if self._seen is None or stored.id != self._seen[0]:
            return  # another was asked for since
        self._stored = stored
        self._choose()

    def _choose(self) -> None:
        """Ask for the personalisation that the selection names, or the first there is."""
        stored, selection = self._stored, self.selection
        assert stored is not None
        wanted = (selection.setup, selection.patient, selection.method)
        key = (selection.samples, selection.states, selection.repeat, selection.start)
        if (stored.id, wanted, key) == self._asked:
            self._step()
            return
        self._asked = (stored.id, wanted, key)
        self.worker.submit(
            fits.choose, stored, wanted, key, self._listed, done=self._show, failed=self._failed,
            key="patient-film",
        )  # fmt: skip

    @in_one_message
    def _show(self, chosen: fits.Chosen) -> None:
        """Show another personalisation."""
        film = self._film = chosen.film
        self.widgets.visible = True
        for widget, options, value in (
            (self.setup, chosen.setups, chosen.setup),
            (self.patient, chosen.patients, chosen.patient),
            (self.method, chosen.methods, chosen.method),
        ):
            self._fill(widget, {safe.plain(name, 64): name for name in options}, value)
        words = {fits.key_words(key, traced): key for key, traced in chosen.keys}
        self._fill(self.fit, words, chosen.key)
        if film is None:  # another can be chosen
            self.content.visible = False
            replaced = "".join(safe.note_html("info", note) for note in self._replaced(chosen))
            self.message.object = replaced + safe.note_html("error", chosen.why_not)
            return
        if (chosen.run, chosen.setup) != self._built:
            self._built = (chosen.run, chosen.setup)
            self.screen = None
            self.charts.objects = [safe.note("loading", "The charts are being drawn …")]
        if chosen.summary is not None:
            self._listed = (chosen.run, chosen.setup, chosen.method)
            title = f"All patients: {chosen.setup}, {chosen.method}"
            self.cohort.show(chosen.summary, film.problem, title)
        self.cohort.choose(chosen.patient)
        self.player.visible = film.traced and len(film.x) > 1
        notes = [*self._replaced(chosen), *film.notes]
        self.outcome.object = safe.fill(
            "<h2>{words}</h2>", words=film.words(chosen.method)
        ) + "".join(safe.note_html("info", note) for note in notes)
        caption = (
            f"Solutions found for {chosen.patient}: what the fits by {chosen.method} leave open"
        )
        told = chosen.solutions
        self.solutions.object = safe.table_html(told, caption=caption) if len(told) else ""
        if self.screen is not None:
            self.screen.show(film)
        else:  # they take a second: words and lists are there before
            self.worker.later(self._draw, key="patient-charts", failed=self._failed)
        self._step()
        self.message.object, self.content.visible = "", True

    @in_one_message
    def _draw(self) -> None:
        """Make the charts of another setup."""
        film = self._film
        assert film is not None
        pick = lambda run: self._set(step=max(run, 1) - 1)  # noqa: E731
        screen = Screen(film.problem, pick, self.worker)
        screen.show(film)
        self.screen = screen
        self._step()
        # with their data, or the browser complains of empty axes
        self.charts.objects = [self.screen.panel]

    def _replaced(self, chosen: fits.Chosen) -> list[str]:
        """What the selection asks for and is not there, in sentences."""
        lacks = [
            f"{name} {wanted}"
            for name in ("setup", "patient", "method")
            if (wanted := getattr(self.selection, name)) and wanted != getattr(chosen, name)
        ]
        for name, found in zip(("samples", "states", "repeat", "start"), chosen.key, strict=True):
            wanted = getattr(self.selection, name)
            lacks += [f"{name} {wanted}"] if wanted is not None and wanted != found else []
        step = self.selection.step
        if step is not None and chosen.film is not None and step >= len(chosen.film.x):
            lacks.append(f"forward run {step + 1}")
        return [safe.lacking("in this run", lacks)] if lacks else []

    @in_one_message
    def _step(self) -> None:
        """Show the selected run."""
        film = self._film
        if film is None:
            return
        n = len(film.x)
        at = min(self.selection.step or 0, n - 1)
        self._busy = True
        try:
            self.player.end = max(n, 2)  # first, for the value has to lie within
            self.player.value = at + 1
        finally:
            self._busy = False
        self.count.object = (
            safe.fill("<b>Forward run {at} of {n}</b>", at=at + 1, n=n) if film.traced else ""
        )
        if self.screen is not None:
            self.screen.at(at)


def _of_key(key: Any) -> dict[str, int | None]:
    """Values of the selection for one personalisation of a patient."""
    return dict(zip(("samples", "states", "repeat", "start"), key, strict=True))
