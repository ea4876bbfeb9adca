"""Size and key results of a run in a list: read without pandas, a thousand in some seconds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from vitolab.methods import PAPER, REFERENCES

#: Reference methods.
_COLUMNS = ("setup", "method", "n_states", "n_samples", "solved", "n_runs", "patient")


@dataclass(frozen=True)
class Facts:
    """Size and key results of a complete run; what is not known is None or empty.

    Attributes
    ----------
    patients, personalizations : int or None
    solved : float or None
        Share that Vito solved, with the largest training size [%].
    runs : float or None
        Forward runs that Vito took on average.
    best : str
        The reference method with most success, in words.
    damaged : str
        Why the run is not whole; empty if it is.
    """

    patients: int | None = None
    personalizations: int | None = None
    solved: float | None = None
    runs: float | None = None
    best: str = ""
    damaged: str = ""


def read_facts(file: Path) -> Facts:
    """Size and key results from a table of personalisations.

    Of several training sizes the largest counts, and every start: as the page Results compares.

    Raises
    ------
    ValueError, OSError, KeyError
        If the file is damaged or another one.
    """
    columns = pq.read_table(file, columns=list(_COLUMNS)).to_pydict()
    rows = list(zip(*(columns[name] for name in _COLUMNS), strict=True))
    largest: dict[Any, tuple[int, int]] = defaultdict(lambda: (-1, -1))
    for setup, method, n_states, n_samples, *_ in rows:
        size = (-1 if n_samples is None else n_samples, -1 if n_states is None else n_states)
        largest[setup, method] = max(largest[setup, method], size)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for setup, method, n_states, n_samples, solved, n_runs, _ in rows:
        size = (-1 if n_samples is None else n_samples, -1 if n_states is None else n_states)
        if size == largest[setup, method]:
            one = sums[method]
            one[0] += 1
            one[1] += bool(solved)
            one[2] += n_runs
    rates = {name: 100.0 * solved / n for name, (n, solved, _) in sums.items()}
    others = {m: rate for m, rate in rates.items() if m in REFERENCES}
    best = max(others, key=lambda name: others[name], default="")
    return Facts(
        patients=len(set(columns["patient"])),
        personalizations=len(rows),
        solved=rates.get(PAPER),
        runs=sums[PAPER][2] / sums[PAPER][0] if PAPER in rates else None,
        best=f"{best} {others[best]:.0f} %" if best else "",
    )
