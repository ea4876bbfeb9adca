"""A store of parts in memory, for studies that tests fill."""

from __future__ import annotations

import math

import pandas as pd


class Parts:
    """Keeps parts, and joins their tables as a run would."""

    until = math.inf

    def __init__(self) -> None:
        self.parts: dict[str, tuple[pd.DataFrame, pd.DataFrame | None]] = {}
        self.failures: dict[str, pd.DataFrame] = {}

    def has_part(self, key: str) -> bool:
        return key in self.parts

    def write_part(self, key, personalizations, traces=None, failures=None) -> None:
        self.parts[key] = personalizations, traces
        self.write_failures(key, failures)

    def write_failures(self, key, failures) -> None:
        self.failures.pop(key, None)
        if failures is not None:
            self.failures[key] = failures

    def progress(self, stage: str, done: int, total: int) -> None:
        pass

    @property
    def personalizations(self) -> pd.DataFrame:
        joined = pd.concat([rows for rows, _ in self.parts.values()])
        keys = ["setup", "patient", "method", "repeat", "start"]
        return joined.sort_values(keys, ignore_index=True)
