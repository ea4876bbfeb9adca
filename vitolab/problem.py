"""What is personalised: parameters, objectives, a patient, and the model between them.

The paper's letters: a model f maps parameters x to outputs y; with a patient's measurements z
the misfit is c = y − z, and a patient is personalised when |cᵢ| < ψᵢ for every objective
(section 2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vitolab.contract import refuse_scalar
from vitolab.failures import CannotRun, Failure, Kind, collected, described, explained, note
from vitolab.objects import Value, brief

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Border = Literal["clip", "reject", "free"]
_Array = TypeVar("_Array", bound=NDArray[Any])
#: Tolerances beyond which an output is no answer: squares of misfits so large leave nothing of a
#: tolerance in double precision, and whoever learns from them learns nothing.
LARGEST = 2.0**26
#: Steps across a domain that whole numbers in double precision still tell apart.
MOST_STEPS = 2.0**53
#: Multiple of a step that walks of any length add up without an overflow of 64 bits.
LARGEST_MULTIPLIER = 10**9

#: Parameters, and objectives, that a printed problem lists.
MOST_SHOWN = 8


@dataclass(frozen=True)
class Parameter:
    """One parameter of the model.

    Attributes
    ----------
    name, label, unit : str
        Identifier, text for axes, unit as printed.
    lower, upper, default : float
        Domain and the value used where the parameter is not personalised.
    step : float
        Reference value δ of the actions (section 2.2.2).
    scale : {"linear", "log"}
        Whether the parameter acts by difference or by ratio.

    Raises
    ------
    ValueError
        If the domain is empty or its width overflows, the default lies outside it, or the step is
        not positive or fits into the domain more than `MOST_STEPS` times.

    Examples
    --------
    >>> import vitolab as vl
    >>> resistance = vl.Parameter("r", "resistance", "mmHg s/mL", 0.4, 3.0, 1.0, 0.005)
    >>> resistance.upper
    3.0
    """

    name: str
    label: str
    unit: str
    lower: float
    upper: float
    default: float
    step: float
    scale: Literal["linear", "log"] = "linear"

    def __post_init__(self) -> None:
        if not all(np.isfinite([self.lower, self.upper, self.default, self.step])):
            raise ValueError(f"parameter {self.name!r}: bounds, default and step must be finite")
        if not self.lower < self.upper:
            raise ValueError(
                f"parameter {self.name!r}: lower is {self.lower:g}, expected less than "
                f"upper {self.upper:g}"
            )
        if not np.isfinite(float(self.upper) - float(self.lower)):
            raise ValueError(
                f"parameter {self.name!r}: lower is {self.lower:g} and upper {self.upper:g}, "
                "expected a width below 1.8e308"
            )
        if not self.lower <= self.default <= self.upper:
            raise ValueError(
                f"parameter {self.name!r}: default is {self.default:g}, expected within "
                f"[{self.lower:g}, {self.upper:g}]"
            )
        if self.step <= 0:
            raise ValueError(f"parameter {self.name!r}: step is {self.step:g}, expected above 0")
        if float(self.upper) - float(self.lower) > MOST_STEPS * float(self.step):
            raise ValueError(
                f"parameter {self.name!r}: step is {self.step:g}, expected at most "
                f"{MOST_STEPS:.0e} steps in the domain"
            )
        if self.scale == "log" and self.lower <= 0:
            raise ValueError(
                f"parameter {self.name!r}: lower is {self.lower:g}, expected above 0 on a log scale"
            )


@dataclass(frozen=True)
class Objective:
    """One output of the model that is to match a measurement.

    Attributes
    ----------
    name, label, unit : str
        Identifier, text for axes, unit as printed.
    tolerance : float
        Largest acceptable misfit ψ.
    kind : {"difference", "angle"}
        ``angle`` wraps the misfit to (-180, 180] degrees.

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> import vitolab as vl
    >>> vl.Objective("mean", "mean pressure", "mmHg", tolerance=2.0).kind
    'difference'
    """

    name: str
    label: str
    unit: str
    tolerance: float
    kind: Literal["difference", "angle"] = "difference"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.tolerance) and self.tolerance > 0):
            raise ValueError(
                f"objective {self.name!r}: tolerance is {self.tolerance:g}, expected above 0"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Patient(Value):
    """Measurements of one patient, by objective name, and what the model needs to know of them.

    Attributes
    ----------
    name : str
    measurements : mapping of str to float
        Measured value of each objective, in the objective's unit.
    data : mapping of str to number, text or list of these
        What ``simulate`` needs of the patient (heart rate, anatomy, α).

    Raises
    ------
    ValueError
        If the name is empty or a measurement is not a finite number.

    Examples
    --------
    >>> import vitolab as vl
    >>> vl.Patient("P1", {"mean": 95.0}, data={"heart_rate": 72.0})
    Patient
      name          P1
      measurements  mean: 95
      data          heart_rate: 72
    """

    name: str
    measurements: Mapping[str, float]
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("patient: name is empty")
        for key, value in self.measurements.items():
            if not np.isfinite(value):
                raise ValueError(
                    f"patient {self.name!r}: {key} is {value}, expected a finite number"
                )
        object.__setattr__(self, "measurements", MappingProxyType(dict(self.measurements)))
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))


Simulate = Callable[[FloatArray, Patient], FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Value):
    """A model, the parameters to find, the objectives to meet and the actions allowed.

    Attributes
    ----------
    name : str
    version : str
        Changes whenever ``simulate`` or ``confirm`` would answer differently; keys the walk cache.
    parameters : tuple of Parameter
    objectives : tuple of Objective
    simulate : callable
        ``simulate(x, patient) -> y`` with x ``(n, n_parameters)`` and y ``(n, n_objectives)``;
        a row of y that is not finite, or beyond all measure, is a failed run, as is an exception;
        see `run`.
    multipliers : tuple of int
        Multiples of each parameter's step that one action may take, either sign.
    border : {"clip", "reject", "free"}
        What happens to a move that leaves the domain Ω: it ends on the border, it is not
        made, or it leaves.
    confirm : callable, optional
        Where ``simulate`` is an approximation: the model that confirms a success, called alike.
        Exploration keeps to ``simulate``; see `evaluate`.
    features : tuple of str
        Numbers in a patient's data, such as a heart rate, with which the model's answers change
        smoothly; an agent may learn how. A patient may lack them.

    Raises
    ------
    ValueError
        If a field is empty, a name occurs twice, or a multiplier is not a positive whole number
        of at most `LARGEST_MULTIPLIER`.

    Examples
    --------
    >>> import numpy as np
    >>> import vitolab as vl
    >>> def double(x, patient):  # a batch: (n, 1) to (n, 1)
    ...     return 2.0 * x
    >>> problem = vl.Problem(
    ...     name="double",
    ...     version="1",
    ...     parameters=(vl.Parameter("a", "a", "mL", -5.0, 5.0, 0.0, 0.01),),
    ...     objectives=(vl.Objective("u", "u", "mL", tolerance=0.1),),
    ...     simulate=double,
    ... )
    >>> problem.run(np.array([[1.0], [2.0]]), vl.Patient("P1", {"u": 3.0}))
    array([[2.],
           [4.]])
    """

    name: str
    version: str
    parameters: tuple[Parameter, ...]
    objectives: tuple[Objective, ...]
    simulate: Simulate
    multipliers: tuple[int, ...] = (1, 10, 100)
    border: Border = "clip"
    confirm: Simulate | None = None
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what in ("parameters", "objectives", "multipliers"):
            if not getattr(self, what):
                raise ValueError(f"problem {self.name!r}: {what} is empty")
        names = [p.name for p in self.parameters] + [o.name for o in self.objectives]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"problem {self.name!r}: the name {name!r} occurs twice")
        ordered = tuple(sorted(set(self.multipliers)))
        if ordered != tuple(self.multipliers) or any(m < 1 or m != int(m) for m in ordered):
            raise ValueError(
                f"problem {self.name!r}: multipliers are {self.multipliers}, expected rising "
                "positive whole numbers"
            )
        if ordered[-1] > LARGEST_MULTIPLIER:
            raise ValueError(
                f"problem {self.name!r}: multipliers hold {ordered[-1]:.3g}, expected at most "
                f"{LARGEST_MULTIPLIER}"
            )
        if self.border not in ("clip", "reject", "free"):
            raise ValueError(
                f"problem {self.name!r}: border is {self.border!r}, expected clip, reject or free"
            )

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        rows = {
            "name": self.name,
            "version": self.version,
            "actions": f"{self.n_actions}: steps times {brief(self.multipliers)}, either way",
            "border": self.border,
        }
        for p in self.parameters[:MOST_SHOWN]:
            rows[f"x:{p.name}"] = f"{p.lower:g} to {p.upper:g} {p.unit}, step {p.step:g}"
        for o in self.objectives[:MOST_SHOWN]:
            rows[f"y:{o.name}"] = f"within {o.tolerance:g} {o.unit}"
        return rows | {"simulate": brief(self.simulate)}

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    @property
    def n_objectives(self) -> int:
        """Number of objectives."""
        return len(self.objectives)

    @property
    def n_actions(self) -> int:
        """Number of actions: both signs of each multiplier for each parameter."""
        return 2 * len(self.multipliers) * self.n_parameters

    @cached_property
    def lower(self) -> FloatArray:
        """Lower bounds of Ω, shape (n_parameters,)."""
        return _fixed(np.array([p.lower for p in self.parameters]))

    @cached_property
    def upper(self) -> FloatArray:
        """Upper bounds of Ω, shape (n_parameters,)."""
        return _fixed(np.array([p.upper for p in self.parameters]))

    @cached_property
    def default(self) -> FloatArray:
        """Default parameters, shape (n_parameters,)."""
        return _fixed(np.array([p.default for p in self.parameters]))

    @cached_property
    def step(self) -> FloatArray:
        """Reference values δ, shape (n_parameters,)."""
        return _fixed(np.array([p.step for p in self.parameters]))

    @cached_property
    def tolerance(self) -> FloatArray:
        """Largest acceptable misfits ψ, shape (n_objectives,)."""
        return _fixed(np.array([o.tolerance for o in self.objectives]))

    @cached_property
    def angular(self) -> BoolArray:
        """Which objectives are angles, shape (n_objectives,)."""
        return _fixed(np.array([o.kind == "angle" for o in self.objectives]))

    @cached_property
    def actions(self) -> IntArray:
        """Steps that each action adds to each parameter, shape (n_actions, n_parameters).

        Parameter by parameter, from the largest decrement to the largest increment.
        """
        multiples = [-m for m in reversed(self.multipliers)] + list(self.multipliers)
        actions = np.zeros((self.n_actions, self.n_parameters), dtype=np.int64)
        for i in range(self.n_parameters):
            rows = slice(i * len(multiples), (i + 1) * len(multiples))
            actions[rows, i] = multiples
        return _fixed(actions)

    def describe(self) -> dict[str, Any]:
        """Everything but the models, as plain data; ``confirmed`` only where a model confirms."""
        description = {
            "name": self.name,
            "version": self.version,
            "border": self.border,
            "multipliers": list(self.multipliers),
            "parameters": [asdict(p) for p in self.parameters],
            "objectives": [asdict(o) for o in self.objectives],
        }
        return description if self.confirm is None else description | {"confirmed": True}

    def describe_action(self, action: int) -> str:
        """Say what an action does, e.g. ``aortic compliance +10 steps``."""
        steps = self.actions[action]
        i = int(np.flatnonzero(steps)[0])
        plural = "" if abs(steps[i]) == 1 else "s"
        return f"{self.parameters[i].label} {steps[i]:+d} step{plural}"

    def measured(self, patient: Patient) -> FloatArray:
        """Measurements z in the order of the objectives, shape (n_objectives,).

        Raises
        ------
        ValueError
            If a measurement is missing.
        """
        missing = [o.name for o in self.objectives if o.name not in patient.measurements]
        if missing:
            raise ValueError(
                f"patient {patient.name!r}: {missing[0]} is not measured, expected by "
                f"problem {self.name!r}"
            )
        return np.array([float(patient.measurements[o.name]) for o in self.objectives])

    def observing(self, names: Sequence[str]) -> Problem:
        """Give the same problem with some of its objectives, in their order.

        Its model runs as before and is read in part, so that walks of the whole problem are walks
        of this one; see `Trajectories.observing`.

        Raises
        ------
        ValueError
            If a name is no objective, or none is left.
        """
        known = [o.name for o in self.objectives]
        for name in names:
            if name not in known:
                raise ValueError(f"problem {self.name!r}: there is no objective {name!r}")
        kept = tuple(i for i, name in enumerate(known) if name in set(names))
        if len(kept) == len(known):
            return self
        return replace(
            self,
            objectives=tuple(self.objectives[i] for i in kept),
            simulate=_Part(self.simulate, kept, len(known)),
            confirm=None if self.confirm is None else _Part(self.confirm, kept, len(known)),
        )

    def observed(self, patient: Patient) -> Problem:
        """Give the problem with the objectives that were measured of a patient, see `observing`."""
        return self.observing([o.name for o in self.objectives if o.name in patient.measurements])

    def featured(self, patient: Patient) -> FloatArray:
        """Features of a patient, shape (n_features,); NaN where the data hold no such number."""
        found = [patient.data.get(name) for name in self.features]
        return np.array([v if isinstance(v, (int, float)) else np.nan for v in found], dtype=float)

    def misfit(self, y: ArrayLike, z: ArrayLike) -> FloatArray:
        """Misfit c = y - z, angles wrapped to (-180, 180]; shapes broadcast.

        Parameters
        ----------
        y : array_like, shape (..., n_objectives)
        z : array_like, shape (..., n_objectives)

        Returns
        -------
        ndarray, shape (..., n_objectives)
        """
        c = np.asarray(y, dtype=np.float64) - np.asarray(z, dtype=np.float64)
        angular = self.angular
        if angular.any():
            c[..., angular] = 180.0 - np.mod(180.0 - c[..., angular], 360.0)
        return c

    def exact(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Outputs of the model itself: of ``confirm`` where ``simulate`` is an approximation.

        Parameters
        ----------
        x : ndarray, shape (n, n_parameters)
        patient : Patient

        Returns
        -------
        ndarray, shape (n, n_objectives)
        """
        return _answers(self, self.confirm or self.simulate, x, patient)

    def run(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run ``simulate``; whatever goes wrong is a failed run, noted with its cause.

        A model that raises, or answers in another shape than it should, is asked again row by
        row, so that one bad row does not fail the others. An output of more than `LARGEST`
        tolerances is no answer. Each row is one forward run. Causes go to
        `vitolab.failures.collected`.

        Parameters
        ----------
        x : ndarray, shape (n, n_parameters)
        patient : Patient

        Returns
        -------
        ndarray, shape (n, n_objectives)
            NaN where a run failed.

        Raises
        ------
        CannotRun
            If the model says that it cannot be run at all; see `vitolab.failures`.
        """
        return _answers(self, self.simulate, x, patient)

    def is_solved(self, c: ArrayLike) -> BoolArray:
        """Whether every misfit is within its tolerance; NaN is never solved.

        Parameters
        ----------
        c : array_like, shape (..., n_objectives)

        Returns
        -------
        ndarray of bool, shape (...)
        """
        solved: BoolArray = np.all(np.abs(np.asarray(c)) < self.tolerance, axis=-1)
        return solved

    def evaluate(self, x: FloatArray, patient: Patient, z: FloatArray) -> FloatArray:
        """Run the model to personalise a patient: what counts as a success is confirmed.

        Rows of ``simulate`` whose misfits are within all tolerances are replaced by the answer of
        ``confirm``, if there is one. Each row is one forward run either way.

        Parameters
        ----------
        x : ndarray, shape (n, n_parameters)
        patient : Patient
        z : ndarray, shape (n_objectives,)
            Measurements, see `measured`.

        Returns
        -------
        ndarray, shape (n, n_objectives)
        """
        y = self.run(x, patient)
        if self.confirm is not None:
            solved = self.is_solved(self.misfit(y, z))
            if solved.any():
                y[solved] = _answers(self, self.confirm, x[solved], patient)
        made = _made.get()
        if made is not None:
            made.extend(zip(x.copy(), y.copy(), strict=True))
        return y

    def draw(self, rng: np.random.Generator, n: int = 1) -> FloatArray:
        """Draw parameters uniformly in Ω, shape (n, n_parameters)."""
        unit: FloatArray = rng.random((n, self.n_parameters))
        return self.lower + unit * (self.upper - self.lower)

    # Walks move on a grid of whole steps around their start, so that a parameter vector
    # that recurs is recognised exactly, however long the walk.

    def move(self, start: FloatArray, count: IntArray, action: ArrayLike) -> IntArray:
        """Number of steps from the start after an action; see `at`.

        Parameters
        ----------
        start : ndarray, shape (n, n_parameters)
            Where each walk started.
        count : ndarray of int, shape (n, n_parameters)
            Steps from the start so far.
        action : array_like of int, shape (n,)

        Returns
        -------
        ndarray of int, shape (n, n_parameters)
            Under ``clip`` the count ends at the first grid point on or beyond the border.
        """
        moved: IntArray = count + self.actions[np.asarray(action)]
        if self.border == "free":
            return moved
        lowest = (self.lower - start) / self.step
        highest = (self.upper - start) / self.step
        if self.border == "clip":
            first = np.floor(lowest + 1e-9).astype(np.int64)
            last = np.ceil(highest - 1e-9).astype(np.int64)
            return np.minimum(np.maximum(moved, first), last)
        inside = np.all((moved >= lowest - 1e-9) & (moved <= highest + 1e-9), axis=-1)
        return np.where(inside[..., np.newaxis], moved, count)

    def at(self, start: FloatArray, count: IntArray) -> FloatArray:
        """Parameters that lie `count` steps from the start, shape (n, n_parameters)."""
        x: FloatArray = start + count * self.step
        return x if self.border == "free" else np.minimum(np.maximum(x, self.lower), self.upper)


_made: ContextVar[list[tuple[FloatArray, FloatArray]] | None] = ContextVar(
    "vitolab runs made", default=None
)


@contextmanager
def runs_made() -> Iterator[list[tuple[FloatArray, FloatArray]]]:
    """List parameters and outputs of the runs of `Problem.evaluate` meanwhile, in this thread."""
    made: list[tuple[FloatArray, FloatArray]] = []
    token = _made.set(made)
    try:
        yield made
    finally:
        _made.reset(token)


@dataclass(frozen=True)
class _Part:
    """Some of the outputs of a batched model."""

    simulate: Simulate
    kept: tuple[int, ...]
    n_outputs: int

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model, shape (n, n_kept)."""
        y = np.asarray(self.simulate(x, patient), dtype=np.float64)
        if y.shape != (len(x), self.n_outputs):
            raise _WrongShapeError(_other_shape(y, len(x), self.n_outputs))
        return y[:, list(self.kept)]

    @property
    def own_processes(self) -> bool:
        """Whether the model runs in processes of its own."""
        return bool(getattr(self.simulate, "own_processes", False))


class _WrongShapeError(ValueError):
    """A model answers in another shape than it should, of which no part can be taken."""


def _other_shape(y: FloatArray, n: int, n_outputs: int) -> str:
    return f"shape {y.shape}, expected ({n}, {n_outputs})"


def _answers(problem: Problem, model: Simulate, x: FloatArray, patient: Patient) -> FloatArray:
    """Outputs of a model of the problem, see `Problem.run`."""
    n, n_objectives = len(x), problem.n_objectives
    y: FloatArray = np.empty(0)
    # of a square batch what takes one vector may answer in the shape of one
    if model is problem.simulate and n == problem.n_parameters == _whole(model, n_objectives)[1]:
        _check_contract(problem, model, x, patient)
    # what fails within the model is its own affair: each row is one run
    with explained() as reasons, collected():
        try:
            # copies: what a simulator does to its argument, or keeps, stays its own affair
            y = np.array(model(x.copy(), patient), dtype=np.float64)
            kind, text = Kind.SHAPE, _other_shape(y, n, n_objectives)
        except CannotRun:
            raise
        except _WrongShapeError as error:
            kind, text = Kind.SHAPE, str(error)
        except (KeyboardInterrupt, GeneratorExit, CancelledError):
            raise  # whoever stopped this: what was not run has not failed
        except BaseException as error:  # some libraries raise what is no Exception
            kind, text = Kind.RAISED, described(error)
    if y.shape == (n, n_objectives):
        answered = np.abs(y) <= LARGEST * problem.tolerance
        for row in np.flatnonzero(~answered.all(axis=1)).tolist():
            kind, text, retries = reasons.get(row) or _no_answer(problem, y[row])
            note(Failure(patient.name, kind, text, tuple(x[row].tolist()), 1, retries))
        y[~answered] = np.nan
        return y
    if n > 1:
        return np.concatenate([_answers(problem, model, x[i : i + 1], patient) for i in range(n)])
    _check_contract(problem, model, x, patient)
    note(Failure(patient.name, kind, text, tuple(x[0].tolist())))
    return np.full((n, n_objectives), np.nan)


def _check_contract(problem: Problem, model: Simulate, x: FloatArray, patient: Patient) -> None:
    """Refuse a function of one parameter vector, once for each model of a problem.

    Raises
    ------
    CannotRun
        If the model answers a vector where it does not answer a batch of one.
    """
    checked = vars(problem).setdefault("_checked", [])
    if any(known is model for known in checked):
        return
    names = tuple(o.name for o in problem.objectives)
    whole, n_outputs = _whole(model, len(names))
    refuse_scalar(whole, problem.name, x[:1].copy(), patient, n_outputs, names)
    checked.append(model)


def _whole(model: Simulate, n_outputs: int) -> tuple[Simulate, int]:
    """Model of which a part of the outputs may be taken, and the number of all of them."""
    while isinstance(model, _Part):
        n_outputs, model = model.n_outputs, model.simulate
    return model, n_outputs


def _no_answer(problem: Problem, y: FloatArray) -> tuple[Kind, str, int]:
    """Which outputs are not finite, or else beyond all measure."""

    def named(bad: BoolArray) -> str:
        return ", ".join(o.name for o, b in zip(problem.objectives, bad, strict=True) if b)

    if not np.isfinite(y).all():
        return Kind.NOT_FINITE, named(~np.isfinite(y)), 0
    large = named(np.abs(y) > LARGEST * problem.tolerance)
    return Kind.TOO_LARGE, f"{large}, more than {LARGEST:.0e} tolerances", 0


def _fixed(values: _Array) -> _Array:
    """Make an array that is shared read-only."""
    values.flags.writeable = False
    return values
