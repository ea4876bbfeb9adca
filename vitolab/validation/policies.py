"""The policy learned from all patients, to be looked at."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vitolab.agent import Vito, n_states_allowed
from vitolab.problem import Patient, Problem
from vitolab.store.policies import knowledge_arrays
from vitolab.validation.parts import child_seed, learned_from, walks_for


def policy_arrays(
    problems: Mapping[str, Problem],
    patients: Sequence[Patient],
    *,
    n_states: Mapping[str, int],
    n_samples: Mapping[str, int],
    seed: int = 0,
    n_jobs: int = 1,
    cache: Path | None = None,
    until: float = math.inf,
) -> dict[str, NDArray[Any]]:
    """Arrays of the policy learned from all patients, per setup, to be looked at.

    See `vitolab.store.policies`. Setups for which the time (s, epoch) is over have none.
    """
    arrays: dict[str, NDArray[Any]] = {}
    child = child_seed(seed, "repeat", 0)
    for setup, problem in problems.items():
        if time.time() >= until:
            break
        samples = n_samples[setup]
        whole = learned_from(problem, patients)
        walks = walks_for(problem, whole, samples, child, n_jobs, cache).first(samples)
        used = n_states_allowed(n_states[setup], problem, walks)
        vito = Vito.learn(problem, walks, used, child, initialize=False)
        arrays |= knowledge_arrays(setup, vito.states, vito.policy, vito.mdp)
    return arrays
