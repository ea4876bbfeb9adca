"""Synthetic cohorts that were frozen: patients in two parts, tables with a checksum."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path

from vitolab.files import atomic
from vitolab.problem import Patient


@dataclass(frozen=True)
class Cohort:
    """Synthetic patients.

    Attributes
    ----------
    scouting : list of Patient
        Eight patients to choose settings with; no part of any result.
    evaluation : list of Patient
        The others.
    """

    scouting: list[Patient]
    evaluation: list[Patient]

    def first(self, n: int) -> list[Patient]:
        """Give the first `n` evaluation patients.

        Raises
        ------
        ValueError
            If there are not so many.
        """
        if not 1 <= n <= len(self.evaluation):
            raise ValueError(f"{n} patients, expected 1 to {len(self.evaluation)}")
        return self.evaluation[:n]

    def spread(self, n: int) -> list[Patient]:
        """Give `n` evaluation patients, evenly spaced over the cohort.

        Raises
        ------
        ValueError
            If there are not so many.
        """
        self.first(n)
        last = len(self.evaluation) - 1
        return [self.evaluation[round(i * last / max(n - 1, 1))] for i in range(n)]

    def named(self, name: str) -> Patient:
        """Give the evaluation patient of a name.

        Raises
        ------
        ValueError
            If there is none.
        """
        for patient in self.evaluation:
            if patient.name == name:
                return patient
        names = [patient.name for patient in self.evaluation]
        raise ValueError(f"patient is {name!r}, expected one of {', '.join(names)}")


def read_checked(path: Path, checksum: str) -> list[dict[str, str]]:
    """Rows of a frozen table.

    Raises
    ------
    ValueError
        If its SHA-256 is not the expected one.
    """
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != checksum:
        raise ValueError(
            f"{path}: SHA-256 is {found[:12]}…, expected {checksum[:12]}…; the frozen cohort was "
            "changed, restore the file"
        )
    return list(csv.DictReader(content.decode().splitlines()))


def write_frozen(path: Path, rows: list[list[str]]) -> str:
    """Write a table, header first, and give its SHA-256."""
    content = "".join(",".join(row) + "\n" for row in rows).encode()
    with atomic(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()
