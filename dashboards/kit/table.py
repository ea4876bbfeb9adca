"""A table to sort, leaf through and choose from; what is shown in it stays text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import param
from panel.custom import JSComponent

_HERE = Path(__file__).parent


class Table(JSComponent):
    """Rows by key; choosing, order and page are of the user, and stay when rows change.

    A column is a mapping of ``field``, ``title`` and, if wanted, ``hint``, ``digits`` (it holds
    numbers), ``below`` (width of the screen [px] below which it gives way) and ``keep`` (one line).
    A row is a mapping of ``key``, ``choice`` (whether it can be chosen), ``label`` and the fields.
    """

    columns = param.List([], item_type=dict)
    rows = param.List([], item_type=dict)
    changed = param.List([], item_type=dict, doc="Rows to show instead of those of the same key.")
    chosen = param.List([], item_type=str, doc="Keys; those of absent rows are left alone.")
    order = param.String("", doc="Field and direction, such as ``seed,desc``.")
    page = param.Integer(0, doc="From 0.")
    size = param.Integer(20, doc="Rows of a page.")
    most = param.Integer(1000, doc="Most rows that can be chosen.")
    single = param.Boolean(False, doc="One row alone can be chosen.")
    choosable = param.Boolean(True)
    caption = param.String("", doc="What the table holds, for a screen reader.")

    _esm = (_HERE / "table.js").read_text(encoding="utf-8")

    def __init__(self, columns: Sequence[Mapping[str, Any]], **options: Any) -> None:
        narrow = "".join(
            f"@media (max-width: {c['below']}px) {{ .c-{c['field']} {{ display: none; }} }}"
            for c in columns
            if "below" in c
        ) + "".join(
            f"td.c-{c['field']} {{ white-space: nowrap; }}" for c in columns if c.get("keep")
        )
        style = (_HERE / "table.css").read_text(encoding="utf-8") + narrow
        super().__init__(
            columns=[dict(column) for column in columns],
            stylesheets=[style],
            sizing_mode="stretch_width",
            **options,
        )
        self._known: dict[str, dict[str, Any]] = {}  # as shown now
        self._sent: dict[str, dict[str, Any]] = {}  # as in `rows`
        self.show(self.rows)

    def show(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Show these rows: what changed alone is sent, as long as they are the same by key.

        Parameters
        ----------
        rows : sequence of mapping
            Numbers are finite or None.
        """
        new = {str(row["key"]): dict(row) for row in rows}
        if new == self._known:
            return
        changed = [row for key, row in new.items() if row != self._sent.get(key)]
        if list(new) != list(self._sent) or 4 * len(changed) > len(new):
            self._sent = new
            self.param.update(rows=list(new.values()), changed=[])
        else:
            # all that differs from `rows`, not from the last call: what comes while the browser
            # still loads would be lost
            self.changed = changed
        self._known = new

    @property
    def shown(self) -> list[dict[str, Any]]:
        """Rows as they are shown now, in the order in which they were given."""
        return [dict(row) for row in self._known.values()]
