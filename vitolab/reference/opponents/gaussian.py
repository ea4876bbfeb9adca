"""Gaussian-process regression of the outputs by scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from vitolab.experience import Experience
from vitolab.files import stream
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference.opponents.correcting import Correcting, Emulator
from vitolab.reference.opponents.opponent import circular
from vitolab.trajectories import Trajectories

N_MOST = 500  # stored runs that predict
N_TUNED = 200  # of these, runs from which the kernels are learned: it costs their cube
# Where Ω spans 2: shorter kernels take differences between patients for waves.
SHORTEST = 0.5
N_TRIES = 1  # further optimisations of each kernel, from random values


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Correcting):
    """Outputs as Gaussian processes of parameters and features; see `Correcting`.

    One process for each output (`sklearn.gaussian_process.GaussianProcessRegressor`): a squared
    exponential with a length for each input, and white noise, which is what patients differ in.
    Of many runs 500 are kept, drawn at random, and 200 of them set the kernels. An angle is two
    outputs, its cosine and sine, so that it jumps nowhere.

    Attributes
    ----------
    inputs : ndarray, shape (n, n_inputs)
        Of the runs that are kept.
    lengths : ndarray, shape (n_outputs, n_inputs)
        Of the kernels; angles count twice among the outputs, their sines come last.
    weights : ndarray, shape (n_outputs, n)
        Of the runs, with the variance of the kernel.
    mean, spread : ndarray, shape (n_outputs,)
        By which the outputs are normalised.

    Examples
    --------
    >>> import vitolab as vl
    >>> from vitolab.reference.opponents import Gaussian
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=20, n_steps=1, seed=0)
    >>> Gaussian.learn(problem, walks).personalize(patient).solved
    True
    """

    inputs: FloatArray
    lengths: FloatArray
    weights: FloatArray
    mean: FloatArray
    spread: FloatArray

    @classmethod
    def learn(
        cls, problem: Problem, walks: Trajectories | Experience, *, seed: int = 0
    ) -> Gaussian:
        """Learn from runs of walks.

        Parameters
        ----------
        problem : Problem
        walks : Trajectories or Experience
        seed : int
            Of the runs that are kept, and of the values from which kernels are optimised.

        Raises
        ------
        ValueError
            If no run among them succeeded.
        """
        stored = Experience.learn(problem, walks)
        rng = stream("gp-emulator", problem.name, seed)
        kept = rng.permutation(len(stored.u))[:N_MOST]
        a, y = stored.inputs[kept], circular(problem, stored.y)[kept]
        mean, spread = y.mean(axis=0), y.std(axis=0)
        spread[spread == 0.0] = 1.0
        y = (y - mean) / spread
        lengths, weights = [], []
        with one_thread():
            for column in y.T:
                length, weight = _process(a, column, int(rng.integers(2**31)))
                lengths.append(length)
                weights.append(weight)
        return cls(problem, stored, a, np.array(lengths), np.array(weights), mean, spread)

    def emulator(self, patient: Patient) -> Emulator:
        """Emulate a patient's model, before anything was run."""
        f = self.stored.featured(patient)
        n, m = self.problem.n_parameters, self.problem.n_objectives
        angular, psi = self.problem.angular, self.problem.tolerance
        precision = 1.0 / self.lengths**2

        def at(u: FloatArray) -> tuple[FloatArray, FloatArray]:
            away = self.inputs - np.concatenate([2.0 * u - 1.0, f])
            share = self.weights * np.exp(-0.5 * precision @ (away**2).T)
            y = self.mean + self.spread * share.sum(axis=1)
            slopes = 2.0 * self.spread[:, np.newaxis] * ((share @ away) * precision)[:, :n]
            sine, sine_slopes = y[m:], slopes[m:]
            y, slopes = y[:m], slopes[:m]
            if angular.any():
                cosine, cosine_slopes = y[angular], slopes[angular]
                size = np.maximum(cosine**2 + sine**2, np.finfo(float).eps)[:, np.newaxis]
                turn = cosine[:, np.newaxis] * sine_slopes - sine[:, np.newaxis] * cosine_slopes
                y[angular] = np.degrees(np.arctan2(sine, cosine)) / psi[angular]
                slopes[angular] = np.degrees(turn / size) / psi[angular][:, np.newaxis]
            return y, slopes

        return at


def _process(a: FloatArray, y: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Lengths of the kernel of one output, and weights of the runs."""
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.full(a.shape[1], 2.0), (SHORTEST, 100.0))
    noise = WhiteKernel(1e-3, (1e-8, 1.0))
    tuned = GaussianProcessRegressor(
        kernel + noise, n_restarts_optimizer=N_TRIES, random_state=seed
    )
    with warnings.catch_warnings():  # an input without effect has a length at its bound
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = tuned.fit(a[:N_TUNED], y[:N_TUNED]).kernel_
    whole = GaussianProcessRegressor(found, optimizer=None).fit(a, y)
    length = np.broadcast_to(found.k1.k2.length_scale, a.shape[1])
    return length, whole.alpha_ * found.k1.k1.constant_value
