"""One thread for linear algebra: the order of its sums depends on the number of threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """What controls all libraries that are loaded; another one comes with another module."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let libraries of linear algebra, and OpenMP, use one thread of this process.

    It costs next to nothing to enter again. Whoever starts threads of Python's enters before and
    leaves after them: the number belongs to the process, and of threads that overlap one might
    give it back while another computes.
    """
    with _controller(len(sys.modules)).limit(limits=1):
        yield
