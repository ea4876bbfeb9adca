"""The page Your own model: how long one run takes, and what a budget of hours buys."""

from __future__ import annotations

from typing import Any

import panel as pn

from ...kit import safe
from ...kit.choice import MARGIN, stamp
from ...kit.gallery import gallery, show
from ...kit.part import spoken
from ...kit.selection import Selection
from ...kit.source import Source
from ...kit.worker import Worker
from .asked import LABELS, UNITS, command_for_runs, commands, plan_of
from .estimate import Estimate, estimate, runs_of

INTRODUCTION = (
    "When one forward run takes minutes, do not explore first: personalise one patient after the "
    "other, and each run teaches the agent something for the next. How far does your time reach?"
)
WIDTHS = {"run_time": 170, "n_patients": 110, "n_parameters": 110, "n_workers": 120, "hours": 120}


class OwnView:
    """What a budget of hours buys.

    Parameters
    ----------
    selection : Selection
    source : Source
    worker : Worker
    """

    def __init__(self, selection: Selection, source: Source, worker: Worker) -> None:
        self.selection, self.source, self.worker = selection, source, worker
        self.dark = pn.config.theme == "dark"
        self._seen: Any = None  # what the page shows, or is about to
        self._busy = False
        self.inputs = {
            name: pn.widgets.TextInput(label=label, width=WIDTHS[name], margin=MARGIN)
            for name, label in LABELS.items()
        }
        self.unit = safe.select(label="Unit", options=list(UNITS), width=80, margin=MARGIN)
        self.message, self.sentence = safe.html(""), safe.html("", css=["summary"])
        self.lacking = safe.html("")
        self.gallery, self.table = gallery(), safe.html("")
        self.notes, self.commands = safe.html(""), safe.html("")
        for name, widget in (*self.inputs.items(), ("unit", self.unit)):
            widget.param.watch(lambda event, name=name: self._changed(name, event.new), "value")
        selection.watch(self.refresh, *LABELS, "unit")

    def panel(self) -> Any:
        """The page."""
        self.refresh()
        first, *others = self.inputs.values()
        return pn.Column(
            safe.html(f"<div class='faint'>{INTRODUCTION}</div>"),
            pn.FlexBox(first, self.unit, *others, align_items="flex-end", margin=0),
            self.message,
            self.sentence,
            self.lacking,
            self.gallery,
            self.table,
            self.notes,
            self.commands,
            sizing_mode="stretch_width",
        )

    def refresh(self) -> None:
        """Bring the page up to date, if it is shown and something changed."""
        if self.selection.page != "own" or self._busy:
            return
        typed = {name: getattr(self.selection, name) for name in LABELS}
        unit = self.selection.unit if self.selection.unit in UNITS else "min"
        runs = runs_of(self.source.entries)
        wanted = (tuple(typed.values()), unit, stamp(runs))
        if wanted == self._seen:
            return
        self._seen = wanted
        self._busy = True
        try:
            for name, widget in self.inputs.items():
                widget.value = typed[name]
            self.unit.value = unit
        finally:
            self._busy = False
        try:
            plan = plan_of(typed, unit)
        except ValueError as error:
            self._clear(str(error))
            return
        if not self.sentence.object:
            self.message.object = safe.note_html("loading", "Stored runs are being read …")
        given = commands(plan, self.source.results)
        words = f"{typed['run_time'].strip()} {unit}"

        def done(found: Estimate) -> None:
            self._show(found, given, *command_for_runs(plan, self.source.results, found.nearest))

        self.worker.submit(
            estimate, self.source, runs, plan, words, self.dark,
            done=done, failed=self._clear, key="own",
        )  # fmt: skip

    def _changed(self, name: str, value: str) -> None:
        """The user typed a number, or chose a unit."""
        if not self._busy:
            self.selection.param.update(**{name: value})

    def _show(self, found: Estimate, given: list[str], more: str, duration: str) -> None:
        """Show what a job made ready."""
        self.message.object = ""
        self.sentence.object = spoken(found.sentence)
        self.lacking.object = ""
        if more and found.nearest is None:
            words = (
                "There is no complete run of from-nothing in this folder, from which to estimate "
                f"how many patients that solves; this command makes one in {duration}:"
            )
            self.lacking.object = safe.note_html("empty", words, more)
        elif more:
            words = "This command makes stored runs whose number of parameters is nearer to yours:"
            self.lacking.object = safe.note_html("info", words, more)
        show(found.pictures, self.gallery, self.worker, "own")
        caption = "Methods, estimated from stored runs"
        table = found.table.dropna(axis="columns", how="all")
        self.table.object = safe.table_html(table, caption=caption) if len(table) else ""
        # whole, for one that is cut is none; each by itself, for a click selects it
        blocks = [f"<pre><code>{safe.text(each, 10_000)}</code></pre>" for each in given]
        self.commands.object = f"<h3>Commands for that</h3>{''.join(blocks)}"
        self.notes.object = f"<div class='faint'>{spoken(chr(10).join(found.notes))}</div>"

    def _clear(self, why: str) -> None:
        """Say why there is no answer, and show none."""
        self.worker.drop("own")
        show((), self.gallery, self.worker, "own")
        for pane in (self.sentence, self.lacking, self.table, self.commands, self.notes):
            pane.object = ""
        self.message.object = safe.note_html("error", why)
