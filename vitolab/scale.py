"""Coordinates in which methods with continuous steps think."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import qmc

from vitolab.problem import BoolArray, FloatArray, Problem

N_FIRST = 10  # runs with which a method begins that has none to learn from


@dataclass(frozen=True)
class Scale:
    """Ω as the unit cube, by difference or by ratio as each parameter acts."""

    problem: Problem

    @cached_property
    def _by_ratio(self) -> BoolArray:
        return np.array([p.scale == "log" for p in self.problem.parameters])

    @property
    def is_by_ratio(self) -> bool:
        """Whether any parameter acts by ratio: otherwise both ways of drawing are the same."""
        return bool(self._by_ratio.any())

    @cached_property
    def _ends(self) -> FloatArray:
        """Both ends of Ω, where equal distances count alike."""
        ends = np.array([self.problem.lower, self.problem.upper], dtype=np.float64)
        ends[:, self._by_ratio] = np.log(ends[:, self._by_ratio])
        return ends

    def unit(self, x: FloatArray) -> FloatArray:
        """Coordinates of parameters, in [0, 1] within Ω, shape (..., n_parameters).

        Not finite where a parameter on a logarithmic scale is not positive.
        """
        inner = np.array(x, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            inner[..., self._by_ratio] = np.log(inner[..., self._by_ratio])
        unit: FloatArray = (inner - self._ends[0]) / (self._ends[1] - self._ends[0])
        return unit

    def first(self, rng: np.random.Generator) -> FloatArray:
        """Points in the unit cube with which a method begins that knows nothing.

        The default values, and points of a scrambled Sobol sequence.

        Returns
        -------
        ndarray, shape (N_FIRST, n_parameters)
        """
        power = int(np.ceil(np.log2(N_FIRST)))
        spread = qmc.Sobol(self.problem.n_parameters, seed=rng).random_base2(power)
        default = self.unit(self.problem.default)[np.newaxis]
        return np.concatenate([default, spread])[:N_FIRST]

    def parameters(self, u: FloatArray) -> FloatArray:
        """Parameters of coordinates, within Ω, shape (..., n_parameters)."""
        inner = self._ends[0] + u * (self._ends[1] - self._ends[0])
        inner[..., self._by_ratio] = np.exp(inner[..., self._by_ratio])
        x: FloatArray = np.clip(inner, self.problem.lower, self.problem.upper)
        return x

    def draw(self, rng: np.random.Generator, n: int = 1) -> FloatArray:
        """Draw parameters uniformly in the unit cube, shape (n, n_parameters)."""
        return self.parameters(rng.random((n, self.problem.n_parameters)))
