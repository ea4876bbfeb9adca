"""Quadratic regression of the outputs: the response surface of a textbook."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitolab.experience import Experience
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference.opponents.correcting import Correcting, Emulator
from vitolab.trajectories import Trajectories

RIDGES = 10.0 ** np.arange(-8, 2)  # per run, on standardised terms; chosen for each output


@dataclass(frozen=True, eq=False, repr=False)
class Quadratic(Correcting):
    """Outputs as quadratic functions of parameters and features; see `Correcting`.

    Ridge regression: how strong the ridge is, is chosen for each output by leaving out one run
    after the other (Allen 1974), so that fewer runs than terms are no obstacle. Angles are counted
    from their mean direction.

    Attributes
    ----------
    weights : ndarray, shape (n_terms, n_objectives)
        Coefficients of 1, the inputs and their products, for outputs over ψ.

    Examples
    --------
    >>> import vitolab as vl
    >>> from vitolab.reference.opponents import Quadratic
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=20, n_steps=1, seed=0)
    >>> Quadratic.learn(problem, walks).personalize(patient).solved
    True
    """

    weights: FloatArray

    @classmethod
    def learn(
        cls, problem: Problem, walks: Trajectories | Experience, *, seed: int = 0
    ) -> Quadratic:
        """Learn from all runs of walks; nothing is drawn.

        Raises
        ------
        ValueError
            If no run among them succeeded.
        """
        with one_thread():
            stored = Experience.learn(problem, walks)
            return cls(problem, stored, _ridge(_terms(stored.inputs), stored.unwrapped(stored.y)))

    def emulator(self, patient: Patient) -> Emulator:
        """Emulate a patient's model, before anything was run."""
        f = self.stored.featured(patient)
        n, d = self.problem.n_parameters, self.problem.n_parameters + len(f)
        constant, linear = self.weights[0], self.weights[1 : 1 + d].T
        half = np.zeros((self.problem.n_objectives, d, d))
        half[:, *np.triu_indices(d)] = self.weights[1 + d :].T
        square = half + half.transpose(0, 2, 1)

        def at(u: FloatArray) -> tuple[FloatArray, FloatArray]:
            a = np.concatenate([2.0 * u - 1.0, f])
            slopes = square @ a
            y = constant + linear @ a + 0.5 * slopes @ a
            return y, 2.0 * (linear + slopes)[:, :n]

        return at


def _terms(a: FloatArray) -> FloatArray:
    """1, the inputs and their products, shape (n, n_terms)."""
    i, j = np.triu_indices(a.shape[1])
    return np.concatenate([np.ones((len(a), 1)), a, a[:, i] * a[:, j]], axis=1)


def _ridge(x: FloatArray, y: FloatArray) -> FloatArray:
    """Fit y by terms of which the first is 1, each column with the ridge that predicts best."""
    centre, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread == 0.0] = 1.0
    mean = y.mean(axis=0)
    left, size, right = np.linalg.svd((x - centre) / spread, full_matrices=False)
    along = left.T @ (y - mean)
    weights, least = np.zeros((x.shape[1], y.shape[1])), np.full(y.shape[1], np.inf)
    for ridge in RIDGES * len(x):
        kept = size**2 / (size**2 + ridge)
        leverage = 1.0 / len(x) + (left**2) @ kept
        left_out = y - mean - left @ (kept[:, np.newaxis] * along)
        left_out /= np.maximum(1.0 - leverage, 1e-9)[:, np.newaxis]
        error = (left_out**2).sum(axis=0)
        found = right.T @ ((size / (size**2 + ridge))[:, np.newaxis] * along)
        better = error < least
        weights[:, better] = (found / spread[:, np.newaxis])[:, better]
        least = np.minimum(error, least)
    weights[0] = mean - centre @ weights
    return weights
