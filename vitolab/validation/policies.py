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

    Where actions were seen to fail, values and counts have one row more than there are centroids,
    of failed runs, and ``failing`` tells those actions. Of setups for which the time (s, epoch) is
    over there are none.
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
        arrays |= {
            f"{setup}/centroids": vito.states.centroids,
            f"{setup}/q": vito.policy.q,
            f"{setup}/v": vito.policy.v,
            f"{setup}/residuals": vito.policy.residuals,
            f"{setup}/visits": vito.mdp.visits,
            f"{setup}/counts_indptr": vito.mdp.start,
            f"{setup}/counts_indices": vito.mdp.successor,
            f"{setup}/counts_data": vito.mdp.counts,
        }
        if vito.policy.failing is not None:
            arrays[f"{setup}/failing"] = vito.policy.failing
    return arrays
