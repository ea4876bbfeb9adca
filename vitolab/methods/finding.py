"""Methods by name: what they are called, and how they are built or learned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from vitolab.guard import Unlearned, attempted
from vitolab.methods.table import AGENTS, METHODS, REFERENCES, Method
from vitolab.methods.training import Training
from vitolab.settings import Settings

if TYPE_CHECKING:
    from vitolab.fit import Personalizer
    from vitolab.methods.training import Runs
    from vitolab.problem import Problem


def label(name: str) -> str:
    """Name of a method in words; of one that is not in the table its identifier."""
    method = METHODS.get(name)
    return name if method is None else method.label or name


def title(name: str) -> str:
    """Longer name of a method, for legends; see `label`."""
    method = METHODS.get(name)
    return name if method is None else method.title or label(name)


def is_agent(name: str) -> bool:
    """Whether a method acts on what it learned from walks."""
    return name in AGENTS


def learns_states(name: str) -> bool:
    """Whether a method is an agent that learns values of states."""
    method = METHODS.get(name)
    return method is not None and method.training is not None and method.training.has_states


def references(problem: Problem | None = None) -> tuple[str, ...]:
    """Names of the reference methods that apply to a problem, or to any problem."""
    rows = [METHODS[name] for name in REFERENCES]
    if problem is None:
        return tuple(row.name for row in rows if not row.needs)
    return tuple(row.name for row in rows if row.applies_to(problem))


def find(name: str, among: Iterable[str] = METHODS) -> Method:
    """Method of a name.

    Raises
    ------
    ValueError
        If it is not among the names that are expected.
    CannotRun
        If it needs an extra that is missing.
    """
    known = tuple(among)
    if name not in known:
        raise ValueError(f"method is {name!r}, expected one of {', '.join(known)}")
    check_installed([name])
    return METHODS[name]


def check_installed(names: Iterable[str]) -> None:
    """Refuse methods that need an extra that is missing; names of no method are passed over.

    Raises
    ------
    CannotRun
        With one sentence that says what to install.
    """
    for name in names:
        if name in METHODS:
            METHODS[name].check()


def check_agents(names: Sequence[str], what: str = "methods") -> None:
    """Refuse an empty selection of agents, names that are no agents, and what is not installed.

    Raises
    ------
    ValueError
    CannotRun
        If one needs an extra that is missing.
    """
    if not names or not set(names).issubset(AGENTS):
        raise ValueError(f"{what} are {list(names)}, expected some of {', '.join(AGENTS)}")
    check_installed(names)


def build(name: str, problem: Problem) -> Personalizer:
    """Reference method of a name, for a problem.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    make = find(name, REFERENCES).build
    assert make is not None
    return make(problem)


def by_training(names: Sequence[str]) -> dict[Training, tuple[str, ...]]:
    """Agents by how they learn, in the order of the table.

    Raises
    ------
    ValueError
        If there is none, or a name is no agent.
    """
    check_agents(names)
    found: dict[Training, tuple[str, ...]] = {}
    for name in AGENTS:
        training = METHODS[name].training
        if name in names and training is not None:
            found[training] = (*found.get(training, ()), name)
    return found


def learn(
    names: Sequence[str],
    problem: Problem,
    walks: Runs,
    seed: int,
    settings: Settings | None = None,
) -> dict[str, Personalizer]:
    """Agents by name, learned from walks; those that learn alike share one learning.

    Parameters
    ----------
    names : sequence of str
        Names in `AGENTS`.
    problem : Problem
        With the objectives that were measured; see `Problem.observed`.
    walks : Trajectories or Experience
        Training walks; runs do, too, for agents without states. For leave-one-out they hold
        nothing of the patient; see `vitolab.validation.parts.training`.
    seed : int
    settings : Settings, optional

    Returns
    -------
    dict of str to Personalizer
        In the order of the table.

    Raises
    ------
    ValueError
        If a name is no agent. An error of the learning itself is raised when the agent is asked to
        personalise, so that `vitolab.guard.personalized` records it for that patient.
    """
    settings = Settings() if settings is None else settings
    agents: dict[str, Personalizer] = {}
    for training, acting in by_training(names).items():
        learned = attempted(partial(training.learn, problem, walks, seed, settings))
        for name in acting:
            failed = isinstance(learned, Unlearned)
            agents[name] = learned if failed else METHODS[name].act(learned)
    return agents


def n_states_used(agent: Personalizer) -> int | None:
    """Number of states of an agent; None if it has none."""
    states = getattr(agent, "states", None)
    return None if states is None else int(states.n_states)
