"""What an agent keeps: each patient once, whichever commands learned at the same time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import compress
from pathlib import Path

import numpy as np

from vitolab.experience import Experience
from vitolab.files import resolved


@contextmanager
def alone(agent: Path) -> Iterator[None]:
    """Keep other processes of this machine from an agent while it is read, compared, or replaced.

    The lock is that of the folder around it, so that nothing is left behind, and ends with the
    process. A file system without such locks goes without.

    Parameters
    ----------
    agent : Path
        In a folder that exists.
    """
    if sys.platform == "win32":  # no such locks there
        yield
        return
    import fcntl

    around = os.open(resolved(agent).parent, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(around, fcntl.LOCK_EX)
        yield
    finally:
        os.close(around)


def once(experience: Experience) -> Experience:
    """Experience in which a patient who was personalised again is one patient.

    The same patient has the same name and the same checksum. A run that is there twice counts once.
    """
    first: dict[tuple[str, str], int] = {}
    whose = enumerate(zip(experience.names, experience.checksums, strict=True))
    one = np.array([first.setdefault(who, i) if who[1] else i for i, who in whose], dtype=np.int64)
    kept = one == np.arange(len(one))
    if kept.all():
        return experience
    order = np.argsort(one[experience.patient], kind="stable")
    seen: set[bytes] = set()
    rows, made = [], np.bincount(one, experience.made, len(one)).astype(np.int64)
    for row in order.tolist():
        patient = one[experience.patient[row]]
        run = _bytes(experience, row) + patient.tobytes()
        if run in seen and not kept[experience.patient[row]]:
            made[patient] -= 1
        else:
            rows.append(row)
        seen.add(run)
    return replace(
        experience,
        u=experience.u[rows],
        y=experience.y[rows],
        patient=(np.cumsum(kept) - 1)[one[experience.patient[rows]]],
        known=experience.known[kept],
        made=made[kept],
        names=tuple(compress(experience.names, kept)),
        checksums=tuple(compress(experience.checksums, kept)),
    )


def holds(experience: Experience, taught: Experience) -> bool:
    """Whether all runs of the patients of `taught` are those of the same patients already."""

    def runs(of: Experience, patient: int) -> set[bytes]:
        return {_bytes(of, row) for row in np.flatnonzero(of.patient == patient).tolist()}

    known = list(zip(experience.names, experience.checksums, strict=True))
    for i, who in enumerate(zip(taught.names, taught.checksums, strict=True)):
        own = runs(taught, i)
        if not who[1] or not any(
            who == other and taught.made[i] <= experience.made[j] and own <= runs(experience, j)
            for j, other in enumerate(known)
        ):
            return False
    return True


def _bytes(experience: Experience, row: int) -> bytes:
    """Parameters and outputs of a run, to the last bit."""
    return bytes(experience.u[row].tobytes() + experience.y[row].tobytes())
