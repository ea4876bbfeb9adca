"""All solutions that many starts find, instead of one.

A personalisation ends at the first run within all tolerances. From many starts these ends differ
wherever the measurements do not determine the parameters: the range of the solutions is what one
answer leaves out (the paper's outlook, "fuzzy personalisation").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from vitolab.asked import checked_count, checked_seed
from vitolab.files import stream
from vitolab.fit import Fit, Personalizer, budget
from vitolab.guard import personalized
from vitolab.problem import BoolArray, FloatArray, Patient, Problem


@dataclass(frozen=True)
class Solutions:
    """What one patient's starts led to.

    Attributes
    ----------
    problem : Problem
    patient : str
    fits : tuple of Fit
        One per start, unsolved ones too.
    """

    problem: Problem
    patient: str
    fits: tuple[Fit, ...]

    @property
    def solved(self) -> BoolArray:
        """Which starts led to a solution, shape (n_starts,)."""
        return np.array([fit.solved for fit in self.fits])

    @property
    def x(self) -> FloatArray:
        """All solutions, shape (n_solutions, n_parameters)."""
        found = [fit.x for fit in self.fits if fit.solved]
        return np.array(found).reshape(-1, self.problem.n_parameters)

    @property
    def nearest(self) -> FloatArray:
        """Solutions or, where there are none, the best run from each start, shape (n, ...)."""
        return self.x if len(self.x) else np.array([fit.x for fit in self.fits])

    @property
    def n_runs(self) -> int:
        """Forward runs of all starts together."""
        return sum(fit.n_runs for fit in self.fits)

    @property
    def identifiability(self) -> FloatArray:
        """Range of the solutions as a share of Ω, shape (n_parameters,); NaN below two solutions.

        0: all solutions agree. Towards 1: solutions lie anywhere in the domain. The range of a
        finite number of solutions is a lower bound that grows with the number of starts.
        """
        if len(self.x) < 2:
            return np.full(self.problem.n_parameters, np.nan)
        share: FloatArray = np.ptp(self.x, axis=0) / (self.problem.upper - self.problem.lower)
        return share

    def table(self) -> pd.DataFrame:
        """One row per parameter: smallest, median and largest solution, and the share of Ω."""
        found = self.x if len(self.x) else np.full((1, self.problem.n_parameters), np.nan)
        return pd.DataFrame(
            {
                "patient": self.patient,
                "parameter": [p.label for p in self.problem.parameters],
                "unit": [p.unit for p in self.problem.parameters],
                "lowest": found.min(axis=0),
                "median": np.median(found, axis=0),
                "highest": found.max(axis=0),
                "range / domain": self.identifiability,
                "solutions": len(self.x),
                "starts": len(self.fits),
            }
        )


def spread_starts(problem: Problem, n_starts: int, seed: int) -> FloatArray:
    """Starts drawn uniformly in Ω, the same for every patient and method.

    Returns
    -------
    ndarray, shape (n_starts, n_parameters)

    Raises
    ------
    ValueError
        If no start is asked for.
    """
    n_starts = checked_count("n_starts", n_starts)
    return problem.draw(stream("solution set", problem.name, checked_seed(seed)), n_starts)


def solution_set(
    problem: Problem,
    personalizer: Personalizer,
    patient: Patient,
    *,
    n_starts: int = 50,
    max_runs: int | None = None,
    seed: int = 0,
) -> Solutions:
    """Personalise one patient from many starts and keep every solution.

    Parameters
    ----------
    problem : Problem
    personalizer : Personalizer
        An agent or an optimiser; what an agent learned off-line serves all starts.
    patient : Patient
    n_starts : int
    max_runs : int, optional
        Forward runs allowed from each start; by default `vitolab.fit.budget`.
    seed : int

    Returns
    -------
    Solutions

    Raises
    ------
    ValueError
        If no start or no forward run is asked for, or a measurement is missing.
    """
    starts = spread_starts(problem, n_starts, seed)
    max_runs = budget(problem, max_runs)
    fits = personalized(problem, personalizer, patient, max_runs=max_runs, seed=seed, starts=starts)
    return Solutions(problem, patient.name, tuple(fits))
