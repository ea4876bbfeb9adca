"""Walks through parameter space, from which agents learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vitolab.failures import Failure, Kind, Record
from vitolab.objects import Value
from vitolab.problem import BoolArray, FloatArray, IntArray, Problem
from vitolab.saved import Shape, check_arrays, check_range, field, names, read_object, write_object

#: Why a run failed: kind, text, and number of further attempts.
Cause = tuple[str, str, int]


def tallied(
    patient: str, x: FloatArray, cause: IntArray, causes: Sequence[Cause]
) -> tuple[Failure, ...]:
    """Failed runs of walks of one patient, alike ones together, walk after walk.

    Parameters
    ----------
    patient : str
    x : ndarray, shape (n, T + 1, n_parameters)
    cause : ndarray of int, shape (n, T + 1)
        Which of the causes, by its position; -1 where a run answered or does not count.
    causes : sequence of Cause
    """
    record = Record()
    for i, t in np.argwhere(cause >= 0).tolist():
        kind, text, n_retries = causes[cause[i, t]]
        at = tuple(x[i, t].tolist())
        record.add(Failure(patient, Kind(kind), text, at, n_retries=n_retries))
    return record.failures


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Value):
    """Walks of many patients, in the order of their patients.

    Attributes
    ----------
    patients : tuple of str
        Names of the patients that `patient` points to.
    z : ndarray, shape (n_patients, n_objectives)
        Measurements of those patients.
    patient : ndarray of int, shape (n,)
        Which patient each walk belongs to, rising.
    x : ndarray, shape (n, T + 1, n_parameters)
    y : ndarray, shape (n, T + 1, n_objectives)
        Outputs; a row that is not finite is a failed run.
    action : ndarray of int, shape (n, T)
        Action between consecutive points; -1 is a jump to a fresh start, or padding.
    length : ndarray of int, shape (n,)
        Number of steps of each walk that count; the rest is padding.
    features : ndarray, shape (n_patients, n_features), optional
        What is known of those patients, see `Problem.featured`; None where that is nothing.
    cause : ndarray of int, shape (n, T + 1), optional
        Why each run failed, by its position in `causes`; -1 where it answered.
    causes : tuple of Cause
    by_scale : bool
        Whether starts were drawn by ratio where a parameter's scale is logarithmic.

    Raises
    ------
    ValueError
        If the shapes do not fit together.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=2, n_steps=20, seed=0)
    >>> walks.x.shape, walks.n_samples
    ((6, 21, 2), array([40, 40, 40]))
    >>> walks.without(others[0].name).patients
    ('F003', 'F004')
    """

    patients: tuple[str, ...]
    z: FloatArray
    patient: IntArray
    x: FloatArray
    y: FloatArray
    action: IntArray
    length: IntArray
    features: FloatArray | None = None
    cause: IntArray | None = None
    causes: tuple[Cause, ...] = ()
    by_scale: bool = False

    def __post_init__(self) -> None:
        n, points = self.x.shape[:2]
        shapes = {
            "z": (self.z.shape[0], len(self.patients)),
            "patient": (self.patient.shape, (n,)),
            "y": (self.y.shape[:2], (n, points)),
            "action": (self.action.shape, (n, points - 1)),
            "length": (self.length.shape, (n,)),
        }
        if self.features is not None and self.features.shape[1:] == (0,):
            # as walks have that were stored before their problem had features
            object.__setattr__(self, "features", None)
        if self.features is not None:
            shapes["features"] = (self.features.shape[:1], (len(self.patients),))
        if self.cause is not None:
            shapes["cause"] = (self.cause.shape, (n, points))
        for name, (found, expected) in shapes.items():
            if found != expected:
                raise ValueError(f"trajectories: {name} has shape {found}, expected {expected}")
        if n and (np.any(np.diff(self.patient) < 0) or self.patient.max() >= len(self.patients)):
            raise ValueError(
                "trajectories: patient must rise and point into patients, expected positions from "
                f"0 to {len(self.patients) - 1} in their order"
            )

    @property
    def n_samples(self) -> IntArray:
        """Transitions of each patient, shape (n_patients,)."""
        total = np.bincount(self.patient, weights=self.length, minlength=len(self.patients))
        return total.astype(np.int64)

    @property
    def n_runs(self) -> int:
        """Forward runs that count, failed ones too."""
        return int((self.length + 1).sum())

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Why runs that count failed, by patient; empty where it is not known."""
        if self.cause is None:
            return ()
        within = np.arange(self.x.shape[1]) <= self.length[:, np.newaxis]
        cause = np.where(within, self.cause, -1)
        found: list[Failure] = []
        for i, name in enumerate(self.patients):
            own = self.patient == i
            found += tallied(name, self.x[own], cause[own], self.causes)
        return tuple(found)

    def select(self, names: Sequence[str]) -> Trajectories:
        """Walks of the named patients only, in the order of this set."""
        unknown = [name for name in names if name not in self.patients]
        if unknown:
            raise ValueError(
                f"trajectories: no walks of patient {unknown[0]!r}, expected some of "
                f"{', '.join(self.patients)}"
            )
        keep = [i for i, name in enumerate(self.patients) if name in set(names)]
        position = np.full(len(self.patients), -1)
        position[keep] = np.arange(len(keep))
        rows = position[self.patient] >= 0
        return Trajectories(
            patients=tuple(self.patients[i] for i in keep),
            z=self.z[keep],
            patient=position[self.patient[rows]],
            x=self.x[rows],
            y=self.y[rows],
            action=self.action[rows],
            length=self.length[rows],
            features=None if self.features is None else self.features[keep],
            cause=None if self.cause is None else self.cause[rows],
            causes=self.causes,
            by_scale=self.by_scale,
        )

    def without(self, name: str) -> Trajectories:
        """All walks but those of one patient (leave-one-out)."""
        return self.select([other for other in self.patients if other != name])

    def observing(self, kept: Sequence[int]) -> Trajectories:
        """Give the same walks with some of the objectives, by their position."""
        columns = list(kept)
        return replace(self, z=self.z[:, columns], y=self.y[..., columns])

    def first(self, n_samples: int) -> Trajectories:
        """First `n_samples` transitions of each patient.

        Raises
        ------
        ValueError
            If a patient has fewer.
        """
        if np.any(self.n_samples < n_samples):
            worst = int(np.argmin(self.n_samples))
            raise ValueError(
                f"trajectories: patient {self.patients[worst]!r} has "
                f"{self.n_samples[worst]} samples, expected at least {n_samples}"
            )
        # transitions of the same patient that come before each walk
        before = np.cumsum(self.length) - self.length
        first_walk = np.searchsorted(self.patient, np.arange(len(self.patients)))
        before = before - before[first_walk][self.patient]
        length = np.clip(n_samples - before, 0, self.length)
        rows = length > 0
        longest = int(length.max()) if rows.any() else 0
        return replace(
            self,
            patient=self.patient[rows],
            x=self.x[rows, : longest + 1],
            y=self.y[rows, : longest + 1],
            action=self.action[rows, :longest],
            length=length[rows],
            cause=None if self.cause is None else self.cause[rows, : longest + 1],
        )

    def misfits(self, problem: Problem) -> FloatArray:
        """Misfits of all points to their patient's measurements, shape (n, T + 1, n_objectives)."""
        return problem.misfit(self.y, self.z[self.patient][:, np.newaxis])

    @property
    def counted(self) -> BoolArray:
        """Which points are forward runs that count and did not fail, shape (n, T + 1)."""
        within = np.arange(self.x.shape[1]) <= self.length[:, np.newaxis]
        counted: BoolArray = within & np.isfinite(self.y).all(axis=-1)
        return counted

    @property
    def transitions(self) -> BoolArray:
        """Which steps are transitions to learn from, shape (n, T): no jump, no failed run."""
        counted = self.counted
        kept: BoolArray = (self.action >= 0) & counted[:, :-1] & counted[:, 1:]
        return kept

    @property
    def failing(self) -> BoolArray:
        """Which steps are actions that led from a run that counts into a failed one, (n, T)."""
        counted = self.counted
        within = np.arange(self.action.shape[1]) < self.length[:, np.newaxis]
        failed: BoolArray = (self.action >= 0) & counted[:, :-1] & within & ~counted[:, 1:]
        return failed

    def save(self, path: Path) -> None:
        """Write the walks as ``.npz``, whole or not at all; an earlier file is replaced."""
        known = ("z", "patient", "x", "y", "action", "length", "features", "cause")
        arrays = {name: getattr(self, name) for name in known if getattr(self, name) is not None}
        description = {
            "patients": list(self.patients),
            "causes": [list(c) for c in self.causes],
            "by_scale": self.by_scale,
        }
        write_object(path, "Trajectories", description, arrays)

    @classmethod
    def load(cls, path: Path) -> Trajectories:
        """Read walks written by `save`.

        Raises
        ------
        ValueError
            If the file is damaged, holds something else, or its arrays do not fit together.
        """
        path = Path(path)
        description, arrays = read_object(path, "Trajectories")
        patients = names(path, description, "patients")
        causes = tuple(_cause(path, c) for c in field(path, description, "causes", list))
        by_scale = "by_scale" in description and field(path, description, "by_scale", bool)
        x, y = arrays.get("x", np.empty(0)), arrays.get("y", np.empty(0))
        n, points = x.shape[:2] if x.ndim == 3 else (None, None)
        steps = None if points is None else points - 1
        n_outputs = y.shape[-1] if y.ndim == 3 else None
        expected: dict[str, Shape] = {
            "z": ("f", (len(patients), n_outputs)),
            "patient": ("i", (n,)),
            "x": ("f", (n, points, None)),
            "y": ("f", (n, points, None)),
            "action": ("i", (n, steps)),
            "length": ("i", (n,)),
        }
        optional: dict[str, Shape] = {
            "features": ("f", (len(patients), None)),
            "cause": ("i", (n, points)),
        }
        may_fail = ("z", "x", "y", "features")
        check_arrays(path, arrays, expected, may_fail=may_fail, optional=optional)
        check_range(path, "patient", arrays["patient"], 0, len(patients) - 1)
        check_range(path, "length", arrays["length"], 0, x.shape[1] - 1)
        if "cause" in arrays:
            check_range(path, "cause", arrays["cause"], -1, len(causes) - 1)
        try:
            return cls(patients, causes=causes, by_scale=by_scale, **arrays)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        samples = self.n_samples
        few, most = (int(samples.min()), int(samples.max())) if len(samples) else (0, 0)
        counted = self.counted
        return {
            "patients": f"{len(self.patients)}: {', '.join(self.patients)}",
            "walks": len(self.x),
            "samples per patient": str(few) if few == most else f"{few} to {most}",
            "runs": f"{self.n_runs}, of which {self.n_runs - int(counted.sum())} failed",
            "parameters": self.x.shape[-1],
            "objectives": self.y.shape[-1],
        }


def _cause(path: Path, found: Any) -> Cause:
    """Cause of a failed run, as it was stored.

    Raises
    ------
    ValueError
        If it is none.
    """
    if (
        not isinstance(found, list)
        or [type(part) for part in found] != [str, str, int]
        or found[0] not in list(Kind)
    ):
        raise ValueError(f"{path}: causes hold {found!r:.60}, expected kind, text and retries")
    kind, text, n_retries = found
    return kind, text, n_retries
