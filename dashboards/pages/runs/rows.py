"""Runs as rows of a table: their columns, how they look, what is compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd

from ...kit import safe
from ...kit.source import Entry

#: Statuses as the page shows them; the mark tells them apart without colour.
STATUS = {
    "complete": "✓ complete",
    "running": "▶ running",
    "interrupted": "‖ interrupted",
    "failed": "✗ failed",
    "unreadable": "⚠ damaged",
}
#: Of a complete run that came with the package.
PUBLISHED = "✓ published"
COLUMNS = (
    {"field": "status", "title": "status", "hint": "How the run stands; ▶ with its progress"}
    | {"keep": True},
    {"field": "study", "title": "study", "hint": "Study that was run"},
    {"field": "started", "title": "started [UTC]", "hint": "When it was started", "below": 520},
    {"field": "took", "title": "took [min]", "hint": "Minutes from start to end", "digits": 1}
    | {"below": 1100},
    {"field": "size", "title": "size", "hint": "Profile of the study; own: changed parameters"}
    | {"below": 900},
    {"field": "patients", "title": "patients", "hint": "Patients or functions", "digits": 0}
    | {"below": 900},
    {"field": "fits", "title": "fits", "hint": "Personalisations", "digits": 0, "below": 1100},
    {"field": "seed", "title": "seed", "hint": "Seed of all randomness", "below": 1100},
    {
        "field": "solved",
        "title": "Vito, pooled [%]",
        "hint": "Solved by the paper's agent, largest training, all setups and starts pooled",
    }
    | {"digits": 1},
    {
        "field": "runs",
        "title": "runs, pooled",
        "hint": "Forward runs that Vito took on average, pooled alike",
    }
    | {"digits": 1, "below": 800},
    {"field": "note", "title": "best reference, or note", "below": 700}
    | {"hint": "Reference method with most success; progress; reason"},
)
FIELDS = tuple(str(column["field"]) for column in COLUMNS)


def row(entry: Entry) -> dict[str, Any]:
    """One row of the table; its cells show text as it is."""
    info, facts = entry.info, entry.facts
    status, note = STATUS[info.status], info.reason or (facts.best if facts else "")
    if info.progress is not None:
        told = info.progress
        if told.total > 0:
            status += f" {100 * told.done / told.total:.0f} %"
            note = f"{told.stage}: {told.done:,} of {told.total:,}"
        else:
            note = told.stage
    if info.status == "unreadable" and "another version" in info.reason:
        status = "⚠ other version"
    if entry.published:
        status = PUBLISHED
    if facts is not None and facts.damaged:
        status, note = STATUS["unreadable"], facts.damaged
    return {
        "key": entry.id or entry.key,
        "choice": bool(entry.id),
        "label": safe.plain(f"{info.study} {info.path.name}", 120),
        "status": status,
        "study": safe.plain(info.study, 64),
        "started": safe.plain(info.started[:16].replace("T", " ")),
        "took": _minutes(info.started, info.finished),
        "size": entry.profile or ("own" if info.parameters else ""),
        "patients": facts.patients if facts else None,
        "fits": facts.personalizations if facts else None,
        "seed": "" if info.seed is None else str(info.seed),
        "solved": facts.solved if facts else None,
        "runs": facts.runs if facts else None,
        "note": safe.plain(f"{info.path.name}: {note}" if info.status == "unreadable" else note),
    }


def _minutes(started: str, finished: str) -> float | None:
    """Minutes between two times; None where one is missing or none."""
    try:
        begin = datetime.fromisoformat(started)
        return (datetime.fromisoformat(finished) - begin).total_seconds() / 60.0
    except (ValueError, TypeError):
        return None


def haystack(entry: Entry) -> str:
    """Text that a search goes through."""
    info = entry.info
    known = (info.study, STATUS[info.status], info.reason, entry.key, entry.profile, info.started)
    # as `vitolab run -p name=value` takes them, lists with and without their brackets
    asked = [f"seed={info.seed}"]
    for name, value in info.parameters.items():
        asked.append(f"{name}={value if isinstance(value, str) else json.dumps(value)}")
        if isinstance(value, list):
            asked += [f"{name}={item}" for item in value]
    return " ".join([*known, *asked]).lower()


def compared(entries: Sequence[Entry]) -> pd.DataFrame:
    """Facts of the chosen runs; of several those that differ."""
    return _beside(entries, _described)


def differences(entries: Sequence[Entry]) -> pd.DataFrame:
    """What was asked for differently by several runs."""
    return _beside(entries, _asked)


def _beside(entries: Sequence[Entry], tell: Callable[[Entry], Mapping[str, str]]) -> pd.DataFrame:
    """What is told of some runs, a column each; of several the rows that differ."""
    told = {entry.id: tell(entry) for entry in entries}
    names = list(dict.fromkeys(name for facts in told.values() for name in facts))
    table = pd.DataFrame({"": names})
    for run, facts in told.items():
        table[run] = [facts.get(name) or "–" for name in names]
    if len(entries) > 1:
        table = table[table[list(told)].nunique(axis=1) > 1]
    return table


def _asked(entry: Entry) -> dict[str, str]:
    """What was asked for, and of which code."""
    info = entry.info
    facts = {
        "study": info.study,
        "size": row(entry)["size"],
        "seed": "" if info.seed is None else str(info.seed),
        "code": info.version,
    }
    return facts | {f"parameter {k}": json.dumps(v) for k, v in info.parameters.items()}


def _described(entry: Entry) -> dict[str, str]:
    """Facts of one run in words."""
    info, shown = entry.info, row(entry)
    facts = {
        "study": info.study,
        "status": shown["status"],
        "note": shown["note"],
        "started [UTC]": info.started,
        "finished [UTC]": info.finished,
    }
    if entry.facts is not None and entry.facts.solved is not None:
        facts["Vito solved [%]"] = f"{entry.facts.solved:.1f}"
        facts["Vito runs"] = f"{entry.facts.runs:.1f}"
        facts["best reference"] = entry.facts.best
    facts |= _asked(entry) | {"folder": entry.key}
    return {name: value for name, value in facts.items() if value}
