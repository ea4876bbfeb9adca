"""Failed forward runs: what went wrong, for which patient, with which parameters.

A failed run is data. `Problem.run` turns whatever a model does instead of answering into a row
that is not finite, and gives its cause beside the outputs.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

LONGEST = 300  # characters of a text that are kept
_END = 60  # characters that are shown of each end of what is abridged
_LONG = re.compile(r"'[^']{200,}'|\"[^\"]{200,}\"|\S{200,}")
MOST = 50  # texts of one patient that are told apart; some models put numbers into theirs
OTHERS = "further causes, not told apart"
HOPELESS = 50  # runs, all failed, after which work that no run has answered may end


class CannotRun(Exception):
    """A model or a method cannot be run at all: no failed run, the work ends."""


class NothingAnswers(ValueError):
    """No run of some work gave an answer.

    Attributes
    ----------
    failures : tuple of Failure
    """

    failures: tuple[Failure, ...] = ()


class Kind(enum.StrEnum):
    """What happened instead of an answer."""

    RAISED = "raised"
    NOT_FINITE = "not finite"
    TOO_LARGE = "too large"
    SHAPE = "wrong shape"
    TIME_OUT = "time-out"
    CRASHED = "crashed"
    METHOD = "error of the method"


@dataclass(frozen=True)
class Failure:
    """Runs that failed alike.

    Attributes
    ----------
    patient : str
    kind : Kind
    text : str
        First line of what the model said, of the first of them.
    x : tuple of float
        Parameters of the first of them.
    n_runs : int
    n_retries : int
        Further attempts that were made for them, all in vain.
    """

    patient: str
    kind: Kind
    text: str
    x: tuple[float, ...]
    n_runs: int = 1
    n_retries: int = 0

    @property
    def sentence(self) -> str:
        """The cause in words."""
        return f"{self.kind}: {self.text}" if self.text else str(self.kind)


@dataclass
class Record:
    """Failed runs in the order in which they were met, alike ones together."""

    _known: dict[tuple[str, Kind, str], Failure] = field(default_factory=dict)

    def add(self, failure: Failure) -> None:
        """Count a failed run."""
        key = (failure.patient, failure.kind, failure.text)
        if key not in self._known and self._n_told_apart(failure.patient) >= MOST:
            key = (failure.patient, failure.kind, OTHERS)
            failure = replace(failure, text=OTHERS)
        before = self._known.get(key)
        if before is not None:
            failure = replace(
                before,
                n_runs=before.n_runs + failure.n_runs,
                n_retries=before.n_retries + failure.n_retries,
            )
        self._known[key] = failure

    def _n_told_apart(self, patient: str) -> int:
        """How many texts of a patient are known."""
        return sum(name == patient for name, _, _ in self._known)

    def update(self, failures: Iterable[Failure]) -> None:
        """Count failed runs, in their order."""
        for failure in failures:
            self.add(failure)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What was met so far."""
        return tuple(self._known.values())


class Reason(NamedTuple):
    """Why a row of a batched model has no answer, in the words of the model.

    Attributes
    ----------
    kind : Kind
    text : str
        Its first line is kept.
    n_retries : int
        Further attempts that were made.
    """

    kind: Kind
    text: str
    n_retries: int = 0


def first_line(text: str) -> str:
    """Get the first line of a text that is not empty, at most `LONGEST` characters of it."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line), "")[:LONGEST]


def abridged(text: str) -> str:
    """Text in a message on one line; of words and quoted values that are long both ends.

    A path, a unit or the value of a parameter may be of any length; whoever reads the message
    has to find what is wrong with it.
    """
    return _LONG.sub(lambda found: f"{found[0][:_END]}…{found[0][-_END:]}", " ".join(text.split()))


def described(error: BaseException) -> str:
    """Name and first line of an exception."""
    said = first_line(str(error))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def located(names: Sequence[str], x: Iterable[float]) -> str:
    """Parameters in a message, by name."""
    return ", ".join(f"{name}={value:.6g}" for name, value in zip(names, x, strict=True))


def all_failed(what: str, failures: Iterable[Failure], names: Sequence[str]) -> NothingAnswers:
    """Error for work of which no run gave an answer: how many, and the first cause.

    Parameters
    ----------
    what : str
        Whose runs, as ``problem 'heart'``.
    failures : iterable of Failure
        At least one.
    names : sequence of str
        Of the parameters.
    """
    known = list(failures)
    first = known[0]
    at = located(names, first.x)
    error = NothingAnswers(
        f"{what}: all {sum(failure.n_runs for failure in known)} runs so far failed, expected some "
        f"that answer; the first ({first.patient}, {at}): {first.sentence}"
    )
    error.failures = tuple(known)
    return error
