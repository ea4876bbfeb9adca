"""Each forward run of a personalisation as a sentence: what was done, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.fit import REASONS
from vitolab.problem import Problem
from vitolab.store.policies import Knowledge, read_knowledge


def action_names(problem: Problem) -> list[str]:
    """What each action of a problem does, in words."""
    return [signed(problem.describe_action(a)) for a in range(problem.n_actions)]


def signed(words: str) -> str:
    """Words whose negative numbers have a sign as wide as the plus; hyphens stay."""
    return re.sub(r"(?<![\w-])-(?=\d)", "−", words)


def knowledge(arrays: Mapping[str, NDArray[Any]], setup: str, problem: Problem) -> Knowledge | None:
    """Policy of a setup in the arrays of a run, with its visits; None if there is none that fits.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    setup : str
        One that differs by ``, restart`` alone has the same policy.
    problem : Problem
    """
    for name in dict.fromkeys((setup, setup.removesuffix(", restart"))):
        try:
            known = read_knowledge(arrays, name, problem)
        except ValueError:
            continue
        if known.visits is not None:
            return known
    return None


def because(known: Knowledge, c: NDArray[np.float64], action: int, names: list[str]) -> str:
    """Why an action is taken at misfits c, shape (n_objectives,), by a policy.

    Parameters
    ----------
    known : Knowledge
    c : ndarray
    action : int
    names : list of str
        See `action_names`.
    """
    state = int(known.states.quantize(c[np.newaxis])[0])
    q = known.policy.q[state]
    chance = known.policy.probabilities[state]
    order = np.argsort(-q, kind="stable")
    best = int(order[0])
    candidates = int(np.count_nonzero(chance))
    seen = 0 if known.visits is None else int(known.visits[state, action])
    if q.max() - q.min() <= 1e-6 * abs(float(q.max())):
        return f"in state {state} all actions seem equally good, and one is drawn at random"
    text = f"in state {state} it is {'worth' if seen else 'taken to be worth'} {q[action]:.2f}"
    equals = int(np.count_nonzero(np.abs(q - q[best]) < 0.005)) - 1
    if q[action] > q[best] - 0.005:
        other = int(order[1]) if best == action else best
        text += ", no action there is worth more"
        text += f" ({equals} other{'' if equals == 1 else 's'} as much)" if equals else ""
        text += "" if equals else f" (next best: {names[other]}, {q[other]:.2f})"
    else:
        text += f", the best action there is {names[best]}, worth {q[best]:.2f}"
    if chance[action] > 0:
        share = f"one of {candidates} candidates, drawn in {100 * chance[action]:.0f} % of cases"
        text += f"; it is {'the only candidate' if candidates == 1 else share}"
    else:
        text += "; this policy would have discarded it"
    often = f"seen {seen} time{'' if seen == 1 else 's'}" if seen else "never tried there"
    return signed(f"{text}; {often} in training")


def has_reasons(trace: pd.DataFrame) -> bool:
    """Whether the agent that acted left its reasons in a trace."""
    return {f"why:{name}" for name in REASONS} <= set(trace.columns)


def acted(state: int, why: Mapping[str, float], names: list[str]) -> str:
    """Why the agent took an action, by its own values.

    Parameters
    ----------
    state : int
        In which it was.
    why : mapping of str to float
        See `vitolab.trajectories.REASONS`.
    names : list of str
        See `action_names`.
    """
    candidates, seen, draws = int(why["candidates"]), int(why["seen"]), why["chance"] < 1.0
    q, best = why["q"], why["q_best"]
    if candidates == len(names) and q == best:
        taken = "one is drawn at random" if draws else "the first is taken"
        return f"in state {state} all actions seem equally good, and {taken}"
    digits = 2 if q == best or f"{q:.2f}" != f"{best:.2f}" else 5
    text = f"in state {state} it is {'worth' if seen else 'taken to be worth'} {q:.{digits}f}"
    if q >= best:
        text += ", no action there is worth more"
    else:
        text += f", the best action there is {names[int(why['best'])]}, worth {best:.{digits}f}"
    if candidates == 1:
        text += "; it is the only candidate"
    elif draws:
        text += f"; it is one of {candidates} candidates, drawn in {100 * why['chance']:.0f} % of "
        text += "cases"
    else:
        text += f"; of {candidates} candidates this agent always takes the best"
    often = f"seen {seen} time{'' if seen == 1 else 's'}" if seen else "never tried there"
    return signed(f"{text}; {often} in training")


def sentences(trace: pd.DataFrame, problem: Problem, known: Knowledge | None = None) -> list[str]:
    """One sentence for each forward run of a trace, in its order.

    Parameters
    ----------
    trace : DataFrame
        Rows of one personalisation, by iteration.
    problem : Problem
    known : Knowledge, optional
        Explains the actions where the agent that acted left no reasons; without it, such actions
        are named, but not explained.

    Returns
    -------
    list of str
    """
    names = action_names(problem)
    reasons: list[dict[Any, Any]] = [{}] * len(trace)
    if has_reasons(trace):
        own = trace[[f"why:{name}" for name in REASONS]]
        reasons = own.rename(columns=lambda name: str(name)[4:]).to_dict("records")
    states = trace["state"].to_numpy()
    c = trace[[f"c:{o.name}" for o in problem.objectives]].to_numpy(float)
    tolerance = problem.tolerance
    actions = trace["action"].to_numpy()
    has_states = bool((trace["state"] >= 0).any())
    expected = _expected(trace, problem)
    text = []
    for t, event in enumerate(trace["event"]):
        failed = not np.isfinite(c[t]).all()
        action = int(actions[t])
        if t == 0:
            words = "the start"
        elif event == "restart" or (event == "failed" and action < 0 and has_states):
            words = (
                f"a fresh start, because {_restarted(c[t - 1], has_states, expected is not None)}"
            )
        elif action >= 0:
            words = names[action] if action < len(names) else f"action {action}"
            if action < len(names) and np.isfinite(reasons[t].get("q", np.nan)):
                words += f", because {acted(int(states[t - 1]), reasons[t], names)}"
            elif known is not None and action < len(names):
                words += f", because {because(known, c[t - 1], action, names)}"
        else:
            words = "chosen by the optimiser" if expected is None else "a step on the local model"
        if expected is not None and np.isfinite(expected[t]).all():
            words += _expecting(expected[t], c[t] / tolerance)
        end = ". The model gave no answer." if failed else "."
        if not failed and np.all(np.abs(c[t]) < tolerance):
            end = ". Every misfit is within its tolerance: solved."
        text.append(f"Run {t + 1}: {words}{end}")
    return text


def _expected(trace: pd.DataFrame, problem: Problem) -> NDArray[np.float64] | None:
    """Misfits that a method expected of each run, in tolerances; None if it expects nothing."""
    columns = [f"e:{o.name}" for o in problem.objectives]
    if not set(columns) <= set(trace.columns):
        return None
    tolerance = problem.tolerance
    expected: NDArray[np.float64] = trace[columns].to_numpy(float) / tolerance
    return expected if np.isfinite(expected).any() else None


def _expecting(expected: NDArray[np.float64], found: NDArray[np.float64]) -> str:
    """What was expected of a run, beside what it found."""
    words = f"; it expected a worst misfit of {np.abs(expected).max():.2f} tolerances"
    if np.isfinite(found).all():
        words += f" and found {np.abs(found).max():.2f}"
    return words


def _restarted(before: NDArray[np.float64], has_states: bool, has_model: bool) -> str:
    """Why a method restarted after a run."""
    if not np.isfinite(before).all():
        return "the model gave no answer in the run before"
    if has_states:
        return "the next action would have led back to parameters tried before"
    if has_model:
        return "no step on the local model led further"
    return "the optimiser had come to its end without a solution"


def state_words(trace: pd.DataFrame) -> str:
    """The sequence of states in words, repeats drawn together."""
    states = trace["state"].to_numpy()
    events = trace["event"].to_numpy()
    parts: list[tuple[int, int, bool]] = []
    for state, event in zip(states, events, strict=True):
        if state < 0 and event != "failed":
            return ""
        if parts and parts[-1][0] == state and event != "restart":
            parts[-1] = (state, parts[-1][1] + 1, parts[-1][2])
        else:
            parts.append((int(state), 1, event == "restart"))
    words = []
    for state, n, restarted in parts:
        name = "failed" if state < 0 else "0 (success)" if state == 0 else str(state)
        words.append(("⟲ " if restarted else "") + name + (f" ×{n}" if n > 1 else ""))
    if len(words) > 60:
        words = [*words[:30], f"… {len(words) - 50} more …", *words[-20:]]
    return " → ".join(words)
