"""Guarded forward runs: whatever a model does instead of answering is a failed run with a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field

import numpy as np

from vitolab.answers import numbers
from vitolab.failures import CannotRun, Failure, Kind, Reason, described, first_line
from vitolab.quantities import LARGEST, BoolArray, FloatArray, Objective, Patient, Simulate


@dataclass(frozen=True)
class Runs:
    """Forward runs: their outputs, and why some failed.

    Attributes
    ----------
    y : ndarray, shape (n, n_objectives)
        NaN where a run failed.
    failures : tuple of Failure
        One for each failed row, in the order of the rows.
    """

    y: FloatArray
    failures: tuple[Failure, ...] = ()

    @property
    def failed(self) -> BoolArray:
        """Which runs failed, shape (n,)."""
        failed: BoolArray = np.any(~np.isfinite(self.y), axis=-1)
        return failed

    def by_row(self) -> list[tuple[Failure, ...]]:
        """Failure of each row, none where the run answered."""
        left = iter(self.failures)
        return [(next(left),) if failed else () for failed in self.failed.tolist()]


@dataclass(frozen=True)
class Answers:
    """Outputs of a batched model that says itself why some rows have no answer.

    A model may return them instead of a bare array, or have a method ``answers(x, patient)`` that
    does, beside a call that gives the array alone.

    Attributes
    ----------
    y : ndarray, shape (n, n_outputs)
    reasons : mapping of int to Reason
        By row; needed of no row.
    """

    y: FloatArray
    reasons: Mapping[int, Reason] = field(default_factory=dict)


def asked(
    model: Simulate, x: FloatArray, patient: Patient, names: Sequence[str] | None = None
) -> Answers:
    """Answers of a batched model, without reasons where it gives none."""
    found = getattr(model, "answers", model)(x, patient)
    y, reasons = (found.y, found.reasons) if isinstance(found, Answers) else (found, {})
    return Answers(numbers(y, names), reasons)


def guarded(
    model: Simulate, objectives: Sequence[Objective], x: FloatArray, patient: Patient
) -> Runs:
    """Run a batched model, see `Problem.run`.

    Parameters
    ----------
    model : callable
    objectives : sequence of Objective
    x : ndarray, shape (n, n_parameters)
    patient : Patient

    Returns
    -------
    Runs

    Raises
    ------
    CannotRun
        If the model says that it cannot be run at all.
    """
    n, n_objectives = len(x), len(objectives)
    found = Answers(np.empty(0))
    try:
        # copies: what a simulator does to its argument, or keeps, stays its own affair
        found = asked(model, x.copy(), patient, [o.name for o in objectives])
        kind, text = Kind.SHAPE, _other_shape(found.y, n, n_objectives)
    except CannotRun:
        raise
    except _WrongShapeError as error:
        kind, text = Kind.SHAPE, str(error)
    except (KeyboardInterrupt, GeneratorExit, CancelledError):
        raise  # whoever stopped this: what was not run has not failed
    except BaseException as error:  # some libraries raise what is no Exception
        kind, text = Kind.RAISED, described(error)
    y = found.y
    if y.shape == (n, n_objectives):
        answered = np.abs(y) <= LARGEST * np.array([o.tolerance for o in objectives])
        failures = []
        for row in np.flatnonzero(~answered.all(axis=1)).tolist():
            reason = found.reasons.get(row) or _no_answer(objectives, y[row])
            at = tuple(x[row].tolist())
            text = first_line(reason.text)
            failures.append(Failure(patient.name, reason.kind, text, at, 1, reason.n_retries))
        y[~answered] = np.nan
        return Runs(y, tuple(failures))
    if n > 1:
        runs = [guarded(model, objectives, x[i : i + 1], patient) for i in range(n)]
        return Runs(np.concatenate([run.y for run in runs]), sum((r.failures for r in runs), ()))
    nothing = np.full((n, n_objectives), np.nan)
    return Runs(nothing, (Failure(patient.name, kind, text, tuple(x[0].tolist())),))


def _no_answer(objectives: Sequence[Objective], y: FloatArray) -> Reason:
    """Which outputs are not finite, or else beyond all measure."""

    def named(bad: BoolArray) -> str:
        return ", ".join(o.name for o, b in zip(objectives, bad, strict=True) if b)

    if not np.isfinite(y).all():
        return Reason(Kind.NOT_FINITE, named(~np.isfinite(y)))
    large = named(np.abs(y) > LARGEST * np.array([o.tolerance for o in objectives]))
    return Reason(Kind.TOO_LARGE, f"{large}, more than {LARGEST:.0e} tolerances")


@dataclass(frozen=True)
class Observed:
    """Some of the outputs of a batched model."""

    simulate: Simulate
    kept: tuple[int, ...]
    names: tuple[str, ...]

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model, shape (n, n_kept)."""
        return self.answers(x, patient).y

    def answers(self, x: FloatArray, patient: Patient) -> Answers:
        """Run the model, with its reasons."""
        found = asked(self.simulate, x, patient, self.names)
        if found.y.shape != (len(x), self.n_outputs):
            raise _WrongShapeError(_other_shape(found.y, len(x), self.n_outputs))
        return Answers(found.y[:, list(self.kept)], found.reasons)

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return len(self.names)

    @property
    def own_processes(self) -> bool:
        """Whether the model runs in processes of its own."""
        return bool(getattr(self.simulate, "own_processes", False))


def whole(model: Simulate, n_outputs: int) -> tuple[Simulate, int]:
    """Model of which some outputs may be kept, and the number of all of them."""
    while isinstance(model, Observed):
        n_outputs, model = model.n_outputs, model.simulate
    return model, n_outputs


class _WrongShapeError(ValueError):
    """A model answers in another shape than it should, of which no part can be taken."""


def _other_shape(y: FloatArray, n: int, n_outputs: int) -> str:
    return f"shape {y.shape}, expected ({n}, {n_outputs})"
