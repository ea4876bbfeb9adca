"""A sentence and its tables, as a page shows them."""

from __future__ import annotations

import panel as pn

from . import safe


def spoken(sentence: str) -> str:
    """HTML of a sentence, or of a list of several that stand on lines of their own."""
    lines = [safe.text(line, 1000) for line in sentence.split("\n") if line.strip()]
    if len(lines) > 1:
        return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"
    return f"<p>{lines[0]}</p>" if lines else ""


#: Tables of many rows and columns scroll within themselves, words stay whole.
TABLES_CSS = """
.scroll { max-height: 24em; overflow: auto; }
table.plain th { position: sticky; top: 0; background: var(--paper); }
details { margin: 4px 0; }
summary { cursor: pointer; }
"""


def tables_pane() -> pn.pane.HTML:
    """Pane for the tables of a section."""
    pane = safe.html("", css=["tables"])
    pane.stylesheets = [*pane.stylesheets, TABLES_CSS]
    return pane
