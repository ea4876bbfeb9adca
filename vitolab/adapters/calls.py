"""Calls of a function of one parameter vector, in this process or in a worker that can be ended."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool

from vitolab.adapters.rows import (
    Answer,
    Function,
    NoAnswer,
    selected,
    unprepared,
    untouched,
)
from vitolab.contract import batched
from vitolab.failures import CannotRun, Kind, described
from vitolab.parallel.processes import end_despite_threads, end_with, process_started
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient

PREPARE = 120.0  # s in which a process must be ready for its first call
_EXIT_CODES = re.compile(r"exit codes of the workers are \{(.+?)\}")


def called(function: Function, x: FloatArray, patient: Patient, outputs: Sequence[str]) -> Answer:
    """Call a function; what goes wrong is an answer too."""
    try:
        found = selected(function(x.copy(), untouched(patient)), outputs)
        odd = isinstance(found, NoAnswer) and found.kind is Kind.SHAPE
        return (_batched(function, x, patient, outputs) if odd else None) or found
    except CannotRun:
        raise
    except BaseException as error:
        # in a process of its own nothing but the function can raise these
        if _here.function is None and isinstance(error, KeyboardInterrupt | GeneratorExit):
            raise
        # how numpy complains of a vector that is taken for a batch
        odd = isinstance(error, IndexError | TypeError | ValueError)
        why = _batched(function, x, patient, outputs) if odd else None
        return why or NoAnswer(Kind.RAISED, described(error))


@dataclass(frozen=True)
class Batched(NoAnswer):
    """No answer, for the function takes a batch."""


_checked: list[Function] = []


def _batched(
    function: Function, x: FloatArray, patient: Patient, outputs: Sequence[str]
) -> Batched | None:
    """Answer of a function that takes a batch, asked once per process."""
    if any(known is function for known in _checked):
        return None
    _checked.append(function)
    why = batched(function, x, untouched(patient), len(outputs))
    return None if why is None else Batched(Kind.SHAPE, why)


class Workers:
    """Worker processes that wait to be asked."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._all: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._change = Condition()
        self._is_prepared_here = False

    @contextmanager
    def one(self, n: int) -> Iterator[_Worker]:
        """Lend one of at most n."""
        with self._change:
            self._change.wait_for(lambda: self._idle or len(self._all) < n)
            if not self._idle:
                self._all.append(_Worker(self._function))
                self._idle.append(self._all[-1])
            worker = self._idle.pop()
        try:
            yield worker
        finally:
            with self._change:
                self._idle.append(worker)
                self._change.notify()

    def prepare_here(self) -> None:
        """Prepare the function in this process, the first time."""
        if not self._is_prepared_here and (why := unprepared(self._function)):
            raise CannotRun(why)
        self._is_prepared_here = True

    def close(self) -> None:
        """End them."""
        for worker in self._all:
            worker.end()


class _Worker:
    """One process at a time: a new one after one that had to be ended."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._executor: ProcessPoolExecutor | None = None

    def ask(
        self, x: FloatArray, patient: Patient, outputs: Sequence[str], time_limit: float | None
    ) -> Answer:
        """Call the function in the process; the time starts when the process is ready."""
        known = (patient.name, dict(patient.measurements), dict(patient.data))
        try:
            executor = self._ready()
            future = executor.submit(_answer, x, known, tuple(outputs))
            found = future.result(time_limit)
        except TimeoutError:
            self.end()
            return NoAnswer(Kind.TIME_OUT, f"no answer within {time_limit:g} s")
        except BrokenProcessPool as error:
            self.end()
            return NoAnswer(Kind.CRASHED, _how_it_ended(error))
        except CannotRun:
            self.end()
            raise
        except Exception as error:  # what the function raises is an answer
            self.end()
            raise CannotRun(
                f"patient {patient.name!r} cannot go to another process: "
                f"{described(error.__cause__ or error)}"
            ) from None
        except BaseException:  # stopped by the user: nothing may go on behind the back
            self.end()
            raise
        y: FloatArray | None
        y, cause = found
        if cause is not None:
            return NoAnswer(Kind(cause[0]), cause[1], y=y)
        assert y is not None
        return y

    def _ready(self) -> ProcessPoolExecutor:
        """Start the process, unless it waits already."""
        if self._executor is not None:
            return self._executor
        us = os.getpid()
        try:
            started = self._executor = ProcessPoolExecutor(
                max_workers=1,
                initializer=_prepare,
                initargs=(self._function, us, process_started(us)),
            )
            why = started.submit(_unprepared).result(PREPARE)
        except TimeoutError:
            why = f"the model is not ready to be called within {PREPARE:g} s"
        except BrokenProcessPool as error:
            why = f"its process ended before the model could be called: {_how_it_ended(error)}"
        except Exception as error:  # of the system, or of many kinds for what cannot be pickled
            why = f"the model cannot go to a process of its own: {described(error)}"
        if why:
            raise CannotRun(why)
        return started

    def end(self) -> None:
        """End the process, whatever it does."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)


def _how_it_ended(error: BrokenProcessPool) -> str:
    """Exit code of a process, as loky tells it."""
    codes = _EXIT_CODES.search(str(error))
    return codes.group(1) if codes else "the process ended"


@dataclass
class _Here:
    """What a worker process keeps between calls."""

    function: Function | None = field(default=None)
    folder: str = "."
    unprepared: str | None = None


_here = _Here()


def _prepare(function: Function, parent: int, started: str | None) -> None:
    """Prepare a worker process: it leaves Ctrl-C to its parent, and ends when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent, started)
    end_despite_threads()
    with suppress(OSError):  # standard output is for results, whatever writes to it here
        os.dup2(2, 1)
    _here.function = function
    _here.folder = os.getcwd()
    _here.unprepared = unprepared(function)


def _unprepared() -> str | None:
    """Why the function of this worker process cannot be called; None if it can."""
    return _here.unprepared


def _answer(
    x: FloatArray,
    known: tuple[str, Mapping[str, float], Mapping[str, Any]],
    outputs: tuple[str, ...],
) -> tuple[FloatArray | None, tuple[str, str] | None]:
    """Call the function in a worker process."""
    assert _here.function is not None
    os.chdir(_here.folder)  # wherever the call before went
    with one_thread():
        found = called(_here.function, x, Patient(*known), outputs)
    if isinstance(found, Batched):
        raise CannotRun(found.text)
    if isinstance(found, NoAnswer):
        return found.y, (str(found.kind), found.text)
    return found, None
