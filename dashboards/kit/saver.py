"""Buttons that save what a page shows: the files are made by the worker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import panel as pn

from . import safe
from .choice import MARGIN
from .export import Download
from .worker import Worker

_BUTTONS = {
    "csv": ("Save CSV", 100),
    "png": ("Save PNG", 100),
    "svg": ("Save SVG", 100),
    "html": ("Save as a page (HTML)", 180),
}


class Saver:
    """Buttons for some kinds of files.

    Parameters
    ----------
    worker : Worker
    kinds : sequence of str
    make : callable
        Called with a kind; gives the function, and its arguments, that makes name and content.
    key : str
        For the worker.
    """

    def __init__(
        self,
        worker: Worker,
        kinds: Sequence[str],
        make: Callable[[str], tuple[Callable[..., tuple[str, bytes]], *tuple[Any, ...]]],
        key: str,
    ) -> None:
        self.worker, self.make, self.key = worker, make, key
        self._allowed: Collection[str] = ()
        self.message = safe.html("")
        self.download = Download(width=0, height=0, margin=0)
        self.buttons = {}
        for kind in kinds:
            label, width = _BUTTONS[kind]
            button = pn.widgets.Button(label=label, width=width, disabled=True, margin=MARGIN)
            button.on_click(partial(self._asked, kind))
            self.buttons[kind] = button
        self.panel = pn.Column(
            pn.FlexBox(*self.buttons.values(), margin=(8, 0)),
            self.message,
            self.download,
            sizing_mode="stretch_width",
            margin=0,
        )

    def allow(self, kinds: Collection[str]) -> None:
        """Say which kinds can be saved now."""
        self._allowed = kinds
        self.message.object = ""
        for kind, button in self.buttons.items():
            button.disabled = kind not in kinds

    def _asked(self, kind: str, _: Any) -> None:
        """A button was pressed."""
        self.save(kind)

    def save(self, kind: str) -> None:
        """Make a file and hand it to the browser."""
        for button in self.buttons.values():
            button.disabled = True
        self.message.object = safe.note_html("loading", "The file is being made …")

        def done(file: tuple[str, bytes]) -> None:
            self.allow(self._allowed)
            self.message.object = safe.note_html("info", f"{file[0]} was handed to the browser.")
            self.download.send(*file)

        def failed(why: str) -> None:
            self.allow(self._allowed)
            self.message.object = safe.note_html("error", why)

        self.worker.submit(*self.make(kind), done=done, failed=failed, key=self.key)
