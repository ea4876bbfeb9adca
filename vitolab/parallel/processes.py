"""Processes of this machine: whether one lives, and workers that end with whom they work for."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module
from multiprocessing.util import Finalize
from pathlib import Path
from threading import Lock, Thread, main_thread
from threading import enumerate as enumerate_threads
from typing import NoReturn, ParamSpec, TypeVar

WATCH = 0.5  # s between two looks at the process that a worker works for

P = ParamSpec("P")
T = TypeVar("T")


@cache
def machine() -> tuple[str, str]:
    """Name of this host, and of the space in which process numbers are unique.

    That is this boot, this container.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return socket.gethostname(), f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname(), ""


def process_started(process: int) -> str | None:
    """When a process of this machine started, in a form that does not change; None if dead."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()  # the name before may hold anything
        return None if fields[0] in "ZX" else fields[19]  # a zombie computes no more
    psutil = import_module("psutil")  # not needed where there is /proc
    try:
        return str(round(psutil.Process(process).create_time()))
    except psutil.Error:
        return None


def watched(work: Callable[P, T]) -> Callable[P, T]:
    """Let a worker process that does the work end when the process that gave it out is gone.

    A worker of joblib's is told to end by the process that started it. Where that one was
    killed, it would finish what it had taken and wait for more, for minutes. A thread does the
    work as it is, and so does a worker on another machine.
    """
    giver = os.getpid()
    return partial(_watched, (machine(), giver, process_started(giver)), work)


_Giver = tuple[tuple[str, str], int, str | None]


def _watched(giver: _Giver, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the work, with an eye on who gave it."""
    where, process, started = giver
    if where == machine() and process != os.getpid():
        end_with(process, started)
    return work(*args, **kwargs)


@cache
def end_with(process: int, started: str | None) -> None:
    """End this process soon after another one, which may be gone already.

    Parameters
    ----------
    process : int
    started : str or None
        See `process_started`; None if it was gone before.
    """

    def watch() -> None:
        while started is not None and process_started(process) == started:
            time.sleep(WATCH)
        os._exit(1)

    Thread(target=watch, name="vitolab watch", daemon=True).start()


def end_despite_threads(grace: float = 1.0) -> None:
    """Let this process end soon after its work, whatever threads it has by then.

    Python waits for threads that are no daemons; one that never ends would keep the process, and
    whoever waits for it, for ever.

    Parameters
    ----------
    grace : float
        Between the end of the work and that of the process at the latest, s.
    """

    def end() -> None:
        # of the interpreter's hooks the earliest, before it waits for threads
        Thread(target=_end_after, args=(grace,), name="vitolab end", daemon=True).start()

    Finalize(None, end, exitpriority=1000)


def _end_after(grace: float, code: int = 0) -> None:
    time.sleep(grace)
    os._exit(code)


def exit_despite_threads(code: int, grace: float = 3.0) -> NoReturn:
    """Exit, soon also where a model left threads that are no daemons.

    Parameters
    ----------
    code : int
        Exit status.
    grace : float
        For such threads, s; longer than that of worker processes, which end first.
    """
    # those of executors end by themselves, and clean up
    theirs = [t for t in enumerate_threads() if not t.daemon and t is not main_thread()]
    if any(type(t).__module__.partition(".")[0] not in ("loky", "joblib") for t in theirs):
        Thread(target=_end_at_exit, args=(grace, code), daemon=True).start()
    sys.exit(code)


def _end_at_exit(grace: float, code: int) -> None:
    """End once the interpreter shuts down: its main thread is the first to count as finished."""
    while main_thread().is_alive():
        time.sleep(0.05)
    _end_after(grace, code)


# --- programs that end with this process ---------------------------------------------------

# A process of its own outlives this one for a moment, however it ended: then its input ends.
_GUARD = """
import os, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, 9)
    except OSError:
        pass
"""


@contextmanager
def killed_with_this(
    start: Callable[[], subprocess.Popen[bytes]],
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that is killed, with its group, if this one ends meanwhile, by a kill -9 too.

    Parameters
    ----------
    start : callable
        Starts it, with ``start_new_session``.

    Raises
    ------
    CancelledError
        If this process is ending.
    """
    guard = _guard(os.getpid())
    process = guard.start(start)
    try:
        yield process
    finally:
        guard.tell(process.pid, lives=False)


class _Guard:
    """A process that is told which groups live, and kills them when nobody can tell any more."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        atexit.register(self._end)

    def start(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Start a process and tell that its group lives, or do neither."""
        with self._lock:
            if self._is_over:
                raise CancelledError
            process = start()
            self._note(process.pid, lives=True)
        return process

    def tell(self, group: int, *, lives: bool) -> None:
        """Tell that a group lives, or does no more."""
        with self._lock:
            if not self._is_over:
                self._note(group, lives=lives)

    def _note(self, group: int, *, lives: bool) -> None:
        (self._groups.add if lives else self._groups.discard)(group)
        try:
            self._write(f"{'+' if lives else '-'}{group}\n")
        except BrokenPipeError:  # somebody killed it
            self._leave()
            self._write("".join(f"+{known}\n" for known in self._groups))

    def _end(self) -> None:
        """Let all groups that live be killed; no more is started."""
        with self._lock:
            self._is_over = True
            self._leave()

    def _write(self, text: str) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _GUARD],
                env=dict(os.environ),  # a copy: another thread may change it meanwhile
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # out of reach of Ctrl-C
                bufsize=0,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())

    def _leave(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
            process.wait()


@cache
def _guard(process: int) -> _Guard:
    """Guard of this process; one that was forked has its own."""
    return _Guard()
