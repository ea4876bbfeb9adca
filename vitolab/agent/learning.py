"""What the paper's agent learns from walks: states, transitions, policy, start candidates."""

from __future__ import annotations

import numpy as np

from vitolab.agent.hindsight import replayed
from vitolab.agent.storing import Knowledge
from vitolab.asked import checked_count, checked_seed
from vitolab.experience import Experience
from vitolab.files import stream
from vitolab.initialization import Initializer
from vitolab.mdp import MDP
from vitolab.problem import Problem
from vitolab.settings import Settings
from vitolab.states import StateSpace, outside
from vitolab.trajectories import Trajectories
from vitolab.walks import checked_runs


def learned(problem: Problem, walks: Trajectories, seed: int, own: Settings) -> Knowledge:
    """Learn as `vitolab.agent.Vito.learn` describes.

    The states are those of the walks as they were: a replay adds transitions, no states.
    """
    if own.n_states is None:
        raise ValueError("n_states is missing, expected a number of states")
    n_states, seed = checked_count("n_states", own.n_states), checked_seed(seed)
    n_replays = 0 if own.n_replays is None else own.n_replays
    counted = checked_runs(problem, walks)
    c = walks.misfits(problem)
    states = StateSpace.learn(
        c[counted],
        problem.tolerance,
        n_states,
        stream("states", problem.name, seed),
        squared=own.squared,
    )
    kept, failures = walks.transitions, walks.failing
    heeded = own.heed_failures and bool(failures.any())
    if heeded:
        kept = kept | failures
    before, after = [], []
    for misfits in (c, *replayed(problem, walks, n_replays, seed)):
        label = np.full(counted.shape, states.n_states)  # failed
        label[counted] = states.quantize(misfits[counted])
        before.append(label[:, :-1][kept])
        after.append(label[:, 1:][kept])
    mdp = MDP.count(
        np.concatenate(before),
        np.tile(walks.action[kept], len(before)),
        np.concatenate(after),
        states.n_states + heeded,
        problem.n_actions,
        own.discount,
        failed=heeded,
    )
    starts: Initializer | Experience | None = None
    if own.initialize and own.start == "nearest":
        starts = Experience.learn(problem, walks)
    elif own.initialize:
        starts = Initializer.learn(
            walks.x[counted],
            walks.y[counted],
            problem,
            n_states,
            stream("initializer", problem.name, seed),
            squared=own.squared,
        )
    return states, mdp, mdp.solve(epsilon=own.epsilon), starts


def n_states_at_most(problem: Problem, walks: Trajectories) -> int:
    """Largest number of states that these walks allow: inserted ones and distinct misfits."""
    c = outside(walks.misfits(problem)[walks.counted], problem.tolerance)
    return 2 * problem.n_objectives + 1 + len(np.unique(c, axis=0))


def n_states_allowed(n_states: int, problem: Problem, walks: Trajectories) -> int:
    """Number of states asked for, or the largest that the walks allow."""
    # a few of the walks mostly show that there are enough, and are counted in no time
    few = walks.first(min(100, int(walks.n_samples.min())))
    if n_states <= n_states_at_most(problem, few):
        return n_states
    return min(n_states, n_states_at_most(problem, walks))
