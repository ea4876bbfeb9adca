"""What an agent has learned, as a run stored it: states, values, actions, transitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab import studies
from vitolab.explain import action_names
from vitolab.mdp import MDP, Policy
from vitolab.problem import Patient, Problem
from vitolab.states import StateSpace
from vitolab.store.policies import read_knowledge
from vitolab.store.problems import as_stored
from vitolab.store.records import ProblemRecord

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
#: Studies whose runs hold a policy, and `vitolab personalize`.
STUDIES = (*(study.name for study in studies.STUDIES if study.policy), "personalize")
#: Points along each axis of parameter space at which the policy is asked.
TICKS = 21


@dataclass(frozen=True)
class Learned:
    """The policy of one setup, learned from all patients of its run.

    Attributes
    ----------
    setup : str
    problem : Problem
        As stored; it cannot simulate.
    states : StateSpace
    policy : Policy
        Of those states, with the threshold that all studies use; a run does not store it.
    visits : ndarray of int, shape (n_states, n_actions), or None
    mdp : MDP or None
        Transitions; None where the run did not store them.
    failed : float or None
        Value of the further state that stands for failed runs; None where there is none.
    """

    setup: str
    problem: Problem
    states: StateSpace
    policy: Policy
    visits: IntArray | None
    mdp: MDP | None
    failed: float | None = None

    @property
    def actions(self) -> list[str]:
        """The actions in words."""
        return action_names(self.problem)

    @cached_property
    def rounds(self) -> dict[str, FloatArray]:
        """Bellman residuals of the solution, and of value iteration from the transitions."""
        told = {}
        if self.mdp is not None:
            try:
                again = self.mdp.solve("value-iteration")
            except RuntimeError:
                again = None
            # a run does not store its discount: only where the usual one gives the stored values
            if again is not None and np.allclose(
                again.v[: self.states.n_states], self.policy.v, rtol=1e-4, atol=1e-4
            ):
                told["value iteration"] = again.residuals
        if len(self.policy.residuals):
            told["modified policy iteration, as stored"] = self.policy.residuals
        return told


def learned(
    arrays: Mapping[str, NDArray[Any]], problems: Mapping[str, ProblemRecord], setup: str
) -> Learned:
    """Put the stored arrays of a setup together.

    Raises
    ------
    ValueError
        If an array is missing, or they do not fit together.
    """
    if setup not in problems:
        raise ValueError(f"the run describes no problem of the setup {setup!r}")
    problem = as_stored(problems[setup])
    known = read_knowledge(arrays, setup, problem)
    return Learned(
        *(setup, problem, known.states, known.policy),
        *(known.visits, known.mdp, known.failed),
    )


def _round(values: FloatArray) -> FloatArray:
    """Values as tables show them; no negative zero."""
    rounded: FloatArray = np.round(values, 4) + 0.0
    return rounded


def units(problem: Problem) -> list[str]:
    """Names of the objectives with their units."""
    return [f"{o.label} [{o.unit}]" if o.unit else o.label for o in problem.objectives]


def state_table(known: Learned) -> pd.DataFrame:
    """All states: misfits, value, visits, best action; the most visited first."""
    table = pd.DataFrame({"state": np.arange(known.states.n_states)})
    for name, column in zip(units(known.problem), known.states.centroids.T, strict=True):
        table[f"misfit {name}"] = _round(column)
    table["value"] = known.policy.v.round(3)
    if known.visits is not None:
        table["times seen"] = known.visits.sum(axis=1)
    actions = np.array(known.actions, dtype=object)[known.policy.greedy]
    table["best action"] = np.where(table["state"] == 0, "success: nothing to do", actions)
    if known.visits is not None:
        table = table.sort_values("times seen", ascending=False, kind="stable")
    return table.reset_index(drop=True)


def state_name(known: Learned, state: int) -> str:
    """Number of a state, or what the one beyond all others stands for."""
    return "failed run" if state == known.states.n_states else str(state)


def action_table(known: Learned, state: int) -> pd.DataFrame:
    """The actions of a state, best first: value, probability, visits, where they lead."""
    q = known.policy.q[state]
    table = pd.DataFrame(
        {
            "action": known.actions,
            "Q": q.round(4),
            "normalised": known.policy.normalised[state].round(3),
            "drawn [%]": (100.0 * known.policy.probabilities[state]).round(1),
        }
    )
    if known.visits is not None:
        table["times seen"] = known.visits[state]
    if known.mdp is not None:
        told = [successors(known, state, action) for action in range(len(q))]
        table["to success [%]"] = [t.loc[t["state"] == 0, "probability"].sum() for t in told]
        table["to success [%]"] = (100.0 * table["to success [%]"]).round(1)
        if known.failed is not None:
            failed = [t.loc[t["state"] == known.states.n_states, "probability"].sum() for t in told]
            table["to a failed run [%]"] = (100.0 * np.array(failed)).round(1)
        table["most often to state"] = [
            state_name(known, int(t["state"].iloc[0])) if len(t) else "never seen" for t in told
        ]
    return table.iloc[np.argsort(-q, kind="stable")].reset_index(drop=True)


def successors(known: Learned, state: int, action: int) -> pd.DataFrame:
    """States that an action was seen to lead to, most often first.

    Returns
    -------
    DataFrame
        Columns ``state``, ``probability``, ``seen`` and the misfits, NaN for failed runs; empty
        where the action was never seen in that state, or transitions are not stored.
    """
    if known.mdp is None:
        return pd.DataFrame({"state": [], "probability": [], "seen": []})
    row = state * known.problem.n_actions + action
    where = slice(int(known.mdp.start[row]), int(known.mdp.start[row + 1]))
    target, seen = known.mdp.successor[where], known.mdp.counts[where]
    order = np.lexsort((target, -seen))
    target, seen = target[order], seen[order]
    table = pd.DataFrame({"state": target, "probability": seen / max(1, seen.sum()), "seen": seen})
    for name, column in zip(units(known.problem), _places(known)[target].T, strict=True):
        table[f"misfit {name}"] = _round(column)
    return table


def _places(known: Learned) -> FloatArray:
    """Misfits that each state stands for, NaN for failed runs: shape (n_states + 1, ...)."""
    return np.vstack([known.states.centroids, np.full(known.problem.n_objectives, np.nan)])


def drift(known: Learned) -> FloatArray | None:
    """Where the best action of each state leads on average, shape (n_states, n_objectives).

    Failed runs lead nowhere. NaN where it was never seen; None where transitions are not stored.
    """
    mdp = known.mdp
    if mdp is None:
        return None
    ends = np.full(known.states.centroids.shape, np.nan)
    for state, action in enumerate(known.policy.greedy):
        row = state * mdp.n_actions + int(action)
        where = slice(int(mdp.start[row]), int(mdp.start[row + 1]))
        worked = mdp.successor[where] < known.states.n_states
        target, seen = mdp.successor[where][worked], mdp.counts[where][worked]
        if state and seen.sum():
            ends[state] = seen @ known.states.centroids[target] / seen.sum()
    return ends


def told(known: Learned, state: int) -> str:
    """What a state is, and what is done there, in sentences."""
    psi = known.states.tolerance
    misfits = [
        f"{name} {_round(c):+.3g} ({_round(c / t):+.1f} tolerances)"
        for name, c, t in zip(units(known.problem), known.states.centroids[state], psi, strict=True)
    ]
    if state == 0:
        return "State 0 is success: every misfit is within its tolerance, there is nothing to do."
    candidates = int((known.policy.probabilities[state] > 0).sum())
    lines = [
        f"State {state} stands for misfits of {'; '.join(misfits)}.",
        f"Its value is {known.policy.v[state]:.2f}: every run without success costs 1, discounted.",
        f"{candidates} of {known.problem.n_actions} actions are candidates; best is "
        f"{known.actions[int(known.policy.greedy[state])]}. Candidates have a normalised value of "
        f"at least {known.policy.epsilon:g}.",
    ]
    if known.visits is None:
        lines.append("How often its actions were seen is not stored with this run.")
    else:
        seen = known.visits[state]
        lines.append(
            f"It was left {int(seen.sum()):,} times while learning, by {int((seen > 0).sum())} of "
            f"{known.problem.n_actions} actions."
        )
    if known.mdp is None:
        lines.append("Where transitions lead is not stored with this run.")
    return "\n".join(lines)


def over_parameters(
    known: Learned, patients: pd.DataFrame, patient: str
) -> tuple[FloatArray, IntArray, FloatArray, str]:
    """Best action over the parameter space of a Rosenbrock function; closed form, a few ms.

    Returns
    -------
    points : ndarray, shape (n, 2)
    steps : ndarray of int, shape (n, 2)
    optimum : ndarray, shape (2,)
    patient : str
        The one that is shown; the first if there is none of that name.

    Raises
    ------
    ValueError
        If the problem is another, or the function is not stored.
    """
    from vitolab.models import rosenbrock

    if known.problem.name != "rosenbrock":
        raise ValueError(
            "Over parameter space the policy is drawn for Rosenbrock functions only: for other "
            "models it takes many forward runs of one patient, and none are stored."
        )
    model = rosenbrock.MODEL.current(known.problem)
    if model is None or model.version != known.problem.version:
        raise ValueError("Over parameter space it is not drawn: the model changed since this run.")
    rows = patients[
        (patients["setup"] == known.setup) | (patients["setup"] == patients["setup"][0])
    ]
    if "data:alpha" not in rows or rows["data:alpha"].isna().all():
        raise ValueError("Over parameter space it is not drawn: the run stored no function.")
    rows = rows.dropna(subset=["data:alpha"]).drop_duplicates("patient").set_index("patient")
    name = patient if patient in rows.index else str(rows.index[0])
    function = Patient(name, {"t1": 0.0, "t2": 0.0}, {"alpha": float(rows.loc[name, "data:alpha"])})
    low, high = model.lower, model.upper
    ticks = [np.linspace(a, b, TICKS + 2)[1:-1] for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
    c = model.misfit(model.simulate(points, function), model.measured(function))
    state = known.states.quantize(c)
    steps = np.where(state[:, None] > 0, model.actions[known.policy.greedy[state]], 0)
    return points, steps, rosenbrock.optimum(function), name
