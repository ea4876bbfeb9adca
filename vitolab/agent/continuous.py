"""An agent with continuous actions: a model of the model, learned from the runs so far.

It plans where the paper's agent looks up. An emulator tells which outputs to expect of a patient's
model, and how sure that is; the agent runs the model where the emulator finds the measurements most
probable, corrects the emulator by what it found, and plans on. Without stored runs it begins with
the default values and points spread over Ω.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from vitolab.agent.covariance import Covariance
from vitolab.agent.emulator import Emulator
from vitolab.agent.folder import ARRAYS, read_agent, write_agent
from vitolab.agent.planning import Target, best_plan
from vitolab.asked import checked_seed
from vitolab.experience import Experience, check_experience
from vitolab.failures import Failure
from vitolab.files import stream
from vitolab.fit import Event, Fit, StopReason, Trace, budget
from vitolab.objects import Value
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, IntArray, Patient, Problem
from vitolab.saved import field
from vitolab.settings import Settings, chosen
from vitolab.trajectories import Trajectories

FILE = "continuous.json"
N_FIRST = 10  # runs spread over Ω before the first plan, unless as many are stored
N_TUNED = 250  # runs from which covariances are learned: it costs their cube
GROWTH = 1.25  # of the number of runs, after which covariances are learned again
N_SMALL = 64  # runs up to which they are learned again for every patient
N_KNOWN = 400  # stored runs on which a plan rests
FEATURE_SHARE = 0.5  # of Ω that a standard deviation of a feature counts for
SAME = 1e-3  # share of Ω below which two points are one
N_NEAR = 3  # stored runs from which plans start
WILD = 3.0  # spreads of the middle 90 % of the outputs beyond which outputs are pulled in


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousVito(Value):
    """The agent with continuous actions.

    Attributes
    ----------
    problem : Problem
    experience : Experience

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=2, n_steps=20, seed=0)
    >>> vl.ContinuousVito.learn(problem, walks).personalize(patient).solved
    True

    Without walks it learns from one patient after the other:

    >>> agent = vl.ContinuousVito.learn(problem)
    >>> for other in others:
    ...     agent = agent.update([(other, agent.personalize(other))])
    >>> agent.personalize(patient).solved
    True
    """

    problem: Problem
    experience: Experience

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        return {
            "problem": self.problem,
            "runs": len(self.experience.u),
            "patients": len(self.experience.known),
            "features": self.problem.features,
        }

    @classmethod
    def learn(
        cls,
        problem: Problem,
        walks: Trajectories | None = None,
        n_states: int | None = None,
        seed: int = 0,
        *,
        settings: Settings | None = None,
        **changes: Any,
    ) -> ContinuousVito:
        """Learn from explored walks, or from nothing.

        Walks of one step from random starts (``explore(..., n_steps=1)``) teach more per run than
        long ones, which stay where they began.

        Parameters
        ----------
        problem : Problem
        walks : Trajectories, optional
            Walks of the training patients; `Trajectories.without` leaves one out.
        n_states, seed, settings, **changes
            Accepted as by `Vito.learn`, so that one call serves every agent, and ignored: this
            agent has no states, draws nothing and has one way to act.

        Raises
        ------
        ValueError
            If no run among the walks succeeded.
        TypeError
            If a keyword is no setting.
        """
        chosen(settings, n_states, changes)
        if walks is None:
            return cls(problem, Experience.none(problem))
        return cls(problem, Experience.learn(problem, walks))

    def update(self, fits: Sequence[tuple[Patient, Fit]]) -> ContinuousVito:
        """Learn from personalisations, too.

        Parameters
        ----------
        fits : sequence of (Patient, Fit)
            In their order; in any grouping the agent is the same.

        Returns
        -------
        ContinuousVito
        """
        return ContinuousVito(self.problem, self.experience.after(fits))

    @cached_property
    def covariance(self) -> Covariance:
        """Covariances of the emulator, as learned from all runs so far."""
        n = len(self.experience.u)
        if n > N_SMALL:
            n = int(N_SMALL * GROWTH ** int(np.log(n / N_SMALL) / np.log(GROWTH)))
        inputs, y = self.inputs[:n], self.outputs[:n]
        return _tuned(self.problem, inputs, self.experience.patient[:n], y)

    @cached_property
    def inputs(self) -> FloatArray:
        """Inputs of the emulator, of all runs: parameters from the middle of Ω, and features."""
        experience = self.experience
        return np.concatenate([experience.u - 0.5, FEATURE_SHARE * experience.f], axis=1)

    @cached_property
    def outputs(self) -> FloatArray:
        """Outputs over ψ of all runs, without the jump of angles and what is far out of range."""
        y = self.experience.unwrapped(self.experience.y)
        return np.clip(y, *_range(y)) if len(y) else y

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient, starting where the agent expects the solution.

        Parameters
        ----------
        patient : Patient
        max_runs : int, optional
            Largest number of forward runs, the first one included; by default 50 per parameter.
        seed : int
            Of points that are drawn.

        Returns
        -------
        Fit
            Its trace holds the misfit expected of each run; it has no actions and no states.

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        rng = stream("continuous", self.problem.name, checked_seed(seed), patient.name)
        with one_thread():
            return _Course(self, patient, max_runs, rng).fit(None)

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from given starts.

        Parameters
        ----------
        patient : Patient
        starts : ndarray, shape (n, n_parameters)
            Moved into Ω, which the agent never leaves.
        max_runs : int, optional
        seed : int
            The outcome of a start does not depend on the other starts.

        Returns
        -------
        list of Fit

        Raises
        ------
        ValueError
            If no run is allowed or a measurement is missing.
        """
        fits = []
        with one_thread():
            for i, start in enumerate(starts):
                rng = stream("continuous", self.problem.name, checked_seed(seed), patient.name, i)
                fits.append(_Course(self, patient, max_runs, rng).fit(start))
        return fits

    def save(self, path: Path) -> None:
        """Write the agent as a folder of plain arrays and JSON, whole or not at all.

        Raises
        ------
        FileExistsError
            If the path exists.
        """
        known, arrays = {"features": list(self.problem.features)}, self.experience.to_arrays()
        write_agent(path, FILE, self.problem, known, arrays, check_experience)

    @classmethod
    def load(cls, path: Path, problem: Problem) -> ContinuousVito:
        """Read an agent written by `save`; the problem must be the one it learned.

        Raises
        ------
        ValueError
            If the format is unknown or the problem differs.
        """
        path = Path(path)
        description, arrays = read_agent(path, FILE, problem)
        field(path / FILE, description, "features", list)
        if description["features"] != list(problem.features):
            raise ValueError(
                f"{path}: the agent learned features {description['features']}, the problem given "
                f"has {list(problem.features)}"
            )
        check_experience(path / ARRAYS, problem, arrays)
        return cls(problem, Experience.from_arrays(problem, arrays))


def _tuned(problem: Problem, a: FloatArray, patient: IntArray, y: FloatArray) -> Covariance:
    """Learn covariances from runs, or from some of many."""
    if len(a) > N_TUNED:
        rng = stream("covariance", problem.name, len(a))
        drawn = np.sort(rng.permutation(len(a))[:N_TUNED])
        a, patient, y = a[drawn], patient[drawn], y[drawn]
    with one_thread():  # as elsewhere: sums depend on the number of threads
        return Covariance.learn(a, patient, y)


def _range(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Range beyond which outputs tell nothing, as of solvers that gave up."""
    low, high = np.quantile(y, [0.05, 0.95], axis=0)
    reach = WILD * np.maximum(high - low, 1.0)
    return low - reach, high + reach


class _Course:
    """One personalisation under way."""

    def __init__(
        self,
        agent: ContinuousVito,
        patient: Patient,
        max_runs: int | None,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.experience, self.agent = agent.problem, agent.experience, agent
        self.patient, self.max_runs, self.rng = patient, budget(agent.problem, max_runs), rng
        self.scale = agent.experience.scale
        self.z = self.problem.measured(patient)
        f = self.experience.features.standard(self.problem.featured(patient))
        self.f = FEATURE_SHARE * f
        self.reason: StopReason | None = None
        self.x: list[FloatArray] = []
        self.y: list[FloatArray] = []
        self.event: list[Event] = []
        self.expected: list[FloatArray] = []
        self.failures: list[Failure] = []
        self.failed: list[FloatArray] = []
        # of the runs that did not fail
        self.own: list[FloatArray] = []
        self.found: list[FloatArray] = []
        self.cost: list[float] = []
        self._know()

    def _know(self) -> None:
        """Choose the stored runs on which plans rest: half of them near the patient."""
        distance = self.experience.distance(self.patient)
        order = np.argsort(distance, kind="stable")
        self.near = self.experience.u[order[: 10 * N_NEAR]]
        if len(order) > N_KNOWN:
            half = N_KNOWN // 2
            rest = np.sort(order[half:])
            drawn = stream("known", self.problem.name, len(order)).permutation(len(rest))[:half]
            order = np.concatenate([order[:half], rest[drawn]])
        self.rows = np.sort(order)
        self.n_learned = len(self.experience.u)
        self.emulator: Emulator | None = None

    def fit(self, start: FloatArray | None) -> Fit:
        """Personalise from the start given, or from the best that can be planned."""
        for u in self._first(start):
            if self.reason is None:
                self._run(u, Event.RESTART if self.x else Event.START, None)
        while self.reason is None:
            self._step()
        trace = Trace(
            np.array(self.x),
            np.array(self.y),
            self.problem.misfit(np.array(self.y), self.z),
            np.array(self.event, dtype=np.int64),
            np.full(len(self.x), -1),
            np.full(len(self.x), -1),
            np.array(self.expected),
            failures=tuple(self.failures),
        )
        return Fit.from_trace(self.problem, trace, self.reason)

    def _first(self, start: FloatArray | None) -> list[FloatArray]:
        """Points to run before the first plan."""
        points = []
        if start is not None:
            x = np.clip(np.asarray(start, float), self.problem.lower, self.problem.upper)
            points.append(self.scale.unit(x))
        missing = N_FIRST - len(self.experience.u)
        if missing > 0:
            if start is None:
                points.append(self.scale.unit(self.problem.default))
            spread = qmc.Sobol(self.problem.n_parameters, seed=self.rng)
            points += list(spread.random_base2(4)[: missing - len(points)])
        return points

    def _model(self) -> Emulator:
        """Emulator of the patient's model, given stored runs and those made so far."""
        n = len(self.experience.u) + len(self.own)
        if self.emulator is None or n >= GROWTH * self.n_learned:
            agent, group = self.agent, len(self.experience.known)
            own = [np.concatenate([u - 0.5, self.f]) for u in self.own]
            a = np.concatenate([agent.inputs, np.reshape(own, (-1, agent.inputs.shape[1]))])
            found = np.reshape(self.found, (-1, self.problem.n_objectives))
            y = np.concatenate([agent.outputs, found])
            self.range = _range(y)
            y = np.clip(y, *self.range)
            patient = np.append(self.experience.patient, np.full(len(own), group))
            if n >= GROWTH * self.n_learned:
                self.n_learned = n
                self.covariance = _tuned(self.problem, a, patient, y)
            else:
                self.covariance = agent.covariance
            rows = np.append(self.rows, np.arange(len(agent.inputs), len(a)))
            self.emulator = Emulator.given(self.covariance, a[rows], patient[rows], y[rows])
        return self.emulator

    def _step(self) -> None:
        """Run the model where it is most probable that the measurements are met."""
        if not self.own and not len(self.experience.u):
            self._run(self.rng.random(self.problem.n_parameters), Event.RESTART, None)
            return
        z = self.experience.unwrapped(self.z / self.problem.tolerance)
        target = Target(
            self._model(), len(self.experience.known), self.f, z, self.problem, tuple(self.failed)
        )
        starts = list(self.near[:N_NEAR])
        if self.own:
            starts.insert(0, self.own[int(np.argmin(self.cost))])
        made = self.scale.unit(np.reshape(self.x, (-1, self.problem.n_parameters)))
        plan = best_plan(target, starts, made, self.rng)
        event = Event.STEP if self.own and plan.start == 0 else Event.RESTART
        self._run(plan.u, event if self.x else Event.START, plan.expected)

    def _run(self, u: FloatArray, event: Event, expected: FloatArray | None) -> None:
        """Run the model at u and learn from it."""
        problem, psi = self.problem, self.problem.tolerance
        x = self.scale.parameters(u)
        runs = problem.run(x[np.newaxis], self.patient, confirm=self.z)
        y = runs.y[0]
        self.failures += runs.failures
        c = problem.misfit(y, self.z)
        self.x.append(x)
        self.y.append(y)
        self.event.append(event)
        self.expected.append(np.full(len(c), np.nan) if expected is None else expected * psi)
        if problem.is_solved(c):
            self.reason = StopReason.SOLVED
        elif len(self.x) == self.max_runs:
            self.reason = StopReason.BUDGET
        if np.isfinite(c).all():
            found = self.experience.unwrapped(y / psi)
            self.own.append(u)
            self.found.append(found)
            self.cost.append(float(np.abs(c / psi).max()))
            if self.emulator is not None:
                a, y = np.concatenate([u - 0.5, self.f]), np.clip(found, *self.range)
                self.emulator = self.emulator.after(a, len(self.experience.known), y)
        else:
            self.failed.append(u)
