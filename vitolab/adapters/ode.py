"""The right-hand side of an ordinary differential equation, and what to read off its solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from vitolab.problem import FloatArray, Patient

RightHandSide = Callable[[float, FloatArray, FloatArray, Patient], Any]
Of = Callable[[FloatArray, Patient], Any]


@dataclass(frozen=True)
class Solution:
    """The last cycle of a solution, or all of it where there are no cycles.

    Attributes
    ----------
    t : ndarray, shape (n,)
        From 0 to the duration.
    state : ndarray, shape (n_states, n)
    events : tuple of ndarray
        Times of each event.
    n_cycles : int
        Cycles that were gone through.
    """

    t: FloatArray
    state: FloatArray
    events: tuple[FloatArray, ...]
    n_cycles: int


@dataclass(frozen=True)
class OdeFunction:
    """A function of one parameter vector, for `FunctionModel`, by ``scipy.integrate.solve_ivp``.

    Attributes
    ----------
    rhs : callable
        ``rhs(t, state, x, patient)``: time derivatives of the states; t begins at 0 in every cycle.
    initial : callable
        ``initial(x, patient)``: states at the beginning.
    features : callable
        ``features(solution, x, patient)``: the outputs, from a `Solution`.
    duration : callable or float
        Of the solution, or of one cycle: a number, or ``duration(x, patient)``.
    periodic : bool
        Repeat the cycle until the states at its end are those at its beginning.
    tolerance : float
        Largest change of a state over a cycle, relative to the largest size of that state in it.
    max_cycles : int
        After so many the run has failed.
    n_points : int
        Of the solution, equally far apart.
    events : tuple of callable
        ``event(t, state, x, patient)``: see `solve_ivp`; attributes ``terminal`` and ``direction``
        count. A terminal one ends the solution, or the cycle.
    options : mapping
        Further arguments of `solve_ivp`, such as ``method`` and ``rtol``.

    Raises
    ------
    ValueError
        If a number is not above 0, there are fewer than two points, or ``max_cycles`` is not whole.
    """

    rhs: RightHandSide
    initial: Of
    features: Callable[[Solution, FloatArray, Patient], Mapping[str, float] | Sequence[float]]
    duration: float | Of
    periodic: bool = False
    tolerance: float = 1e-4
    max_cycles: int = 100
    n_points: int = 201
    events: tuple[Callable[..., float], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise ValueError(f"tolerance is {self.tolerance}, expected above 0")
        for name, least in (("max_cycles", 1), ("n_points", 2)):
            value = getattr(self, name)
            if not (least <= value < np.inf and value == int(value)):
                raise ValueError(f"{name} is {value}, expected a whole number of at least {least}")
        if not callable(self.duration) and not 0 < self.duration < np.inf:
            raise ValueError(f"duration is {self.duration}, expected above 0 and finite")

    def __call__(self, x: FloatArray, patient: Patient) -> Mapping[str, float] | Sequence[float]:
        """Solve, and give the features.

        Raises
        ------
        ArithmeticError
            If the solver gives up, the cycles do not settle or have no length, or the duration is
            not above 0.
        """
        return self.features(self.solve(x, patient), x, patient)

    def solve(self, x: FloatArray, patient: Patient) -> Solution:
        """Solve the equation.

        Parameters
        ----------
        x : ndarray, shape (n_parameters,)
        patient : Patient

        Returns
        -------
        Solution

        Raises
        ------
        ArithmeticError
            If the solver gives up, the cycles do not settle or have no length, or the duration is
            not above 0.
        """
        duration = self.duration(x, patient) if callable(self.duration) else self.duration
        if not 0 < duration < np.inf:
            raise ArithmeticError(f"duration is {duration}, expected above 0 and finite")
        state = np.asarray(self.initial(x, patient), dtype=np.float64)
        for cycle in range(1, int(self.max_cycles) + 1):
            found = self._cycle(state, float(duration), x, patient, cycle)
            if not self.periodic:
                return found
            if not found.t[-1] > 0:
                raise ArithmeticError(f"cycle {cycle} ends when it begins, by an event at 0")
            change = np.abs(found.state[:, -1] - state)
            state = found.state[:, -1]
            size = np.abs(found.state).max(axis=1)
            if np.all(change <= self.tolerance * np.maximum(size, np.finfo(float).tiny)):
                return found
        raise ArithmeticError(f"not periodic after {self.max_cycles} cycles")

    def _cycle(
        self, state: FloatArray, duration: float, x: FloatArray, patient: Patient, n_cycles: int
    ) -> Solution:
        """Solve once from 0 to the duration."""
        solved = solve_ivp(
            self.rhs,
            (0.0, duration),
            state,
            t_eval=np.linspace(0.0, duration, int(self.n_points)),
            args=(x, patient),
            events=self.events or None,
            **self.options,
        )
        if solved.status < 0 or not np.isfinite(solved.y).all():
            raise ArithmeticError(f"the solver gave up: {solved.message}")
        t, states = solved.t, solved.y
        if solved.status == 1:  # ended by an event, whose state is not among the points asked for
            last = max(range(len(self.events)), key=lambda i: _last(solved.t_events[i]))
            t = np.append(t, solved.t_events[last][-1])
            states = np.column_stack([states, solved.y_events[last][-1]])
        return Solution(t, states, tuple(solved.t_events or ()), n_cycles)


def _last(times: FloatArray) -> float:
    """Last of some times."""
    return float(times[-1]) if len(times) else -np.inf
