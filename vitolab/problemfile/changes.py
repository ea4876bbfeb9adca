"""What changed in a problem and its patients since a run was started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any


def changed_fields(file: Path, now: Mapping[str, Any]) -> list[str]:
    """Field by field, what is described otherwise than in a file."""
    try:
        before = _flat(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ["what it was started with is not known any more"]
    after = _flat(json.loads(json.dumps(now)))
    return [
        f"{name} was {before.get(name, 'absent')}, is {after.get(name, 'absent')}"
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _flat(value: Any, where: str = "") -> dict[str, Any]:
    """Fields of nested data by their place; entries of a list by their name."""
    if isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        items = [(item.get("name", i), item) for i, item in enumerate(value)]
    else:
        return {where: value}
    found: dict[str, Any] = {}
    for name, item in items:
        found |= _flat(item, f"{where}, {name}" if where else str(name))
    return found


def changed_rows(before: Path, after: Path) -> list[str]:
    """Rows of a file of patients that differ."""
    try:
        old, new = (path.read_text(encoding="utf-8-sig").splitlines() for path in (before, after))
    except (OSError, ValueError):
        return [f"{after.name} is another file"]
    rows = zip_longest(old, new, fillvalue="absent")
    return [
        f"{after.name}, row {row}: was {was}, is {now}"
        for row, (was, now) in enumerate(rows, start=1)
        if was != now
    ][:10]
