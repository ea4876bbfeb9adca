"""One thread of linear algebra, for as long as any thread of Python's computes."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from vitolab.parallel.threads import one_thread


def n_threads() -> set[int]:
    return {library["num_threads"] for library in ThreadpoolController().info()}


def test_threads_that_enter_and_leave_give_nothing_back_too_early():
    found = []

    def work():
        with one_thread():
            found.append(n_threads())

    with threadpool_limits(2):
        before = n_threads()
        with one_thread():
            for _ in range(3):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
                found.append(n_threads())
        assert n_threads() == before
    assert found == [{1}] * 6


def test_an_error_leaves_no_limit_behind():
    before = n_threads()
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert n_threads() == before
