"""The frame of all pages: header, navigation, refresh, and the states that any page can be in."""

from __future__ import annotations

import importlib
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import panel as pn
from panel.io.resources import LOCAL_DIST

from . import safe
from .address import sync
from .pace import Pace
from .selection import PAGES, Selection
from .source import Source, shared
from .worker import Worker

pn.extension(sizing_mode="stretch_width", design="native")

SYNTHETIC = "patients are synthetic, but for those of your own files"
POLL = 100  # ms between two looks for finished work
REFRESH = 2.0  # s between two listings of the store
STALE = 15.0  # s without a listing, after which the page says so
_PAGE = Path(__file__).with_name("frame.html")
_NAVIGATION = """
.bk-btn-group { flex-wrap: wrap; }
.bk-btn-group .bk-btn { background: transparent !important; border: 0; border-radius: 0;
  color: var(--ink); border-bottom: 3px solid transparent; padding: 6px 4px; }
.bk-btn-group .bk-btn:hover { background: var(--sheet); }
.bk-btn-group .bk-btn.bk-active { border-bottom-color: var(--accent); font-weight: 700;
  box-shadow: none !important; background: transparent !important; }
.bk-btn:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
"""
COOKIE = "vitolab_theme"


class Frame:
    """Header, navigation and the pages of one session.

    Parameters
    ----------
    selection : Selection
    source : Source
    worker : Worker
    """

    def __init__(self, selection: Selection, source: Source, worker: Worker) -> None:
        self.selection, self.source, self.worker = selection, source, worker
        self.views: dict[str, Any] = {}
        self._pages: dict[str, Any] = {}
        self._next = 0.0
        self.pace = Pace(self.tick)
        self.header = safe.html("", css=["store"])
        self.notice = safe.html("", css=["notices"])
        self.navigation = pn.widgets.RadioButtonGroup(
            options={title: page for page, title in PAGES.items()},
            value=selection.page,
            color="default",
            css_classes=["pages"],
            stylesheets=[_NAVIGATION],
            sizing_mode="stretch_width",
            margin=0,
        )
        self.body = pn.Column(sizing_mode="stretch_width", margin=0, css_classes=["body"])
        self.navigation.param.watch(self._turn, "value")
        selection.watch(self._turned, "page")
        self.show_header()

    def _turn(self, event: Any) -> None:
        """Go to the page of the navigation; the patient of a game is none of a stored run."""
        game = {}
        if self.selection.page == "teach" != event.new:
            game = {"model": "", "patient": ""}
        elif event.new == "teach" in self.views:
            game = self.views["teach"].address
        self.selection.param.update(page=event.new, **game)

    def _turned(self) -> None:
        """Another page is selected."""
        if self.pace.is_free:
            self.show()
            self.pace.ask()
        else:
            self.worker.later(self.show, "page", failed=self._not_shown)

    def _not_shown(self, why: str) -> None:
        """Say why a page is not shown."""
        self.notice.object = safe.note_html("error", why)

    def show(self) -> None:
        """Show the page that is selected; it is built when it is first shown."""
        page = self.selection.page
        self.navigation.value = page
        if page not in self._pages:
            self._pages[page] = self._build(page)
            self.body.append(self._pages[page])
        self.show_notice()
        self._refresh_view()
        for name, shown in self._pages.items():
            shown.visible = name == page

    def _build(self, page: str) -> Any:
        """Page of a name, or what hinders it."""
        try:
            module = importlib.import_module(f"..pages.{page}.page", __package__)
            view = getattr(module, f"{page.capitalize()}View")
            self.views[page] = view(self.selection, self.source, self.worker)
            content = self.views[page].panel()
        except ModuleNotFoundError as error:
            if not str(error.name).endswith(f"pages.{page}.page"):
                raise
            content = safe.note("empty", "this page is not installed")
        except Exception as error:  # a page that fails leaves the others usable
            traceback.print_exception(error, file=sys.stderr)
            content = safe.note("error", f"this page cannot be shown: {error}")
        return pn.Column(content, sizing_mode="stretch_width", margin=0)

    def tick(self) -> None:
        """Hand over finished work, and list the store from time to time."""
        if self.pace.is_free and self.worker.poll():
            self.pace.ask()
        self._show_age()
        now = time.monotonic()
        if now >= self._next and not self.worker.is_busy("listing"):
            self._next = now + REFRESH
            self.worker.submit(
                self.source.refresh,
                done=self._listed,
                failed=self._not_listed,
                key="listing",
                pool="listing",
            )

    def _listed(self, _: Any) -> None:
        """Show what the store holds now."""
        self.show_header()
        self._refresh_view()

    def _not_listed(self, why: str) -> None:
        """Say that the store cannot be listed."""
        self.source.problem = why
        self.show_header()

    def _refresh_view(self) -> None:
        """Let the visible page look at the store again."""
        refresh = getattr(self.views.get(self.selection.page), "refresh", None)
        if refresh is not None:
            try:
                refresh()
            except Exception as error:
                traceback.print_exception(error, file=sys.stderr)
                self.notice.object = safe.note_html("error", f"not refreshed: {error}")

    def show_header(self) -> None:
        """Say which store, how many runs, and when that was looked at."""
        source = self.source
        running = sum(entry.info.status == "running" for entry in source.entries)
        n = len(source.entries)
        when = datetime.fromtimestamp(source.listed, UTC) if source.listed else None
        self.header.object = safe.fill(
            '<div class="row"><span class="path">{path}</span><span>{runs}</span>'
            '<span class="faint">{updated}</span><span class="faint">{patients}</span></div>',
            path=source.results,
            runs=f"{n:,} run{'' if n == 1 else 's'}{f', {running} running' if running else ''}",
            patients=SYNTHETIC,
            updated=f"updated {when:%H:%M:%S} UTC" if when else "not read as yet",
        )
        self._show_age()

    def _show_age(self) -> None:
        """Say so where the store has not answered for a while."""
        source = self.source
        if source.problem or source.age > STALE:
            why = source.problem or "the store has not answered for a while"
            words = safe.note_html("stale", f"What is shown may be old: {why}")
            if self.notice.object != words:
                self.notice.object = words
        elif 'class="note note-stale' in self.notice.object:
            self.show_notice()

    def show_notice(self) -> None:
        """Say what of the address was not taken."""
        refused = self.selection.refused
        self.notice.object = (
            safe.note_html(
                "info",
                "The address held values that make no sense and were left out: "
                f"{', '.join(refused)}.",
            )
            if refused
            else ""
        )


def create_app(results: Path, published: bool = True) -> Any:
    """Page of one session.

    Parameters
    ----------
    results : Path
        Folder of all results.
    published : bool
        Whether runs that came with the package are shown, too.

    Returns
    -------
    panel.Template
    """
    source = shared(results.absolute(), published)
    # at once where nobody lists; where another session waits for a slow folder, this one does not
    source.refresh(older_than=2.0 * REFRESH)
    theme = "dark" if pn.state.cookies.get(COOKIE) == "dark" else "default"
    pn.config.theme = theme
    selection, worker = Selection(), Worker()
    location = pn.state.location
    address = sync(selection, location.search if location else "")
    frame = Frame(selection, source, worker)
    template = pn.Template(
        _PAGE.read_text(encoding="utf-8"),
        theme=pn.theme.DarkTheme if theme == "dark" else pn.theme.DefaultTheme,
        design=pn.theme.Native,
    )
    template.add_variable("dark", theme == "dark")
    for name, part in (
        ("store", frame.header),
        ("pages", frame.navigation),
        ("notice", frame.notice),
        ("body", frame.body),
        ("address", address),
        ("pace", frame.pace),
    ):
        template.add_panel(name, part)

    def begin() -> None:
        frame.show()
        frame.pace.ask()
        pn.state.add_periodic_callback(frame.tick, period=POLL)

    pn.state.onload(begin)
    document = pn.state.curdoc
    if document is not None and document.session_context is not None:
        pn.state.on_session_destroyed(lambda context: worker.close())
        # Panel says this to pages that it makes, not to a session that was made anew for one
        document.template_variables.setdefault("dist_url", LOCAL_DIST)
    return template
