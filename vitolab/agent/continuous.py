"""An agent with continuous actions: a model of the model, learned from the explored walks.

It plans where the paper's agent looks up. Before the first run it takes the stored run whose
outputs come nearest to the measurements and moves it towards them by its model alone; after each
run it corrects the model by what it found and plans on from the best run: damped least-squares
steps within Ω on the misfit in units of ψ (Levenberg and Marquardt).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vitolab.agent.bounded import bounded_step
from vitolab.agent.deviation import Deviation
from vitolab.agent.experience import Experience, check_experience
from vitolab.agent.folder import ARRAYS, read_agent, write_agent
from vitolab.agent.scale import Scale
from vitolab.asked import checked_seed
from vitolab.failures import Failure
from vitolab.files import stream
from vitolab.fit import Event, Fit, StopReason, Trace, budget
from vitolab.objects import Value
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.saved import field
from vitolab.settings import Settings, chosen
from vitolab.trajectories import Trajectories

FILE = "continuous.json"

# Set on the scouting patients of the circulation and of electrophysiology. Other values tried there
# (damping 3 and 30, one planned start, 20 restarts, five steps, shares of 0.7 and 0.9) moved the
# mean number of runs by up to a third on the former and a half on the latter, where other draws of
# the walks move it as much; with a damping of 30 one of 32 was not solved. A damping of 0.1 lets
# plans leave what is known, and doubles the runs with five and six parameters. The changes of the
# damping are the usual ones, and were not tried otherwise.
N_NEAR = 300  # stored runs among which starts are chosen
N_PLANNED = 10  # starts that are planned before the first run, of which the best is taken
N_RESTARTS = 10  # starts in store for later
N_STEPS = 3  # of a plan, without running the model
DAMPING = 10.0  # at first: ψ² per squared share of Ω
HARDER, EASIER, HARDEST = 5.0, 4.0, 1e5  # times, after a failure; by, after a success; at most
WORTHWHILE = 0.5  # share of the sum of squares that may be left for a plan to be run
SAME = 1e-3  # share of Ω below which two points are one


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
    """

    problem: Problem
    experience: Experience

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        return {
            "problem": self.problem,
            "runs": len(self.experience.u),
            "directions": f"{len(self.experience.variation)} in which patients vary",
            "features": self.problem.features,
        }

    @classmethod
    def learn(
        cls,
        problem: Problem,
        walks: Trajectories,
        n_states: int | None = None,
        seed: int = 0,
        *,
        settings: Settings | None = None,
        **changes: Any,
    ) -> ContinuousVito:
        """Learn from explored walks.

        Walks of one step from random starts (``explore(..., n_steps=1)``) teach more per run than
        long ones, which stay where they began.

        Parameters
        ----------
        problem : Problem
        walks : Trajectories
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
        with one_thread():  # as elsewhere: sums depend on the number of threads
            return cls(problem, Experience.learn(problem, walks))

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient, starting where the agent expects the solution.

        Parameters
        ----------
        patient : Patient
        max_runs : int, optional
            Largest number of forward runs, the first one included; by default 50 per parameter.
        seed : int
            Of the restarts after all planned ones.

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


class _Plan(NamedTuple):
    """Where to go, the misfit expected there by ψ, and its square with the price of going."""

    u: FloatArray
    expected: FloatArray
    cost: float


class _Course:
    """One personalisation under way."""

    def __init__(
        self,
        agent: ContinuousVito,
        patient: Patient,
        max_runs: int | None,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.experience = agent.problem, agent.experience
        self.patient, self.max_runs, self.rng = patient, budget(agent.problem, max_runs), rng
        self.scale = Scale(self.problem)
        self.z = self.problem.measured(patient)
        self.f = self.experience.featured(patient)[np.newaxis]
        self.reason: StopReason | None = None
        self.x: list[FloatArray] = []
        self.y: list[FloatArray] = []
        self.event: list[Event] = []
        self.expected: list[FloatArray] = []
        self.failures: list[Failure] = []
        # of the runs that did not fail
        self.own = np.empty((0, self.problem.n_parameters))
        self.found = np.empty((0, self.problem.n_objectives))
        self.deviation = Deviation.expect(self.experience.variation, self.own, self.found)

    def fit(self, start: FloatArray | None) -> Fit:
        """Personalise from the start given, or from the best that can be planned."""
        near, spread = self._stored()
        if start is None:
            plan = min((self._plan(point) for point in near), key=attrgetter("cost"))
            u = plan.u
            c = self._run(u, Event.START, plan.expected)
        else:
            spread = np.concatenate([near[:1], spread])
            x = np.clip(np.asarray(start, float), self.problem.lower, self.problem.upper)
            u = self.scale.unit(x)
            c = self._run(u, Event.START, None, x)
        restarts = list(spread)
        while self.reason is None:
            if np.isfinite(c).all():
                self._descend(u, c)
            if self.reason is None:
                u, expected = self._next(restarts)
                c = self._run(u, Event.RESTART, expected)
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

    def _stored(self) -> tuple[FloatArray, FloatArray]:
        """Points of stored runs near the measurements: the nearest, and others far apart."""
        experience, psi = self.experience, self.problem.tolerance
        away = (experience.misfit(experience.y, self.z / psi) ** 2).sum(axis=1)
        away += ((experience.f - self.f) ** 2).sum(axis=1)
        n = min(N_NEAR, len(away))
        near = np.argpartition(away, n - 1)[:n]
        points = experience.u[near[np.argsort(away[near], kind="stable")]]
        chosen: list[int] = []
        apart = ((points - points[0]) ** 2).sum(axis=1)
        while len(chosen) < N_RESTARTS and apart.max() > SAME**2:
            chosen.append(int(np.argmax(apart)))
            apart = np.minimum(apart, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        return points[:N_PLANNED], points[chosen]

    def _run(
        self, u: FloatArray, event: Event, expected: FloatArray | None, x: FloatArray | None = None
    ) -> FloatArray:
        """Run the model at u, or exactly at x, learn from it, and tell the misfit by ψ."""
        problem, psi = self.problem, self.problem.tolerance
        x = self.scale.parameters(u) if x is None else x
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
        elif np.isfinite(c).all():
            common, _ = self.experience.model(u[np.newaxis], self.f)
            away = self.experience.misfit(y / psi, common[0])
            self.own = np.concatenate([self.own, u[np.newaxis]])
            self.found = np.concatenate([self.found, away[np.newaxis]])
            self.deviation = Deviation.expect(self.experience.variation, self.own, self.found)
        return c / psi

    def _descend(self, u: FloatArray, c: FloatArray) -> None:
        """Run plan after plan from the best run, until solved or no plan is worth a run."""
        damping = DAMPING
        while self.reason is None and damping <= HARDEST:
            plan = self._plan(u, damping)
            worthwhile = plan.expected @ plan.expected <= WORTHWHILE * (c @ c)
            if not worthwhile or np.abs(plan.u - u).max() < SAME / 10:
                return
            found = self._run(plan.u, Event.STEP, plan.expected)
            if not np.isfinite(found).all():
                damping *= HARDER**2
            elif found @ found < c @ c:
                u, c = plan.u, found
                damping = max(damping / EASIER, DAMPING / EASIER**2)
            else:
                damping *= HARDER

    def _plan(self, start: FloatArray, damping: float = DAMPING) -> _Plan:
        """Move towards the measurements by the model alone."""
        u, best = start, _Plan(start, np.empty(0), np.inf)
        c, jacobian = self._expected(u)
        for _ in range(N_STEPS):
            step = bounded_step(jacobian, c, damping, start - u, -u, 1.0 - u)
            u = np.clip(u + step, 0.0, 1.0)
            c, jacobian = self._expected(u)
            cost = float(c @ c + damping * ((u - start) ** 2).sum())
            if cost >= best.cost:
                break
            best = _Plan(u, c, cost)
        return best

    def _expected(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Expected misfit at u by ψ, and its derivatives."""
        common, jacobian = self.experience.model(u[np.newaxis], self.f)
        deviation, slopes = self.deviation.at(u)
        c = self.experience.misfit(common[0] + deviation, self.z / self.problem.tolerance)
        return c, jacobian[0] + slopes

    def _next(self, restarts: list[FloatArray]) -> tuple[FloatArray, FloatArray | None]:
        """Where to start afresh: the next stored point, moved by a plan, or anywhere in Ω."""
        made = self.scale.unit(np.array(self.x))
        while restarts:
            point = restarts.pop(0)
            plan = self._plan(point)
            if np.abs(made - plan.u).max(axis=1).min() > SAME:
                return plan.u, plan.expected
            if np.abs(made - point).max(axis=1).min() > SAME:
                return point, None
        return self.rng.random(self.problem.n_parameters), None
