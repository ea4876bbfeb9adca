"""The page Runs: all stored and running studies, to find, to watch and to compare."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cache
from typing import Any

import panel as pn

from vitolab.version import code_version

from ...kit import safe
from ...kit.selection import MOST, Selection
from ...kit.source import Entry, Source
from ...kit.table import Table
from ...kit.worker import Worker
from .rows import COLUMNS, FIELDS, STATUS, compared, haystack, row

_version = cache(code_version)  # of the code that serves, which does not change
#: Runs whose size and results are read at a time, the newest first.
BATCH = 50
ALL = "all"


class RunsView:
    """All stored and running studies.

    Parameters
    ----------
    selection : Selection
    source : Source
    worker : Worker
    """

    def __init__(self, selection: Selection, source: Source, worker: Worker) -> None:
        self.selection, self.source, self.worker = selection, source, worker
        self._seen: tuple[Entry, ...] | None = None
        self._busy = False  # what changes now was not changed by the user
        self.search = pn.widgets.TextInput(
            label="Search", placeholder="study, status, parameter …", width=220
        )
        self.study = safe.select(label="Study", options={"all studies": ALL}, width=190)
        self.status = safe.select(label="Status", width=150)
        self.status.options = {"any status": ALL} | {v: k for k, v in STATUS.items()}
        self.clear = pn.widgets.Button(label="Clear filters", width=110)
        self.table = Table(COLUMNS, most=MOST, caption="Runs, newest first", margin=(8, 0))
        self.message = safe.html("")
        self.detail = safe.html("")
        self.actions = {
            page: pn.widgets.Button(label=name, width=150, color=kind, disabled=True)
            for page, name, kind in (
                ("results", "Results", "primary"),
                ("policy", "Policy", "default"),
                ("patient", "Patients", "default"),
            )
        }
        self.none = pn.widgets.Button(label="Choose none", width=120, disabled=True)
        self._bind()

    def _bind(self) -> None:
        """Let widgets and selection follow each other."""
        self._read_filters()
        self.search.param.watch(self._filtered, "value_input")
        self.study.param.watch(self._filtered, "value")
        self.status.param.watch(self._filtered, "value")
        self.clear.on_click(lambda _: self.selection.param.update(study="", status="", search=""))
        self.none.on_click(lambda _: self.selection.param.update(runs=[]))
        for page, button in self.actions.items():
            button.on_click(lambda _, page=page: self.selection.param.update(page=page))
        self.table.param.watch(self._chosen, "chosen")
        self.table.param.watch(self._sorted, "order")
        self.selection.watch(self._read_filters, "study", "status", "search", "sort")
        self.selection.watch(self._show_chosen, "runs")

    def panel(self) -> Any:
        """The page."""
        self.refresh()
        self._show_chosen()
        filters = pn.FlexBox(
            self.search, self.study, self.status, self.clear, align_items="flex-end", margin=0
        )
        buttons = pn.FlexBox(*self.actions.values(), self.none, margin=0)
        return pn.Column(
            filters, self.message, self.table, buttons, self.detail, sizing_mode="stretch_width"
        )

    def refresh(self) -> None:
        """Show what the store holds now: changed cells alone, as long as no run comes or goes."""
        if self._seen is not self.source.entries:
            self._seen = self.source.entries
            self._show()
        unknown = [
            entry.id
            for entry in self.source.entries
            if entry.id and entry.info.status == "complete" and entry.facts is None
        ]
        if unknown and not self.worker.is_busy("facts"):
            self.worker.submit(
                self.source.learn_facts,
                unknown[:BATCH],
                done=lambda _: self.refresh(),
                key="facts",
            )

    def _read_filters(self) -> None:
        """Take the filters and the order from the selection."""
        self._busy = True
        try:
            if self.selection.search != self.search.value_input:
                self.search.value = self.search.value_input = self.selection.search
            self._offer_studies()
            known = self.selection.status in STATUS
            self.status.value = self.selection.status if known else ALL
            field, _, way = self.selection.sort.partition(",")
            valid = field in FIELDS and way in ("asc", "desc")
            self.table.order = self.selection.sort if valid else ""
        finally:
            self._busy = False
        self._show()

    def _offer_studies(self) -> None:
        """Offer the studies of the store, and the one that the address asks for."""
        names = sorted({safe.plain(e.info.study, 64) for e in self.source.entries} - {""})
        if self.selection.study and self.selection.study not in names:
            names.append(self.selection.study)
        options = {"all studies": ALL} | {name: name for name in names if name != ALL}
        if options != self.study.options:
            self.study.options = options
        self.study.value = self.selection.study or ALL

    def _filtered(self, *_: Any) -> None:
        """The user changed a filter."""
        if not self._busy:
            chosen = {"study": self.study.value, "status": self.status.value}
            self.selection.param.update(
                search=self.search.value_input.strip(),
                **{name: "" if value == ALL else value for name, value in chosen.items()},
            )

    def _sorted(self, event: Any) -> None:
        """The user changed the order."""
        if not self._busy:
            self.selection.sort = event.new

    def _chosen(self, event: Any) -> None:
        """The user chose runs; those that a filter hides stay chosen."""
        if not self._busy:
            self.selection.runs = list(event.new)[:MOST]

    def _show(self) -> None:
        """Bring the table up to date."""
        if self._busy:
            return
        self._busy = True
        try:
            self._offer_studies()
            entries = self._matching()
            self.table.show([row(entry) for entry in entries])
            self._say(entries)
        finally:
            self._busy = False
        self._show_detail()

    def _matching(self) -> list[Entry]:
        """Runs that the filters let through, newest first."""
        study, status = self.selection.study, self.selection.status
        words = self.selection.search.lower().split()
        return [
            entry
            for entry in self.source.entries
            if (not study or safe.plain(entry.info.study, 64) == study)
            and (status not in STATUS or entry.info.status == status)
            and (not words or all(word in haystack(entry) for word in words))
        ]

    def _say(self, entries: Sequence[Entry]) -> None:
        """Say what the table cannot: that there is nothing, or not all."""
        total = len(self.source.entries)
        self.table.visible = bool(entries)
        if not total:
            self.message.object = safe.note_html(
                "empty",
                f"{self.source.results} holds no runs as yet; this page shows them as they come. "
                "Three quick studies, in about three minutes:",
                f"vitolab demo --results {shlex.quote(str(self.source.results))}",
            )
        elif not entries:
            self.message.object = safe.note_html("empty", f"None of {total} runs matches.")
        else:
            shown = f"{total:,} runs"
            shown = f"{len(entries):,} of {shown}" if len(entries) < total else shown
            words = f"{shown}. Choose up to {MOST} to look at or to compare."
            if all(entry.published for entry in self.source.entries):
                folder = self.source.results
                words += f" They came with the package: {folder} holds no runs of its own yet."
            self.message.object = safe.fill('<span class="faint">{words}</span>', words=words)

    def _show_chosen(self) -> None:
        """The choice changed."""
        self._busy = True
        try:
            self.table.chosen = list(self.selection.runs)
        finally:
            self._busy = False
        self._show_detail()

    def _show_detail(self) -> None:
        """Show what was chosen: one run in full, of several what differs."""
        found = [(run, self.source.entry(run)) for run in self.selection.runs]
        entries = [entry for _, entry in found if entry is not None]
        lost = [run for run, entry in found if entry is None]
        ready = any(entry.readable for entry in entries)
        many = len(entries) > 1
        for button in self.actions.values():
            button.disabled = not ready
        self.actions["results"].label = f"Compare {len(entries)} runs" if many else "Results"
        self.none.disabled = not self.selection.runs
        markup = ""
        if lost:
            markup += safe.note_html("info", f"Not in this store: {', '.join(lost)}.")
        if entries:
            caption = "What differs" if many else "The chosen run"
            markup += f"<h2>{caption}</h2>{safe.table_html(compared(entries))}"
            markup += "".join(_how_to_go_on(entry, self.source) for entry in entries)
        if markup != self.detail.object:
            self.detail.object = markup


def _how_to_go_on(entry: Entry, source: Source) -> str:
    """What to do about a run that did not end well."""
    info = entry.info
    if info.status not in ("failed", "interrupted") or not entry.profile:
        return ""
    seed = f" --seed {info.seed}" if info.seed else ""
    command = (
        f"vitolab run {info.study} --profile {entry.profile}{seed} "
        f"--results {shlex.quote(str(source.results))}"
    )
    words = f"{entry.id}: the finished parts are kept, this command goes on from there:"
    if info.version != _version(info.study):
        words = f"{entry.id}: by another version of the code; this command begins anew with this:"
    return safe.note_html("info", words, command)
