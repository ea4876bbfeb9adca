"""The Markov decision process learned from transitions, and its solution (sections 2.1 and 2.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vitolab.kernels import mdp as kernels
from vitolab.objects import Value
from vitolab.problem import BoolArray, FloatArray, IntArray

INNER_SWEEPS = 50


@dataclass(frozen=True, eq=False, repr=False)
class Policy(Value):
    """State-action values and the actions they recommend.

    Attributes
    ----------
    q : ndarray, shape (n_states, n_actions)
    v : ndarray, shape (n_states,)
    epsilon : float
        Actions whose normalised value is below ε are discarded (section 2.1.3).
    residuals : ndarray
        Largest Bellman residual of each round of the solution.
    failing : ndarray of bool, shape (n_states, n_actions), optional
        Actions that were seen to lead into a failed run.

    Examples
    --------
    >>> import numpy as np
    >>> import vitolab as vl
    >>> policy = vl.Policy(q=np.array([[0.0, 3.0, 2.7]]), v=np.array([3.0]))
    >>> policy.greedy
    array([1])
    >>> policy.probabilities.round(2)
    array([[0.  , 0.53, 0.47]])
    """

    q: FloatArray
    v: FloatArray
    epsilon: float = 0.8
    residuals: FloatArray = field(default_factory=lambda: np.empty(0))
    failing: BoolArray | None = None

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        n_states, n_actions = self.q.shape
        rounds = len(self.residuals)
        residual = f"{self.residuals[-1]:.1e} after {rounds} rounds" if rounds else "not known"
        return {
            "n_states": n_states,
            "n_actions": n_actions,
            "epsilon": self.epsilon,
            "candidates": f"{np.count_nonzero(self.probabilities) / n_states:.1f} per state",
            "residual": residual,
        }

    @property
    def greedy(self) -> IntArray:
        """Best action of each state, shape (n_states,)."""
        greedy: IntArray = np.argmax(self.q, axis=1)
        return greedy

    @cached_property
    def normalised(self) -> FloatArray:
        """Values of the actions of each state, from 0 to 1, shape (n_states, n_actions).

        All are 1 where all are worth the same. 0 is the lowest value of the actions that were
        never seen to fail, if there are any, and of what is worth less: measured from one that
        fails, which may be worth far less, all others would pass for equally good.
        """
        lowest = self.q.min(axis=1, keepdims=True)
        if self.failing is not None:
            safe = np.where(self.failing, np.inf, self.q).min(axis=1, keepdims=True)
            lowest = np.where(np.isfinite(safe), safe, lowest)
        span = self.q.max(axis=1, keepdims=True) - lowest
        level = (self.q >= lowest).astype(np.float64)
        np.divide(self.q - lowest, span, out=level, where=span > 0)
        normalised: FloatArray = np.maximum(level, 0.0)
        return normalised

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of each action in each state, shape (n_states, n_actions).

        Normalised values below ε are discarded and the rest drawn in proportion; where all
        actions are worth the same, all are equally likely.
        """
        kept = np.where(self.normalised < self.epsilon, 0.0, self.normalised)
        probabilities: FloatArray = kept / kept.sum(axis=1, keepdims=True)
        return probabilities

    @cached_property
    def _cumulative(self) -> FloatArray:
        """Cumulative probabilities, ending in exactly one at the last candidate."""
        total = np.cumsum(self.probabilities, axis=1)
        return np.where(total >= total[:, -1:], 1.0, total)

    def sample(self, state: ArrayLike, uniform: ArrayLike) -> IntArray:
        """Draw candidate actions.

        Parameters
        ----------
        state : array_like of int, shape (n,)
        uniform : array_like, shape (n,)
            Random numbers in [0, 1).

        Returns
        -------
        ndarray of int, shape (n,)
        """
        below = self._cumulative[np.asarray(state)] <= np.asarray(uniform)[:, np.newaxis]
        action: IntArray = below.sum(axis=1)
        return action


@dataclass(frozen=True, eq=False, repr=False)
class MDP(Value):
    """Transition counts in compressed rows, one row per (state, action) pair.

    Attributes
    ----------
    start : ndarray of int, shape (n_states * n_actions + 1,)
        Row ``s * n_actions + a`` is ``start[row]:start[row + 1]``; an empty row stands for the
        uniform distribution over all states (section 2.5), that of failed runs included.
    successor, counts : ndarray of int
        Successor states and how often they were seen.
    n_states, n_actions : int
    discount : float
    failed : bool
        Whether the last state stands for failed runs. After one a walk starts afresh, which the
        uniform distribution stands for: nothing is counted there, whatever is done.

    Raises
    ------
    ValueError
        If the rows do not cover the successors, a successor is no state, a count is below one,
        the discount is not in [0, 1), or something is counted in the failed state.

    Examples
    --------
    >>> import vitolab as vl
    >>> mdp = vl.MDP.count([1, 1, 1], [0, 0, 1], [0, 1, 1], 2, 2, 0.9)
    >>> mdp.visits
    array([[0, 0],
           [2, 1]])
    >>> mdp.solve().greedy[1]
    np.int64(0)
    """

    start: NDArray[np.int64]
    successor: NDArray[np.int32]
    counts: NDArray[np.int64]
    n_states: int
    n_actions: int
    discount: float = 0.99
    failed: bool = False

    def __post_init__(self) -> None:
        start, successor, counts = self.start, self.successor, self.counts
        # the kernels trust their indices
        if any(a.ndim != 1 or a.dtype.kind != "i" for a in (start, successor, counts)):
            raise ValueError(
                "MDP: start, successor or counts are wrong, expected whole numbers in one row"
            )
        n_rows = self.n_states * self.n_actions
        if (
            len(start) != n_rows + 1
            or start[0] != 0
            or (np.diff(start) < 0).any()
            or not start[-1] == len(successor) == len(counts)
        ):
            raise ValueError(
                f"MDP: start has {len(start)} entries or falls, expected {n_rows + 1} that rise "
                f"from 0 to {len(successor)}, the number of successors"
            )
        if successor.size and not 0 <= successor.min() <= successor.max() < self.n_states:
            raise ValueError(
                f"MDP: successor lies from {successor.min()} to {successor.max()}, expected in "
                f"[0, {self.n_states})"
            )
        if counts.size and counts.min() < 1:
            raise ValueError(f"MDP: counts hold {counts.min()}, expected at least 1")
        if not 0 <= self.discount < 1:
            raise ValueError(f"MDP: discount is {self.discount}, expected in [0, 1)")
        if self.failed and start[-self.n_actions - 1] != start[-1]:
            raise ValueError("MDP: the failed state has transitions, expected none")

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        seen = np.count_nonzero(np.diff(self.start))
        rows = self.n_states * self.n_actions
        return {
            "n_states": f"{self.n_states}{', the last for failed runs' if self.failed else ''}",
            "n_actions": self.n_actions,
            "transitions": int(self.counts.sum()),
            "seen": f"{seen} of {rows} pairs of state and action",
            "discount": self.discount,
        }

    @classmethod
    def count(
        cls,
        state: ArrayLike,
        action: ArrayLike,
        successor: ArrayLike,
        n_states: int,
        n_actions: int,
        discount: float = 0.99,
        *,
        failed: bool = False,
    ) -> MDP:
        """Count observed transitions.

        Parameters
        ----------
        state, action, successor : array_like of int, shape (n,)
        n_states, n_actions : int
        discount : float
            γ, the paper's 0.99 by default.
        failed : bool
            Whether the last state stands for failed runs.

        Raises
        ------
        ValueError
            If an index is out of range, the lengths differ, the discount is not in [0, 1), or a
            transition begins in the failed state.
        """
        s, a, t = (np.asarray(v, dtype=np.int64) for v in (state, action, successor))
        if not (s.shape == a.shape == t.shape and s.ndim == 1):
            raise ValueError(
                f"MDP: state, action and successor have shapes {s.shape}, {a.shape} and {t.shape}, "
                "expected to be of one length"
            )
        for name, values, n in (
            ("state", s, n_states),
            ("action", a, n_actions),
            ("successor", t, n_states),
        ):
            if values.size and not 0 <= values.min() <= values.max() < n:
                raise ValueError(
                    f"MDP: {name} holds {values.min()} to {values.max()}, expected in [0, {n})"
                )
        start, target, counts = kernels.count(s, a, t, n_states, n_actions)
        return cls(start, target, counts, n_states, n_actions, discount, failed)

    @property
    def visits(self) -> IntArray:
        """Times each action was seen in each state, shape (n_states, n_actions)."""
        cumulative = np.concatenate([[0], np.cumsum(self.counts)])
        visits: IntArray = cumulative[self.start[1:]] - cumulative[self.start[:-1]]
        return visits.reshape(self.n_states, self.n_actions)

    @property
    def failing(self) -> BoolArray | None:
        """Actions that were seen to lead into a failed run, shape (n_states, n_actions).

        None where no state stands for failed runs.
        """
        if not self.failed:
            return None
        row = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        failing = np.zeros(len(self.start) - 1, dtype=bool)
        failing[row[self.successor == self.n_states - 1]] = True
        return failing.reshape(self.n_states, self.n_actions)

    @cached_property
    def probability(self) -> FloatArray:
        """Probability of each stored successor given its row, same shape as `counts`."""
        row_total = np.repeat(self.visits.ravel(), np.diff(self.start))
        return self.counts / row_total

    def action_values(self, v: FloatArray) -> FloatArray:
        """One Bellman backup of v: Q of shape (n_states, n_actions), 0 in the success state."""
        q: FloatArray = kernels.action_values(
            self.start, self.successor, self.probability, self.n_actions, v, self.discount
        )
        return q

    def solve(
        self,
        method: Literal["policy-iteration", "value-iteration"] = "policy-iteration",
        *,
        tolerance: float = 1e-8,
        max_rounds: int = 10_000,
        epsilon: float = 0.8,
    ) -> Policy:
        """Solve for the values of optimal behaviour.

        Either method ends with a backup Tv of some v, which is within γ / (1 - γ) ‖Tv - v‖ of the
        optimal values, T being a contraction (Puterman, "Markov Decision Processes", 2005,
        theorem 6.3.1, whose ε is twice the tolerance here).

        Parameters
        ----------
        method : {"policy-iteration", "value-iteration"}
            Modified policy iteration (the default, fewer sweeps) or the paper's value iteration.
        tolerance : float
            Largest error of a value. Rounding leaves one of some ``1e-15 / (1 - γ)²``, to which
            a tolerance below is raised.
        max_rounds : int
        epsilon : float
            Threshold of the stochastic policy.

        Raises
        ------
        RuntimeError
            If the tolerance is not reached.
        """
        residual = np.inf  # a single backup is exact without a future
        if self.discount > 0:
            rounding = 4 * np.finfo(float).eps / (1 - self.discount)
            residual = max(tolerance * (1 - self.discount) / self.discount, rounding)
        n_inner = {"policy-iteration": INNER_SWEEPS, "value-iteration": 0}[method]
        v, q, residuals = kernels.iterate(
            self.start,
            self.successor,
            self.probability,
            self.n_states,
            self.n_actions,
            self.discount,
            residual,
            n_inner,
            max_rounds,
        )
        if residuals[-1] >= residual:
            raise RuntimeError(
                f"MDP: Bellman residual is {residuals[-1]:.2g} after {max_rounds} rounds, "
                f"expected below {residual:g}"
            )
        return Policy(q, v, epsilon, residuals, self.failing)
