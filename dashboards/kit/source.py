"""The store, read-only: which runs there are, their tables, and nothing outside their folder."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from numpy.typing import NDArray

from vitolab import studies
from vitolab.store import OpenRun, Run, RunInfo, list_runs
from vitolab.store.columns import ARRAYS, TABLES
from vitolab.store.folder import finished_parts
from vitolab.store.shipped import PUBLISHED

from .facts import Facts, read_facts
from .selection import MOST

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")
#: Runs whose tables are kept in memory: as many as may be compared.
KEPT = MOST

Print = tuple[tuple[str, int, int, int], ...]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Entry:
    """One folder at the place of a run.

    Attributes
    ----------
    id : str
        What an address calls it: the name of its folder, with the study where two folders share
        a name; empty where the name is none that an address can hold.
    key : str
        ``study folder/run folder``, unlike any other.
    info : RunInfo
    profile : str
        Size of the study as `vitolab run --profile` names it; empty if changed.
    published : bool
        Whether it came with the package.
    facts : Facts or None
        None where they are not read as yet.
    """

    id: str
    key: str
    info: RunInfo
    profile: str = ""
    published: bool = False
    facts: Facts | None = None

    @property
    def readable(self) -> bool:
        """Whether it has tables to be read."""
        return self.info.status in ("complete", "running", "interrupted")


@dataclass(frozen=True)
class _Opened:
    """A run that was read, and what was made of it."""

    seen: Print
    run: Run
    made: dict[str, Any] = field(default_factory=dict)


#: What tells of a run in a list.
_FILES = ("start.json", "run.json", "progress.json")


class Source:
    """A folder of results, shared by all sessions; its methods may be called from any thread.

    Parameters
    ----------
    results : Path
    published : Path, optional
        Folder of published runs, which are listed after those of the results.

    Attributes
    ----------
    results : Path
    entries : tuple of Entry
        As last listed, newest first; the same object as long as nothing changed.
    listed : float
        When that was (s, epoch); 0 before the first time.
    problem : str
        Why the last listing failed; empty if it did not.
    """

    def __init__(self, results: Path, published: Path | None = None) -> None:
        self.results, self.published = results.absolute(), published
        self.entries: tuple[Entry, ...] = ()
        self.listed = 0.0
        self.problem = ""
        self._by_id: dict[str, Entry] = {}
        self._facts: dict[str, tuple[Print, Facts]] = {}  # by key, with the files as they were
        self._runs: OrderedDict[str, _Opened] = OrderedDict()
        self._lock = threading.RLock()
        self._listing = threading.Lock()  # held while the folder is listed, which may take long
        self._looked = -math.inf  # when it was listed last (s, monotonic)
        self._was_there = False  # the folder

    @property
    def age(self) -> float:
        """Seconds since the last listing; infinite before the first."""
        return time.monotonic() - self._looked

    def refresh(self, older_than: float = 1.0) -> None:
        """List the runs anew, unless that was done within some seconds or is being done."""
        if self.age < older_than or not self._listing.acquire(blocking=False):
            return
        try:
            self.problem = self._why_not()
            if self.problem:
                return
            entries = tuple(self._entries())
            with self._lock:
                # what was learned meanwhile
                entries = tuple(self._with_facts(entry) for entry in entries)
                if entries != self.entries:
                    self.entries = entries
                    self._by_id = {entry.id: entry for entry in entries if entry.id}
                    keys = {entry.key for entry in entries}
                    self._facts = {key: f for key, f in self._facts.items() if key in keys}
                self.listed, self._looked = time.time(), time.monotonic()
        finally:
            self._listing.release()

    def _why_not(self) -> str:
        """Why the folder cannot be listed; one that was never there is empty."""
        try:
            os.scandir(self.results).close()
            self._was_there = True
        except FileNotFoundError:
            gone = f"{self.results}: the folder is gone, expected a folder of results"
            return gone if self._was_there else ""
        except OSError as error:
            return f"{self.results}: {error.strerror}, expected a folder of results"
        return ""

    def _with_facts(self, entry: Entry) -> Entry:
        """The entry with its facts, if they are known of its files as they are."""
        seen, facts = self._facts.get(entry.key, ((), None))
        if entry.facts is not None or facts is None or seen != fingerprint(entry.info.path):
            return entry
        return replace(entry, facts=facts)

    def _entries(self) -> Iterable[Entry]:
        """Entry of each folder."""
        used = set()
        own = {info.path: info for info in map(self._followed, list_runs(self.results))}
        here = {(info.path.parent.name, info.path.name) for info in own.values()}
        shipped = [] if self.published is None else list_runs(self.published)
        shipped = [i for i in shipped if (i.path.parent.name, i.path.name) not in here]
        # what is no run comes last
        for info in [*sorted(own.values(), key=lambda info: not info.started), *shipped]:
            folder, study = info.path.name, info.path.parent.name
            name = folder if folder not in used else f"{folder} {study}"
            name = name if _NAME.fullmatch(name) else ""
            used.add(folder)
            key = f"{study}/{folder}"
            profile = studies.profile_of(info.study, info.parameters)
            yield self._with_facts(Entry(name, key, info, profile, info in shipped))

    def _followed(self, info: RunInfo) -> RunInfo:
        """What is shown of a run: a link that leads out, the outermost, in its place."""
        for part in (info.path.parent, info.path, *(info.path / name for name in _FILES)):
            if os.path.islink(part) and not self._is_inside(part):
                path = part if part == info.path.parent else info.path
                reason = f"{part.name}: a link that leads out of the results is not followed"
                return RunInfo(path, path.parent.name, "unreadable", reason)
        return info

    def _is_inside(self, path: Path) -> bool:
        """Whether a path lies within the folder of results, links followed."""
        roots = [self.results, *filter(None, [self.published])]
        return any(path.resolve().is_relative_to(root.resolve()) for root in roots)

    def entry(self, run_id: str) -> Entry | None:
        """The listed folder of an identifier; nothing else is ever opened."""
        return self._by_id.get(run_id)

    def run(self, run_id: str) -> Run:
        """Open a run: its manifest and tables, cached while its files stay the same.

        Tables must not be changed: all sessions share them. The first read of a table checks
        the stored checksum and takes its time, so it belongs into a worker.

        Raises
        ------
        ValueError
            If there is no such run, or it cannot be read.
        """
        return self._open(run_id).run

    def made(self, run_id: str, name: str, make: Callable[[Run], Made]) -> Made:
        """What is made of a run, cached as its tables are.

        Parameters
        ----------
        run_id : str
        name : str
            Of what is made; each run knows few.
        make : callable

        Raises
        ------
        ValueError
            If there is no such run, or it cannot be read.
        """
        opened = self._open(run_id)
        if name not in opened.made:
            opened.made.setdefault(name, make(opened.run))
        made: Made = opened.made[name]
        return made

    def _open(self, run_id: str) -> _Opened:
        """Open a run, or find it opened."""
        entry = self._by_id.get(run_id)
        if entry is None:
            raise ValueError(f"there is no run {run_id!r} in {self.results}")
        if entry.info.status == "unreadable":
            raise ValueError(f"the run {run_id} cannot be read: {entry.info.reason}")
        path = entry.info.path
        if not path.is_dir():
            raise ValueError(f"{path}: the folder is gone, expected that of a run")
        for name in ("", *_FILES, "problems.json", *(f"{t}.parquet" for t in TABLES), ARRAYS):
            if not self._is_inside(path / name):
                raise ValueError(f"{path / name}: a link that leads out is not followed")
        seen = fingerprint(path)
        with self._lock:
            known = self._runs.get(entry.key)
            if known is not None and known.seen == seen:
                self._runs.move_to_end(entry.key)
                return known
        opened = _Opened(seen, Run.load(path))
        with self._lock:
            self._runs[entry.key] = opened
            self._runs.move_to_end(entry.key)
            while len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        return opened

    def table(self, run_id: str, name: str) -> pd.DataFrame:
        """Table of a run; of one that goes on, the personalisations finished so far.

        Parameters
        ----------
        run_id : str
        name : str
            One of `vitolab.store.columns.TABLES`.

        Raises
        ------
        ValueError
            If it cannot be read, or is not there as yet.
        """
        if name not in TABLES:
            raise ValueError(f"there is no table {name!r}, expected one of {', '.join(TABLES)}")
        entry = self._by_id.get(run_id)
        if entry is not None and name == "personalizations" and entry.info.status != "complete":
            return self._so_far(entry)
        table: pd.DataFrame = getattr(self.run(run_id), name)
        return table

    def arrays(self, run_id: str) -> Mapping[str, NDArray[Any]]:
        """Arrays of a run.

        Raises
        ------
        ValueError
            If it has none, or they cannot be read.
        """
        return self.run(run_id).arrays

    def _so_far(self, entry: Entry) -> pd.DataFrame:
        """Personalisations of the finished parts of a run that has no manifest."""
        path = entry.info.path
        if entry.info.status not in ("running", "interrupted"):
            return self.run(entry.id).personalizations
        parts = finished_parts(path)
        if not parts or not all(self._is_inside(part) for part in parts):
            raise ValueError(f"the run {entry.id} has no finished part yet")
        return OpenRun.attach(path).personalizations

    def learn_facts(self, run_ids: Iterable[str]) -> None:
        """Read size and key results of some complete runs; takes some milliseconds for each."""
        learned = {}
        for run_id in run_ids:
            entry = self._by_id.get(run_id)
            if entry is None or entry.info.status != "complete":
                continue
            mark = fingerprint(entry.info.path)
            facts = self._read_facts(entry.info.path)
            with self._lock:
                self._facts[entry.key] = mark, facts
                learned[entry.key] = facts
        with self._lock:
            self.entries = tuple(
                replace(entry, facts=learned.get(entry.key, entry.facts)) for entry in self.entries
            )
            self._by_id = {entry.id: entry for entry in self.entries if entry.id}

    def _read_facts(self, path: Path) -> Facts:
        """Size and key results of a run."""
        file = path / "personalizations.parquet"
        try:
            for name, record in Run.load(path).manifest.files.items():
                stored = path / name
                if Path(name).name != name or not self._is_inside(stored):
                    return Facts(damaged=f"{name}: what lies outside the run is not looked at")
                if not stored.is_file():
                    return Facts(damaged=f"{name} is missing")
                if stored.stat().st_size != record.size:
                    return Facts(damaged=f"{name} is not as long as it was stored")
            return read_facts(file)
        except (OSError, ValueError, KeyError, TypeError):
            return Facts(damaged="its table of personalisations cannot be read")


@cache
def shared(results: Path, published: bool = True) -> Source:
    """The one source of a folder in this process, with the published runs or without."""
    return Source(results, PUBLISHED if published else None)


def fingerprint(path: Path) -> Print:
    """Names, sizes and times of the files of a run: the same as long as nothing changed."""
    try:
        with os.scandir(path) as files:
            found = [(e.name, e.stat()) for e in files if e.is_file() and e.name[0] != "."]
    except OSError:
        return ()
    watched = [(n, s) for n, s in found if n != "progress.json"]
    return tuple(sorted((n, s.st_mtime_ns, s.st_size, s.st_ino) for n, s in watched))
