"""The pace of a browser: the worker's results wait until it has made the widgets it was sent.

Widgets of BokehJS that are changed after they were made and before they are drawn fail, and what
came in the same message is lost. A page that is built while a machine is busy would lose words
and figures so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import param
from panel.custom import JSComponent

#: Time that a browser has to draw (s); then the page goes on without its answer.
PATIENCE = 10.0


class Pace(JSComponent):
    """Asks the browser whether it has made what it was sent; invisible itself.

    Parameters
    ----------
    answered : callable
        Called when the browser has answered.
    """

    asked = param.Integer(0, doc="Count of questions.")
    drawn = param.Integer(0, doc="The question that was answered last.")

    _esm = """
    const BUTTONS = {first: 'first', slower: 'slower', faster: 'faster',
      previous: 'previous', reverse: 'play backwards', pause: 'pause', play: 'play',
      next: 'next', last: 'last'}
    export function render({model, view}) {
      const whole = (part) => {
        const children = part.child_views ?? []
        return part.el.isConnected && (!part.model.esm || part.container.childElementCount > 0)
          && children.length === (part.child_models ?? []).length && children.every(whole)
      }
      // what BokehJS leaves out: names for who cannot see, and the new end of a player's range
      const complete = (part) => {
        const inside = part.shadow_el
        if (inside) {
          for (const range of inside.querySelectorAll('input[type=range]'))
            if (part.model.end !== undefined && range.max !== String(part.model.end)) {
              range.max = part.model.end
              range.value = part.model.value
            }
          // said by a widget of ours that has no room for it, else its visible label
          const said = (part.model.tags ?? []).find((tag) => typeof tag === 'string')
          const title = said ?? part.model.title ?? part.model.label ?? ''
          for (const handle of inside.querySelectorAll('[role=slider]:not([aria-label])'))
            if (title) handle.setAttribute('aria-label', title)
          for (const button of inside.querySelectorAll('button:not([aria-label])'))
            if (said) button.setAttribute('aria-label', said)
            else if (!button.textContent.trim() && button.className) {
              const words = button.className.split(/[ _-]/)
              const known = Object.keys(BUTTONS).find((word) => words.includes(word))
              if (known) button.setAttribute('aria-label', button.title = BUTTONS[known])
            }
          for (const range of inside.querySelectorAll('input[type=range]:not([aria-label])'))
            if (title) range.setAttribute('aria-label', title)
        }
        for (const child of part.child_views ?? []) complete(child)
      }
      let waiting = 0
      const look = () => {
        const own = Bokeh.index.roots.filter((root) => root.model.document === view.model.document)
        waiting = 0
        if (own.every(whole)) {
          own.forEach(complete)
          model.drawn = model.asked
        } else waiting = setTimeout(look, 20)
      }
      const asked = () => {
        if (model.drawn !== model.asked && !waiting) waiting = setTimeout(look, 0)
      }
      model.on('asked', asked)
      model.on('remove', () => clearTimeout(waiting))
      asked()
      return document.createElement('span')
    }
    """

    def __init__(self, answered: Callable[[], None], **params: object) -> None:
        super().__init__(width=0, height=0, margin=0, **params)
        self._until = 0.0
        self.param.watch(lambda _: answered(), "drawn")

    def ask(self) -> None:
        """Something was sent: ask whether it is drawn.

        A browser that does not answer is waited for once, not for each question again.
        """
        if self.drawn == self.asked:
            self._until = time.monotonic() + PATIENCE
        self.asked += 1

    @property
    def is_free(self) -> bool:
        """Whether the page can take more."""
        return self.drawn == self.asked or time.monotonic() > self._until
