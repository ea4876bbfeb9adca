"""Vito with continuous actions: a local model, learned from explored walks, plans each step.

Model-based reinforcement learning with locally weighted regression (Atkeson, Moore & Schaal 1997).
What was explored is kept as it is; `vitolab.agent.local` says how it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from vitolab.agent import storage
from vitolab.agent.local import LIKENESS, UnitCube, Walk
from vitolab.files import stream
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.trajectories import Fit, Trajectories, check_budget

FORMAT, FILE = 1, "vito-continuous.json"


@dataclass(frozen=True)
class ContinuousVito:
    """The agent with continuous actions.

    Attributes
    ----------
    problem : Problem
    x : ndarray, shape (n, n_parameters)
        Forward runs that were explored and did not fail.
    y : ndarray, shape (n, n_objectives)
    data : ndarray, shape (n, n_features)
        What was known of the patient of each run.
    features : tuple of str
        Names of the columns of `data`: numbers that every training patient had in its data.
    """

    problem: Problem
    x: FloatArray
    y: FloatArray
    data: FloatArray
    features: tuple[str, ...]

    @classmethod
    def learn(
        cls, problem: Problem, walks: Trajectories, *, patients: Sequence[Patient] = ()
    ) -> Self:
        """Keep what was explored. Nothing is drawn at random.

        Parameters
        ----------
        problem : Problem
        walks : Trajectories
            Walks of the training patients; `Trajectories.without` leaves one out.
        patients : sequence of Patient, optional
            The training patients (others are passed over), if what is known of them is to be
            used: numbers in their data, such as the heart rate, tell which of them are alike.

        Raises
        ------
        ValueError
            If no run among the walks succeeded, or a patient of the walks is not among those given.
        """
        counted = walks.require_runs(problem)
        known = {patient.name: patient for patient in patients}
        missing = [name for name in walks.patients if name not in known] if patients else []
        if missing:
            raise ValueError(f"patient {missing[0]!r} of the walks is not among the patients given")
        own = [known[name] for name in walks.patients] if patients else []
        features = _features(own)
        data = np.array([[float(p.data[name]) for name in features] for p in own])
        data = data.reshape(len(walks.patients), len(features))
        whose = np.broadcast_to(walks.patient[:, np.newaxis], counted.shape)[counted]
        return cls(problem, walks.x[counted], walks.y[counted], data[whose], features)

    def personalize(self, patient: Patient, *, max_runs: int = 100, seed: int = 0) -> Fit:
        """Personalise one patient, starting from what was explored with the likest outputs.

        Parameters
        ----------
        patient : Patient
        max_runs : int
            Largest number of forward runs, the first one included.
        seed : int
            For further starts, uniform in Ω, after those that were explored.

        Returns
        -------
        Fit

        Raises
        ------
        ValueError
            If no run is allowed, or a measurement or what the agent knows patients by is missing.
        """
        rng = stream("personalize", self.problem.name, seed, patient.name)
        return self._walk(patient, max_runs).go(None, rng)

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int = 100, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from given starts, whose run is the first.

        Parameters
        ----------
        patient : Patient
        starts : ndarray, shape (n, n_parameters)
        max_runs : int
        seed : int
            The outcome of a start does not depend on the other starts.

        Returns
        -------
        list of Fit
        """
        return [
            self._walk(patient, max_runs).go(
                start, stream("personalize", self.problem.name, seed, patient.name, i)
            )
            for i, start in enumerate(starts)
        ]

    def _walk(self, patient: Patient, max_runs: int) -> Walk:
        """Begin a personalisation."""
        check_budget(max_runs)
        place, data = self._explored
        away = data - self._standardised(self._data_of(patient))
        return Walk(self.problem, self._cube, patient, max_runs, place, away, self.y)

    @cached_property
    def _cube(self) -> UnitCube:
        """Places of parameters."""
        return UnitCube(self.problem)

    @cached_property
    def _explored(self) -> tuple[FloatArray, FloatArray]:
        """Explored runs: places in the unit cube, and standardised data of their patients."""
        return self._cube.place(self.x), self._standardised(self.data)

    def _standardised(self, data: FloatArray) -> FloatArray:
        """Data of patients in standard deviations over the explored runs, weighted."""
        spread = self.data.std(axis=0)
        standard: FloatArray = (data - self.data.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return LIKENESS * standard

    def _data_of(self, patient: Patient) -> FloatArray:
        """What the agent knows patients by, shape (n_features,).

        Raises
        ------
        ValueError
            If some of it is missing.
        """
        for name in self.features:
            if not _is_number(patient.data.get(name)):
                raise ValueError(
                    f"patient {patient.name!r}: {name} is {patient.data.get(name)!r}, expected a "
                    "number, as the patients had whom the agent learned from"
                )
        return np.array([float(patient.data[name]) for name in self.features])

    def save(self, path: Path) -> None:
        """Write the agent as a folder of plain arrays and JSON, whole or not at all.

        Raises
        ------
        FileExistsError
            If the path exists.
        """
        description = {
            "format": FORMAT,
            "problem": self.problem.describe(),
            "features": list(self.features),
        }
        arrays = {"x": self.x, "y": self.y, "data": self.data}
        storage.save(Path(path), FILE, description, arrays)

    @classmethod
    def load(cls, path: Path, problem: Problem) -> Self:
        """Read an agent written by `save`; the problem must be the one it learned.

        Raises
        ------
        ValueError
            If the format is unknown or the problem differs.
        """
        description, arrays = storage.load(Path(path), FILE, FORMAT, problem)
        features = tuple(description["features"])
        return cls(problem, arrays["x"], arrays["y"], arrays["data"], features)


def _features(patients: Sequence[Patient]) -> tuple[str, ...]:
    """Names of the numbers that all patients have in their data, in alphabetical order."""
    if not patients:
        return ()
    names = set.intersection(*({n for n, v in p.data.items() if _is_number(v)} for p in patients))
    return tuple(sorted(names))


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return plain and bool(np.isfinite(value))
