"""Pictures on a page: side by side as far as the screen is wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import panel as pn
import param
from panel.custom import JSComponent

from . import safe
from .worker import Worker


@dataclass(frozen=True)
class Picture:
    """One panel of a figure.

    Attributes
    ----------
    title : str
        Free text.
    item : str
        A Bokeh figure as JSON that BokehJS embeds.
    height : int
        Of the figure [px].
    width : int
        Most that it needs [px].
    note : str
        What was left out of it; empty if nothing.
    key : tuple of (str, str)
        Labels and colours that all panels of the figure share.
    columns : int
        Panels beside each other, where the page is wide enough.
    """

    title: str
    item: str
    height: int
    width: int
    note: str = ""
    key: tuple[tuple[str, str], ...] = ()
    columns: int = 1


class Drawing(JSComponent):
    """A figure that the browser alone keeps: the server has one text instead of its models."""

    item = param.String("", doc="Of a `Picture`.")
    marks = param.Dict({}, doc="Data of sources of the figure, by their names.")
    tapped = param.Dict({}, doc="Where it was clicked: x, y, and a counter.")

    _esm = """
    export function render({model}) {
      const place = document.createElement('div')
      place.style.width = '100%'
      let shown = null
      let count = 0, taps = 0
      let line = Promise.resolve()
      const clear = () => {
        const old = shown
        shown = null
        if (!old) return
        const drawn = old.roots[0].model.document
        old.clear()
        const known = Bokeh.documents.indexOf(drawn)
        if (known >= 0) Bokeh.documents.splice(known, 1)
        drawn.clear()
      }
      const embed = async () => {
        if (!model.item) return
        shown = await Bokeh.embed.embed_item(JSON.parse(model.item), place)
        shown.roots[0].model.on_event('tap', (event) => {
          taps += 1
          model.tapped = {x: event.x, y: event.y, count: taps}
        })
        mark()
      }
      const draw = () => {
        const mine = ++count
        clear()
        // one after the other: a figure that is being drawn is not to be taken away
        const next = () => { clear(); return mine === count ? embed() : null }
        line = line.then(next, next)
      }
      const mark = () => {
        for (const [name, data] of Object.entries(model.marks)) {
          const source = shown && shown.roots[0].model.document.get_model_by_name(name)
          if (source) source.data = data
        }
      }
      model.on('item', draw)
      model.on('marks', mark)
      model.on('remove', () => { count += 1; line.then(clear, clear) })
      const ready = () => place.isConnected ? draw() : requestAnimationFrame(ready)
      ready()
      return place
    }
    """


def show(pictures: Sequence[Picture], into: pn.Column, worker: Worker, key: str) -> None:
    """Show pictures side by side as far as the screen is wide; replaces what was there.

    They come one by one: each takes the event loop its time.

    Parameters
    ----------
    pictures : sequence of Picture
    into : panel.Column
        From `gallery`.
    worker : Worker
    key : str
        Of this gallery; what was still to come into it is left out.
    """
    for place, column in enumerate(into):
        column.visible = place < len(pictures)
        column[1].item = ""  # the old one must not stand under new words
    if not pictures:
        worker.drop(f"{key}-gallery")
        return

    def put(place: int) -> None:
        if place < len(pictures):
            _put(pictures[place], place, into)
            worker.later(partial(put, place + 1), f"{key}-gallery")

    worker.later(partial(put, 0), f"{key}-gallery")


def _put(picture: Picture, place: int, into: pn.Column) -> None:
    """Show a picture at its place, which stays where there was one: the page does not jump."""
    share = 100 // picture.columns - 4
    styles = {"flex": f"1 1 max(310px, {share}%)", "max-width": f"{picture.width}px"}
    styles |= {"min-width": "0", "overflow": "hidden"}
    if place < len(into):
        column: Any = into[place]
        column[0].object, column[1].height = title_of(picture), picture.height
        column.styles = styles
        column[1].item = picture.item
        return
    size = {"sizing_mode": "stretch_width", "height": picture.height, "margin": 0}
    into.append(
        pn.Column(
            safe.html(title_of(picture)),
            Drawing(item=picture.item, **size),
            sizing_mode="stretch_width",
            styles=styles,
            margin=(0, 0, 8, 0),
        )
    )


def gallery() -> pn.Column:
    """Place for `show`."""
    styles = {"display": "flex", "flex-flow": "row wrap", "gap": "0 12px"}
    hidden = [".scroll-button { display: none; }"]
    return pn.Column(sizing_mode="stretch_width", margin=0, styles=styles, stylesheets=hidden)


def key_of(pictures: Sequence[Picture]) -> str:
    """HTML of the legend that several panels share; empty if each has its own."""
    entries = next((picture.key for picture in pictures if picture.key), ())
    told = []
    for label, color in entries:
        dot = f'<span aria-hidden="true" style="color:{safe.text(color)}">■</span>'
        told.append(f"<span>{dot} {safe.text(label)}</span>")
    return f'<div class="row">{"".join(told)}</div>' if told else ""


def title_of(picture: Picture) -> str:
    """Heading of a picture, with what was left out."""
    lines = [line for line in picture.title.split("\n") if line.strip()]
    head = f"<h3>{safe.text(lines[0])}</h3>" if lines else ""
    rest = [*lines[1:], *([picture.note] if picture.note else [])]
    return head + "".join(f'<div class="faint">{safe.text(line)}</div>' for line in rest)
