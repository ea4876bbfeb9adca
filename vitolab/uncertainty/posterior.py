"""Posterior of the parameters given noisy measurements, by an affine-invariant ensemble.

Prior: uniform on Ω. Likelihood: independent Gaussian errors of the measurements, their standard
deviations an input. The model is assumed to be right: what it cannot do is not in the posterior.
Sampled on the model itself with ``emcee`` (Foreman-Mackey et al. 2013), in the unit cube of Ω, by
differential-evolution moves (ter Braak 2006; Nelson, Ford & Payne 2014).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vitolab.asked import checked_seed
from vitolab.failures import Failure, Record
from vitolab.files import digest, stream
from vitolab.problem import FloatArray, Patient, Problem

JITTER = 0.01  # of Ω, between walkers that start at the same solution


def deviations(problem: Problem, deviation: Mapping[str, float]) -> FloatArray:
    """Standard deviations of the measurement errors in the order of the objectives.

    Raises
    ------
    ValueError
        If one is missing or not a positive number.
    """
    for objective in problem.objectives:
        value = deviation.get(objective.name, math.nan)
        if not (math.isfinite(value) and value > 0):
            found = f"{value:g}" if objective.name in deviation else "missing"
            raise ValueError(
                f"deviation of {objective.name!r} is {found}, expected a measurement error above "
                f"0 {objective.unit}".rstrip()
            )
    return np.array([float(deviation[o.name]) for o in problem.objectives])


class LogProbability:
    """Logarithm of the posterior density, up to a constant, for many points at once.

    Attributes
    ----------
    n_runs, n_failed : int
        Forward runs so far, and those that failed; a failed run has no probability.
    record : Record
        Why they failed.
    """

    def __init__(self, problem: Problem, patient: Patient, deviation: Mapping[str, float]) -> None:
        self.problem, self.patient = problem, patient
        self.z = problem.measured(patient)
        self.deviation = deviations(problem, deviation)
        self.n_runs = self.n_failed = 0
        self.record = Record()

    def __call__(self, x: FloatArray) -> FloatArray:
        """Log-density at x, shape (n, n_parameters) -> (n,); -inf outside Ω and where runs fail."""
        value = np.full(len(x), -np.inf)
        inside = np.all((x >= self.problem.lower) & (x <= self.problem.upper), axis=1)
        if inside.any():
            runs = self.problem.exact(x[inside], self.patient)
            self.record.update(runs.failures)
            c = self.problem.misfit(runs.y, self.z) / self.deviation
            found = -0.5 * np.sum(c**2, axis=1)
            worked = np.isfinite(found)
            self.n_runs += len(found)
            self.n_failed += int(np.count_nonzero(~worked))
            value[inside] = np.where(worked, found, -np.inf)
        return value


@dataclass(frozen=True)
class Posterior:
    """Draws from the posterior of one patient, after the first steps were thrown away.

    Attributes
    ----------
    problem : Problem
    patient : str
    x : ndarray, shape (n_steps, n_ensembles * n_walkers, n_parameters)
        Walkers of one ensemble after those of another.
    log_probability : ndarray, shape (n_steps, n_ensembles * n_walkers)
    acceptance : float
        Share of proposals that were accepted, the first steps included.
    autocorrelation : ndarray, shape (n_parameters,)
        Integrated autocorrelation time in steps, the longest of the ensembles; an estimate below
        a fiftieth of the number of steps can be trusted.
    n_ensembles : int
        Ensembles that did not know of each other.
    n_runs, n_failed : int
        Forward runs, and those that failed.
    failures : tuple of Failure
        Why they failed, those alike together.
    """

    problem: Problem
    patient: str
    x: FloatArray
    log_probability: FloatArray
    acceptance: float
    autocorrelation: FloatArray
    n_ensembles: int
    n_runs: int
    n_failed: int
    failures: tuple[Failure, ...] = ()

    @property
    def flat(self) -> FloatArray:
        """All draws, shape (n_steps * n_walkers, n_parameters)."""
        return self.x.reshape(-1, self.problem.n_parameters)

    @property
    def n_effective(self) -> float:
        """Independent draws that these are worth, for the worst parameter."""
        return float(self.x.shape[0] * self.x.shape[1] / np.max(self.autocorrelation))

    @property
    def r_hat(self) -> FloatArray:
        """Split R-hat of each parameter, shape (n_parameters,): 1 where all halves agree.

        The sequences are the halves of each ensemble, all its walkers together (Gelman et al.
        2013, Bayesian Data Analysis, section 11.4).
        """
        return split_r_hat(np.array(np.split(self.x, self.n_ensembles, axis=1)))

    def thinned(self, n: int) -> FloatArray:
        """About `n` draws, evenly spaced over the chain, shape (n, n_parameters)."""
        flat = self.flat
        return flat[np.linspace(0, len(flat) - 1, min(n, len(flat))).astype(np.int64)]

    def interval(self, share: float) -> FloatArray:
        """Ends of the central interval of each parameter, shape (2, n_parameters)."""
        tail = (1.0 - share) / 2.0
        ends: FloatArray = np.quantile(self.flat, [tail, 1.0 - tail], axis=0)
        return ends

    def width(self, share: float) -> FloatArray:
        """Length of the central interval of each parameter as a share of Ω, (n_parameters,)."""
        low, high = self.interval(share)
        length: FloatArray = (high - low) / (self.problem.upper - self.problem.lower)
        return length

    def rank(self, x: FloatArray) -> FloatArray:
        """Share of the draws below x, parameter by parameter, shape (n_parameters,)."""
        below: FloatArray = np.mean(self.flat < x, axis=0)
        return below

    def level(self, log_probability: float) -> float:
        """Smallest share of a highest-density region that holds a point of this log-density.

        Over patients that come from the prior and the model itself, with these errors, the level
        of the true parameters is uniform in [0, 1].
        """
        return float(np.mean(self.log_probability > log_probability))

    def table(self) -> pd.DataFrame:
        """One row per parameter: mean, deviation, central intervals, share of Ω, convergence."""
        inner, outer = self.interval(0.5), self.interval(0.9)
        return pd.DataFrame(
            {
                "patient": self.patient,
                "parameter": [p.label for p in self.problem.parameters],
                "unit": [p.unit for p in self.problem.parameters],
                "mean": self.flat.mean(axis=0),
                "deviation": self.flat.std(axis=0, ddof=1),
                "50 % from": inner[0],
                "50 % to": inner[1],
                "90 % from": outer[0],
                "90 % to": outer[1],
                "90 % / domain": self.width(0.9),
                "R-hat": self.r_hat,
                "autocorrelation [steps]": self.autocorrelation,
                "acceptance": self.acceptance,
            }
        )


def split_r_hat(draws: FloatArray) -> FloatArray:
    """Potential scale reduction of sequences that are split into halves.

    Parameters
    ----------
    draws : ndarray, shape (n_sequences, n_steps, n_walkers, n_parameters)
        The draws of all walkers at one step count alike; an odd last step is left out.

    Returns
    -------
    ndarray, shape (n_parameters,)
        NaN where no draw differs from another.

    References
    ----------
    Gelman, A. et al., Bayesian Data Analysis, 3rd edition, 2013, equation 11.4.
    """
    n_sequences, n_steps, n_walkers, n_parameters = draws.shape
    half = n_steps // 2
    halves = draws[:, : 2 * half].reshape(2 * n_sequences, half * n_walkers, n_parameters)
    n = half * n_walkers
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        reduction: FloatArray = np.sqrt((n - 1) / n + between / within)
    return np.where(within > 0.0, reduction, np.nan)


def sample_posterior(
    problem: Problem,
    patient: Patient,
    deviation: Mapping[str, float],
    starts: FloatArray,
    *,
    n_walkers: int = 32,
    n_steps: int = 1000,
    n_burn: int = 500,
    n_ensembles: int = 2,
    seed: int = 0,
) -> Posterior:
    """Draw from the posterior of one patient's parameters.

    Parameters
    ----------
    problem : Problem
    patient : Patient
    deviation : mapping of str to float
        Standard deviation of the error of each measurement, in the unit of the objective.
    starts : ndarray, shape (n, n_parameters)
        Where the walkers start in turns, with a little jitter: the set of solutions.
    n_walkers : int
        Even, and at least twice the number of parameters.
    n_steps, n_burn : int
        Steps of each walker that are kept, and that come before and are thrown away.
    n_ensembles : int
        Ensembles of so many walkers each, which do not know of each other.
    seed : int

    Returns
    -------
    Posterior

    Raises
    ------
    ValueError
        If a size is too small, a deviation is missing, or no start has a finite probability.
    """
    n = problem.n_parameters
    if n_walkers < max(2 * n, 4) or n_walkers % 2:
        raise ValueError(
            f"n_walkers is {n_walkers}, expected an even number of at least {max(2 * n, 4)}"
        )
    least = {"n_steps": (n_steps, 2), "n_burn": (n_burn, 0), "n_ensembles": (n_ensembles, 1)}
    for name, (value, fewest) in least.items():
        if value < fewest:
            raise ValueError(f"{name} is {value}, expected at least {fewest}")
    target = LogProbability(problem, patient, deviation)
    span = problem.upper - problem.lower

    def in_cube(unit: FloatArray) -> FloatArray:
        return target(problem.lower + unit * span)

    samplers = []
    for ensemble in range(n_ensembles):
        key = (problem.name, checked_seed(seed), patient.name, *([ensemble] if ensemble else []))
        unit = _walkers(problem, starts, n_walkers, stream("walkers", *key))
        first = in_cube(unit)
        if not np.isfinite(first).any():
            raise ValueError(
                f"patient {patient.name!r}: the model fails at each of the {n_walkers} starting "
                "points of the walkers"
            )
        sampler, state = _sampler(n_walkers, n, in_cube, key)
        with np.errstate(invalid="ignore"):  # a walker may start, and then move, where runs fail
            sampler.run_mcmc(state(unit, first), n_burn + n_steps)
        samplers.append(sampler)
    draws = np.concatenate([s.get_chain(discard=n_burn) for s in samplers], axis=1)
    times = [s.get_autocorr_time(discard=n_burn, tol=0) for s in samplers]
    return Posterior(
        problem,
        patient.name,
        problem.lower + draws * span,
        np.concatenate([s.get_log_prob(discard=n_burn) for s in samplers], axis=1),
        float(np.mean([s.acceptance_fraction for s in samplers])),
        np.max(times, axis=0),
        n_ensembles,
        target.n_runs,
        target.n_failed,
        target.record.failures,
    )


def _walkers(
    problem: Problem, starts: FloatArray, n_walkers: int, rng: np.random.Generator
) -> FloatArray:
    """Distinct starting points in the unit cube, shape (n_walkers, n_parameters)."""
    starts = np.atleast_2d(starts)
    order = np.resize(rng.permutation(len(starts)), n_walkers)
    unit = (starts[order] - problem.lower) / (problem.upper - problem.lower)
    unit = np.clip(unit, 0.0, 1.0) + rng.normal(0.0, JITTER, unit.shape)
    inside: FloatArray = 1.0 - np.abs(1.0 - np.abs(unit))  # reflected at the borders
    return inside


def _sampler(n_walkers: int, n: int, log_probability: Any, key: tuple[Any, ...]) -> tuple[Any, Any]:
    """Ensemble sampler with moves, and its first state for positions and their densities.

    The sampler draws from a generator of its own, whose state comes with the first state.
    """
    import emcee

    # one in ten by the whole difference of two walkers, from one solution to another
    moves = [(emcee.moves.DEMove(), 0.9), (emcee.moves.DEMove(gamma0=1.0), 0.1)]
    sampler = emcee.EnsembleSampler(n_walkers, n, log_probability, moves=moves, vectorize=True)
    entropy = int(digest("ensemble", *key), 16)
    generator = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(entropy)))

    def state(unit: FloatArray, first: FloatArray) -> Any:
        return emcee.State(unit, log_prob=first, random_state=generator.get_state())

    return sampler, state
