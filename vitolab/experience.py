"""Runs of the models of patients, flattened: what methods learn from that plan on stored runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.features import Features
from vitolab.fit import Fit
from vitolab.objects import Value
from vitolab.problem import FloatArray, IntArray, Patient, Problem
from vitolab.quantities import checksum_of
from vitolab.scale import Scale
from vitolab.trajectories import Trajectories
from vitolab.walks import checked_runs

APART = 0.15  # share of Ω, in the parameter that differs most, from which two starts are apart
N_APART = 12  # starts among the stored runs


@dataclass(frozen=True, eq=False, repr=False)
class Experience(Value):
    """Runs that did not fail, patient after patient.

    Attributes
    ----------
    problem : Problem
    u : ndarray, shape (n, n_parameters)
        Parameters in the unit cube, see `vitolab.scale.Scale`.
    y : ndarray, shape (n, n_objectives)
        Outputs over the tolerances ψ.
    patient : ndarray of int, shape (n,)
        Whose model was run, by its position in `known`.
    known : ndarray, shape (n_patients, n_features)
        What is known of the patients, see `Problem.featured`; NaN where nothing is.
    made : ndarray of int, shape (n_patients,)
        Forward runs made of each patient, those that failed too.
    names : tuple of str
        What the patients are called; one who was personalised twice is there twice.
    checksums : tuple of str
        Of each, see `vitolab.quantities.checksum_of`; empty where none was kept.
    """

    problem: Problem
    u: FloatArray
    y: FloatArray
    patient: IntArray
    known: FloatArray
    made: IntArray
    names: tuple[str, ...]
    checksums: tuple[str, ...]

    @classmethod
    def none(cls, problem: Problem) -> Experience:
        """No runs."""
        return cls(
            problem,
            np.empty((0, problem.n_parameters)),
            np.empty((0, problem.n_objectives)),
            np.empty(0, dtype=np.int64),
            np.empty((0, len(problem.features))),
            np.empty(0, dtype=np.int64),
            (),
            (),
        )

    @classmethod
    def learn(cls, problem: Problem, walks: Trajectories | Experience) -> Experience:
        """Flatten walks; experience is taken as it is.

        Parameters
        ----------
        problem : Problem
        walks : Trajectories or Experience

        Raises
        ------
        ValueError
            If no run among them succeeded, or they are those of a problem of other parameters,
            objectives or features.
        """
        if isinstance(walks, Experience):
            if not len(walks.u):
                raise ValueError(
                    f"problem {problem.name!r}: there are no runs, expected some to learn from"
                )
            for what in ("parameters", "objectives", "features"):
                if getattr(walks.problem, what) != getattr(problem, what):
                    raise ValueError(
                        f"the runs are those of problem {walks.problem.name!r}, whose {what} are "
                        f"others, expected those of {problem.name!r}"
                    )
            return replace(walks, problem=problem)
        counted = checked_runs(problem, walks)
        patient = np.broadcast_to(walks.patient[:, np.newaxis], counted.shape)[counted]
        known = walks.features
        if known is None:
            known = np.full((len(walks.patients), len(problem.features)), np.nan)
        u, y = Scale(problem).unit(walks.x[counted]), walks.y[counted] / problem.tolerance
        if problem.border != "free":  # but for rounding
            u = np.clip(u, 0.0, 1.0)
        on_scale = np.isfinite(u).all(axis=1)  # walks that left Ω may have no logarithm
        made = np.bincount(walks.patient, walks.length + 1, len(known)).astype(np.int64)
        u, y, patient = u[on_scale], y[on_scale], patient[on_scale]
        unknown = ("",) * len(known)
        return cls(problem, u, y, patient, known, made, walks.patients, unknown)

    def after(self, fits: Sequence[tuple[Patient, Fit]]) -> Experience:
        """Experience with the runs of personalisations, too; failed ones are left out.

        Each personalisation counts as a patient of its own. Nothing is learned from a fit of
        other objectives, as of a patient who lacks a measurement.

        Parameters
        ----------
        fits : sequence of (Patient, Fit)
            In their order.

        Raises
        ------
        ValueError
            If a fit has other parameters.
        """
        u, y, patient, known = [self.u], [self.y], [self.patient], [self.known]
        whole = tuple(o.name for o in self.problem.objectives)
        names = tuple(p.name for p in self.problem.parameters)
        for _, fit in fits:
            if fit.parameters != names:
                raise ValueError(
                    f"a fit has the parameters {', '.join(fit.parameters)}, expected "
                    f"{', '.join(names)}"
                )
        taught = [each for each in fits if each[1].objectives == whole]
        for i, (who, fit) in enumerate(taught):
            answered = np.isfinite(fit.trace.y).all(axis=1)
            u.append(self.scale.unit(fit.trace.x[answered]))
            y.append(fit.trace.y[answered] / self.problem.tolerance)
            patient.append(np.full(answered.sum(), len(self.known) + i))
            known.append(self.problem.featured(who)[np.newaxis])
        return Experience(
            self.problem,
            np.concatenate(u),
            np.concatenate(y),
            np.concatenate(patient),
            np.concatenate(known),
            np.append(self.made, [fit.n_runs for _, fit in taught]).astype(np.int64),
            (*self.names, *(who.name for who, _ in taught)),
            (*self.checksums, *(checksum_of(who) for who, _ in taught)),
        )

    def without(self, name: str, checksum: str = "") -> Experience:
        """Experience without the patients of a name, or of a checksum (leave-one-out)."""
        whose, own = zip(self.names, self.checksums, strict=True), checksum or None
        kept = np.array([n != name and c != own for n, c in whose], dtype=bool)
        if kept.all():
            return self
        rows, position = kept[self.patient], np.cumsum(kept) - 1
        return replace(
            self,
            u=self.u[rows],
            y=self.y[rows],
            patient=position[self.patient[rows]],
            known=self.known[kept],
            made=self.made[kept],
            names=tuple(compress(self.names, kept)),
            checksums=tuple(compress(self.checksums, kept)),
        )

    @property
    def n_runs(self) -> int:
        """Forward runs made, failed ones too."""
        return int(self.made.sum())

    def observing(self, problem: Problem) -> Experience:
        """Experience of a problem with some of the objectives, see `Problem.observed`.

        Raises
        ------
        ValueError
            If it has other objectives.
        """
        names = [o.name for o in self.problem.objectives]
        for o in problem.objectives:
            if o.name not in names:
                raise ValueError(
                    f"problem {problem.name!r}: objective is {o.name!r}, expected one of "
                    f"{', '.join(names)}"
                )
        columns = [names.index(o.name) for o in problem.objectives]
        return replace(self, problem=problem, y=self.y[:, columns])

    def first(self, n: int) -> Experience:
        """The first n runs, and the patients up to the last of theirs."""
        if n >= len(self.u):
            return self
        m = int(self.patient[:n].max(initial=-1)) + 1
        return replace(
            self,
            u=self.u[:n],
            y=self.y[:n],
            patient=self.patient[:n],
            known=self.known[:m],
            made=self.made[:m],
            names=self.names[:m],
            checksums=self.checksums[:m],
        )

    @property
    def scale(self) -> Scale:
        """Coordinates of the parameters."""
        return Scale(self.problem)

    @cached_property
    def features(self) -> Features:
        """Mean and spread of the features of the patients."""
        return Features.of_patients(self.known)

    @cached_property
    def f(self) -> FloatArray:
        """Features of each run's patient in standard deviations, shape (n, n_features)."""
        return self.features.standard(self.known)[self.patient]

    @cached_property
    def inputs(self) -> FloatArray:
        """What emulators are given: parameters from −1 to 1 over Ω, and features; (n, n_inputs)."""
        return np.concatenate([2.0 * self.u - 1.0, self.f], axis=1)

    def featured(self, patient: Patient) -> FloatArray:
        """Features of a patient in standard deviations, shape (n_features,); 0 where not known."""
        return self.features.standard(self.problem.featured(patient))

    @cached_property
    def centre(self) -> FloatArray:
        """Outputs from which angles are counted: their mean direction; shape (n_objectives,).

        The jump of an angle is then where fewest runs are, the same for all patients.
        """
        angular, psi = self.problem.angular, self.problem.tolerance
        centre = np.zeros(len(angular))
        if len(self.y) and angular.any():
            turn = np.exp(1j * np.radians(self.y[:, angular] * psi[angular])).mean(axis=0)
            centre[angular] = np.degrees(np.angle(turn)) / psi[angular]
        return centre

    def unwrapped(self, y: FloatArray) -> FloatArray:
        """Outputs over ψ with angles counted from `centre`, shape (n, n_objectives).

        Whole turns are added: while the jump passes no angle, a centre that moves changes no bit.
        """
        turn = 360.0 / self.problem.tolerance
        away = self.centre + self.problem.relative_misfit(y, self.centre) - y
        return np.where(self.problem.angular, y + turn * np.rint(away / turn), y)

    def distance(self, patient: Patient) -> tuple[FloatArray, FloatArray]:
        """How far each run is from a patient.

        Returns
        -------
        misfit, unlike : ndarray, shape (n,)
            Sum of the squares of the misfits in tolerances, and of the differences of the features
            in standard deviations.
        """
        z = self.problem.measured(patient) / self.problem.tolerance
        with np.errstate(over="ignore"):
            misfit = (self.problem.relative_misfit(self.y, z) ** 2).sum(axis=1)
        return misfit, ((self.f - self.featured(patient)) ** 2).sum(axis=1)

    def near(self, patient: Patient) -> Iterator[FloatArray]:
        """Parameters of runs in the unit cube, the nearest first, then others that are apart.

        Near by the misfits; features settle ties.

        Yields
        ------
        ndarray, shape (n_parameters,)
            Within Ω, which walks may have left.
        """
        misfit, unlike = self.distance(patient)
        rest = np.clip(self.u[np.lexsort((unlike, misfit))], 0.0, 1.0)
        for _ in range(N_APART):
            if not len(rest):
                return
            nearest = rest[0]
            yield nearest
            rest = rest[np.abs(rest - nearest).max(axis=1) > APART]

    @property
    def source(self) -> str:
        """Where start candidates come from, in words."""
        return f"the nearest of {len(self.u)} runs"

    def candidates(self, patient: Patient) -> FloatArray:
        """Start candidates within Ω, those of `near`; shape (m, n_parameters)."""
        near = np.reshape(list(self.near(patient)), (-1, self.u.shape[1]))
        return self.scale.parameters(near)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the runs and of whose they are, as 64 hexadecimal digits."""
        hasher = hashlib.sha256()
        for name, array in self.to_arrays().items():
            hasher.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
        return hasher.hexdigest()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays from which `from_arrays` makes the same experience."""
        texts = {name: np.array(getattr(self, name), dtype=np.str_) for name in TEXTS}
        return {name: np.asarray(getattr(self, name)) for name in _ARRAYS} | texts

    @classmethod
    def from_arrays(cls, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> Experience:
        """Read what `to_arrays` gave.

        Earlier versions kept no names, checksums and failed runs.
        """
        n = len(arrays["known"])
        made = np.bincount(arrays["patient"], minlength=n)
        since = {"made": made, **dict.fromkeys(TEXTS, np.full(n, "")), **arrays}
        texts: dict[str, Any] = {name: tuple(since[name].tolist()) for name in TEXTS}
        return cls(problem, **({name: since[name] for name in _ARRAYS} | texts))


_ARRAYS = ("u", "y", "patient", "known", "made")
TEXTS = ("names", "checksums")
