"""The policy learned from all patients, to be looked at."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vitolab.agent import Vito, n_states_allowed
from vitolab.display import say
from vitolab.failures import described
from vitolab.guard import Unlearned, attempted
from vitolab.problem import Patient, Problem
from vitolab.settings import Settings
from vitolab.store.policies import knowledge_arrays
from vitolab.trajectories import Trajectories
from vitolab.validation.parts import child_seed, learned_from, walks_for


def policy_arrays(
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    n_states: Mapping[str, int],
    n_samples: Mapping[str, int],
    epsilon: float = Settings.epsilon,
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
    until: float = math.inf,
) -> dict[str, NDArray[Any]]:
    """Arrays of the policy learned from all patients, per setup, to be looked at.

    Personalisations do not depend on it: where it cannot be learned, a sentence says so, and the
    setup has none.

    Parameters
    ----------
    problems : mapping of str to Problem
        By setup.
    patients : sequence of Patient
    n_states, n_samples : mapping of str to int
        States, or as many as the walks allow, and transitions per patient; by setup.
    epsilon : float
        Threshold of the stochastic policy, by default the paper's.
    seed, n_jobs : int
    cache : Path, optional
        See `vitolab.exploration.explore`.
    until : float
        Setups for which this time (s, epoch) is over have none.

    Returns
    -------
    dict of str to ndarray
        See `vitolab.store.policies`.

    Raises
    ------
    ValueError
        If no run of the walks answers.
    """
    arrays: dict[str, NDArray[Any]] = {}
    child = child_seed(seed, "repeat", 0)
    for setup, problem in problems.items():
        if time.time() >= until:
            break
        samples = n_samples[setup]
        whole = learned_from(problem, patients)
        walks = walks_for(problem, whole, samples, child, n_jobs, cache).first(samples)
        vito = attempted(partial(_learned, problem, walks, n_states[setup], child, epsilon))
        if isinstance(vito, Unlearned):
            say(f"{setup}: no policy of all patients is kept: {described(vito.error)}")
        else:
            arrays |= knowledge_arrays(setup, vito.states, vito.policy, vito.mdp)
    return arrays


def _learned(
    problem: Problem, walks: Trajectories, n_states: int, seed: int, epsilon: float
) -> Vito:
    """Agent of the paper, without start candidates."""
    used = n_states_allowed(n_states, problem, walks)
    return Vito.learn(problem, walks, used, seed, initialize=False, epsilon=epsilon)
