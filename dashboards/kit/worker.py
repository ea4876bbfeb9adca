"""Work outside the event loop: few threads for all, results fetched by a periodic callback."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

Done = Callable[[Any], None]
Failed = Callable[[str], None]
#: Which threads do a piece of work; nothing waits for the work of another pool.
Pool = Literal["short", "long", "listing"]


@cache
def _pool(pool: Pool) -> ThreadPoolExecutor:
    """Threads that all sessions share."""
    n = 1 if pool == "listing" else 2
    return ThreadPoolExecutor(n, thread_name_prefix=f"vitolab dashboard, {pool}")


@dataclass
class _Job:
    """A function that was submitted."""

    future: Future[Any]
    done: Done | None
    failed: Failed | None


class Worker:
    """Work of one session.

    ``worker.submit(function, *args, done=show, failed=complain, key="curves")`` returns at once.
    `done` gets the result, `failed` one sentence, both in the event loop when it calls `poll`.

    A ValueError or an OSError of the function is meant for the user: code of this package raises
    them where what was given or stored is at fault, with a sentence that says so. Any other error,
    and each of `done`, is a fault of the program: it is told as unexpected, and goes to the log.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._count = 0

    def is_busy(self, key: str) -> bool:
        """Whether the work of a key goes on."""
        return key in self._jobs

    def submit(
        self,
        function: Callable[..., Any],
        *args: Any,
        done: Done | None = None,
        failed: Failed | None = None,
        key: str = "",
        pool: Pool = "short",
    ) -> None:
        """Call a function in a thread.

        Parameters
        ----------
        function : callable
            It must not touch the page.
        *args
        done : callable, optional
            Gets the result.
        failed : callable, optional
            Gets one sentence.
        key : str
            Work of the same key is superseded: its result is thrown away.
        pool : {"short", "long", "listing"}
            Work that may take seconds is long.
        """
        if not key:
            self._count += 1
            key = f"#{self._count}"
        self.drop(key)
        self._jobs[key] = _Job(_pool(pool).submit(function, *args), done, failed)

    def later(self, function: Callable[[], None], key: str, failed: Failed | None = None) -> None:
        """Call a function when `poll` is called next: the event loop has its turn before.

        Parameters
        ----------
        function : callable
        key : str
        failed : callable, optional
            As of `submit`.
        """
        self.drop(key)
        none: Future[None] = Future()
        none.set_result(None)
        self._jobs[key] = _Job(none, lambda _: function(), failed)

    def drop(self, *keys: str) -> None:
        """Throw the work of some keys away; what has begun ends unseen."""
        for key in keys:
            if key in self._jobs:
                self._jobs.pop(key).future.cancel()

    def poll(self) -> bool:
        """Hand over one piece of finished work, the oldest; called often in the event loop.

        Returns
        -------
        bool
            False if there was none.
        """
        finished = (key for key, job in self._jobs.items() if job.future.done())
        key = next(finished, None)
        if key is None:
            return False
        job = self._jobs.pop(key)
        why = _hand_over(job)
        if why and job.failed is not None:
            job.failed(why)
        return True

    def wait(self, timeout: float = 60.0) -> None:
        """Hand over everything, also what follows from it; for use without a server.

        Raises
        ------
        TimeoutError
            If it takes longer (s).
        """
        end = time.monotonic() + timeout
        while self._jobs:
            if time.monotonic() > end:
                raise TimeoutError(f"work goes on after {timeout:g} s: {', '.join(self._jobs)}")
            if not self.poll():
                time.sleep(0.002)

    def close(self) -> None:
        """Throw all work away."""
        for job in self._jobs.values():
            job.future.cancel()
        self._jobs.clear()


def _hand_over(job: _Job) -> str:
    """Hand the result over; what went wrong, in a sentence, empty if nothing did."""
    error = job.future.exception()
    if isinstance(error, ValueError | OSError) and str(error).strip():
        return " ".join(str(error).split())
    if error is not None:
        return _unexpected(error)
    if job.done is not None:
        try:
            job.done(job.future.result())
        except Exception as fault:
            return _unexpected(fault)
    return ""


def _unexpected(error: BaseException) -> str:
    """One sentence for a fault of the program, which goes to the log in full."""
    traceback.print_exception(error, file=sys.stderr)
    return f"unexpected {type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
