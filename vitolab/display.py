"""What a command says while it works: lines, and how far a run is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from threading import Event, Thread
from typing import Protocol, TextIO


class Stage(Protocol):
    """How far some work is: a stage, and parts of it that are done."""

    @property
    def stage(self) -> str:
        """Name of the stage."""
        ...

    @property
    def done(self) -> int:
        """Finished parts."""
        ...

    @property
    def total(self) -> int:
        """All parts."""
        ...


Read = Callable[[], Stage | None]


def say(line: str) -> None:
    """Tell the user."""
    print(line, file=sys.stderr, flush=True)


def lasting(seconds: float) -> str:
    """Time in words, such as 2.5 min."""
    for size, unit, below in ((1e-3, "ms", 0.1), (1.0, "s", 120.0), (60.0, "min", 7200.0)):
        if seconds < below:
            return f"{seconds / size:.3g} {unit}"
    hours = seconds / 3600.0
    return f"{hours:,.0f} h" if hours >= 1000.0 else f"{hours:.3g} h"


@contextmanager
def results_only() -> Iterator[TextIO]:
    """Keep standard output for results; all else that is written to it goes to standard error.

    That is what a model prints, from Python, C or a program. It stays so to the end of the
    process, for what is still in a buffer.

    Yields
    ------
    file
        Standard output, for the results; to be used afterwards, too.
    """
    out = sys.stdout
    try:
        is_ours = out.fileno() == 1  # not where somebody collects it
    except (OSError, ValueError):
        is_ours = False
    if is_ours:
        out.flush()
        out = open(os.dup(1), "w", encoding=out.encoding, errors=out.errors)  # noqa: SIM115
        with suppress(OSError):
            os.dup2(2, 1)
    with redirect_stdout(sys.stderr):
        yield out


@contextmanager
def shown(read: Read) -> Iterator[None]:
    """Show how far a run is while it goes on: a bar on a terminal, plain lines elsewhere.

    Parameters
    ----------
    read : callable
        Answers with the progress of the run, or None where there is none yet.
    """
    stop = Event()
    show = _show_bar if sys.stderr.isatty() else _show_lines
    thread = Thread(target=show, args=(read, stop.wait), name="vitolab progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _show_bar(read: Read, wait: Callable[[float], bool]) -> None:
    """Draw a bar per stage until told to stop."""
    from tqdm import tqdm

    bar, stage, ended = None, None, False
    while not ended:
        ended = wait(0.5)
        progress = read()
        if progress is None or not progress.total:
            continue
        if bar is None or progress.stage != stage:
            if bar is not None:
                bar.close()
            stage = progress.stage
            bar = tqdm(desc=stage, total=progress.total, file=sys.stderr)
        bar.n = progress.done
        bar.refresh()
    if bar is not None:
        bar.close()


def _show_lines(read: Read, wait: Callable[[float], bool]) -> None:
    """Print a line when a stage begins, every half minute and at the end."""
    said: tuple[str, int, int] | None = None
    last = time.monotonic()
    ended = False
    while not ended:
        ended = wait(0.5)
        progress = read()
        if progress is None or not progress.total:
            continue
        state = (progress.stage, progress.done, progress.total)
        began = said is None or said[0] != progress.stage
        if state != said and (began or ended or time.monotonic() - last > 30):
            said, last = state, time.monotonic()
            say(f"  {progress.stage}: {progress.done} of {progress.total}")
