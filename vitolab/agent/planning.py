"""Where to run the model next: where it is most probable that every measurement is met.

Candidates come from damped least-squares descents (Levenberg and Marquardt) from several points, on
the misfits expected and, so that plans keep to what is known, shares of their standard deviations.
Where no candidate is likely, a scatter of points over Ω is tried as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr
from scipy.stats import qmc

from vitolab.agent.bounded import bounded_step
from vitolab.agent.emulator import Emulator
from vitolab.agent.failing import SAME
from vitolab.problem import FloatArray, Problem

# Set by judgement. Those with other values beside them were varied one by one afterwards: mean runs
# of the first ten patients of ten orders, 12 parameters of the circulation, nothing stored; as they
# are 41.9, with standard errors of the differences of up to 2.7. The rest was not varied.
CAUTION = 0.5  # standard deviations that count as a misfit; 0.25: 46.9, 1: 37.7
# At first, in ψ² per squared share of Ω, 0.01: 40.2, 1: 44.7; by failure, by success.
DAMPING, HARDER, EASIER = 0.1, 5.0, 4.0
N_STEPS = 15  # 30: 42.0
SETTLED = 1e-3  # share of the sum of squares below which a step ends the descent
AVOIDED = 3.0  # ψ that count at a point to be avoided
UNLIKELY = np.log(1e-2)  # chance below which points all over Ω are tried as well
# Chance below which a descent on what is outside the tolerances follows; 0.1: 42.8, 0.9: 42.7.
LIKELY = np.log(0.5)
MARGIN = 1.0  # standard deviations that misfits are larger in that descent; 0: 40.4, 2: 41.9
N_SCATTERED_LOG2 = 8  # points tried where nothing is likely
N_REFINED = 4  # of these, the likeliest, from which descents start


class Plan(NamedTuple):
    """Where to go, the misfit expected there over ψ, and the log probability to meet everything.

    ``start`` is the position of the point from which it was found, among those given; −1 if none.
    """

    u: FloatArray
    expected: FloatArray
    log_probability: float
    start: int


@dataclass(frozen=True)
class Target:
    """Measurements to be met, and what is expected of the patient's model.

    Attributes
    ----------
    problem : Problem
    emulator : Emulator
    group : int
        The patient, see `Emulator`.
    f : ndarray, shape (n_features,)
        Its features in standard deviations.
    z : ndarray, shape (n_objectives,)
        Measurements over ψ.
    avoided : ndarray, shape (n_avoided, n_parameters)
        Points near which no plan should end.
    reach : ndarray, shape (n_avoided,)
        Share of Ω over which that fades.
    doubt : float
        By which standard deviations are multiplied, as where an emulator was too sure before.
    """

    problem: Problem
    emulator: Emulator
    group: int
    f: FloatArray
    z: FloatArray
    avoided: FloatArray
    reach: FloatArray
    doubt: float = 1.0

    def _inputs(self, u: FloatArray) -> FloatArray:
        return np.concatenate(
            [2.0 * u - 1.0, np.broadcast_to(self.f, (len(u), len(self.f)))], axis=1
        )

    def residuals(self, u: FloatArray, outside: bool = False) -> tuple[FloatArray, FloatArray]:
        """What a descent makes small, and its derivatives by u, at one point.

        Misfits and shares of their deviations; or, of misfits `MARGIN` deviations larger, alone
        what is `outside` the tolerances: there one may grow so that another shrinks.
        """
        n = len(u)
        # inputs span twice as much as u does
        found = self.emulator.at(self._inputs(u[np.newaxis]), self.group, n)
        deviation = self.doubt * np.sqrt(found.variance[0])
        rise = self.doubt**2 * found.variance_slopes[0] / deviation[:, np.newaxis]
        c = self.problem.relative_misfit(found.mean[0], self.z)
        parts, slopes = [c, CAUTION * deviation], [2.0 * found.slopes[0], CAUTION * rise]
        if outside:
            over = np.abs(c) + MARGIN * deviation - 1.0
            steep = np.sign(c)[:, np.newaxis] * slopes[0] + MARGIN * rise
            parts = [np.maximum(over, 0.0)]
            slopes = [np.where(over[:, np.newaxis] > 0.0, steep, 0.0)]
        if len(self.avoided):
            away = (self.avoided - u) / self.reach[:, np.newaxis]
            near = AVOIDED * np.exp(-0.5 * (away**2).sum(axis=1))
            parts.append(near)
            slopes.append((near / self.reach)[:, np.newaxis] * away)
        return np.concatenate(parts), np.concatenate(slopes)

    def expected(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Expected misfits over ψ, and the log probability that all measurements are met.

        Parameters
        ----------
        u : ndarray, shape (k, n_parameters)

        Returns
        -------
        misfits : ndarray, shape (k, n_objectives)
        log_probability : ndarray, shape (k,)
        """
        found = self.emulator.at(self._inputs(u), self.group, u.shape[1])
        c, deviation = (
            self.problem.relative_misfit(found.mean, self.z),
            self.doubt * np.sqrt(found.variance),
        )
        # of the two sides the one that is nearer; the differences of tails keep their digits
        far, near = (-1.0 - np.abs(c)) / deviation, (1.0 - np.abs(c)) / deviation
        log_near, log_far = log_ndtr(near), log_ndtr(far)
        inside = log_near + np.log1p(-np.exp(np.minimum(log_far - log_near, -1e-12)))
        return c, inside.sum(axis=1)

    def price(self, u: FloatArray) -> FloatArray:
        """What is taken off log probabilities near points to be avoided, shape (k,)."""
        away = ((u[:, np.newaxis] - self.avoided) ** 2).sum(axis=2) / self.reach**2
        price: FloatArray = 0.5 * AVOIDED**2 * np.exp(-away).sum(axis=1)
        return price


def best_plan(
    target: Target,
    starts: Sequence[FloatArray],
    made: FloatArray,
    rng: np.random.Generator,
) -> Plan:
    """Find where it is most probable that every measurement is met.

    Parameters
    ----------
    target : Target
    starts : sequence of ndarray, shape (n_parameters,)
        From which descents start.
    made : ndarray, shape (n_runs, n_parameters)
        Where the patient's model was run: no plan goes there again.
    rng : Generator
        Of points that are scattered.
    """
    candidates = [descended(target, u) for u in starts]
    plan = _likeliest(target, candidates, made)
    if plan is None or plan.log_probability < UNLIKELY:
        n = made.shape[1]
        best = likeliest_first(target, rng)[:N_REFINED]
        candidates += [*best, *(descended(target, u) for u in best)]
        plan = _likeliest(target, candidates, made)
        if plan is None:
            u = rng.random((n,))
            misfits, inside = target.expected(u[np.newaxis])
            return Plan(u, misfits[0], float(inside[0]), -1)
        if plan.start >= len(starts):
            plan = plan._replace(start=-1)
    if plan.log_probability < LIKELY:  # squares may be least where one misfit is too large
        within = descended(target, plan.u, outside=True)
        better = _likeliest(target, [plan.u, within], made)
        plan = plan if better is None else better._replace(start=plan.start)
    return plan


def likeliest_first(target: Target, rng: np.random.Generator) -> FloatArray:
    """Scatter points over Ω, shape (k, n_parameters), where all is met most probably first."""
    scattered = qmc.Sobol(target.problem.n_parameters, seed=rng).random_base2(N_SCATTERED_LOG2)
    worth = target.expected(scattered)[1] - target.price(scattered)
    first: FloatArray = scattered[np.argsort(-worth, kind="stable")]
    return first


def compromise(target: Target, starts: Sequence[FloatArray]) -> Plan:
    """Find where the expected misfits have the least sum of squares, in tolerances.

    Parameters
    ----------
    target : Target
    starts : sequence of ndarray, shape (n_parameters,)
        From which descents start.
    """
    u = np.array([*starts, *(descended(target, start) for start in starts)])
    misfits, inside = target.expected(u)
    i = int(np.argmin((misfits**2).sum(axis=1)))
    return Plan(u[i], misfits[i], float(inside[i]), i if i < len(starts) else i - len(starts))


def _likeliest(target: Target, candidates: Sequence[FloatArray], made: FloatArray) -> Plan | None:
    """The likeliest of the candidates that were not run yet."""
    u = np.array(candidates)
    new = (np.abs(u[:, np.newaxis] - made).max(axis=2) > SAME).all(axis=1)
    if not new.any():
        return None
    c, inside = target.expected(u)
    worth = np.nan_to_num(inside - target.price(u), nan=-np.inf, neginf=np.finfo(float).min)
    i = int(np.argmax(np.where(new, worth, -np.inf)))
    return Plan(u[i], c[i], float(inside[i]), i)


def descended(target: Target, u: FloatArray, outside: bool = False) -> FloatArray:
    """Point to which a descent leads, see `Target.residuals`."""
    r, jacobian = target.residuals(u, outside)
    cost, damping = r @ r, DAMPING
    still = np.zeros_like(u)
    for _ in range(N_STEPS):
        if cost == 0.0:
            break
        there = np.clip(u + bounded_step(jacobian, r, damping, still, -u, 1.0 - u), 0.0, 1.0)
        next_r, next_jacobian = target.residuals(there, outside)
        next_cost = next_r @ next_r
        if next_cost < cost:
            gained = 1.0 - next_cost / cost
            u, r, jacobian, cost = there, next_r, next_jacobian, next_cost
            damping /= EASIER
            if gained < SETTLED:
                break
        else:
            damping *= HARDER
            if np.abs(there - u).max() < SAME:
                break
    return u
