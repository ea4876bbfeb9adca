"""Processes of this machine: whether one lives, and workers that end with whom they work for."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import ParamSpec, TypeVar

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
    psutil = import_module("psutil")  # comes with ipykernel; not needed where there is /proc
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
        See `process_started`.
    """

    def watch() -> None:
        while process_started(process) == started:
            time.sleep(WATCH)
        os._exit(1)

    Thread(target=watch, name="vitolab watch", daemon=True).start()
