"""What an agent learned of one setup, as arrays of a stored run: written and read here alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.mdp import MDP, Policy
from vitolab.problem import IntArray, Problem
from vitolab.states import StateSpace

_COUNTS = ("counts_indptr", "counts_indices", "counts_data")


@dataclass(frozen=True)
class Knowledge:
    """What an agent learned.

    Attributes
    ----------
    states : StateSpace
    policy : Policy
        Of those states. Runs that do not say its threshold (``epsilon``) used the paper's.
    visits : ndarray of int, shape (n_states, n_actions), or None
        Times each action was seen in each state; None where the run did not store them.
    mdp : MDP or None
        Transitions; None where the run did not store them.
    failed : float or None
        Value of the further state that stands for failed runs; None where there is none.
    """

    states: StateSpace
    policy: Policy
    visits: IntArray | None = None
    mdp: MDP | None = None
    failed: float | None = None


def setups_of(arrays: Mapping[str, Any]) -> list[str]:
    """Setups whose policy a run stored."""
    return [name.removesuffix("/q") for name in arrays if name.endswith("/q")]


def knowledge_arrays(
    setup: str, states: StateSpace, policy: Policy, mdp: MDP
) -> dict[str, NDArray[Any]]:
    """Arrays that store what an agent learned.

    Where actions were seen to fail, values and counts have one row more than there are centroids,
    of failed runs, and ``failing`` marks those actions.

    Parameters
    ----------
    setup : str
        The name of each array begins with it.
    states : StateSpace
    policy : Policy
    mdp : MDP

    Returns
    -------
    dict of str to ndarray
    """
    found: dict[str, NDArray[Any]] = {
        "centroids": states.centroids,
        "squared": np.array(states.squared),
        "epsilon": np.array(policy.epsilon, dtype=np.float64),
        "q": policy.q,
        "v": policy.v,
        "residuals": policy.residuals,
        "visits": mdp.visits,
        **dict(zip(_COUNTS, (mdp.start, mdp.successor, mdp.counts), strict=True)),
    }
    if policy.failing is not None:
        found["failing"] = policy.failing
    return {f"{setup}/{name}": array for name, array in found.items()}


def read_knowledge(arrays: Mapping[str, NDArray[Any]], setup: str, problem: Problem) -> Knowledge:
    """Put the stored arrays of a setup together.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Those of a run. Runs that do not say how distances were scaled (``squared``) used the
        paper's scale.
    setup : str
    problem : Problem

    Returns
    -------
    Knowledge

    Raises
    ------
    ValueError
        If an array is missing, or they do not fit together.
    """
    own = {
        name.removeprefix(f"{setup}/"): array
        for name, array in arrays.items()
        if name.startswith(f"{setup}/")
    }
    missing = [name for name in ("centroids", "q", "v") if name not in own]
    if missing:
        raise ValueError(f"setup {setup}: the run stored no {missing[0]} of its policy")
    centroids, q, v = own["centroids"], own["q"], own["v"]
    n, m = len(centroids), problem.n_actions
    rows = n + 1 if len(v) == n + 1 else n  # the last may stand for failed runs
    if (
        centroids.shape != (n, problem.n_objectives)
        or q.shape != (rows, m)
        or v.shape != (rows,)
        or not n
    ):
        raise ValueError(
            f"setup {setup}: centroids {centroids.shape}, q {q.shape} and v {v.shape} do not fit "
            f"{problem.n_objectives} objectives and {m} actions"
        )
    for name in ("centroids", "q", "v"):
        if not np.isfinite(own[name]).all():
            raise ValueError(f"setup {setup}: {name} of its policy is not finite, expected numbers")
    squared = own.get("squared", np.array(False))
    if squared.shape != () or squared.dtype != np.bool_:
        raise ValueError(
            f"setup {setup}: squared has shape {squared.shape} and type {squared.dtype}, expected "
            "one truth value"
        )
    epsilon = own.get("epsilon", np.array(Policy.epsilon))
    if epsilon.shape != () or epsilon.dtype.kind != "f" or not 0.0 <= float(epsilon) <= 1.0:
        raise ValueError(
            f"setup {setup}: epsilon is {epsilon!r:.60}, expected one number from 0 to 1"
        )
    mdp = None
    if all(name in own for name in _COUNTS) and len(own["counts_indptr"]) == rows * m + 1:
        start, successor, counts = (own[name] for name in _COUNTS)
        mdp = MDP(start, successor, counts, rows, m, failed=rows > n)
    visits = own.get("visits") if mdp is None else mdp.visits
    failing = own.get("failing") if mdp is None else mdp.failing

    def of_states(array: NDArray[Any] | None) -> NDArray[Any] | None:
        return array[:n] if array is not None and array.shape == (rows, m) else None

    return Knowledge(
        StateSpace(centroids, problem.tolerance, bool(squared)),
        Policy(
            q[:n],
            v[:n],
            float(epsilon),
            residuals=own.get("residuals", np.empty(0)),
            failing=of_states(failing),
        ),
        of_states(visits),
        mdp,
        float(v[n]) if rows > n else None,
    )
