"""The address bar: follows the selection, and leads it when the user goes back."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from .selection import FIELDS, STEPS, Selection


class Address(JSComponent):
    """What the browser shows as its address; invisible itself."""

    wanted = param.Dict({}, doc="Address to show: query, and whether that is a new step.")
    visited = param.Dict({}, doc="Address that the user went to: query and a counter.")

    _esm = """
    export function render({model}) {
      model.on('wanted', () => {
        const {query, step} = model.wanted
        const url = window.location.pathname + (query ? '?' + query : '')
        if (url === window.location.pathname + window.location.search) return
        window.history[step ? 'pushState' : 'replaceState'](null, '', url)
      })
      let count = 0
      const back = () => {
        count += 1
        model.visited = {query: window.location.search, count}
      }
      window.addEventListener('popstate', back)
      model.on('remove', () => window.removeEventListener('popstate', back))
      return document.createElement('span')
    }
    """


def sync(selection: Selection, query: str) -> Address:
    """Bind a selection to the address, once for all its values.

    Parameters
    ----------
    selection : Selection
    query : str
        Of the address that was opened.

    Returns
    -------
    Address
        Has to be on the page, where it shows nothing.
    """
    address = Address(width=0, height=0, margin=0)
    reading = False

    def write(*events: Any) -> None:
        if not reading:
            step = any(event.name in STEPS for event in events)
            address.wanted = {"query": selection.query(), "step": step}

    def read(event: Any) -> None:
        nonlocal reading
        reading = True
        try:
            selection.read(str(event.new.get("query", "")))
        finally:
            reading = False

    selection.read(query)
    selection.param.watch(write, list(FIELDS))
    address.param.watch(read, "visited")
    return address
