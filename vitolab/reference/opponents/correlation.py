"""Calibration by the correlations of parameters and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from vitolab.experience import Experience
from vitolab.fit import Event, Fit
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference.least_squares import restarts
from vitolab.reference.opponents.opponent import Opponent
from vitolab.reference.optimiser import Counter, EndedError
from vitolab.trajectories import Trajectories

SMALLEST = 0.02  # share of a full correction below which a start is given up


@dataclass(frozen=True, eq=False, repr=False)
class Correlation(Opponent):
    """Correct parameters by the misfits of the outputs with which they correlate most.

    After Tonini et al. (2024, "Two new calibration techniques of lumped-parameter mathematical
    models for the cardiovascular system", arXiv:2405.11915), whose method calibrates by the
    correlation matrix of parameters and outputs, learned once. That matrix is theirs; the
    following are choices made here, in favour of the method. It is learned from the stored runs,
    on the scale on which each parameter acts. The first run is at the stored run nearest to the
    measurements. Then each parameter is paired with one output, and each output with one
    parameter as long as there are unpaired ones: the pairs of largest product of the correlation
    and the misfit in tolerances come first. A parameter is moved by what a regression on its
    output predicts for the misfit. A step that makes the misfits worse is halved from the best
    run; below 2 % the next stored run that is apart is taken, and after all of these any in Ω.

    Attributes
    ----------
    problem : Problem
    stored : Experience
    correlation : ndarray, shape (n_parameters, n_objectives)
        Of parameters in the unit cube and outputs, angles from their mean direction.
    slope : ndarray, shape (n_parameters, n_objectives)
        Regression of parameters on outputs over ψ: the correlation times the standard deviation
        of the parameter over that of the output.

    Examples
    --------
    >>> import vitolab as vl
    >>> from vitolab.reference.opponents import Correlation
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=20, n_steps=1, seed=0)
    >>> Correlation.learn(problem, walks).personalize(patient).n_runs <= 100
    True
    """

    correlation: FloatArray
    slope: FloatArray

    @classmethod
    def learn(
        cls, problem: Problem, walks: Trajectories | Experience, *, seed: int = 0
    ) -> Correlation:
        """Learn from all runs of walks; nothing is drawn.

        Raises
        ------
        ValueError
            If no run among them succeeded.
        """
        with one_thread():
            stored = Experience.learn(problem, walks)
            y = stored.unwrapped(stored.y)
            u_spread, y_spread = stored.u.std(axis=0), y.std(axis=0)
            u_spread[u_spread == 0.0] = y_spread[y_spread == 0.0] = 1.0
            u = (stored.u - stored.u.mean(axis=0)) / u_spread
            y = (y - y.mean(axis=0)) / y_spread
            correlation = u.T @ y / len(u)
            return cls(problem, stored, correlation, correlation * u_spread[:, None] / y_spread)

    def _fit(
        self, patient: Patient, start: FloatArray | None, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Descend from one start after the other."""
        first = [] if start is None else [start]
        near = map(self.stored.scale.parameters, self.stored.near(patient))
        counter = Counter(self.problem, patient, max_runs)
        with one_thread():
            try:
                for x in chain(first, near, restarts(self.problem, rng)):
                    self._descend(counter, x)
                    counter.next_event = Event.RESTART
            except EndedError as ended:
                return counter.fit(ended.reason)
        raise AssertionError("starts have no end")

    def _descend(self, counter: Counter, start: FloatArray) -> None:
        """Correct from one start until steps are too small."""
        scale, psi = self.stored.scale, self.problem.tolerance
        x = np.clip(start, self.problem.lower, self.problem.upper)
        u, c, share = scale.unit(x), counter.run(x) / psi, 1.0
        while np.isfinite(c).all() and share >= SMALLEST:
            new = np.clip(u + share * self._correction(c), 0.0, 1.0)
            if np.array_equal(new, u):  # at the borders, or nothing correlates
                return
            found = counter.run(scale.parameters(new)) / psi
            if found @ found < c @ c:  # never of a failed run
                u, c, share = new, found, min(2.0 * share, 1.0)
            else:
                share /= 2.0

    def _correction(self, c: FloatArray) -> FloatArray:
        """Change of the parameters for a misfit over ψ."""
        du = np.zeros(len(self.slope))
        for i, j in _pairs(np.abs(self.correlation) * np.abs(c)):
            du[i] = -self.slope[i, j] * c[j]
        return du


def _pairs(weight: FloatArray) -> Iterator[tuple[int, int]]:
    """Pair each row with a column, largest first; columns are used again once all are paired."""
    free = np.ones(len(weight), dtype=bool)
    while free.any():
        left = np.where(free[:, np.newaxis], weight, -1.0)
        for _ in range(min(np.count_nonzero(free), weight.shape[1])):
            i, j = divmod(int(np.argmax(left)), weight.shape[1])
            left[i], left[:, j], free[i] = -1.0, -1.0, False
            yield i, j
