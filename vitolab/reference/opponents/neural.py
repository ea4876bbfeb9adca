"""Neural posterior estimation by sbi, which is optional, and least squares from its mean."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from vitolab.experience import Experience
from vitolab.files import stream
from vitolab.fit import Fit
from vitolab.parallel.threads import one_thread
from vitolab.problem import BoolArray, FloatArray, Patient, Problem
from vitolab.reference.least_squares import least_squares_from, restarts
from vitolab.reference.opponents import flow
from vitolab.reference.opponents.opponent import Opponent, circular
from vitolab.trajectories import Trajectories

N_LEAST = 10  # runs without which nothing is trained
N_DRAWN = 1000  # of which the posterior mean is taken
HELD_BACK = 0.1  # share of the patients, or of the runs of one, that tells when to stop


@dataclass(frozen=True, eq=False, repr=False)
class NeuralPosterior(Opponent):
    """Least squares from the mean of a learned posterior.

    A normalising flow (Papamakarios et al. 2017, as `sbi` builds it) is trained to give the
    parameters of a run from its outputs and from the features of its patient: the posterior for
    parameters that are distributed as those of the runs. The patients' own measurements give a
    mean, which is run first; on from there, and from the stored runs that are nearest, as
    `NearestLeastSquares`.

    Runs of one patient resemble each other, so that training ends by the runs of patients who are
    held back, not by runs drawn at random. With fewer than 10 runs nothing is trained. What is
    learned is not saved.

    Attributes
    ----------
    problem : Problem
    stored : Experience
    network : mapping of str to ndarray
        Weights and masks by name; empty where nothing is trained.
    centre, spread : ndarray, shape (n_parameters + n_inputs,)
        Mean and standard deviation of parameters, outputs and features, by which they are
        standardised; the spread of what does not vary is 1.

    Examples
    --------
    >>> import vitolab as vl
    >>> from vitolab.reference.opponents import NeuralPosterior
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=20, n_steps=1, seed=0)
    >>> NeuralPosterior.learn(problem, walks).personalize(patient).solved
    True
    """

    network: flow.Network
    centre: FloatArray
    spread: FloatArray

    @classmethod
    def learn(
        cls, problem: Problem, walks: Trajectories | Experience, seed: int = 0
    ) -> NeuralPosterior:
        """Learn from all runs of walks that did not fail.

        Parameters
        ----------
        problem : Problem
        walks : Trajectories
        seed : int
            Of the patients held back, the first weights and the order of training.

        Raises
        ------
        ValueError
            If no run among them succeeded.
        CannotRun
            If sbi or torch is missing.
        """
        flow.check_installed()
        stored = Experience.learn(problem, walks)
        rng = stream("npe", problem.name, seed)
        rows = np.concatenate([stored.u, circular(problem, stored.y), stored.f], axis=1)
        centre, spread = rows.mean(axis=0), rows.std(axis=0)
        spread[spread == 0.0] = 1.0
        network: flow.Network = {}
        if len(rows) >= N_LEAST:
            n = problem.n_parameters
            rows = (rows - centre) / spread
            held_back = _held_back(stored, rng)
            network = flow.train(rows[:, :n], rows[:, n:], held_back, int(rng.integers(2**31)))
        return cls(problem, stored, network, centre, spread)

    def mean(self, patient: Patient, rng: np.random.Generator) -> FloatArray | None:
        """Posterior mean of a patient in the unit cube, shape (n_parameters,).

        None where nothing was trained, or the network gives no number so far from all runs.
        """
        if not self.network:
            return None
        n = self.problem.n_parameters
        z = self.problem.measured(patient)[np.newaxis] / self.problem.tolerance
        known = np.concatenate([circular(self.problem, z)[0], self.stored.featured(patient)])
        a = (known - self.centre[n:]) / self.spread[n:]
        drawn = flow.draw(self.network, a, n, N_DRAWN, int(rng.integers(2**31)))
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        if not len(drawn):
            return None
        mean: FloatArray = self.centre[:n] + self.spread[:n] * drawn.mean(axis=0)
        return np.clip(mean, 0.0, 1.0)

    def _fit(
        self, patient: Patient, start: FloatArray | None, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run the solver from one start after the other."""
        scale = self.stored.scale
        first = [] if start is None else [start]
        if (mean := self.mean(patient, rng)) is not None:
            first.append(scale.parameters(mean))
        near = map(scale.parameters, self.stored.near(patient))
        starts = chain(first, near, restarts(self.problem, rng))
        with one_thread():
            return least_squares_from(self.problem, patient, starts, max_runs)


def _held_back(stored: Experience, rng: np.random.Generator) -> BoolArray:
    """Runs by which training is ended: of some patients, or of the only one."""
    patients = np.unique(stored.patient)
    if len(patients) == 1:
        return np.isin(np.arange(len(stored.u)), _share(np.arange(len(stored.u)), rng))
    return np.isin(stored.patient, _share(patients, rng))


def _share(of: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Some of these, at least one."""
    return rng.permutation(of)[: max(1, round(HELD_BACK * len(of)))]
