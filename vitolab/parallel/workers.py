"""Who works: threads or processes of this machine, or the workers of a Dask scheduler.

Whatever explores or validates hands its work to `parallel`. The environment variable
``VITOLAB_SCHEDULER`` names a scheduler whose workers then do it; it reaches the kernel of a
notebook without being one of its parameters, for results do not depend on it. A worker that
would compute otherwise, being of another version or of several threads, is refused.

Work comes back by its key and may be done more than once: of a worker that is lost it is done
again by another. Only the process that asked for it writes files.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

from joblib import Parallel, delayed

from vitolab.parallel.processes import watched
from vitolab.parallel.threads import one_thread
from vitolab.version import code_version

SCHEDULER = "VITOLAB_SCHEDULER"
INSTALL = "pip install 'vitolab[cluster]'"
TIMEOUT = 5.0  # seconds in which a scheduler must answer
POLL = 1.0  # seconds between two looks at whether a worker can still come
_ATTEMPTS = 10  # to give workers what they share, while some are lost
NO_WORKER = "vitolab: why no worker can come"  # where a scheduler keeps a sentence

Item = tuple[Any, ...]


def parallel(
    work: Callable[..., Any],
    shared: Any,
    items: Iterable[Item],
    n_jobs: int = 1,
    prefer: Literal["threads", "processes"] = "threads",
) -> Iterator[Any]:
    """Do the work for every item: ``work(shared, *item)``, with one thread of linear algebra.

    Parameters
    ----------
    work : callable
    shared : object
        What every item needs; it goes to each worker once.
    items : iterable of tuple
    n_jobs : int
        Items at the same time on this machine; a scheduler uses all its workers.
    prefer : {"threads", "processes"}
        On this machine, unless joblib is configured otherwise.

    Yields
    ------
    object
        What the work gave, in the order in which it is finished.

    Raises
    ------
    ValueError
        If a worker of the scheduler would compute otherwise than this process.
    ConnectionError
        If the scheduler does not answer, it or all its workers are lost, or none can come.
    RuntimeError
        If a task ended every worker that tried it.
    """
    address = os.environ.get(SCHEDULER)
    with one_thread():  # of all threads together, see there
        if address:
            yield from _on_workers(address, work, shared, items)
        else:
            yield from Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered")(
                delayed(watched(_do))(work, shared, item) for item in items
            )


def processors() -> int:
    """Count the processors that this process may use: on a worker of a scheduler its threads."""
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        with suppress(ValueError):  # this is none
            return int(distributed.get_worker().state.nthreads)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _do(work: Callable[..., Any], shared: Any, item: Item) -> Any:
    with one_thread():  # in a process of its own, too
        return work(shared, *item)


def _do_there(expected: str, work: Callable[..., Any], shared: Any, item: Item) -> Any:
    """Do the work on a worker, of those that came late too, if it computes as the client does."""
    _refuse_other(expected, *_itself())
    return _do(work, shared, item)


def _on_workers(
    address: str, work: Callable[..., Any], shared: Any, items: Iterable[Item]
) -> Iterator[Any]:
    """Do the work through joblib's Dask backend."""
    expected = code_version()
    with _connected(address) as client:
        everywhere = _on_all(client, address, shared)
        yield from Parallel(
            backend=_backend(client, address),
            batch_size=1,
            pre_dispatch="all",  # workers that come later find work
            return_as="generator_unordered",
        )(delayed(_do_there)(expected, work, everywhere, item) for item in items)


def _on_all(client: Any, address: str, shared: Any) -> Any:
    """Give all workers what they share, once there is one.

    To all at once: what only one holds is lost with it. An item is a tuple, which joblib leaves
    alone; larger objects it would place on one worker.
    """
    for _ in range(_ATTEMPTS):
        _wait_for_one(client)
        try:
            return client.scatter([shared], broadcast=True, hash=False)[0]
        except OSError:  # a worker was lost, which the scheduler does not know yet
            time.sleep(POLL)
    raise ConnectionError(
        f"{address}: the scheduler or its workers are lost; the same command goes on from here"
    )


def _wait_for_one(client: Any) -> None:
    """Wait for a worker: for ever while jobs queue, but not if no job is left that can start."""
    while True:
        try:
            client.wait_for_workers(1, timeout=POLL)
        except TimeoutError:
            why = client.get_metadata([NO_WORKER], None)
        else:
            return
        if why is not None:
            raise ConnectionError(f"{why}; the same command goes on from here")


def _backend(client: Any, address: str) -> Any:
    """Joblib's Dask backend, which else waits for ever for what was given up."""
    from distributed import KilledWorker
    from joblib._dask import DaskDistributedBackend

    class Backend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            """Not one, for which joblib would work in this process; Dask counts its workers."""
            return 2

        def submit(self, func: Any, callback: Callable[[Any], None]) -> Any:
            """Submit, and report also what was given up."""

            def report(future: Any) -> None:
                if future.exception() is not None:
                    callback(future.exception())

            future = super().submit(func, callback)
            future.add_done_callback(report)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            """Give the result of a task, or raise why there is none."""
            if isinstance(out, KilledWorker):
                raise RuntimeError(
                    f"{address}: every worker that tried a task died ({out.allowed_failures + 1}), "
                    "expected memory enough for it"
                )
            if isinstance(out, BaseException) and "Cancelled" in type(out).__name__:
                raise ConnectionError(
                    f"{address}: the scheduler or all its workers are lost; the same command "
                    "goes on from here"
                )
            if isinstance(out, BaseException):
                raise out
            return super().retrieve_result_callback(out)

    return Backend(client=client)


# --- a scheduler -------------------------------------------------------------------------


def check_scheduler(address: str) -> int:
    """Refuse a scheduler that cannot be used.

    Parameters
    ----------
    address : str
        Such as ``tcp://127.0.0.1:8786``, or ``tls://`` with the certificates that Dask's
        configuration names.

    Returns
    -------
    int
        Number of its workers, which may be none yet.

    Raises
    ------
    ValueError
        If it is no address, Dask is not installed, or a worker would compute otherwise than this
        process.
    ConnectionError
        If it does not answer.
    """
    expected = code_version()
    with _connected(address) as client:
        found = client.run(_itself, on_error="return")
    for worker, itself in found.items():
        if isinstance(itself, BaseException):
            raise ValueError(f"worker {worker}: vitolab cannot be used there: {itself}")
        _refuse_other(expected, *itself)
    return len(found)


def is_exposed(address: str) -> bool:
    """Whether others than this machine may reach a scheduler without a certificate."""
    parts = urlsplit(address)
    try:
        loopback = ip_address(parts.hostname or "").is_loopback
    except ValueError:
        loopback = parts.hostname == "localhost"
    return parts.scheme != "tls" and not loopback


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Client of a scheduler."""
    wrong = ValueError(
        f"scheduler is {address!r}, expected an address such as tcp://127.0.0.1:8786, or tls://"
    )
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:
        raise wrong from None
    if not valid or parts.path or parts.query:
        raise wrong
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(f"a scheduler needs Dask, which is not installed: {INSTALL}") from None
    try:
        client = Client(address, timeout=TIMEOUT, set_as_default=False, name="vitolab")
    except (OSError, TypeError, RuntimeError) as error:  # TypeError: no certificate
        because = "" if isinstance(error, OSError) else f" ({' '.join(str(error).split())})"
        raise ConnectionError(
            f"{address}: no scheduler answers within {TIMEOUT:g} s{because}, expected one that runs"
        ) from None
    with client:
        yield client


@lru_cache(maxsize=1)
def _version() -> str:
    return code_version()


def _itself(dask_worker: Any = None) -> tuple[str, str, int]:
    """Address of this worker, the version of its code, and its number of threads.

    Dask tells a function that is run beside the tasks by ``dask_worker`` where it is.
    """
    from distributed import get_worker

    worker = dask_worker or get_worker()
    return worker.address, _version(), worker.state.nthreads


def _refuse_other(expected: str, worker: str, version: str, n_threads: int) -> None:
    """Refuse a worker whose results would have other bits."""
    if version != expected:
        raise ValueError(
            f"worker {worker}: vitolab and its libraries are of version {version} there, expected "
            f"{expected} as here, for the same bits"
        )
    if n_threads != 1:
        raise ValueError(
            f"worker {worker}: it has {n_threads} threads, expected one (--nthreads 1), for the "
            "same bits"
        )
