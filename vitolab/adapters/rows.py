"""A batch of forward runs, one by one: what each gave, or why it gave nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from threading import Lock
from typing import Any

import numpy as np

from vitolab.answers import numbers
from vitolab.failures import CannotRun, Kind, Reason, described
from vitolab.problem import FloatArray, Patient
from vitolab.running import Answers


@dataclass(frozen=True)
class NoAnswer:
    """Why a forward run gave nothing.

    Attributes
    ----------
    kind : Kind
    text : str
    n_retries : int
        Further attempts that were made.
    y : ndarray, shape (n_outputs,), optional
        Outputs, where only some of them are not finite.
    """

    kind: Kind
    text: str
    n_retries: int = 0
    y: FloatArray | None = None


Answer = FloatArray | NoAnswer


class Running:
    """What runs elsewhere for one call of a model, to be ended where the call is left early."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ends: list[Callable[[], None]] = []
        self._is_over = False

    def check(self) -> None:
        """Refuse to begin anything when all is over."""
        with self._lock:
            if self._is_over:
                raise CancelledError

    @contextmanager
    def held(self, end: Callable[[], None]) -> Iterator[None]:
        """Know meanwhile how to end something; refused when all is over."""
        with self._lock:
            if self._is_over:
                raise CancelledError
            self._ends.append(end)
        try:
            yield
        finally:
            with self._lock:
                self._ends.remove(end)

    def end(self) -> None:
        """End everything."""
        with self._lock:
            self._is_over = True
            ends = list(self._ends)
        for end in ends:
            end()


def answers(
    ask: Callable[[FloatArray], Answer],
    x: FloatArray,
    n_outputs: int,
    n_workers: int,
    running: Running | None = None,
) -> Answers:
    """Ask for each row, some at the same time, and explain those without an answer.

    Parameters
    ----------
    ask : callable
        Takes one parameter vector, shape (n_parameters,).
    x : ndarray, shape (n, n_parameters)
    n_outputs, n_workers : int
    running : Running, optional
        What is ended where one raises an exception, or the user stops all.

    Returns
    -------
    Answers
    """
    y, reasons = np.full((len(x), n_outputs), np.nan), dict[int, Reason]()
    at_once = min(n_workers, len(x))
    if at_once > 1:
        with ThreadPool(at_once) as threads:  # which nobody waits for when this process ends
            try:
                found = list(threads.imap(ask, x))
            except BaseException:
                if running is not None:
                    running.end()
                raise
    else:
        found = [ask(row) for row in x]
    for row, answer in enumerate(found):
        if isinstance(answer, NoAnswer):
            reasons[row] = Reason(answer.kind, answer.text, answer.n_retries)
            if answer.y is not None:
                y[row] = answer.y
        else:
            y[row] = answer
    return Answers(y, reasons)


def ask_again(ask: Callable[[], Answer], retries: int) -> Answer:
    """Ask until there is an answer, at most ``retries`` times more."""
    for n_retries in range(retries + 1):
        answer = ask()
        if not isinstance(answer, NoAnswer):
            return answer
        last = replace(answer, n_retries=n_retries)
    return last


def selected(found: object, outputs: Sequence[str]) -> Answer:
    """Numbers in the order of the outputs, by their names where they have some.

    Parameters
    ----------
    found : mapping of str to float, or sequence of float
        Names count for a mapping, a named tuple, a record of numpy, and a Series or a row of
        pandas; further names do not matter.
    outputs : sequence of str

    Returns
    -------
    ndarray, shape (n_outputs,), or NoAnswer
        `Kind.SHAPE` where an output is missing or no number, or there are more or fewer;
        `Kind.NOT_FINITE` where one is None, NaN or infinite, beside all outputs.
    """
    named = _named(found)
    if named is not None:
        names = [name for name, _ in named]
        for name in outputs:
            if names.count(name) != 1:
                there = ", ".join(map(str, names)) or "nothing"
                what = "is missing" if name not in names else "occurs twice"
                return NoAnswer(Kind.SHAPE, f"output {name!r} {what}, found {there}")
        values = dict(named)
        found = [values[name] for name in outputs]
    try:
        y = numbers(found)
    except TypeError as error:
        if str(error).startswith("an output is"):
            return NoAnswer(Kind.SHAPE, str(error))
        return NoAnswer(Kind.SHAPE, f"{type(found).__name__}, expected {len(outputs)} numbers")
    except (ValueError, OverflowError):
        return NoAnswer(Kind.SHAPE, f"{type(found).__name__}, expected {len(outputs)} numbers")
    if y.shape != (len(outputs),):
        return NoAnswer(Kind.SHAPE, f"shape {y.shape}, expected ({len(outputs)},)")
    bad = [name for name, is_finite in zip(outputs, np.isfinite(y), strict=True) if not is_finite]
    return NoAnswer(Kind.NOT_FINITE, ", ".join(bad), y=y) if bad else y


def _named(found: Any) -> list[tuple[Any, Any]] | None:
    """Names and values of an answer; None where it has no names."""
    if isinstance(found, Mapping):
        return [(name, found[name]) for name in found]
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return list(zip(found._fields, found, strict=True))
    if isinstance(found, (np.void, np.ndarray)) and found.dtype.names and found.size == 1:
        record = np.ma.asarray(found).reshape(())
        return [(name, record[name][()]) for name in found.dtype.names]
    pandas = sys.modules.get("pandas")  # whoever answers with it has loaded it
    if pandas is None:
        return None
    if isinstance(found, pandas.DataFrame) and len(found) == 1:
        found = found.iloc[0]
    if isinstance(found, pandas.Series) and not isinstance(found.index, pandas.RangeIndex):
        return list(zip(found.index, found, strict=True))
    return None


def unprepared(function: Any) -> str | None:
    """Let a function do what it does once per process; why it cannot.

    Parameters
    ----------
    function : object
        Does so by a method ``prepare()``, where it has one.

    Returns
    -------
    str or None
        None where all is well.
    """
    try:
        getattr(function, "prepare", bool)()
    except CannotRun as error:
        return str(error)
    except (Exception, SystemExit) as error:
        return f"the model cannot be prepared: {described(error)}"
    return None


def untouched(patient: Patient) -> Patient:
    """Copy of a patient for a function that may write into the data."""
    return Patient(patient.name, patient.measurements, deepcopy(dict(patient.data)))


def check_limits(
    outputs: Sequence[str], time_limit: float | None, retries: int, n_workers: int | None
) -> None:
    """Refuse settings that make no sense.

    Raises
    ------
    ValueError
    """
    if not outputs or len(set(outputs)) < len(outputs):
        raise ValueError(f"outputs are {list(outputs)}, expected at least one name, each once")
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise ValueError(f"time_limit is {time_limit:g} s, expected above 0")
    if retries < 0:
        raise ValueError(f"retries is {retries}, expected at least 0")
    if n_workers is not None and n_workers < 0:
        raise ValueError(f"n_workers is {n_workers}, expected at least 0")


#: A function of one parameter vector: numbers by name of output, or in their order.
Function = Callable[[FloatArray, Patient], Mapping[str, float] | Sequence[float]]
