"""Stores of parts in memory, for studies that tests fill."""

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

    def read_part(self, key: str) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        return self.parts[key]

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


class Memory:
    """Keeps parts in a dictionary; may refuse to go on after some of them."""

    until = math.inf

    def __init__(self, at_most=None):
        self.parts, self.computed, self.at_most = {}, [], at_most

    def has_part(self, key):
        return key in self.parts

    def read_part(self, key):
        return self.parts[key]

    def write_failures(self, key, failures):
        assert failures is None

    def write_part(self, key, personalizations, traces=None, failures=None):
        if self.at_most is not None and len(self.computed) >= self.at_most:
            raise KeyboardInterrupt
        self.computed.append(key)
        self.parts[key] = personalizations, traces

    def progress(self, stage, done, total):
        assert 0 <= done <= total

    def tables(self):
        order = sorted(self.parts)
        traces = [self.parts[k][1] for k in order if self.parts[k][1] is not None]
        table = pd.concat([self.parts[k][0] for k in order])
        return table, pd.concat(traces) if traces else None
