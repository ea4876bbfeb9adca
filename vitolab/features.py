"""Features of patients in standard deviations, as methods that learn from walks see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitolab.objects import Value
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.trajectories import Trajectories


@dataclass(frozen=True, eq=False, repr=False)
class Features(Value):
    """Mean and standard deviation of the features of the training patients.

    Attributes
    ----------
    centre, spread : ndarray, shape (n_features,)
        The spread is 1 where all training patients are alike.
    """

    centre: FloatArray
    spread: FloatArray

    @classmethod
    def learn(cls, problem: Problem, walks: Trajectories) -> tuple[Features, FloatArray]:
        """Learn from the patients of walks.

        Returns
        -------
        Features
        f : ndarray, shape (n_patients, n_features)
            Their features in standard deviations from the mean; 0 where not known.
        """
        features = walks.features
        if features is None:
            features = np.full((len(walks.patients), len(problem.features)), np.nan)
        known = np.isfinite(features)
        n = np.maximum(known.sum(axis=0), 1)
        centre = np.where(known, features, 0.0).sum(axis=0) / n
        away = np.where(known, features - centre, 0.0)
        spread = np.sqrt((away**2).sum(axis=0) / n)
        spread[spread == 0.0] = 1.0
        return cls(centre, spread), away / spread

    def of(self, problem: Problem, patient: Patient) -> FloatArray:
        """Features of a patient, shape (n_features,); 0 where not known."""
        away = (problem.featured(patient) - self.centre) / self.spread
        return np.where(np.isfinite(away), away, 0.0)
