"""Ways to learn from walks, shared by the methods that act after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from vitolab.settings import Settings

if TYPE_CHECKING:
    from vitolab.agent import ContinuousVito, Vito
    from vitolab.experience import Experience
    from vitolab.fit import Personalizer
    from vitolab.problem import Problem
    from vitolab.trajectories import Trajectories

    # what methods learn from; agents with states need walks
    Runs = Trajectories | Experience

#: Transitions per episode of the training walks (section 2.3).
EPISODE = 100
#: Replays of each walk of the method that replays, unless settings name another number.
HINDSIGHT_REPLAYS = 5


@dataclass(frozen=True)
class Training:
    """One way to learn from walks, shared by the methods that act after it.

    Attributes
    ----------
    learn : callable
        ``learn(problem, walks, seed, settings)`` gives what was learned; from `Experience`, too,
        if it has no states.
    has_states, has_replays : bool
        Whether it needs a number of states, and replays walks in hindsight.
    episode : int
        Transitions per episode of the walks from which it learns most, for a given number of
        samples.
    """

    learn: Callable[[Problem, Any, int, Settings], Any]
    has_states: bool = True
    has_replays: bool = False
    episode: int = EPISODE


def _vito(n_replays: int, problem: Problem, walks: Trajectories, seed: int, own: Settings) -> Vito:
    from vitolab.agent import Vito, n_states_allowed

    if own.n_states is None:
        raise ValueError("n_states is missing, expected a number of states")
    allowed = n_states_allowed(own.n_states, problem, walks)
    return Vito.learn(problem, walks, allowed, seed, settings=own, n_replays=n_replays)


def _policy(problem: Problem, walks: Trajectories, seed: int, settings: Settings) -> Vito:
    return _vito(0, problem, walks, seed, settings)


def _nearest(problem: Problem, walks: Trajectories, seed: int, settings: Settings) -> Vito:
    return _vito(0, problem, walks, seed, replace(settings, start="nearest"))


def _hindsight(problem: Problem, walks: Trajectories, seed: int, settings: Settings) -> Vito:
    replays = HINDSIGHT_REPLAYS if settings.n_replays is None else settings.n_replays
    return _vito(replays, problem, walks, seed, settings)


def _continuous(problem: Problem, walks: Runs, seed: int, settings: Settings) -> ContinuousVito:
    from vitolab.agent import ContinuousVito

    return ContinuousVito.learn(problem, walks, seed=seed, settings=settings)


def _owning(
    kind: str, problem: Problem, walks: Runs, seed: int, _settings: Settings
) -> Personalizer:
    from vitolab.reference import opponents  # by statement: a study's version follows imports

    learned: Personalizer = getattr(opponents, kind).learn(problem, walks, seed=seed)
    return learned


def opponent(kind: str) -> Training:
    """Opponent of a class of `vitolab.reference.opponents`, none of which has settings."""
    return Training(partial(_owning, kind), has_states=False, episode=1)


#: The paper's agent (sections 2.2 to 2.5).
POLICY = Training(_policy)
#: The same, which keeps the runs of the walks instead of their clusters, and starts at them.
NEAREST = Training(_nearest)
#: The paper's from walks that count again, relabelled with misfits that they reached.
HINDSIGHT = Training(_hindsight, has_replays=True)
#: Continuous actions on a learned model of the outputs: no states, and walks of one step.
CONTINUOUS = Training(_continuous, has_states=False, episode=1)
