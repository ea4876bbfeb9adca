"""Least squares that start at stored runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from vitolab.experience import Experience
from vitolab.fit import Fit
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference.least_squares import least_squares_from, restarts
from vitolab.reference.opponents.opponent import Opponent
from vitolab.trajectories import Trajectories


@dataclass(frozen=True, eq=False, repr=False)
class NearestLeastSquares(Opponent):
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

    @classmethod
    def learn(
        cls, problem: Problem, walks: Trajectories | Experience, *, seed: int = 0
    ) -> NearestLeastSquares:
        """Keep all runs of walks; nothing is drawn.

        Raises
        ------
        ValueError
            If no run among them succeeded.
        """
        return cls(problem, Experience.learn(problem, walks))

    def _fit(
        self, patient: Patient, start: FloatArray | None, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run the solver from one start after the other."""
        first = [] if start is None else [start]
        near = map(self.stored.scale.parameters, self.stored.near(patient))
        starts = chain(first, near, restarts(self.problem, rng))
        with one_thread():
            return least_squares_from(self.problem, patient, starts, max_runs)
