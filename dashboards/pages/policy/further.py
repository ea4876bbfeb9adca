"""What stands below the plane of the page Policy: how the values were found, and a map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn

from ...kit import safe
from ...kit.choice import MARGIN
from ...kit.gallery import gallery, show
from ...kit.part import spoken
from ...kit.selection import Selection
from ...kit.source import Source
from ...kit.worker import Worker
from .explain import Shown, ShownFurther, prepare_further
from .learned import Learned


class Further:
    """How the values of a policy were found, and the policy over parameters of one function.

    Parameters
    ----------
    selection : Selection
        Whose patient is the function.
    source : Source
    worker : Worker
    choose : callable
        Takes what the user chose, as values of the selection.
    dark : bool
    """

    def __init__(
        self,
        selection: Selection,
        source: Source,
        worker: Worker,
        choose: Callable[[dict[str, Any]], None],
        dark: bool,
    ) -> None:
        self.selection, self.source, self.worker = selection, source, worker
        self._choose, self._dark = choose, dark
        self._busy = False
        self._known: Learned | None = None  # what is shown, or about to be
        self._patient = ""
        self.function = safe.select(
            label="Function", width=120, margin=MARGIN, options=[], visible=False
        )
        self.note = safe.html("", css=["further"])
        self.gallery = gallery()
        self.panel = pn.Column(
            safe.html("<h2>How the values were found, and the policy over parameters</h2>"),
            self.function,
            self.note,
            self.gallery,
            sizing_mode="stretch_width",
            margin=0,
        )
        self.function.param.watch(lambda event: self._chosen(event.new), "value")

    def _chosen(self, function: str) -> None:
        """The user chose a function."""
        if not self._busy:
            self._choose({"patient": function})

    def show(self, shown: Shown) -> None:
        """Show what belongs to the policy of a plane, unless that is shown."""
        if self._known is shown.known and self._patient == self.selection.patient:
            return
        self._known, self._patient = shown.known, self.selection.patient
        self.worker.submit(
            prepare_further,
            self.source,
            shown.run,
            shown.known,
            self.selection.patient,
            self._dark,
            done=self._show,
            failed=self._not_shown,
            key="policy-further",
            pool="long",
        )

    def _not_shown(self, why: str) -> None:
        """Say why there is nothing to show."""
        show((), self.gallery, self.worker, "further")
        self.note.object = safe.note_html("error", why)

    def clear(self) -> None:
        """Show nothing."""
        self._known, self.note.object = None, ""
        self.worker.drop("policy-further")
        show((), self.gallery, self.worker, "further")

    def _show(self, shown: ShownFurther) -> None:
        """Show what a job made ready."""
        self._busy = True
        try:
            if shown.functions:
                self.function.param.update(options=shown.functions, value=shown.function)
        finally:
            self._busy = False
        self.function.visible = bool(shown.functions)
        self.note.object = spoken(shown.sentence)
        show(shown.pictures, self.gallery, self.worker, "further")
