"""The page Policy: the states, their values and actions, and how the values were found."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import panel as pn

from ...kit import safe
from ...kit.choice import MARGIN, RunChoice, label_of, stamp
from ...kit.gallery import Drawing, gallery, show, title_of
from ...kit.part import spoken, tables_pane
from ...kit.saver import Saver
from ...kit.selection import Selection
from ...kit.source import Source
from ...kit.worker import Worker
from .explain import (
    Shown,
    ShownState,
    make_file,
    prepare,
    prepare_state,
)
from .further import Further
from .learned import STUDIES

#: Values of the selection that name something of one policy.
WITHIN = ("setup", "state", "action", "objectives", "patient")
COLORS = {"value": "value", "times seen": "visits", "best action": "action"}
MARKS = {"where it leads": "arrows", "best action": "labels", "nothing": "plain"}
RANGES = {"all states": "all", "around success": "near"}
BEST = -1


class PolicyView:
    """The policy that a run stored.

    Parameters
    ----------
    selection : Selection
    source : Source
    worker : Worker
    """

    def __init__(self, selection: Selection, source: Source, worker: Worker) -> None:
        self.selection, self.source, self.worker = selection, source, worker
        self.dark = pn.config.theme == "dark"
        self.shown: Shown | None = None
        self._seen: Any = None
        self._busy = False
        self.choice = RunChoice(selection, source, STUDIES, WITHIN)

        def select(label: str, width: int, **options: Any) -> Any:
            return safe.select(label=label, width=width, margin=MARGIN, **options)

        self.setup = select("Setup", 170, options=[])
        self.across = select("Across", 200, options={})
        self.up = select("Up", 200, options={})
        self.color = select("Colour", 130, options=COLORS)
        self.range = select("Range", 140, options=RANGES)
        self.marks = select("At each state", 150, options=MARKS)
        self.state = pn.widgets.IntInput(
            label="State", value=0, start=0, end=0, width=110, margin=MARGIN
        )
        self.action = select("Action", 290, options={"the best": BEST})
        self.message, self.lacks, self.notes = safe.html(""), safe.html(""), safe.html("")
        self.plane_title = safe.html("")
        self.plane = Drawing(sizing_mode="stretch_width", height=500, margin=0)
        self.plane_note = safe.html("", css=["summary"])
        self.plane_table = tables_pane()
        self.state_note = safe.html("", css=["state"])
        self.state_plot = gallery()
        self.state_tables = tables_pane()
        self.further = Further(selection, source, worker, self._changed, self.dark)
        self.saver = Saver(worker, ("csv", "png", "svg"), self._file, "save-policy")
        self.content = pn.Column(sizing_mode="stretch_width", margin=0, visible=False)
        self._bind()

    def _bind(self) -> None:
        """Let widgets and selection follow each other."""
        for widget, act in (
            (self.setup, lambda v: {"setup": v, "state": None, "action": None, "objectives": []}),
            (self.across, lambda v: {"objectives": [v, self.up.value]}),
            (self.up, lambda v: {"objectives": [self.across.value, v]}),
            (self.color, lambda v: {"color": v}),
            (self.range, lambda v: {"view": f"{v},{self.marks.value}"}),
            (self.marks, lambda v: {"view": f"{self.range.value},{v}"}),
            (self.state, lambda v: {"state": v, "action": None}),
            (self.action, lambda v: {"action": None if v == BEST else v}),
        ):
            widget.param.watch(lambda event, act=act: self._changed(act(event.new)), "value")
        self.selection.watch(self.refresh, "runs", "setup", "objectives", "color", "view")
        self.selection.watch(self._show_state, "state", "action")
        self.selection.watch(self._show_further, "patient")
        self.plane.param.watch(self._tapped, "tapped")

    def _changed(self, values: dict[str, Any]) -> None:
        """The user changed a widget."""
        if not self._busy:
            run = self.shown.run if self.shown is not None else ""
            self.selection.param.update(**values, **self.choice.pinned(run))

    def panel(self) -> Any:
        """The page."""
        half = {"sizing_mode": "stretch_width", "margin": 0}
        styles = {"flex": "1 1 340px", "min-width": "0"}
        left = pn.Column(
            self.plane_note,
            self.plane_title,
            self.plane,
            self.plane_table,
            self.saver.panel,
            styles=styles,
            **half,
        )
        right = pn.Column(
            pn.FlexBox(self.state, self.action, margin=0),
            self.state_note,
            self.state_plot,
            self.state_tables,
            styles=styles,
            **half,
        )
        both = gallery()
        both.objects = [left, right]
        self.content.objects = [
            pn.FlexBox(
                self.setup,
                self.across,
                self.up,
                self.color,
                self.range,
                self.marks,
                margin=0,
                align_items="flex-end",
            ),
            both,
            self.further.panel,
        ]
        self.refresh()
        return pn.Column(
            self.choice.widget,
            self.notes,
            self.message,
            self.lacks,
            self.content,
            sizing_mode="stretch_width",
        )

    def refresh(self) -> None:
        """Bring the page up to date, if it is shown and something changed."""
        if self.selection.page != "policy" or self._busy:
            return
        self.choice.offer()
        entries, lost = self.choice.entries()
        selection = self.selection
        if not entries:
            self._empty(lost)
            return
        entry = entries[0]
        asked = (
            selection.setup,
            tuple(selection.objectives),
            selection.color,
            selection.view,
        )
        wanted = (stamp([entry]), len(entries), tuple(lost), bool(selection.runs), asked)
        if wanted == self._seen:
            self._show_further()  # a function may have been chosen on another page
            return
        self._seen = wanted
        self._note()
        if not entry.readable:
            self._fail(f"{label_of(entry)}: {entry.info.reason or entry.info.status}")
            return
        if self.shown is not None and self.shown.run != entry.id:
            self._hide()
        if self.shown is None:
            self.message.object = safe.note_html("loading", "The policy is being read …")
        self.worker.submit(
            prepare,
            self.source,
            entry.id,
            *asked,
            self.dark,
            done=self._show,
            failed=self._fail,
            key="policy",
        )

    def _note(self) -> None:
        """Say which run is shown where that is not plain."""
        self.notes.object = (
            self.choice.lost_html() + self.choice.first_html() + self.choice.newest_html()
        )

    def _empty(self, lost: list[str]) -> None:
        """Say that there is nothing to show, and what to do."""
        self._seen = None
        self._hide()
        self.notes.object = ""
        if lost:
            self.message.object = self.choice.lost_html()
            return
        self.message.object = safe.note_html(
            "empty",
            "There is no run with a policy as yet. A quick study of Rosenbrock functions:",
            f"vitolab run rosenbrock-grid --results {shlex.quote(str(self.source.results))}",
        )

    def _hide(self) -> None:
        """Show nothing: what is there belongs to another policy."""
        self.shown, self.content.visible = None, False
        self.worker.drop("policy", "policy-state")
        self.state_note.object = self.state_tables.object = self.lacks.object = ""
        show((), self.state_plot, self.worker, "state")
        self.further.clear()

    def _fail(self, why: str) -> None:
        """Show why there is no policy."""
        self._hide()
        self.message.object = safe.note_html("empty", why)

    def _show(self, shown: Shown) -> None:
        """Show what a job made ready; what is told of the states stays with a change of colour."""
        is_new = self.shown is None or self.shown.known is not shown.known
        self.shown = shown
        self._busy = True
        try:
            self._offer(shown)
        finally:
            self._busy = False
        self.message.object = ""
        self.plane_note.object = spoken(shown.sentence)
        self.plane_title.object = title_of(shown.plane)
        self.plane.param.update(item=shown.plane.item, height=shown.plane.height)
        self.plane_table.object = shown.table
        self.saver.allow(("csv", "png", "svg"))
        self.content.visible = True
        self._show_state(again=is_new)
        self._show_further()

    def _offer(self, shown: Shown) -> None:
        """Bring the widgets up to date."""
        known = shown.known
        names = {o.label: o.name for o in known.problem.objectives}
        for widget, options, value in (
            (self.setup, shown.setups, known.setup),
            (self.across, names, known.problem.objectives[shown.axes[0]].name),
            (self.up, names, known.problem.objectives[shown.axes[1]].name),
            (self.color, {k: v for k, v in COLORS.items() if v in shown.colors}, shown.color),
            (self.range, RANGES, "near" if shown.near else "all"),
            (self.marks, {k: v for k, v in MARKS.items() if v in shown.all_marks}, shown.marks),
            (self.action, {"the best": BEST} | {w: i for i, w in enumerate(known.actions)}, None),
        ):
            if widget.options != options:
                widget.options = options
            if value is not None and options:
                widget.value = value
        self.state.end = known.states.n_states - 1

    def _at(self) -> tuple[int, int]:
        """State and action that are shown."""
        assert self.shown is not None
        known = self.shown.known
        wanted = self.selection.state
        state = self.shown.first if wanted is None or wanted >= known.states.n_states else wanted
        action = self.selection.action
        if action is None or action >= known.problem.n_actions:
            action = int(known.policy.greedy[state])
        return state, action

    def _lacks(self) -> list[str]:
        """What the selection asks for and this policy has not."""
        assert self.shown is not None
        known, selection = self.shown.known, self.selection
        has = {
            "setup": [*self.shown.setups, *(f"{name}, restart" for name in self.shown.setups), ""],
            "state": [*range(known.states.n_states), None],
            "action": [*range(known.problem.n_actions), None],
            "color": [*self.shown.colors, ""],
        }
        asked = [(name, getattr(selection, name)) for name in has]
        objectives = [o.name for o in known.problem.objectives]
        return [f"{name} {value}" for name, value in asked if value not in has[name]] + [
            f"objective {name}" for name in selection.objectives if name not in objectives
        ]

    def _show_state(self, again: bool = True) -> None:
        """Show the actions of the chosen state."""
        if self.shown is None:
            return
        words = safe.lacking("in this policy", self._lacks())
        self.lacks.object = safe.note_html("info", words) if words else ""
        state, action = self._at()
        self._busy = True
        try:
            self.state.value = state
            chosen = self.selection.action
            self.action.value = action if chosen == action else BEST
        finally:
            self._busy = False
        self.plane.marks = self.shown.marks_at(state, action)
        if not again:
            return
        self.worker.submit(
            prepare_state,
            self.shown.known,
            state,
            action,
            self.dark,
            done=self._state_shown,
            failed=self._state_not_shown,
            key="policy-state",
        )

    def _state_shown(self, shown: ShownState) -> None:
        """Show what a job made ready."""
        self.state_note.object = spoken(shown.sentence)
        show(shown.pictures, self.state_plot, self.worker, "state")
        self.state_tables.object = shown.tables

    def _state_not_shown(self, why: str) -> None:
        """Say why nothing is told of the state."""
        self.state_note.object, self.state_tables.object = safe.note_html("error", why), ""
        show((), self.state_plot, self.worker, "state")

    def _show_further(self) -> None:
        """Show how the values were found, and the policy over parameters."""
        if self.shown is not None and self.selection.page == "policy":
            self.further.show(self.shown)

    def _tapped(self, event: Any) -> None:
        """The user chose a place in the plane: the state that is nearest to it."""
        shown, place = self.shown, (event.new.get("x"), event.new.get("y"))
        if shown is None or not all(isinstance(number, int | float) for number in place):
            return
        rows = np.flatnonzero(shown.inside)
        if rows.size:
            where = shown.known.states.centroids[rows][:, list(shown.axes)]
            distance = np.linalg.norm((where - place) / shown.half, axis=1)
            self._changed({"state": int(rows[np.argmin(distance)]), "action": None})

    def _file(self, kind: str) -> Any:
        """What makes a file of the plane."""
        shown = self.shown
        assert shown is not None
        return make_file, shown, kind
