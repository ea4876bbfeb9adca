"""The paper's reference methods for electrophysiology: BOBYQA (section 3.2.3; Powell 2009).

The optimiser is NLopt's ``LN_BOBYQA`` in the unit cube of Ω. Its first trust region has a radius
of a quarter of Ω, and it ends by itself at 1e-4 of Ω; the paper names neither. As Powell's method
asks for, a coordinate of the start that is nearer to a border than this radius, but not on it, is
moved to one radius away before the first run. A failed run counts as a million tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vitolab.fit import Fit, StopReason
from vitolab.problem import FloatArray, Patient
from vitolab.reference.optimiser import Counter, EndedError, Optimiser

STEP = 0.25
X_TOLERANCE = 1e-4
FAILED = 1e6
STABLE = 1e-3
HARD_LIMIT = 1000


@dataclass(frozen=True, eq=False, repr=False)
class BobyqaSimple(Optimiser):
    """All parameters at once, for the plain sum of absolute misfits ("BOBYQA simple").

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> vl.BobyqaSimple(problem).personalize(patient, seed=0).n_runs <= 100
    True
    """

    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Run the optimiser once."""
        counter = self.counter(patient, max_runs)
        failed = FAILED * float(self.problem.tolerance.sum())

        def objective(unit: FloatArray) -> float:
            value = float(np.abs(counter.misfit(unit)).sum())
            return value if np.isfinite(value) else failed

        try:
            _minimize(objective, self.unit(start))
        except EndedError as ended:
            return counter.fit(ended.reason)
        return counter.fit(StopReason.STALLED)


class Stage(NamedTuple):
    """One step of a cascade.

    Attributes
    ----------
    parameters : tuple of str
        Parameters that are tuned; all others stay.
    objective : str
        Objective whose absolute misfit is minimised.
    max_runs : int
        Forward runs after which the next stage has its turn.
    """

    parameters: tuple[str, ...]
    objective: str
    max_runs: int


@dataclass(frozen=True, eq=False, repr=False)
class BobyqaCascade(Optimiser):
    """Few parameters at a time, each for one objective, in turns ("BOBYQA cascade").

    The paper's stages are the default: the myocardial velocity for the QRS duration, then the two
    endocardial velocities for the electrical axis, both repeated until all estimates are stable.
    How many runs a stage may take is not in the paper, nor is what counts as stable: here, that a
    round ends where it began, to 1e-3 of the domain of every parameter. It may also end where an
    earlier round ended, and would go in circles: the stages can undo each other. That ends it
    too. A stage goes on from the best point that the stage before it ran. As for every method,
    the first run within all tolerances ends it, in whichever stage.

    Attributes
    ----------
    problem : Problem
    stages : tuple of Stage
    until_stable : bool
        Go on beyond the largest number of runs until stable, as the paper's has no cap; at most
        1,000 runs.

    Raises
    ------
    ValueError
        If the problem lacks a parameter or the objective of a stage, or a stage is empty.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> from vitolab.reference import Stage
    >>> stages = (Stage(("x1",), "t1", 15), Stage(("x2",), "t2", 25))
    >>> vl.BobyqaCascade(problem, stages).personalize(patient, max_runs=40).n_runs <= 40
    True
    """

    stages: tuple[Stage, ...] = (
        Stage(("v_myo",), "qrs_duration", 15),
        Stage(("v_lv", "v_rv"), "electrical_axis", 25),
    )
    until_stable: bool = False

    def __post_init__(self) -> None:
        parameters = [p.name for p in self.problem.parameters]
        objectives = [o.name for o in self.problem.objectives]
        for stage in self.stages:
            if not stage.parameters or stage.max_runs < 1:
                raise ValueError(f"cascade: {stage} is empty, expected a parameter and a run")
            for name, known in (
                *((name, parameters) for name in stage.parameters),
                (stage.objective, objectives),
            ):
                if name not in known:
                    raise ValueError(
                        f"problem {self.problem.name!r}: has no {name!r} for a stage of the "
                        f"cascade, expected one of {', '.join(known)}"
                    )

    def _fit(
        self, patient: Patient, start: FloatArray, max_runs: int, rng: np.random.Generator
    ) -> Fit:
        """Take the stages in turns."""
        counter = self.counter(patient, HARD_LIMIT if self.until_stable else max_runs)
        unit = self.unit(start)
        c = np.full(self.problem.n_objectives, np.inf)
        ends = [unit]
        try:
            while True:
                for stage in self.stages:
                    unit, c = self._tune(counter, unit, c, stage)
                if (np.abs(np.array(ends) - unit).max(axis=1) <= STABLE).any():
                    return counter.fit(StopReason.STALLED)
                ends.append(unit)
        except EndedError as ended:
            return counter.fit(ended.reason)

    def _tune(
        self, counter: Counter, unit: FloatArray, c: FloatArray, stage: Stage
    ) -> tuple[FloatArray, FloatArray]:
        """Best point of one stage and its misfit: the one given, where none is better."""
        free = [[p.name for p in self.problem.parameters].index(n) for n in stage.parameters]
        i = [o.name for o in self.problem.objectives].index(stage.objective)
        failed = FAILED * float(self.problem.tolerance[i])
        best = unit, c

        def objective(values: FloatArray) -> float:
            nonlocal best
            point = unit.copy()
            point[free] = values
            misfit = counter.misfit(point)
            if not np.isfinite(misfit).all():
                return failed
            if abs(misfit[i]) < abs(best[1][i]):
                best = point, misfit
            return float(abs(misfit[i]))

        _minimize(objective, unit[free], stage.max_runs)
        return best


def _minimize(
    objective: Callable[[FloatArray], float], start: FloatArray, max_runs: int | None = None
) -> None:
    """Run BOBYQA in the unit cube; what the objective raises passes through."""
    import nlopt

    optimiser = nlopt.opt(nlopt.LN_BOBYQA, len(start))
    optimiser.set_lower_bounds(np.zeros(len(start)))
    optimiser.set_upper_bounds(np.ones(len(start)))
    optimiser.set_initial_step(STEP)
    optimiser.set_xtol_abs(X_TOLERANCE)
    if max_runs is not None:
        optimiser.set_maxeval(max_runs)
    raised: list[BaseException] = []

    def guarded(unit: FloatArray, _gradient: FloatArray) -> float:
        # NLopt turns an exception in the last run it would make into an error of its own
        if not raised:
            try:
                return objective(np.array(unit))
            except BaseException as error:
                raised.append(error)
                optimiser.force_stop()
        return 0.0

    optimiser.set_min_objective(guarded)
    # how it ends when told to stop, and where rounding allows no further step
    with suppress(nlopt.ForcedStop, nlopt.RoundoffLimited):
        optimiser.optimize(start)
    if raised:
        raise raised[0]
