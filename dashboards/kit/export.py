"""Files of what is shown: CSV, PNG, SVG, and a page of results that needs nothing but a browser."""

from __future__ import annotations

import base64
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import param
from panel.custom import JSComponent

from . import safe
from .part import spoken

MIMES = {"csv": "text/csv", "png": "image/png", "svg": "image/svg+xml", "html": "text/html"}
#: Rows of a table in a page; a CSV holds them all.
MOST_ROWS = 200
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2328; background: #fff; margin: 0 auto;
  padding: 16px; max-width: 1100px; }
h1 { font-size: 22px; } h2 { font-size: 18px; margin-top: 32px; border-top: 1px solid #d5dae0;
  padding-top: 12px; }
img { max-width: 100%; height: auto; }
.note { color: #57606a; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 8px 0 4px; }
th, td { text-align: left; vertical-align: top; padding: 3px 12px 3px 0;
  border-bottom: 1px solid #d5dae0; }
td.number { text-align: right; white-space: nowrap; }
"""


class Download(JSComponent):
    """Hands a file to the browser, which saves it; invisible itself."""

    file = param.Dict({}, doc="Name, kind and content (base64) of the file; a counter.")

    _esm = """
    export function render({model}) {
      model.on('file', () => {
        const {name, mime, data} = model.file
        if (!data) return
        const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0))
        const url = URL.createObjectURL(new Blob([bytes], {type: mime}))
        const link = document.createElement('a')
        link.href = url
        link.download = name
        document.body.appendChild(link)
        link.click()
        link.remove()
        setTimeout(() => URL.revokeObjectURL(url), 10000)
      })
      return document.createElement('span')
    }
    """

    def send(self, name: str, content: bytes) -> None:
        """Let the browser save a file.

        Parameters
        ----------
        name : str
            With its ending, one of `MIMES`.
        content : bytes
        """
        kind = name.rpartition(".")[2]
        data = base64.b64encode(content).decode("ascii")
        count = self.file.get("count", 0) + 1
        self.file = {"name": name, "mime": MIMES[kind], "data": data, "count": count}


def file_name(*words: str, kind: str) -> str:
    """Name of a file from free words."""
    plain = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-.") for word in words if word)
    return f"{plain[:100] or 'results'}.{kind}"


def csv(tables: Sequence[tuple[str, pd.DataFrame]]) -> bytes:
    """Tables as CSV, with a caption above each where there are several.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    parts = []
    for caption, table in tables:
        head = f"# {safe.plain(caption)}\n" if len(tables) > 1 else ""
        named = table.rename(columns=lambda name: _harmless(str(name)))
        for place in range(named.shape[1]):
            if not pd.api.types.is_numeric_dtype(named.iloc[:, place]):
                column = [_harmless(_number(value)) for value in named.iloc[:, place]]
                named.isetitem(place, column)
        parts.append(head + named.to_csv(index=False, lineterminator="\n"))
    return "\n".join(parts).encode("utf-8-sig")


def _number(value: Any) -> Any:
    """A whole number that is written for readers, as a number."""
    grouped = isinstance(value, str) and re.fullmatch(r"\d{1,3}(,\d{3})+", value)
    return int(value.replace(",", "")) if grouped else value


def _harmless(value: Any) -> Any:
    """A text that no spreadsheet computes."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def picture(figure: Any, kind: str, dpi: int = 144) -> bytes:
    """A figure as PNG or SVG, drawn by Matplotlib; slow, so it belongs into a worker.

    Parameters
    ----------
    figure : HoloViews object
    kind : {"png", "svg"}
    dpi : int
    """
    import matplotlib

    from vitolab import plots

    from ..charts.figures import DRAWING

    with DRAWING, tempfile.TemporaryDirectory() as folder:
        matplotlib.use("agg")
        return plots.save(figure, Path(folder) / f"figure.{kind}", dpi=dpi).read_bytes()


@dataclass(frozen=True)
class Chapter:
    """A part of a page of results.

    Attributes
    ----------
    title, sentence : str
        Free text.
    figure : HoloViews object or None
    tables : sequence of (str, DataFrame)
    """

    title: str
    sentence: str
    figure: Any = None
    tables: Sequence[tuple[str, pd.DataFrame]] = ()


def page(title: str, facts: pd.DataFrame, chapters: Sequence[Chapter]) -> bytes:
    """A page of results that holds its pictures and asks nothing of any other machine.

    Parameters
    ----------
    title : str
        Free text, as all that follows.
    facts : DataFrame
        What was run.
    chapters : sequence of Chapter
    """
    body = [safe.fill("<h1>{title}</h1>", title=title), safe.table_html(facts)]
    for chapter in chapters:
        body.append(safe.fill("<h2>{title}</h2>", title=chapter.title) + spoken(chapter.sentence))
        if chapter.figure is not None:
            data = base64.b64encode(picture(chapter.figure, "png", 110)).decode("ascii")
            words = safe.text(f"{chapter.title}. {chapter.sentence}", 1000)
            body.append(f'<img src="data:image/png;base64,{data}" alt="{words}">')
        body += [short_table(caption, table) for caption, table in chapter.tables]
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    html = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe.text(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )
    return html.encode("utf-8")


def short_table(caption: str, table: pd.DataFrame, more: str = "") -> str:
    """HTML of a table; of a long one its beginning, which it says, and where there is more."""
    if len(table) > MOST_ROWS:
        rest = f"the first {MOST_ROWS} of {len(table):,} rows{more}"
        caption = f"{caption} ({rest})" if caption else f"{rest[0].upper()}{rest[1:]}."
    return safe.table_html(table.head(MOST_ROWS), caption=caption)
