"""What is personalised: parameters, objectives, a patient, and the model between them.

The paper's letters: a model f maps parameters x to outputs y; with a patient's measurements z
the misfit is c = y − z, and a patient is personalised when |cᵢ| < ψᵢ for every objective
(section 2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitolab.contract import refuse_scalar
from vitolab.domain import Domain
from vitolab.objects import Value, brief
from vitolab.quantities import (
    LARGEST_MULTIPLIER,
    BoolArray,
    Border,
    Featuring,
    FloatArray,
    IntArray,
    Objective,
    Parameter,
    Patient,
    Simulate,
    fixed,
)
from vitolab.running import Observed, Runs, guarded, whole

__all__ = [
    "BoolArray",
    "Border",
    "FloatArray",
    "IntArray",
    "Objective",
    "Parameter",
    "Patient",
    "Problem",
    "Simulate",
]


#: Parameters, and objectives, that a printed problem lists.
MOST_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Domain, Value):
    """A model, the parameters to find, the objectives to meet and the actions allowed.

    Attributes
    ----------
    name : str
    version : str
        Changes whenever ``simulate``, ``confirm`` or ``featuring`` would answer differently; keys
        the walk cache.
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
        Exploration keeps to ``simulate``; see `run`.
    features : tuple of str
        Numbers known of a patient, such as a heart rate, with which the model's answers change
        smoothly; an agent may learn how. A patient may lack them.
    featuring : callable, optional
        ``featuring(patient) -> f`` with f ``(n_features,)``, where the features are no numbers in
        a patient's data but follow from them, such as the size of a heart in a file.

    Raises
    ------
    ValueError
        If a field is empty, a name occurs twice, a multiplier is not a positive whole number
        of at most `LARGEST_MULTIPLIER`, or the features of ``featuring`` have no names.

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
    >>> problem.run(np.array([[1.0], [2.0]]), vl.Patient("P1", {"u": 3.0})).y
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
    featuring: Featuring | None = None

    def __post_init__(self) -> None:
        for what in ("parameters", "objectives", "multipliers"):
            if not getattr(self, what):
                raise ValueError(f"problem {self.name!r}: {what} is empty, expected at least one")
        names = [p.name for p in self.parameters] + [o.name for o in self.objectives]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"problem {self.name!r}: {name!r} occurs twice, expected once")
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
        if self.featuring is not None and not self.features:
            raise ValueError(
                f"problem {self.name!r}: features is empty, expected names of what featuring gives"
            )

    @property
    def n_objectives(self) -> int:
        """Number of objectives."""
        return len(self.objectives)

    @cached_property
    def tolerance(self) -> FloatArray:
        """Largest acceptable misfits ψ, shape (n_objectives,)."""
        return fixed(np.array([o.tolerance for o in self.objectives]))

    @cached_property
    def angular(self) -> BoolArray:
        """Which objectives are angles, shape (n_objectives,)."""
        return fixed(np.array([o.kind == "angle" for o in self.objectives]))

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
        for name in [name for name in names if name not in known]:
            said = f"there is no objective {name!r}, expected some of {', '.join(known)}"
            raise ValueError(f"problem {self.name!r}: {said}")
        kept = tuple(i for i, name in enumerate(known) if name in set(names))
        if len(kept) == len(known):
            return self
        return replace(
            self,
            objectives=tuple(self.objectives[i] for i in kept),
            simulate=Observed(self.simulate, kept, tuple(known)),
            confirm=None if self.confirm is None else Observed(self.confirm, kept, tuple(known)),
        )

    def observed(self, patient: Patient) -> Problem:
        """Give the problem with the objectives that were measured of a patient, see `observing`."""
        return self.observing([o.name for o in self.objectives if o.name in patient.measurements])

    def featured(self, patient: Patient) -> FloatArray:
        """Features of a patient, shape (n_features,); NaN where they are not known.

        Not known is what the data do not hold as a number, and what ``featuring`` cannot compute:
        it is no error, as a failed run is none.

        Raises
        ------
        ValueError
            If ``featuring`` answers in another shape than it should.
        """
        if self.featuring is None:
            found = (patient.data.get(name) for name in self.features)
            known = [v if isinstance(v, (int, float)) else np.nan for v in found]
            return np.array(known, dtype=float)
        shape = (len(self.features),)
        try:
            f = np.array(self.featuring(patient), dtype=float)
        except Exception:  # code of the model: what it cannot compute is not known
            return np.full(shape, np.nan)
        if f.shape != shape:
            raise ValueError(
                f"problem {self.name!r}: featuring answers in shape {f.shape}, expected {shape}"
            )
        return np.where(np.isfinite(f), f, np.nan)

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

    def relative_misfit(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Misfit as `misfit`, where outputs, measurements and misfit are all over ψ."""
        return self.misfit(y * self.tolerance, z * self.tolerance) / self.tolerance

    def exact(self, x: FloatArray, patient: Patient) -> Runs:
        """Run the model itself, as `run` does: ``confirm`` where ``simulate`` is approximate."""
        return guarded(self.confirm or self.simulate, self.objectives, x, patient)

    def run(self, x: FloatArray, patient: Patient, *, confirm: FloatArray | None = None) -> Runs:
        """Run ``simulate``; whatever goes wrong is a failed run with its cause.

        A model that raises, or answers in another shape than it should, is asked again row by
        row, so that one bad row does not fail the others. An output of more than `LARGEST`
        tolerances is no answer. Each row is one forward run, confirmed or not.

        Parameters
        ----------
        x : ndarray, shape (n, n_parameters)
        patient : Patient
        confirm : ndarray, shape (n_objectives,), optional
            Measurements, see `measured`: rows whose misfits to them are within all tolerances
            are replaced by the answer of ``confirm``, if the problem has it.

        Returns
        -------
        Runs

        Raises
        ------
        CannotRun
            If the model says that it cannot be run at all.
        """
        # a function of one vector may answer a square batch in the shape of one
        is_square = len(x) == self.n_parameters == whole(self.simulate, self.n_objectives)[1]
        if is_square:
            self._check_contract(x, patient)
        runs = guarded(self.simulate, self.objectives, x, patient)
        if len(runs.failures) == len(x):
            self._check_contract(x, patient)
        elif not is_square:
            vars(self)["_is_checked"] = True
        if self.confirm is None or confirm is None:
            return runs
        y, failures = runs.y, runs.by_row()
        solved = np.flatnonzero(self.is_solved(self.misfit(y, confirm)))
        if solved.size:
            confirmed = guarded(self.confirm, self.objectives, x[solved], patient)
            y[solved] = confirmed.y
            for row, failure in zip(solved.tolist(), confirmed.by_row(), strict=True):
                failures[row] = failure
        return Runs(y, sum(failures, ()))

    def _check_contract(self, x: FloatArray, patient: Patient) -> None:
        """Refuse, once, a model that is a function of one parameter vector."""
        if vars(self).setdefault("_is_checked", False):
            return
        model, n_outputs = whole(self.simulate, self.n_objectives)
        outputs = tuple(o.name for o in self.objectives)
        refuse_scalar(model, self.name, x[:1].copy(), patient, n_outputs, outputs)
        vars(self)["_is_checked"] = True

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
