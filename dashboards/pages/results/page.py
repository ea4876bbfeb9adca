"""The page Results: the figures of a study, its numbers beside the paper's, runs compared."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import pandas as pd
import panel as pn

from ...kit import safe
from ...kit.choice import MARGIN, RunChoice, label_of, stamp
from ...kit.gallery import gallery, key_of, show
from ...kit.part import spoken, tables_pane
from ...kit.saver import Saver
from ...kit.selection import MOST, Selection
from ...kit.source import Entry, Source
from ...kit.worker import Worker
from ..runs.rows import differences
from .report import COMPARE, Shown, make_file, prepare

#: Seconds between two looks at the numbers of a run that goes on.
PATIENCE = 10.0
NONE = "-"
_GROUP = """
.bk-btn-group { flex-wrap: wrap; } .bk-btn-group .bk-btn { flex: 0 1 auto; }
.bk-btn-group .bk-btn.bk-active { background: var(--accent) !important;
  color: var(--on-accent) !important; }
"""


class ResultsView:
    """Figures and numbers of the chosen runs.

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
        self._shown: list[str] = []  # runs
        self._drawn: tuple[list[str], str, int | None] = ([], "", None)  # runs, part and repeat
        self._busy = False
        self.choice = RunChoice(selection, source)
        self.add = safe.select(
            label="Compare with",
            max_width=440,
            sizing_mode="stretch_width",
            margin=MARGIN,
            options={"–": NONE},
        )
        self.alone = pn.widgets.Button(
            label="This run only", width=120, visible=False, margin=MARGIN
        )
        self.repeat = safe.select(
            label="Repeat", width=90, options={"1": 0}, visible=False, margin=MARGIN
        )
        self.sections = pn.widgets.RadioButtonGroup(
            options={}, stylesheets=[_GROUP], margin=(8, 0), visible=False
        )
        self.message = safe.html("")
        self.legend = safe.html("")
        self.sentence = safe.html("", css=["summary"])
        self.gallery = gallery()
        self.tables = tables_pane()
        self.differences = tables_pane()
        self.saver = Saver(worker, ("csv", "png", "svg", "html"), self._file, "save")
        self._bind()

    def _bind(self) -> None:
        """Let widgets and selection follow each other."""
        self.add.param.watch(self._added, "value")
        self.alone.on_click(self._alone)
        self.repeat.param.watch(self._turned, "value")
        self.sections.param.watch(self._turned, "value")
        self.selection.watch(self.refresh, "runs", "view", "repeat")

    def panel(self) -> Any:
        """The page."""
        self.refresh()
        return pn.Column(
            pn.FlexBox(
                self.choice.widget,
                self.add,
                self.alone,
                self.repeat,
                align_items="flex-end",
                margin=0,
            ),
            self.legend,
            self.sections,
            self.message,
            self.sentence,
            self.gallery,
            self.tables,
            self.saver.panel,
            self.differences,
            sizing_mode="stretch_width",
        )

    def refresh(self) -> None:
        """Bring the page up to date, if it is shown and something changed."""
        if self.selection.page != "results" or self._busy:
            return
        self.choice.offer()
        self._offer_others()
        entries, lost = self.choice.entries()
        if not entries:
            self._clear()
            self._say_empty(lost)
            return
        ids = [entry.id for entry in entries]
        before = self._shown
        if len(before) == 1 < len(ids) and not self.selection.view:
            self.selection.view = COMPARE  # which calls this again
            return
        self._shown = ids
        selection = self.selection
        asked = (selection.view, selection.repeat, bool(selection.runs))
        wanted = (stamp(entries), tuple(lost), *asked)
        if wanted == self._seen or self.choice.too_soon(self._seen, wanted, PATIENCE):
            return
        self._seen = wanted
        if before and before != ids:
            self._clear(keep=True)  # no results of one run under the words of another
        self._show_runs(entries, lost)
        readable = [entry.id for entry in entries if entry.readable]
        if not readable:
            self._clear(keep=True)
            return
        if not self.sentence.object:
            self.message.object = safe.note_html("loading", "The figures are being drawn …")
        self.gallery.loading = True
        self.saver.allow(())  # what is there may be of another part
        self.worker.submit(
            prepare,
            self.source,
            readable,
            self.selection.view,
            self.selection.repeat,
            self.dark,
            done=self._show,
            failed=self._fail,
            key="results",
        )

    def _ids(self) -> list[str]:
        """The runs that the page shows or is about to; not the newest, if that came since."""
        found = [self.source.entry(run) for run in self._shown]
        return [entry.id for entry in found if entry is not None and entry.readable]

    def _offer_others(self) -> None:
        """Offer runs to compare with, those of the same study first."""
        entries, _ = self.choice.entries()
        chosen = {entry.id for entry in entries}
        study = entries[0].info.study if entries else ""
        others = [e for e in self.choice.known() if e.id not in chosen]
        others.sort(key=lambda e: e.info.study != study)
        options = {"–": NONE} | {label_of(e): e.id for e in others}
        self._busy = True
        try:
            if options != self.add.options:
                self.add.options = options
            self.add.value = NONE
        finally:
            self._busy = False
        self.add.disabled = not others or len(entries) >= MOST
        self.alone.visible = len(entries) > 1

    def _added(self, event: Any) -> None:
        """The user chose a further run."""
        if not self._busy and event.new != NONE:
            self.selection.param.update(runs=[*self._ids(), event.new], view=COMPARE)

    def _alone(self, _: Any) -> None:
        """The user wants the first run only."""
        self.selection.runs = self._ids()[:1]

    def _turned(self, *_: Any) -> None:
        """The user chose another part or repeat."""
        if not self._busy:
            repeat = self.repeat.value or None
            pinned = self.choice.pinned(next(iter(self._ids()), ""))
            view = self.sections.value or ""
            self.selection.param.update(view=view, repeat=repeat, **pinned)

    def _say_empty(self, lost: Sequence[str]) -> None:
        """Say that there is nothing to show, and what to do."""
        if lost:
            self.message.object = self.choice.lost_html()
        elif self.source.entries:
            self.message.object = safe.note_html("empty", "No run of this store can be read.")
        else:
            self.message.object = safe.note_html(
                "empty",
                f"{self.source.results} holds no runs as yet. Three quick studies:",
                f"vitolab demo --results {shlex.quote(str(self.source.results))}",
            )

    def _show_runs(self, entries: Sequence[Entry], lost: Sequence[str]) -> None:
        """Say which runs are shown, in their colours, and in what they differ."""
        self.differences.object = ""
        self.legend.object = self.choice.lost_html() + self.choice.newest_html()
        for entry in (e for e in entries if not e.readable):
            why = entry.info.reason or entry.info.status
            self.legend.object += safe.note_html("error", f"{label_of(entry)}: {why}")
        if any(entry.profile == "quick" for entry in entries):
            words = (
                "The quick profile takes too few patients, or functions, to compare with the paper."
            )
            self.legend.object += safe.note_html("info", words)
        going = [e for e in entries if e.info.status in ("running", "interrupted")]
        for entry in going:
            told = entry.info.progress
            far = f", {told.done:,} of {told.total:,}" if told and told.total else ""
            words = f"{label_of(entry)} is {entry.info.status}{far}: what is finished is shown."
            self.legend.object += safe.note_html("stale", words)
        if len(entries) > 1:
            from .compare import swatches

            self.legend.object += swatches({e.id: label_of(e) for e in entries})
            table = differences(entries)
            table.columns = pd.Index([table.columns[0], *(label_of(e) for e in entries)])
            caption = "What differs between the runs" if len(table) else "The runs do not differ"
            self.differences.object = safe.table_html(table, caption=caption)

    def _show(self, shown: Shown) -> None:
        """Show what a job made ready."""
        self._busy = True
        try:
            options = {title: name for name, title in shown.sections.items()}
            if options != self.sections.options:
                self.sections.options = options
            self.sections.value = shown.section
            self.sections.visible = len(options) > 1
            repeats = {str(number + 1): number for number in shown.repeats}
            if repeats != self.repeat.options:
                self.repeat.options = repeats
            repeat = self.selection.repeat or 0
            self.repeat.value = repeat if repeat in shown.repeats else shown.repeats[0]
            self.repeat.visible = len(repeats) > 1
        finally:
            self._busy = False
        self.gallery.loading = False
        if shown.failed:
            self._fail(shown.sentence)
            return
        view = self.selection.view
        lacks = [f"part {view}"] if view not in (*shown.sections, "") else []
        lacks += [f"repeat {repeat}"] if repeat not in shown.repeats else []
        words = safe.lacking("in this run", lacks)
        self.message.object = safe.note_html("info", words) if words else ""
        self.sentence.object = spoken(shown.sentence)
        if shown.section != COMPARE:  # whose colours stand above
            self.sentence.object += key_of(shown.pictures)
        show(shown.pictures, self.gallery, self.worker, "results")
        self.tables.object = shown.tables
        self._drawn = (shown.runs, shown.section, self.selection.repeat)
        pictures = {"png", "svg"} if shown.pictures else set()
        self.saver.allow({"csv", "html"} | pictures)

    def _fail(self, why: str) -> None:
        """Show why there is no figure."""
        self._clear(keep=True)
        going = any(e.info.status != "complete" for e in self.choice.entries()[0])
        self.message.object = safe.note_html("info" if going else "error", why)

    def _clear(self, keep: bool = False) -> None:
        """Show nothing; the runs are kept on demand."""
        self.worker.drop("results")
        self.sentence.object = self.tables.object = self.message.object = ""
        show((), self.gallery, self.worker, "results")
        self.gallery.loading = False
        self.sections.visible = keep and self.sections.visible
        if not keep:
            self._seen = None
            self.legend.object = self.differences.object = ""
        self.saver.allow(())

    def _file(self, kind: str) -> Any:
        """What makes a file of what is shown."""
        return (make_file, self.source, *self._drawn, kind)
