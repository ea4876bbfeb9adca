"""Settings with which agents learn, the same for all of them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from vitolab.asked import checked_chance, checked_count

#: Which runs give start candidates.
Start = Literal["data-driven", "nearest"]
#: Forward runs allowed for each parameter by default: the paper's (section 3.3.3).
RUNS_PER_PARAMETER = 50
#: Chance to meet all measurements below which a patient is ended who is personalised after others,
#: unless another is asked for.
GIVE_UP = 1e-3


@dataclass(frozen=True)
class Settings:
    """Settings of agents; each reads what concerns it.

    Attributes
    ----------
    n_states : int, optional
        Number of representative states, also of clusters for the initialisation. Agents with
        states need it; `vitolab.agent.ContinuousVito` has none and ignores it.
    n_replays : int, optional
        Replays of each walk in hindsight, see `vitolab.agent.hindsight`; by default those of the
        method: the paper has none.
    initialize : bool
        Whether start candidates are learned from the outputs (section 2.5, Appendix B).
    start : {"data-driven", "nearest"}
        What they are: those of the cluster of runs nearest to a patient's measurements, as in the
        paper, or the stored runs nearest to these, see `vitolab.experience.Experience.near`.
    squared : bool
        Whether distances divide by ψ² instead of ψ, see `vitolab.states.StateSpace`.
    discount, epsilon : float
        See `vitolab.mdp.MDP` and `vitolab.mdp.Policy`; the threshold of the stochastic policy is
        the paper's 4/5.
    heed_failures : bool
        Count transitions into failed runs as leading to a state of their own, worth a run and a
        fresh start, so that the policy keeps away from where the model fails; otherwise they are
        left out. Without such transitions there is no such state.
    give_up : float
        Chance to meet all measurements below which an agent with continuous actions ends a patient,
        from 0 (never) to below 1; see `vitolab.agent.ContinuousVito`.
    deterministic, restart : bool
        How the agent acts, see `vitolab.agent.Vito`.
    recurrences : int
        The recurrence of a parameter vector at which an agent with states starts afresh: the first
        in the paper (section 2.6).

    Raises
    ------
    ValueError
        If the start is none of those named, or a number is out of range.

    Examples
    --------
    >>> import vitolab as vl
    >>> problem = vl.models.rosenbrock.problem()
    >>> patient, *others = vl.models.rosenbrock.cohort(4)
    >>> walks = vl.explore(problem, others, n_episodes=2, n_steps=20, seed=0)
    >>> settings = vl.Settings(n_states=20, discount=0.95)
    >>> agents = [a.learn(problem, walks, settings=settings) for a in (vl.Vito, vl.ContinuousVito)]
    >>> agents[0].mdp.discount
    0.95
    """

    n_states: int | None = None
    n_replays: int | None = None
    initialize: bool = True
    start: Start = "data-driven"
    squared: bool = False
    discount: float = 0.99
    epsilon: float = 0.8
    heed_failures: bool = True
    give_up: float = 0.0
    deterministic: bool = False
    restart: bool = True
    recurrences: int = 1

    def __post_init__(self) -> None:
        checked_chance("give_up", self.give_up)
        checked_chance("epsilon", self.epsilon, certain=True)
        checked_count("recurrences", self.recurrences)
        if self.start not in get_args(Start):
            known = " or ".join(get_args(Start))
            raise ValueError(f"start is {self.start!r:.60}, expected {known}")


def chosen(settings: Settings | None, n_states: int | None, changes: dict[str, Any]) -> Settings:
    """Settings given as an object, as keyword arguments, or both: keywords take precedence.

    Raises
    ------
    TypeError
        If a keyword is no setting.
    """
    known = [f.name for f in fields(Settings)]
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise TypeError(f"learn: {unknown[0]} is no setting, expected some of {', '.join(known)}")
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"learn: settings is {settings!r:.60}, expected Settings")
    if n_states is not None:
        changes = changes | {"n_states": n_states}
    return replace(Settings() if settings is None else settings, **changes)
