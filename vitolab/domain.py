"""The domain Ω of the parameters, the actions, and where they lead."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from vitolab.quantities import Border, FloatArray, IntArray, Parameter, fixed


class Domain:
    """Base of a problem: bounds of its parameters, and moves between these.

    Attributes
    ----------
    parameters : tuple of Parameter
    multipliers : tuple of int
        Multiples of each parameter's step that one action may take, either sign.
    border : {"clip", "reject", "free"}
        What happens to a move that leaves the domain: it ends on the border, it is not made, or
        it leaves.
    """

    parameters: tuple[Parameter, ...]
    multipliers: tuple[int, ...]
    border: Border

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    @property
    def n_actions(self) -> int:
        """Number of actions: both signs of each multiplier for each parameter."""
        return 2 * len(self.multipliers) * self.n_parameters

    @cached_property
    def lower(self) -> FloatArray:
        """Lower bounds of Ω, shape (n_parameters,)."""
        return fixed(np.array([p.lower for p in self.parameters]))

    @cached_property
    def upper(self) -> FloatArray:
        """Upper bounds of Ω, shape (n_parameters,)."""
        return fixed(np.array([p.upper for p in self.parameters]))

    @cached_property
    def default(self) -> FloatArray:
        """Default parameters, shape (n_parameters,)."""
        return fixed(np.array([p.default for p in self.parameters]))

    @cached_property
    def step(self) -> FloatArray:
        """Reference values δ, shape (n_parameters,)."""
        return fixed(np.array([p.step for p in self.parameters]))

    @cached_property
    def actions(self) -> IntArray:
        """Steps that each action adds to each parameter, shape (n_actions, n_parameters).

        Parameter by parameter, from the largest decrement to the largest increment.
        """
        multiples = [*(-m for m in reversed(self.multipliers)), *self.multipliers]
        actions = np.zeros((self.n_actions, self.n_parameters), dtype=np.int64)
        for i in range(self.n_parameters):
            actions[i * len(multiples) : (i + 1) * len(multiples), i] = multiples
        return fixed(actions)

    def describe_action(self, action: int) -> str:
        """Say what an action does, e.g. ``aortic compliance +10 steps``."""
        steps = self.actions[action]
        i = int(np.flatnonzero(steps)[0])
        plural = "" if abs(steps[i]) == 1 else "s"
        return f"{self.parameters[i].label} {steps[i]:+d} step{plural}"

    def draw(self, rng: np.random.Generator, n: int = 1) -> FloatArray:
        """Draw parameters uniformly in Ω, shape (n, n_parameters)."""
        unit: FloatArray = rng.random((n, self.n_parameters))
        return self.lower + unit * (self.upper - self.lower)

    # Walks move on a grid of whole steps around their start, so that a parameter vector
    # that recurs is recognised exactly, however long the walk.

    def move(self, start: FloatArray, count: IntArray, action: ArrayLike) -> IntArray:
        """Number of steps from the start after an action; see `at`.

        Parameters
        ----------
        start : ndarray, shape (n, n_parameters)
            Where each walk started.
        count : ndarray of int, shape (n, n_parameters)
            Steps from the start so far.
        action : array_like of int, shape (n,)

        Returns
        -------
        ndarray of int, shape (n, n_parameters)
            Under ``clip`` the count ends at the first grid point on or beyond the border.
        """
        moved: IntArray = count + self.actions[np.asarray(action)]
        if self.border == "free":
            return moved
        lowest = (self.lower - start) / self.step
        highest = (self.upper - start) / self.step
        if self.border == "clip":
            first = np.floor(lowest + 1e-9).astype(np.int64)
            last = np.ceil(highest - 1e-9).astype(np.int64)
            return np.minimum(np.maximum(moved, first), last)
        inside = np.all((moved >= lowest - 1e-9) & (moved <= highest + 1e-9), axis=-1)
        return np.where(inside[..., np.newaxis], moved, count)

    def at(self, start: FloatArray, count: IntArray) -> FloatArray:
        """Parameters that lie `count` steps from the start, shape (n, n_parameters)."""
        x: FloatArray = start + count * self.step
        return x if self.border == "free" else np.minimum(np.maximum(x, self.lower), self.upper)
