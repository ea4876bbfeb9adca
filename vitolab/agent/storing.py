"""The arrays and the description in which an agent with states is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.agent.experienced import check_experience
from vitolab.agent.folder import ARRAYS, check_features
from vitolab.experience import Experience
from vitolab.initialization import Initializer
from vitolab.mdp import MDP, Policy
from vitolab.problem import Problem
from vitolab.quantities import BEYOND
from vitolab.saved import Shape, check_arrays, check_limits, field
from vitolab.states import StateSpace
from vitolab.walks import reach

#: What gives start candidates: clusters, stored runs, or nothing.
Starts = Initializer | Experience | None
Knowledge = tuple[StateSpace, MDP, Policy, Starts]
STORED = "stored/"  # begins the names of the arrays of stored runs


def stored(
    states: StateSpace, mdp: MDP, policy: Policy, starts: Starts
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
    description: dict[str, Any] = {
        "squared": states.squared,
        "discount": mdp.discount,
        "epsilon": policy.epsilon,
        "initializer": isinstance(starts, Initializer),
    }
    if isinstance(starts, Experience):
        description |= {"start": "nearest", "features": list(starts.problem.features)}
    if starts is not None:
        prefix = STORED if isinstance(starts, Experience) else "initializer/"
        arrays |= {prefix + name: values for name, values in starts.to_arrays().items()}
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
    runs = None
    if "start" in description:
        _check_start(path, file, problem, description)
        runs = _named(arrays, STORED)
        check_experience(path / ARRAYS / STORED, problem, runs)
        arrays = {name: array for name, array in arrays.items() if not name.startswith(STORED)}
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
    _check_values(path / ARRAYS, problem, arrays)
    try:
        return _together(problem, description, arrays, runs)
    except ValueError as error:
        raise ValueError(f"{path / ARRAYS}: {error}") from None


def _named(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Arrays whose names begin so, without this beginning."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _check_start(path: Path, file: str, problem: Problem, description: Mapping[str, Any]) -> None:
    """Refuse other fields than those of an agent that starts at the nearest stored runs."""
    for name, expected in (("start", "nearest"), ("initializer", False)):
        if description[name] != expected:
            raise ValueError(
                f"{path / file}: {name} is {description[name]!r:.60}, expected {expected!r}"
            )
    check_features(path, file, problem, description)


def _check_values(file: Path, problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse values that no learning gives."""
    psi = problem.tolerance
    for name in ("states/centroids", "initializer/centroids", "initializer/y"):
        if name in arrays:
            check_limits(file, name, arrays[name], -BEYOND * psi, BEYOND * psi)
    # the first states are success and its neighbours at two tolerances
    first = np.zeros((2 * len(psi) + 1, len(psi)))
    for i, width in enumerate(psi):
        first[2 * i + 1, i], first[2 * i + 2, i] = -2 * width, 2 * width
    found = arrays["states/centroids"][: len(first)]
    check_limits(file, "states/centroids", found, first - 0.01 * psi, first + 0.01 * psi)
    if "initializer/x" in arrays:
        check_limits(file, "initializer/x", arrays["initializer/x"], *reach(problem))
    check_limits(file, "mdp/counts", arrays["mdp/counts"], 1, 2**40)
    if not len(arrays["policy/residuals"]):
        raise ValueError(f"{file}: policy/residuals is empty, expected one for each round")
    check_limits(file, "policy/residuals", arrays["policy/residuals"], 0.0, BEYOND)


def _check_policy(mdp: MDP, policy: Policy) -> None:
    """Refuse values that do not solve the process to within the last residual."""
    q = mdp.action_values(policy.v)
    rounding = 1e-12 / (1.0 - mdp.discount)
    allowed = float(policy.residuals[-1]) + rounding
    for name, away in (("q", q - policy.q), ("v", q.max(axis=1) - policy.v)):
        off = float(np.abs(away).max())
        if off > allowed:
            raise ValueError(
                f"policy/{name} is off by {off:.2g} from what mdp/counts and policy/v give, "
                f"expected by at most {allowed:.2g}, the last of policy/residuals"
            )


def _together(
    problem: Problem,
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    runs: Mapping[str, NDArray[Any]] | None,
) -> Knowledge:
    """Put what was learned together."""
    states = StateSpace(arrays["states/centroids"], problem.tolerance, description["squared"])
    q, v = arrays["policy/q"], arrays["policy/v"]
    n = len(v)
    failed = n == states.n_states + 1
    if n not in (states.n_states, states.n_states + 1) or q.shape != (n, problem.n_actions):
        raise ValueError(
            f"policy/q has shape {q.shape} and policy/v {v.shape}, expected a row for each of "
            f"{states.n_states} states, with or without one for failed runs, and "
            f"{problem.n_actions} actions"
        )
    starts: Starts = None
    if runs is not None:
        starts = Experience.from_arrays(problem, runs)
    elif description["initializer"]:
        starts = Initializer.from_arrays(_named(arrays, "initializer/"), problem)
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
    _check_policy(mdp, policy)
    return states, mdp, policy, starts
