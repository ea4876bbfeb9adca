"""The arrays and the description in which an agent with states is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vitolab.agent.folder import ARRAYS
from vitolab.initialization import Initializer
from vitolab.mdp import MDP, Policy
from vitolab.problem import Problem
from vitolab.saved import Shape, check_arrays, field
from vitolab.states import StateSpace

Knowledge = tuple[StateSpace, MDP, Policy, Initializer | None]


def stored(
    states: StateSpace, mdp: MDP, policy: Policy, initializer: Initializer | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Description and arrays of what was learned."""
    arrays: dict[str, NDArray[Any]] = {
        "states/centroids": states.centroids,
        "mdp/start": mdp.start,
        "mdp/successor": mdp.successor,
        "mdp/counts": mdp.counts,
        "policy/q": policy.q,
        "policy/v": policy.v,
        "policy/residuals": policy.residuals,
    }
    if initializer is not None:
        for name, values in initializer.to_arrays().items():
            arrays[f"initializer/{name}"] = values
    description: dict[str, Any] = {
        "squared": states.squared,
        "discount": mdp.discount,
        "epsilon": policy.epsilon,
        "initializer": initializer is not None,
    }
    return description, arrays


def restored(
    path: Path,
    file: str,
    problem: Problem,
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> Knowledge:
    """Check what was read of an agent, and put it together.

    Parameters
    ----------
    path : Path
        Folder of the agent.
    file : str
        Name of its JSON file.
    problem : Problem
    description, arrays : mapping
        See `vitolab.agent.folder.read_agent`.

    Raises
    ------
    ValueError
        If a field or an array is not as expected.
    """
    for name in ("squared", "initializer"):
        field(path / file, description, name, bool)
    for name in ("discount", "epsilon"):
        field(path / file, description, name, float)
    n_parameters, n_objectives = problem.n_parameters, problem.n_objectives
    expected: dict[str, Shape] = {
        "states/centroids": ("f", (None, n_objectives)),
        "mdp/start": ("i", (None,)),
        "mdp/successor": ("i", (None,)),
        "mdp/counts": ("i", (None,)),
        "policy/q": ("f", (None, problem.n_actions)),
        "policy/v": ("f", (None,)),
        "policy/residuals": ("f", (None,)),
    }
    if description["initializer"]:
        expected |= {
            "initializer/centroids": ("f", (None, n_objectives)),
            "initializer/start": ("i", (None,)),
            "initializer/x": ("f", (None, n_parameters)),
            "initializer/y": ("f", (None, n_objectives)),
            "initializer/squared": ("b", ()),
        }
    check_arrays(path / ARRAYS, arrays, expected)
    if len(arrays["states/centroids"]) < 2 * n_objectives + 1:
        raise ValueError(
            f"{path / ARRAYS}: states/centroids has {len(arrays['states/centroids'])} rows, "
            f"expected at least {2 * n_objectives + 1}"
        )
    try:
        return _together(path, problem, description, arrays)
    except ValueError as error:
        raise ValueError(f"{path / ARRAYS}: {error}") from None


def _together(
    path: Path,
    problem: Problem,
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> Knowledge:
    """Put what was learned together."""
    states = StateSpace(arrays["states/centroids"], problem.tolerance, description["squared"])
    q, v = arrays["policy/q"], arrays["policy/v"]
    n = len(v)
    failed = n == states.n_states + 1
    if n not in (states.n_states, states.n_states + 1) or q.shape != (n, problem.n_actions):
        raise ValueError(
            f"{path}: q has shape {q.shape} and v {v.shape}, expected a row for each of "
            f"{states.n_states} states, with or without one for failed runs, and "
            f"{problem.n_actions} actions"
        )
    initializer = None
    if description["initializer"]:
        prefix = "initializer/"
        initializer = Initializer.from_arrays(
            {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)},
            problem,
        )
    mdp = MDP(
        arrays["mdp/start"],
        arrays["mdp/successor"],
        arrays["mdp/counts"],
        n,
        problem.n_actions,
        description["discount"],
        failed,
    )
    policy = Policy(q, v, description["epsilon"], arrays["policy/residuals"], mdp.failing)
    return states, mdp, policy, initializer
