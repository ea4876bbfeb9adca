"""The files of a problem of one's own that a problem in PEtab becomes."""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vitolab.problemfile.petab.files import first_few
from vitolab.problemfile.petab.tables import Measurements

MODEL = "model.xml"


def notes_for(
    data: Measurements,
    conditions: Sequence[str],
    observables: Iterable[str],
    objectives: Collection[str],
    constant: Iterable[str],
) -> tuple[str, ...]:
    """Sentences for the user."""
    notes = [
        "A tolerance is one standard deviation of the noise, which PEtab gives: decide how near is "
        "good enough."
    ]
    if any(len(values) > 1 for values in data.values.values()):
        notes.append("Repeated measurements of an observable in a condition are averaged.")
    measured = [name for name in conditions if name in data.conditions]
    some = [o for o in objectives if any((c, o) not in data.values for c in measured)]
    for names, said in (
        (
            [c for c in conditions if c not in data.conditions],
            "Nothing is measured in {}: left out.",
        ),
        ([o for o in observables if o not in objectives], "{} is never measured: left out."),
        (
            some,
            "{} is not measured in all conditions: its cells are empty, which only `vitolab "
            "personalize --allow-missing` goes without.",
        ),
        (constant, "{} is fixed at another value than the model's: a column with this value."),
    ):
        if names := list(names):
            notes.append(said.format(first_few(names)))
    return tuple(notes)


def problem_text(
    path: Path,
    notes: Iterable[str],
    estimated: Mapping[str, Mapping[str, Any]],
    objectives: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Mapping[str, Any]],
    times: Iterable[float],
) -> str:
    """Text of a problem file."""
    (duration,) = times
    title = re.sub(r"[^A-Za-z0-9._-]", "_", path.stem)[:58]
    remarks = [
        f"A problem from PEtab, {path.name!r}: what is personalised, by which measurements, "
        "with which model.",
        "",
        "  vitolab run problem --problem problem.toml --patients patients.csv",
        "",
        *notes,
        "PEtab has no units: add them here (unit), and in brackets to the header of patients.csv.",
        "Domains are explored uniformly: narrow one that spans several powers of ten.",
    ]
    lines = [
        f"# {line}".rstrip()
        for remark in remarks
        for line in textwrap.wrap(remark, 98, drop_whitespace=not remark.startswith(" ")) or [""]
    ]
    lines += ["", f"name = {_toml(f'petab-{title}')}", 'version = "1"']
    for table, entries in (
        ("parameters", estimated),
        ("objectives", objectives),
        ("columns", columns),
    ):
        for entry in entries.values():
            lines += ["", f"[[{table}]]"]
            lines += [f"{key} = {_toml(value)}" for key, value in entry.items()]
            if table == "columns":
                lines.append("# feature = true  # where answers change smoothly with it")
    lines += [
        "",
        "[model]",
        'adapter = "sbml"',
        f"file = {_toml(MODEL)}",
        f"duration = {_toml(duration)}  # the time of all measurements",
        "time_limit = 60.0  # s; a run that takes longer is ended, and is a failed run",
    ]
    return "\n".join(lines) + "\n"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Text of a CSV file; an absent number is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _toml(value: str | float) -> str:
    """Value in TOML."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
