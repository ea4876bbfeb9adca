"""A Python function of one parameter vector, run in worker processes that can be ended."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from queue import LifoQueue
from typing import Any, ClassVar

from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool

from vitolab.adapters.rows import (
    Answer,
    Function,
    NoAnswer,
    answers,
    ask_again,
    check_limits,
    selected,
)
from vitolab.failures import Kind, described
from vitolab.problem import FloatArray, Patient
from vitolab.processes import end_with, process_started

_EXIT_CODES = re.compile(r"exit codes of the workers are \{(.+?)\}")


@dataclass(frozen=True)
class FunctionModel:
    """A batched model from a function of one parameter vector.

    The function may be defined anywhere, also in a notebook or within another function. It runs
    in worker processes, which are started once and kept; a call that takes longer than the limit
    ends with its process, as does one that brings the process down. Either is a failed run.

    Attributes
    ----------
    function : callable
        ``function(x, patient)`` with x of shape (n_parameters,); answers with numbers by name of
        output, or in the order of the outputs. An exception is a failed run. What it has to do
        once per process may be in a method ``prepare()``, whose time does not count.
    outputs : tuple of str
        Names of the outputs, in the order of the problem's objectives.
    time_limit : float, optional
        Of one call, s of wall clock; without one a call may take forever.
    n_workers : int, optional
        Processes; by default one per processor. With 0 the function is called in this process,
        where nothing can end it: for functions that take less than some milliseconds.
    retries : int
        Further attempts for a call that fails, for failures that are a matter of luck.

    Raises
    ------
    ValueError
        If a setting makes no sense, or there is a limit without processes.
    """

    function: Function
    outputs: tuple[str, ...]
    time_limit: float | None = None
    n_workers: int | None = None
    retries: int = 0
    #: Where studies would start processes for a model of Python, they leave it to this one.
    own_processes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        n_workers = check_limits(self.outputs, self.time_limit, self.retries, self.n_workers)
        object.__setattr__(self, "n_workers", n_workers)
        if n_workers == 0 and self.time_limit is not None:
            raise ValueError("time_limit needs worker processes, expected n_workers above 0")

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model.

        Parameters
        ----------
        x : ndarray, shape (n, n_parameters)
        patient : Patient

        Returns
        -------
        ndarray, shape (n, n_outputs)
            NaN where a run failed; why is told to `vitolab.failures`.
        """
        n_workers = self.n_workers or 0
        if n_workers == 0:
            return answers(lambda row: self._here(row, patient), x, len(self.outputs), 1)

        def ask(row: FloatArray) -> Answer:
            with self._workers.one() as worker:
                return ask_again(
                    lambda: worker.ask(row, patient, self.outputs, self.time_limit), self.retries
                )

        return answers(ask, x, len(self.outputs), n_workers)

    def _here(self, row: FloatArray, patient: Patient) -> Answer:
        """Call the function in this process."""

        def ask() -> Answer:
            return _called(self.function, row.copy(), patient, self.outputs)

        return ask_again(ask, self.retries)

    @cached_property
    def _workers(self) -> _Workers:
        return _Workers(self.function, self.n_workers or 1)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the processes, which do not travel."""
        return {name: value for name, value in vars(self).items() if name != "_workers"}

    def close(self) -> None:
        """End the worker processes; another call starts them again."""
        workers = vars(self).pop("_workers", None)
        if workers is not None:
            workers.close()

    def __enter__(self) -> FunctionModel:
        """Use the model in a block, at whose end the processes end."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the worker processes."""
        self.close()


@dataclass(frozen=True)
class FileFunction:
    """A function in a Python file, loaded where it is called.

    The file may import others beside it.

    Attributes
    ----------
    path : Path
    name : str
    """

    path: Path
    name: str

    def __call__(self, x: FloatArray, patient: Patient) -> Any:
        """Call the function; see `FunctionModel.function`."""
        return _loaded(self.path, self.name)(x, patient)

    def prepare(self) -> None:
        """Load the file, which may take longer than a call."""
        _loaded(self.path, self.name)

    @property
    def sources(self) -> tuple[Path, ...]:
        """Files on which the answers depend."""
        return (self.path,)


_modules: dict[tuple[Path, int], Any] = {}


def _loaded(path: Path, name: str) -> Any:
    """Function of a file; the file is executed once per process and content."""
    key = (path, path.stat().st_mtime_ns)
    if key not in _modules:
        spec = importlib.util.spec_from_file_location(f"_vitolab_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path}: expected a Python file")
        folder = str(path.parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _modules[key] = module
    return getattr(_modules[key], name)


def _called(function: Function, x: FloatArray, patient: Patient, outputs: Sequence[str]) -> Answer:
    """Call a function; what goes wrong is an answer too."""
    try:
        return selected(function(x, patient), outputs)
    except (Exception, SystemExit) as error:
        return NoAnswer(Kind.RAISED, described(error))


class _Workers:
    """Worker processes that wait to be asked."""

    def __init__(self, function: Function, n: int) -> None:
        self._all = [_Worker(function) for _ in range(n)]
        self._idle: LifoQueue[_Worker] = LifoQueue()
        for worker in reversed(self._all):
            self._idle.put(worker)

    @contextmanager
    def one(self) -> Iterator[_Worker]:
        """Lend one."""
        worker = self._idle.get()
        try:
            yield worker
        finally:
            self._idle.put(worker)

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
            y, cause = future.result(time_limit)
        except TimeoutError:
            self.end()
            return NoAnswer(Kind.TIME_OUT, f"no answer within {time_limit:g} s")
        except BrokenProcessPool as error:
            self.end()
            codes = _EXIT_CODES.search(str(error))
            return NoAnswer(Kind.CRASHED, codes.group(1) if codes else "the process ended")
        except BaseException:  # stopped by the user: nothing may go on behind the back
            self.end()
            raise
        return y if cause is None else NoAnswer(Kind(cause[0]), cause[1])

    def _ready(self) -> ProcessPoolExecutor:
        """Start the process, unless it waits already."""
        if self._executor is None:
            started = ProcessPoolExecutor(
                max_workers=1, initializer=_prepare, initargs=(self._function, os.getpid())
            )
            self._executor = started
            started.submit(os.getpid).result()
        return self._executor

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None


@dataclass
class _Here:
    """What a worker process keeps between calls."""

    function: Function | None = field(default=None)


_here = _Here()


def _prepare(function: Function, parent: int) -> None:
    """Prepare a worker process: it leaves Ctrl-C to its parent, and ends when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent, process_started(parent))
    _here.function = function
    with suppress(Exception):  # it will say so itself when it is called
        getattr(function, "prepare", bool)()


def _answer(
    x: FloatArray,
    known: tuple[str, Mapping[str, float], Mapping[str, Any]],
    outputs: tuple[str, ...],
) -> tuple[FloatArray | None, tuple[str, str] | None]:
    """Call the function in a worker process."""
    assert _here.function is not None
    found = _called(_here.function, x, Patient(*known), outputs)
    if isinstance(found, NoAnswer):
        return None, (str(found.kind), found.text)
    return found, None
