"""How the agent with continuous actions moves: regression over what was explored, damped steps.

Near a place of interest, and for patients alike, a weighted linear regression over explored runs
tells how the outputs respond to the parameters (Atkeson, Moore & Schaal 1997). The action is a
damped least-squares step within the domain (Levenberg 1944, Marquardt 1963); each forward run
corrects the response by Broyden's update (1965) and joins what regressions are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from vitolab.problem import BoolArray, FloatArray, IntArray, Patient, Problem
from vitolab.trajectories import Event, Fit, StopReason, Trace

# Constants. NEIGHBOURS, LIKENESS, OWN_WEIGHT, MEMORY, DAMPING and PLANNED were compared on the
# scouting patients of the circulation (3p, 5p, 6p; five seeds) and of the electrophysiology model
# (six seeds), with 2 and 100 forward runs per patient to learn from; the others are first choices.
#: Runs in a regression, for each of its unknowns but one.
NEIGHBOURS = 12
#: Weight of what is known of patients [standard deviations] beside parameters [widths of Ω].
LIKENESS = 0.5
#: Weight of the patient's own runs in a regression; they are few, and of the right model.
OWN_WEIGHT = 5.0
#: Share of Broyden's matrix in the next one after progress; the rest is the regression there.
MEMORY = 0.75
#: Damping of the first step of a start, its factors after progress and without, and its least.
DAMPING, LESS, MORE, LEAST_DAMPING = 1.0, 0.25, 5.0, 1e-3
#: A start is given up when damping exceeds this, or when a step is shorter [widths of Ω].
MOST_DAMPING, SHORTEST = 1e5, 1e-5
#: Steps planned on the regression alone before the first forward run of a start, and their length.
PLANNED, PLANNED_STEP = 2, 0.3
#: Starts are chosen far apart from each other among so many runs with the likest outputs.
NEAREST, N_STARTS = 300, 20
#: Of a regression, relative to its trace: few runs may lie in a plane.
RIDGE = 1e-6


@dataclass(frozen=True)
class UnitCube:
    """The domain Ω as a cube of width one: by ratio for parameters that act by ratio.

    Attributes
    ----------
    problem : Problem
    """

    problem: Problem

    @cached_property
    def _scale(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Bounds on the scale of each parameter, and which of them act by ratio."""
        log = np.array([parameter.scale == "log" for parameter in self.problem.parameters])
        return _on_scale(self.problem.lower, log), _on_scale(self.problem.upper, log), log

    def place(self, x: FloatArray) -> FloatArray:
        """Place of parameters in the cube, shape (..., n_parameters)."""
        low, high, log = self._scale
        inside = np.clip(x, self.problem.lower, self.problem.upper)
        place: FloatArray = (_on_scale(inside, log) - low) / (high - low)
        return place

    def parameters(self, place: FloatArray) -> FloatArray:
        """Parameters at a place, shape (..., n_parameters)."""
        low, high, log = self._scale
        value = low + place * (high - low)
        x: FloatArray = np.where(log, np.exp(np.where(log, value, 0.0)), value)
        return np.clip(x, self.problem.lower, self.problem.upper)


class Walk:
    """One personalisation: what was explored and, more and more, the patient's own runs.

    Parameters
    ----------
    problem : Problem
    cube : UnitCube
    patient : Patient
    max_runs : int
    place : ndarray, shape (n, n_parameters)
        Explored runs in the unit cube.
    away : ndarray, shape (n, n_features)
        How far their patients are from this one, weighted.
    y : ndarray, shape (n, n_objectives)
        Their outputs.
    """

    def __init__(
        self,
        problem: Problem,
        cube: UnitCube,
        patient: Patient,
        max_runs: int,
        place: FloatArray,
        away: FloatArray,
        y: FloatArray,
    ) -> None:
        self.problem, self.cube, self.patient, self.max_runs = problem, cube, patient, max_runs
        self.z = problem.measured(patient)
        self.explored = self.place = place
        self.away = away
        self.misfit = self._misfit(y)  # in tolerances, of all runs to learn from
        self.weight = np.ones(len(place))
        self.order = self._order()
        self.runs: list[dict[str, Any]] = []
        self.reason = StopReason.BUDGET

    def go(self, start: FloatArray | None, rng: np.random.Generator) -> Fit:
        """Walk from start to start until the patient is solved or no run is left."""
        event = Event.START
        if start is not None:
            going = self._leg(self.cube.place(start), start, event)
            event = Event.RESTART
        else:
            going = True
        for unit in self._starts(rng):
            if not going:
                break
            going = self._leg(self._planned(unit), None, event)
            event = Event.RESTART
        return self._fit()

    def _leg(self, unit: FloatArray, exact: FloatArray | None, event: Event) -> bool:
        """Walk from one start; tell whether another is to follow."""
        expected, jacobian = self._local(unit)
        found = self._run(unit, expected, event, exact)
        if found is None:
            return False
        if not np.isfinite(found).all():
            return True
        damping = DAMPING
        while damping <= MOST_DAMPING:
            step = damped_step(unit, found, jacobian, damping)
            if np.abs(step).max() < SHORTEST:
                break
            there = np.clip(unit + step, 0.0, 1.0)
            step = there - unit
            now = self._run(there, found + jacobian @ step, Event.STEP)
            if now is None:
                return False
            if not np.isfinite(now).all():
                damping *= MORE
                continue
            jacobian = jacobian + np.outer(now - found - jacobian @ step, step) / (step @ step)
            if now @ now < found @ found:
                unit, found, damping = there, now, max(LESS * damping, LEAST_DAMPING)
                jacobian = MEMORY * jacobian + (1.0 - MEMORY) * self._local(unit)[1]
            else:
                damping *= MORE
        return True

    def _run(
        self, unit: FloatArray, expected: FloatArray, event: Event, exact: FloatArray | None = None
    ) -> FloatArray | None:
        """Run the model: the misfit in tolerances; None at the end of the personalisation."""
        x = self.cube.parameters(unit) if exact is None else np.asarray(exact, dtype=np.float64)
        y = self.problem.evaluate(x[np.newaxis], self.patient, self.z)[0]
        self.runs.append({"x": x, "y": y, "event": int(event), "expected": expected})
        misfit = self.problem.misfit(y, self.z)
        if self.problem.is_solved(misfit):
            self.reason = StopReason.SOLVED
            return None
        if len(self.runs) == self.max_runs:
            return None
        found = self._misfit(y)
        if np.isfinite(found).all():
            self.place = np.concatenate([self.place, unit[np.newaxis]])
            self.away = np.concatenate([self.away, np.zeros((1, self.away.shape[1]))])
            self.misfit = np.concatenate([self.misfit, found[np.newaxis]])
            self.weight = np.append(self.weight, OWN_WEIGHT)
        return found

    def _local(self, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Misfit in tolerances and its Jacobian at a place, by regression for this patient.

        Returns
        -------
        misfit : ndarray, shape (n_objectives,)
        jacobian : ndarray, shape (n_objectives, n_parameters)
        """
        n = unit.size
        shift = self.place - unit
        distance = np.einsum("ij,ij->i", shift, shift) + np.einsum("ij,ij->i", self.away, self.away)
        k = min(NEIGHBOURS * (n + 2), len(distance))
        near = np.sort(np.argpartition(distance, k - 1)[:k])
        far = np.sqrt(distance[near])
        weight = self.weight[near] * (1.0 - (far / (1.0001 * far.max() + 1e-12)) ** 3) ** 3
        columns = np.concatenate([np.ones((k, 1)), shift[near], self.away[near]], axis=1)
        normal = columns.T @ (weight[:, np.newaxis] * columns)
        ridge = np.full(len(normal), RIDGE * np.trace(normal))
        ridge[0] = 0.0
        right = columns.T @ (weight[:, np.newaxis] * self.misfit[near])
        found = np.linalg.solve(normal + np.diag(ridge + 1e-12), right)
        return found[0], found[1 : 1 + n].T

    def _order(self) -> IntArray:
        """Explored runs, those first whose outputs and patients are likest."""
        unlike = np.einsum("ij,ij->i", self.misfit, self.misfit)
        unlike += 2.0 * np.einsum("ij,ij->i", self.away, self.away)
        order: IntArray = np.argsort(unlike, kind="stable")[:NEAREST]
        return order

    def _starts(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Places to start from: the likest run, others far from those before, then any."""
        places = self.explored[self.order]
        place = 0
        nearest = np.full(len(places), np.inf)
        for _ in range(min(N_STARTS, len(places))):
            yield places[place]
            shift = places - places[place]
            nearest = np.minimum(nearest, np.einsum("ij,ij->i", shift, shift))
            place = int(np.argmax(nearest))
        while True:
            yield rng.random(self.problem.n_parameters)

    def _planned(self, unit: FloatArray) -> FloatArray:
        """Place to which the regression leads from another, without a forward run."""
        for _ in range(PLANNED):
            expected, jacobian = self._local(unit)
            step = damped_step(unit, expected, jacobian, DAMPING)
            unit = np.clip(unit + np.clip(step, -PLANNED_STEP, PLANNED_STEP), 0.0, 1.0)
        return unit

    def _misfit(self, y: FloatArray) -> FloatArray:
        """Misfits of outputs, in tolerances."""
        return self.problem.misfit(y, self.z) / self.problem.tolerance

    def _fit(self) -> Fit:
        """Outcome of all runs."""
        y = np.array([run["y"] for run in self.runs])
        nothing = np.full(len(y), -1)
        trace = Trace(
            np.array([run["x"] for run in self.runs]),
            y,
            self.problem.misfit(y, self.z),
            np.array([run["event"] for run in self.runs]),
            nothing,
            nothing,
            np.array([run["expected"] for run in self.runs]) * self.problem.tolerance,
        )
        return Fit.from_trace(self.problem, trace, self.reason)


def damped_step(
    place: FloatArray, misfit: FloatArray, jacobian: FloatArray, damping: float
) -> FloatArray:
    """Step that lessens ‖misfit + jacobian step‖² + damping ‖step‖² most within the unit cube.

    Parameters
    ----------
    place : ndarray, shape (n_parameters,)
    misfit : ndarray, shape (n_objectives,)
    jacobian : ndarray, shape (n_objectives, n_parameters)
    damping : float
        Above 0.

    Returns
    -------
    ndarray, shape (n_parameters,)
    """
    n = place.size
    normal = jacobian.T @ jacobian + damping * np.eye(n)
    step = np.linalg.solve(normal, -jacobian.T @ misfit)
    if np.all((place + step >= 0.0) & (place + step <= 1.0)):
        return np.asarray(step)
    # a bound on a face itself leaves the solver no room
    low, high = np.minimum(-place, -1e-12), np.maximum(1.0 - place, 1e-12)
    rows = np.concatenate([jacobian, np.sqrt(damping) * np.eye(n)])
    goal = np.concatenate([-misfit, np.zeros(n)])
    bounded: FloatArray = lsq_linear(rows, goal, bounds=(low, high), method="bvls").x
    return bounded


def _on_scale(x: FloatArray, log: BoolArray) -> FloatArray:
    """Parameters on their scale."""
    scaled: FloatArray = np.where(log, np.log(np.where(log, x, 1.0)), x)
    return scaled
