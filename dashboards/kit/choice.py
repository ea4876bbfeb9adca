"""Which runs a page shows: those of the selection, or the newest; and a widget to choose one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from . import safe
from .selection import Selection
from .source import Entry, Source, fingerprint

#: Runs that a widget offers, the newest.
OFFERED = 100
#: Value of the widget where it names no run: the newest is shown, or none is there to show.
NONE = "-"
#: Around a widget in a row that wraps [px].
MARGIN = (4, 12, 4, 0)


def label_of(entry: Entry) -> str:
    """A run in few words, unlike any other; free text."""
    info = entry.info
    when = safe.plain(info.started[:16].replace("T", " "))
    size = entry.profile or ("own size" if entry.readable else info.status)
    tail = entry.info.path.name.rpartition("-")[2]
    name = f"{safe.plain(info.study, 64)} {when}".strip()
    return f"{name}, {size} ({safe.plain(tail, 24)})"


def stamp(entries: Sequence[Entry]) -> tuple[Any, ...]:
    """The same as long as nothing of some runs changed."""
    told = []
    for entry in entries:
        progress = entry.info.progress
        far = None if progress is None else (progress.stage, progress.done)
        told.append((entry.id, entry.info.status, fingerprint(entry.info.path), far))
    return tuple(told)


class RunChoice:
    """The runs that a page shows, and a widget to choose the first of them.

    Parameters
    ----------
    selection : Selection
    source : Source
    studies : sequence of str, optional
        Those whose runs are offered first, and of which the newest is taken.
    within : sequence of str, optional
        Values of the selection that name something within a run: another run has none of it.
    """

    def __init__(
        self,
        selection: Selection,
        source: Source,
        studies: Sequence[str] = (),
        within: Sequence[str] = (),
    ) -> None:
        self.selection, self.source, self.studies, self.within = selection, source, studies, within
        self.widget = safe.select(
            label="Run", max_width=440, sizing_mode="stretch_width", margin=MARGIN
        )
        self._busy = False
        self._when = 0.0
        self.widget.param.watch(self._chosen, "value")

    def known(self) -> list[Entry]:
        """Runs that can be chosen, newest first; those of the studies before others."""
        found = [e for e in self.source.entries if e.id and e.readable]
        if self.studies:
            found.sort(key=lambda e: e.info.study not in self.studies)
        return found[:OFFERED]

    def entries(self) -> tuple[list[Entry], list[str]]:
        """The runs to show, and the identifiers that the store lacks."""
        found = [(run, self.source.entry(run)) for run in self.selection.runs]
        entries = [entry for _, entry in found if entry is not None]
        lost = [run for run, entry in found if entry is None]
        if not found:
            complete = [e for e in self.known() if e.info.status == "complete"]
            entries = (complete or self.known())[:1]
        return entries, lost

    def offer(self) -> None:
        """Bring the widget up to date."""
        entries, _ = self.entries()
        shown = self.known()
        shown += [e for e in entries if e.id not in {k.id for k in shown}]
        options = {label_of(entry): entry.id for entry in shown}
        unnamed = bool(options) and not (self.selection.runs and entries)
        if unnamed:  # a browser would select the first of the others
            label = "not in this store" if self.selection.runs else "the newest"
            options = {label: NONE} | options
        self._busy = True
        try:
            if options != self.widget.options:
                self.widget.options = options
            self.widget.value = NONE if unnamed else entries[0].id if entries else None
            self.widget.disabled = not options
        finally:
            self._busy = False

    def newest_html(self) -> str:
        """HTML that tells which run is shown where none is chosen; empty where one is."""
        entries, _ = self.entries()
        if self.selection.runs or not entries:
            return ""
        words = f"The newest run: {label_of(entries[0])}. Choose one to keep it in the address."
        return safe.fill('<span class="faint">{words}</span>', words=words)

    def lost_html(self) -> str:
        """HTML that tells which chosen runs the store lacks; empty if it has them all."""
        entries, lost = self.entries()
        more = "" if entries else " Choose another run above."
        words = f"Not in this store: {', '.join(lost)}.{more}"
        return safe.note_html("info" if entries else "empty", words) if lost else ""

    def first_html(self) -> str:
        """HTML that tells which of several chosen runs a page of one run shows."""
        entries, _ = self.entries()
        if len(entries) < 2:
            return ""
        words = f"Of {len(entries)} chosen runs this page shows the first: {label_of(entries[0])}."
        return safe.note_html("info", words)

    def pinned(self, run: str) -> dict[str, list[str]]:
        """What puts a run into the address with what the user chose in it.

        Else the newest would take its place, with that choice, as soon as another is complete.
        """
        return {} if self.selection.runs or not run else {"runs": [run]}

    def _chosen(self, event: Any) -> None:
        """The user chose a run: it takes the place of the first."""
        if not self._busy and event.new not in (None, NONE):
            others = [run for run in self.selection.runs[1:] if run != event.new]
            values = {name: self.selection.param[name].default for name in self.within}
            self.selection.param.update(runs=[event.new, *others], **values)

    def too_soon(self, seen: Any, wanted: Any, patience: float) -> bool:
        """Whether nothing but the progress of a run changed, within some seconds."""
        now = time.monotonic()
        same = seen is not None and seen[1:] == wanted[1:]
        same = same and [s[:2] for s in seen[0]] == [w[:2] for w in wanted[0]]
        if same and now - self._when < patience:
            return True
        self._when = now
        return False
