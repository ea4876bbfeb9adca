"""Equality, hashes and a printed form for the objects that a user holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

WIDTH = 72  # of a printed value


class Value:
    """Base of frozen dataclasses that hold arrays: compared by content, printed on one screen."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(alike(ours, getattr(other, name)) for name, ours in _compared(self).items())

    def __hash__(self) -> int:
        return hash((type(self).__name__, *map(_hashed, _compared(self).values())))

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.repr}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        rows = {name: brief(value) for name, value in self.facts().items()}
        width = max(map(len, rows), default=0)
        lines = [f"  {name:<{width}}  {text}" for name, text in rows.items()]
        return "\n".join([type(self).__name__, *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(brief(value))}</td></tr>"
            for name, value in self.facts().items()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"


def brief(value: Any) -> str:
    """Value on one line of at most `WIDTH` characters."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=6, separator=", ")
    elif isinstance(value, Value):
        name = getattr(value, "name", None)
        text = type(value).__name__ + ("" if name is None else f" {name!r}")
    elif isinstance(value, Mapping):
        text = ", ".join(f"{k}: {brief(v)}" for k, v in value.items()) or "none"
    elif isinstance(value, str):
        text = value
    elif isinstance(value, tuple):
        text = ", ".join(map(brief, value)) or "none"
    elif callable(value):
        text = str(getattr(value, "__qualname__", type(value).__name__))
    else:
        text = f"{value:g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def alike(a: Any, b: Any) -> bool:
    """Whether two values are the same, arrays by their content, NaN equal to NaN."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        same = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype
        return same and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (np.isnan(a) and np.isnan(b))
    try:
        return bool(a == b)
    except ValueError:  # a model of the user's own that holds arrays
        return False


def _compared(value: Value) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value) if f.compare}  # type: ignore[arg-type]


def _hashed(value: Any) -> int:
    """Hash that values which are alike share; of what has none, its kind and size."""
    if isinstance(value, (str, int, float, Value)):
        # NaN has a hash of its own for each object
        return 0 if value != value else hash(value)
    if isinstance(value, np.ndarray):
        return hash(value.shape)
    if isinstance(value, Mapping):
        return hash(frozenset(value))
    if isinstance(value, (list, tuple)):
        return hash(tuple(map(_hashed, value)))
    return 0
