"""What the opponents share: the runs that they own, and where they start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from vitolab.asked import checked_seed
from vitolab.experience import Experience
from vitolab.files import stream
from vitolab.fit import Fit, budget
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference.optimiser import Optimiser


@dataclass(frozen=True, eq=False, repr=False)
class Opponent(Optimiser, ABC):
    """A method that starts from stored runs.

    Attributes
    ----------
    problem : Problem
    stored : Experience
    """

    stored: Experience

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient, starting from stored runs; see `Optimiser.personalize`."""
        allowed, seed = budget(self.problem, max_runs), checked_seed(seed)
        rng = stream(type(self).__name__, self.problem.name, seed, patient.name)
        return self._fit(patient, None, allowed, rng)

    @abstractmethod
    def _fit(
        self, patient: Patient, start: FloatArray | None, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Personalise from a start, which is run first, or from stored runs."""


def circular(problem: Problem, y: FloatArray) -> FloatArray:
    """Outputs over ψ with no jump: of angles the cosine; then their sines; (n, n_outputs)."""
    angular = problem.angular
    angle = np.radians(y[:, angular] * problem.tolerance[angular])
    y = y.copy()
    y[:, angular] = np.cos(angle)
    return np.concatenate([y, np.sin(angle)], axis=1)
