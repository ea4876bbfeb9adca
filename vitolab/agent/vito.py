"""Vito, the agent: learns from walks off-line, personalises on-line (sections 2.4 to 2.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.agent.folder import read_agent, write_agent
from vitolab.agent.learning import learned
from vitolab.agent.points import keys, recurs
from vitolab.agent.storing import restored, stored
from vitolab.asked import checked_count, checked_seed
from vitolab.experience import Experience
from vitolab.failures import Failure
from vitolab.files import bits, stream
from vitolab.fit import REASONS, Event, Fit, StopReason, Trace, budget
from vitolab.initialization import Initializer
from vitolab.mdp import MDP, Policy
from vitolab.objects import Value
from vitolab.problem import FloatArray, IntArray, Patient, Problem
from vitolab.saved import field
from vitolab.settings import Settings, chosen
from vitolab.states import StateSpace
from vitolab.trajectories import Trajectories

FILE = "vito.json"
AHEAD = 64  # random numbers that a walk draws at once


@dataclass(frozen=True, eq=False, repr=False)
class Vito(Value):
    """The paper's agent.

    Attributes
    ----------
    problem : Problem
    states : StateSpace
    mdp : MDP
        What was seen; kept for explanation. Where actions were seen to fail, it and the policy
        hold one state more than `states`: the last one stands for failed runs.
    policy : Policy
    initializer : Initializer, Experience or None
        Start candidates from the data: those of clusters of runs, or the stored runs nearest to
        the measurements, see `vitolab.settings.Settings`. Once they are used up, and without any,
        starts are uniform in Ω.
    deterministic : bool
        Take the best action instead of drawing among the candidates.
    restart : bool
        Start afresh when a parameter vector recurs (oscillation) or a run failed.
    recurrences : int
        The recurrence that counts as an oscillation: the paper's is the first.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=2, n_steps=20, seed=0)
    >>> vito = vl.Vito.learn(problem, walks, n_states=20, seed=0)
    >>> fit = vito.personalize(patient, max_runs=30, seed=0)
    >>> fit.n_runs <= 30
    True
    """

    problem: Problem
    states: StateSpace
    mdp: MDP
    policy: Policy
    initializer: Initializer | Experience | None = None
    deterministic: bool = False
    restart: bool = True
    recurrences: int = 1

    def facts(self) -> dict[str, Any]:
        """Rows of the printed form, by name."""
        return {
            "problem": self.problem,
            "n_states": self.states.n_states,
            "n_actions": self.mdp.n_actions,
            "transitions": int(self.mdp.counts.sum()),
            "discount": self.mdp.discount,
            "epsilon": self.policy.epsilon,
            "starts": "uniform" if self.initializer is None else self.initializer.source,
            "deterministic": self.deterministic,
            "restart": self.restart,
            "recurrences": self.recurrences,
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
    ) -> Vito:
        """Learn states, transitions, policy and start candidates from explored walks.

        Parameters
        ----------
        problem : Problem
        walks : Trajectories
            Walks of the training patients; `Trajectories.without` leaves one out.
        n_states : int, optional
            Number of representative states; it may be among the settings instead.
        seed : int
        settings : Settings, optional
            By default those of the paper.
        **changes
            Single settings by name, see `vitolab.settings.Settings`; they replace those above.

        Raises
        ------
        ValueError
            If no run among the walks succeeded, the number of states is missing, there are too few
            distinct misfits for so many (see `n_states_at_most`), or the number of replays is
            below zero.
        TypeError
            If a keyword is no setting.
        """
        own = chosen(settings, n_states, changes)
        acting = (own.deterministic, own.restart, own.recurrences)
        return cls(problem, *learned(problem, walks, seed, own), *acting)

    def acting(self, *, deterministic: bool | None = None, restart: bool | None = None) -> Vito:
        """Act otherwise on the same learning; None keeps what is set."""
        return replace(
            self,
            deterministic=self.deterministic if deterministic is None else deterministic,
            restart=self.restart if restart is None else restart,
        )

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient, starting at the most likely candidate.

        Parameters
        ----------
        patient : Patient
        max_runs : int, optional
            Largest number of forward runs, the first one included; by default 50 per parameter.
        seed : int

        Returns
        -------
        Fit
        """
        rng = stream("personalize", self.problem.name, checked_seed(seed), patient.name)
        candidates = self.candidates(patient)
        start = candidates[:1] if len(candidates) else self.problem.draw(rng)
        allowed = budget(self.problem, max_runs)
        return self._walk(patient, start, [candidates[1:]], allowed, [rng])[0]

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient from given starts, in lock-step.

        Parameters
        ----------
        patient : Patient
        starts : ndarray, shape (n, n_parameters)
        max_runs : int, optional
        seed : int
            The outcome of a start does not depend on the other starts.

        Returns
        -------
        list of Fit
        """
        seed = checked_seed(seed)
        rngs = [
            stream("personalize", self.problem.name, seed, patient.name, bits(start))
            for start in starts
        ]
        candidates = self.candidates(patient)
        further = [candidates] * len(starts)
        return self._walk(patient, starts, further, budget(self.problem, max_runs), rngs)

    def candidates(self, patient: Patient) -> FloatArray:
        """Start candidates for a patient, best first; shape (m, n_parameters)."""
        if self.initializer is None:
            return np.empty((0, self.problem.n_parameters))
        if isinstance(self.initializer, Experience):
            return self.initializer.candidates(patient)
        return self.initializer.candidates(self.problem.measured(patient))

    def _walk(
        self,
        patient: Patient,
        starts: FloatArray,
        candidates: Sequence[FloatArray],
        max_runs: int,
        rngs: Sequence[np.random.Generator],
    ) -> list[Fit]:
        """Advance all walks by one forward run at a time until each has ended."""
        problem = self.problem
        n = len(starts)
        z = problem.measured(patient)
        x = np.full((n, max_runs, problem.n_parameters), np.nan)
        y = np.full((n, max_runs, problem.n_objectives), np.nan)
        action = np.full((n, max_runs), -1)
        state = np.full((n, max_runs), -1)
        event = np.full((n, max_runs), int(Event.STEP))
        event[:, 0] = Event.START
        x[:, 0] = starts

        origin = np.array(starts, dtype=np.float64)
        count = np.zeros((n, problem.n_parameters), dtype=np.int64)
        at_origin = bytes(count[0].nbytes)
        met = [{at_origin: 1} for _ in range(n)]
        chance = np.empty((n, AHEAD))
        n_used = [0] * n
        n_runs = np.zeros(n, dtype=np.int64)
        reason: list[StopReason] = [StopReason.BUDGET] * n
        failures: list[list[Failure]] = [[] for _ in range(n)]
        walking = np.arange(n)
        for t in range(max_runs):
            runs = problem.run(x[walking, t], patient, confirm=z)
            y[walking, t] = runs.y
            for i, failure in zip(walking[runs.failed].tolist(), runs.failures, strict=True):
                failures[i].append(failure)
            n_runs[walking] = t + 1
            worked = np.isfinite(y[walking, t]).all(axis=1)
            alive = walking[worked]
            state[alive, t] = self.states.quantize(problem.misfit(y[alive, t], z))
            for i in walking[state[walking, t] == 0]:
                reason[i] = StopReason.SOLVED
            if not self.restart:
                for i in walking[~worked]:
                    reason[i] = StopReason.FAILED
                walking = alive
            walking = walking[state[walking, t] != 0]
            if t + 1 == max_runs or not walking.size:
                break
            if t % AHEAD == 0 and not self.deterministic:
                for i in walking.tolist():
                    rngs[i].random(out=chance[i])
            chosen = np.full(n, -1)
            stepping = walking[state[walking, t] > 0]
            chosen[stepping] = self._choose(state[stepping, t], chance[stepping, t % AHEAD])
            moved = count.copy()
            moved[stepping] = problem.move(origin[stepping], count[stepping], chosen[stepping])
            action[walking, t + 1] = chosen[walking]
            if self.restart:
                rows = zip(
                    walking.tolist(), chosen[walking].tolist(), keys(moved[walking]), strict=True
                )
                for i, step, point in rows:
                    if step >= 0 and not recurs(met[i], point, self.recurrences):
                        continue
                    if n_used[i] < len(candidates[i]):
                        origin[i] = candidates[i][n_used[i]]
                        n_used[i] += 1
                    else:
                        origin[i] = problem.draw(rngs[i])[0]
                    moved[i] = 0
                    met[i] = {at_origin: 1}
                    event[i, t + 1] = Event.RESTART
                    action[i, t + 1] = -1
            count = moved
            x[walking, t + 1] = problem.at(origin[walking], count[walking])

        misfits, visits = problem.misfit(y, z), self.mdp.visits
        return [
            Fit.from_trace(
                problem,
                Trace(
                    x[i, :k].copy(),
                    y[i, :k].copy(),
                    misfits[i, :k].copy(),
                    event[i, :k].copy(),
                    action[i, :k].copy(),
                    state[i, :k].copy(),
                    reasons=self._reasons(visits, state[i, :k], action[i, :k]),
                    failures=tuple(failures[i]),
                ),
                reason[i],
            )
            for i, k in enumerate(n_runs)
        ]

    def _reasons(self, visits: IntArray, state: IntArray, action: IntArray) -> FloatArray:
        """What is known of each action, shape (n_runs, len(REASONS)); states are those found."""
        reasons = np.full((len(action), len(REASONS)), np.nan)
        rows = np.flatnonzero(action >= 0)
        s, a = state[rows - 1], action[rows]
        policy, best = self.policy, self.policy.greedy[s]
        chance = policy.probabilities[s]
        drawn = chance[np.arange(len(rows)), a]
        reasons[rows] = np.column_stack(
            [
                policy.q[s, a],
                policy.q[s, best],
                best,
                np.ones_like(drawn) if self.deterministic else drawn,
                np.count_nonzero(chance, axis=1),
                visits[s, a],
            ]
        )
        return reasons

    def _choose(self, state: IntArray, chance: FloatArray) -> IntArray:
        """Action of each walk, from its state and a random number in [0, 1)."""
        if self.deterministic:
            return self.policy.greedy[state]
        return self.policy.sample(state, chance)

    def save(self, path: Path) -> None:
        """Write the agent as a folder of plain arrays and JSON, whole or not at all.

        Raises
        ------
        FileExistsError
            If the path exists.
        """
        description, arrays = stored(self.states, self.mdp, self.policy, self.initializer)
        description |= {
            name: getattr(self, name) for name in ("deterministic", "restart", "recurrences")
        }

        def check(file: Path, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> None:
            restored(file.parent, FILE, problem, description, arrays)

        write_agent(path, FILE, self.problem, description, arrays, check)

    @classmethod
    def load(cls, path: Path, problem: Problem) -> Vito:
        """Read an agent written by `save`; the problem must be the one it learned.

        Raises
        ------
        ValueError
            If the format is unknown, the problem differs, or the arrays do not fit together.
        """
        path = Path(path)
        description, arrays = read_agent(path, FILE, problem)
        acting = (field(path / FILE, description, n, bool) for n in ("deterministic", "restart"))
        deterministic, restart = acting
        recurrences = description.get("recurrences", 1)  # agents of before have the paper's
        checked_count(f"{path / FILE}: recurrences", recurrences)
        knowledge = restored(path, FILE, problem, description, arrays)
        return cls(problem, *knowledge, deterministic, restart, recurrences)
