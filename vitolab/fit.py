"""A personalisation: what found it, what it found, and every forward run on the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vitolab.asked import checked_count
from vitolab.failures import Failure, Kind
from vitolab.objects import Value
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.saved import Shape, check_arrays, check_range, field, names, read_object, write_object
from vitolab.settings import RUNS_PER_PARAMETER
from vitolab.trace import REASONS as REASONS
from vitolab.trace import Event as Event
from vitolab.trace import StopReason as StopReason
from vitolab.trace import Trace as Trace

if TYPE_CHECKING:
    import pandas as pd

#: Forward runs of one personalisation for which there is memory.
MOST_RUNS = 10**6


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Value):
    """Outcome of one personalisation by any method.

    Attributes
    ----------
    solved : bool
    stop_reason : StopReason
    n_runs : int
        Forward runs, every one counted, failed ones too.
    n_restarts : int
    x, y, misfits : ndarray
        Solution, or the run whose worst misfit in tolerances was smallest; NaN outputs if
        every run failed.
    last_x : ndarray, shape (n_parameters,)
        Parameters of the last forward run.
    trace : Trace
        Every forward run; see `frame`.
    parameters, objectives : tuple of str
        Names, in the order of the arrays.
    note : str
        What the method has to say of the outcome, such as which measurements contradict each other.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> fit = vl.LeastSquares(problem).personalize(patient, seed=0)
    >>> fit.solved, len(fit.frame()) == fit.n_runs
    (True, True)
    >>> list(fit.frame())[4:]
    ['x:x1', 'x:x2', 'y:t1', 'y:t2', 'c:t1', 'c:t2']
    """

    solved: bool
    stop_reason: StopReason
    n_runs: int
    n_restarts: int
    x: FloatArray
    y: FloatArray
    misfits: FloatArray
    last_x: FloatArray
    trace: Trace
    parameters: tuple[str, ...]
    objectives: tuple[str, ...]
    note: str = ""

    @property
    def n_failed(self) -> int:
        """Forward runs that failed."""
        return int(np.count_nonzero(~np.isfinite(self.trace.y).all(axis=1)))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Why runs failed, one by one; see `Trace`."""
        return self.trace.failures

    @classmethod
    def from_trace(
        cls, problem: Problem, trace: Trace, stop_reason: StopReason, note: str = ""
    ) -> Fit:
        """Sum up a trace."""
        parameters = tuple(p.name for p in problem.parameters)
        objectives = tuple(o.name for o in problem.objectives)
        if not len(trace.x):
            no_x, no_y = np.full(len(parameters), np.nan), np.full(len(objectives), np.nan)
            found = (no_x, no_y, no_y, no_x, trace)
            return cls(False, stop_reason, 0, 0, *found, parameters, objectives, note)
        worst = np.max(np.abs(trace.misfits) / problem.tolerance, axis=1)
        solved = stop_reason is StopReason.SOLVED
        best = len(worst) - 1 if solved else int(np.argmin(np.nan_to_num(worst, nan=np.inf)))
        return cls(
            solved=solved,
            stop_reason=stop_reason,
            n_runs=len(trace.x),
            n_restarts=int(np.count_nonzero(trace.event == Event.RESTART)),
            x=trace.x[best],
            y=trace.y[best],
            misfits=trace.misfits[best],
            last_x=trace.x[-1],
            trace=trace,
            parameters=parameters,
            objectives=objectives,
            note=note,
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns of `frame` and of stored traces, by name."""
        trace = self.trace
        events = np.array([event.name.lower() for event in Event])[trace.event]
        failed = ~np.isfinite(trace.y).all(axis=1)
        columns: dict[str, NDArray[Any]] = {
            "iteration": np.arange(self.n_runs),
            "event": np.where(failed, "failed", events),
            "action": trace.action,
            "state": trace.state,
        }
        columns |= {f"x:{name}": trace.x[:, i] for i, name in enumerate(self.parameters)}
        columns |= {f"y:{name}": trace.y[:, i] for i, name in enumerate(self.objectives)}
        columns |= {f"c:{name}": trace.misfits[:, i] for i, name in enumerate(self.objectives)}
        if trace.expected is not None:
            columns |= {f"e:{name}": trace.expected[:, i] for i, name in enumerate(self.objectives)}
        if trace.reasons is not None:
            columns |= {f"why:{name}": trace.reasons[:, i] for i, name in enumerate(REASONS)}
        return columns

    def frame(self) -> pd.DataFrame:
        """Table with one row per forward run.

        Returns
        -------
        DataFrame
            ``iteration``, ``event`` (start, step, restart or failed), ``action`` and ``state``
            (-1 where there is none), and by name parameters ``x:``, outputs ``y:`` and misfits
            ``c:``; where the method has them, expected misfits ``e:`` and reasons ``why:``, see
            `Trace`.
        """
        import pandas as pd

        return pd.DataFrame(self.columns())

    def save(self, path: Path) -> None:
        """Write the fit as ``.npz``, whole or not at all; an earlier file is replaced."""
        trace = self.trace
        arrays: dict[str, NDArray[Any]] = {
            "found/x": self.x,
            "found/y": self.y,
            "found/misfits": self.misfits,
            **{f"trace/{name}": v for name, v in vars(trace).items() if isinstance(v, np.ndarray)},
        }
        description = {
            "stop_reason": str(self.stop_reason),
            "note": self.note,
            "parameters": list(self.parameters),
            "objectives": list(self.objectives),
            "failures": [asdict(failure) for failure in self.failures],
        }
        write_object(path, "Fit", description, arrays)

    @classmethod
    def load(cls, path: Path) -> Fit:
        """Read a fit written by `save`.

        Raises
        ------
        ValueError
            If the file is damaged, holds something else, or its arrays do not fit together.
        """
        path = Path(path)
        description, arrays = read_object(path, "Fit")
        parameters = names(path, description, "parameters")
        objectives = names(path, description, "objectives")
        reason = field(path, description, "stop_reason", str)
        if reason not in list(StopReason):
            raise ValueError(
                f"{path}: stop_reason is {reason!r:.60}, expected one of {', '.join(StopReason)}"
            )
        n_x, n_y = len(parameters), len(objectives)
        n = len(arrays["trace/x"]) if "trace/x" in arrays and arrays["trace/x"].ndim else None
        expected: dict[str, Shape] = {
            "found/x": ("f", (n_x,)),
            "found/y": ("f", (n_y,)),
            "found/misfits": ("f", (n_y,)),
            "trace/x": ("f", (n, n_x)),
            "trace/y": ("f", (n, n_y)),
            "trace/misfits": ("f", (n, n_y)),
            "trace/event": ("i", (n,)),
            "trace/action": ("i", (n,)),
            "trace/state": ("i", (n,)),
        }
        optional: dict[str, Shape] = {
            "trace/expected": ("f", (n, n_y)),
            "trace/reasons": ("f", (n, len(REASONS))),
        }
        check_arrays(path, arrays, expected, may_fail={*expected, *optional}, optional=optional)
        check_range(path, "trace/event", arrays["trace/event"], min(Event), max(Event))
        prefix = "trace/"
        trace = Trace(
            **{k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)},
            failures=_failures(path, field(path, description, "failures", list)),
        )
        return cls(
            solved=reason == StopReason.SOLVED,
            stop_reason=StopReason(reason),
            n_runs=len(trace.x),
            n_restarts=int(np.count_nonzero(trace.event == Event.RESTART)),
            x=arrays["found/x"],
            y=arrays["found/y"],
            misfits=arrays["found/misfits"],
            last_x=trace.x[-1] if len(trace.x) else np.full(n_x, np.nan),
            trace=trace,
            parameters=parameters,
            objectives=objectives,
            note=field(path, {"note": "", **description}, "note", str),
        )

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        return {
            "solved": self.solved,
            "stop_reason": f"{self.stop_reason}: {self.note or self.stop_reason.sentence}",
            "n_runs": f"{self.n_runs}, of which {self.n_failed} failed",
            "n_restarts": self.n_restarts,
            **{f"x:{k}": float(v) for k, v in list(zip(self.parameters, self.x, strict=True))[:8]},
            **{
                f"c:{k}": float(v)
                for k, v in list(zip(self.objectives, self.misfits, strict=True))[:8]
            },
        }


def _failures(path: Path, found: list[Any]) -> tuple[Failure, ...]:
    """Failures as `Fit.save` describes them."""
    try:
        return tuple(Failure(**{**f, "kind": Kind(f["kind"]), "x": tuple(f["x"])}) for f in found)
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{path}: failures hold something else, expected failed runs") from None


def check_budget(max_runs: int) -> int:
    """Check a number of forward runs: a whole number from 1 to `MOST_RUNS`.

    Raises
    ------
    ValueError
        If it is something else.
    """
    return checked_count("max_runs", max_runs, most=MOST_RUNS)


def budget(problem: Problem, max_runs: int | None = None) -> int:
    """Forward runs allowed per personalisation, by default the paper's 50 per parameter.

    Parameters
    ----------
    problem : Problem
    max_runs : int, optional
        Number asked for.

    Raises
    ------
    ValueError
        If it is no whole number from 1 to `MOST_RUNS`.
    """
    if max_runs is None:
        return RUNS_PER_PARAMETER * problem.n_parameters
    return check_budget(max_runs)


class Personalizer(Protocol):
    """Whatever personalises: an agent or an optimiser."""

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient from a start of the method's own choice; see `budget`."""
        ...

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from each of the given starts, shape (n, n_parameters)."""
        ...
