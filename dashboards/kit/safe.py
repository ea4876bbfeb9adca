"""The one door for free text: whatever was typed, stored or sent by someone is escaped here.

Half of Panel's components render a string as HTML. Names of runs, studies and patients, reasons
of failures, values of the address and texts of errors go through `text`, or through `html`,
`note` and `table_html`, which do that; a pane is made of nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import panel as pn

#: Longest text that is shown of one value.
LIMIT = 400
# control characters, and marks that turn the direction of writing
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

#: Looks of what is made here; a style of the page does not reach into a pane.
CSS = Path(__file__).with_name("markup.css").read_text(encoding="utf-8")
# arrow of a select that can be seen in the dark
_SELECT = """select.bk-input {
  background-image: linear-gradient(45deg, transparent 50%, currentColor 50%),
    linear-gradient(135deg, currentColor 50%, transparent 50%) !important;
  background-position: right 15px center, right 10px center !important;
  background-size: 5px 5px !important; background-repeat: no-repeat !important; }"""

Kind = Literal["loading", "empty", "error", "stale", "info"]
_TITLES = {"loading": "Loading", "empty": "Nothing here", "error": "Not possible"}


def plain(value: Any, limit: int = LIMIT) -> str:
    """Text of a value without hidden characters, shortened; still to be escaped."""
    words = _HIDDEN.sub("", str(value))
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


def text(value: Any, limit: int = LIMIT) -> str:
    """Text of a value that HTML shows as it is."""
    return escape(plain(value, limit), quote=True)


def fill(markup: str, **values: Any) -> str:
    """HTML of a fixed markup with values in ``{name}``, each escaped."""
    return markup.format(**{name: text(value) for name, value in values.items()})


def lacking(where: str, lacks: Iterable[str]) -> str:
    """Sentence about what was asked for and is not there; empty if nothing is."""
    named = ", ".join(lacks)
    return f"Not {where}: {named}. Another stands in its place." if named else ""


def html(markup: str, /, *, css: Iterable[str] = (), **values: Any) -> pn.pane.HTML:
    """Pane of a fixed markup with values in ``{name}``, each escaped.

    Parameters
    ----------
    markup : str
        A literal of the program, never made of free text.
    css : iterable of str
        Classes of the pane.
    **values
    """
    return _pane(fill(markup, **values) if values else markup, css)


def _pane(markup: str, css: Iterable[str] = ()) -> pn.pane.HTML:
    """Pane of HTML that is safe."""
    return pn.pane.HTML(
        markup, css_classes=list(css), stylesheets=[CSS], sizing_mode="stretch_width", margin=0
    )


def select(**options: Any) -> pn.widgets.Select:
    """Widget to select one of some options; they are text by themselves."""
    return pn.widgets.Select(stylesheets=[_SELECT], **options)


def note(kind: Kind, sentence: Any, command: str = "") -> pn.pane.HTML:
    """Pane for a state that a page can be in.

    Parameters
    ----------
    kind : {"loading", "empty", "error", "stale", "info"}
    sentence : str
        What is the matter, and what to do; free text.
    command : str
        A command to copy.
    """
    return _pane(note_html(kind, sentence, command))


def note_html(kind: Kind, sentence: Any, command: str = "") -> str:
    """HTML of `note`."""
    role = "alert" if kind == "error" else "status"
    title = f"<strong>{_TITLES[kind]}.</strong> " if kind in _TITLES else ""
    code = f"<pre><code>{text(command)}</code></pre>" if command else ""
    return f'<div class="note note-{kind}" role="{role}">{title}{text(sentence)}{code}</div>'


def table_html(frame: pd.DataFrame, *, caption: str = "") -> str:
    """HTML of a small table; it scrolls within itself where the screen is narrow.

    Parameters
    ----------
    frame : DataFrame
        Names of columns and cells are escaped.
    caption : str
        What the table tells, for the screen reader too.
    """
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in frame.columns)
    rows = []
    for values in frame.itertuples(index=False):
        cells = "".join(_cell(value) for value in values)
        rows.append(f"<tr>{cells}</tr>")
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table class="plain">{title}<thead><tr>{head}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    """One cell of a table."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "<td>–</td>"
    if isinstance(value, float):
        return f'<td class="number">{value:.6g}</td>'
    kind = ' class="number"' if isinstance(value, int) and not isinstance(value, bool) else ""
    return f"<td{kind}>{text(value)}</td>"
