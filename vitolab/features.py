"""Features of patients in standard deviations, as methods that learn from runs see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitolab.objects import Value
from vitolab.quantities import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Features(Value):
    """Mean and standard deviation of the features of the training patients.

    Attributes
    ----------
    centre, spread : ndarray, shape (n_features,)
        The spread is infinite where all training patients are alike: such a feature is 0 for all.
    """

    centre: FloatArray
    spread: FloatArray

    @classmethod
    def of_patients(cls, known: FloatArray) -> Features:
        """Learn from patients, shape (n_patients, n_features); NaN where not known."""
        counted = np.isfinite(known)
        n = np.maximum(counted.sum(axis=0), 1)
        centre = np.where(counted, known, 0.0).sum(axis=0) / n
        away = np.where(counted, known - centre, 0.0)
        spread = np.sqrt((away**2).sum(axis=0) / n)
        spread[spread == 0.0] = np.inf  # what does not vary tells nothing
        return cls(centre, spread)

    def standard(self, known: FloatArray) -> FloatArray:
        """Features in standard deviations from the mean, shape (..., n_features); 0 if unknown."""
        away = (known - self.centre) / self.spread
        return np.where(np.isfinite(away), away, 0.0)
