"""Least squares that start at stored runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from vitolab.experience import Experience
from vitolab.files import stream
from vitolab.fit import Fit, budget
from vitolab.objects import Value
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference.least_squares import least_squares_from, restarts
from vitolab.trajectories import Trajectories


@dataclass(frozen=True, eq=False, repr=False)
class NearestLeastSquares(Value):
    """Least squares from the nearest stored run, then from the next one that is apart, and so on.

    As `vitolab.reference.LeastSquares`: finite differences are forward runs and counted. After the
    stored runs that are apart it starts anywhere in Ω.

    Attributes
    ----------
    problem : Problem
    stored : Experience

    Examples
    --------
    >>> import vitolab as vl
    >>> from vitolab.reference.opponents import NearestLeastSquares
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=20, n_steps=1, seed=0)
    >>> NearestLeastSquares.learn(problem, walks).personalize(patient).solved
    True
    """

    problem: Problem
    stored: Experience

    @classmethod
    def learn(
        cls, problem: Problem, walks: Trajectories | Experience, seed: int = 0
    ) -> NearestLeastSquares:
        """Keep all runs of walks; nothing is drawn.

        Raises
        ------
        ValueError
            If no run among them succeeded.
        """
        return cls(problem, Experience.learn(problem, walks))

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient from stored runs.

        Parameters
        ----------
        patient : Patient
        max_runs : int, optional
            Largest number of forward runs, the first one included; by default 50 per parameter.
        seed : int
            Of the starts after all stored ones.

        Returns
        -------
        Fit

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        return self._fit(patient, np.empty((0, self.problem.n_parameters)), max_runs, seed)

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from each of the given starts, then from stored runs.

        Parameters
        ----------
        patient : Patient
        starts : ndarray, shape (n, n_parameters)
        max_runs : int, optional
        seed : int
            The outcome of a start does not depend on the other starts.

        Returns
        -------
        list of Fit

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        return [
            self._fit(patient, start[np.newaxis], max_runs, seed, i)
            for i, start in enumerate(starts)
        ]

    def _fit(self, patient: Patient, first: FloatArray, max_runs: int | None, *key: int) -> Fit:
        rng = stream("least-squares-nearest", self.problem.name, patient.name, *key)
        near = map(self.stored.scale.parameters, self.stored.near(patient))
        starts = chain(first, near, restarts(self.problem, rng))
        with one_thread():
            return least_squares_from(self.problem, patient, starts, budget(self.problem, max_runs))
