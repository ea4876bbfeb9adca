"""The methods that personalise: one table, which studies, figures and the command line read.

A method is an *agent*, which acts on what it learned from walks: Vito, and the *opponents* that a
user with the same walks would build; a *reference*, which learns nothing; or a *start*, a single
forward run. Adding one touches this table and the module that implements it. Modules are
imported when a method is built, so that names, labels and colours cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vitolab.guard import Unlearned, attempted
from vitolab.settings import Settings as Settings

if TYPE_CHECKING:
    from vitolab.agent import ContinuousVito, Vito
    from vitolab.experience import Experience
    from vitolab.fit import Personalizer
    from vitolab.problem import Problem
    from vitolab.trajectories import Trajectories

    # what methods learn from; agents with states need walks
    Runs = Trajectories | Experience

#: Name of the paper's agent: drawn actions, representative states (sections 2.2 to 2.5).
PAPER = "vito"
#: Name of the agent that can begin without walks.
CONTINUOUS_AGENT = "vito-continuous"
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


def _hindsight(problem: Problem, walks: Trajectories, seed: int, settings: Settings) -> Vito:
    replays = HINDSIGHT_REPLAYS if settings.n_replays is None else settings.n_replays
    return _vito(replays, problem, walks, seed, settings)


def _continuous(problem: Problem, walks: Runs, seed: int, settings: Settings) -> ContinuousVito:
    from vitolab.agent import ContinuousVito

    return ContinuousVito.learn(problem, walks, seed=seed, settings=settings)


def _owning(
    kind: str, problem: Problem, walks: Runs, seed: int, _settings: Settings
) -> Personalizer:
    opponents = import_module("vitolab.reference.opponents")
    learned: Personalizer = getattr(opponents, kind).learn(problem, walks, seed)
    return learned


def _opponent(kind: str) -> Training:
    """Opponent of a class of `vitolab.reference.opponents`, none of which has settings."""
    return Training(partial(_owning, kind), has_states=False, episode=1)


#: The paper's agent (sections 2.2 to 2.5).
POLICY = Training(_policy)
#: The same from walks that count again, relabelled with misfits that they reached.
HINDSIGHT = Training(_hindsight, has_replays=True)
#: Continuous actions on a learned model of the outputs: no states, and walks of one step.
CONTINUOUS = Training(_continuous, has_states=False, episode=1)


def _itself(learned: Any) -> Personalizer:
    return learned  # type: ignore[no-any-return]


def _deterministic(learned: Vito) -> Personalizer:
    return learned.acting(deterministic=True)


def _built(kind: str, settings: Mapping[str, Any], problem: Problem) -> Personalizer:
    optimiser: Personalizer = getattr(import_module("vitolab.reference"), kind)(problem, **settings)
    return optimiser


def _optimiser(kind: str, **settings: Any) -> Callable[[Problem], Personalizer]:
    """Reference optimiser of a class of `vitolab.reference`."""
    return partial(_built, kind, settings)


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes
    ----------
    name : str
        As in stored tables and on the command line.
    color : str
        Told apart by colour-blind readers (Okabe and Ito 2008).
    label : str
        Name in words; the identifier itself where none is given.
    title : str
        Longer name, for legends of figures about agents; the label where none is given.
    training : Training, optional
        How an agent learns; methods that share it act after one learning.
    act : callable
        The agent of this method, given what was learned.
    build : callable, optional
        ``build(problem)`` gives a reference method.
    needs : tuple of str
        Names of the parameters and objectives without which the method does not apply.
    begins : bool
        Whether it can act without any run to learn from.
    """

    name: str
    color: str
    label: str = ""
    title: str = ""
    training: Training | None = None
    act: Callable[[Any], Personalizer] = _itself
    build: Callable[[Problem], Personalizer] | None = None
    needs: tuple[str, ...] = ()
    begins: bool = False

    def applies_to(self, problem: Problem) -> bool:
        """Whether the problem has the parameters and objectives that the method needs."""
        known = {p.name for p in problem.parameters} | {o.name for o in problem.objectives}
        return known.issuperset(self.needs)


# The stages of a cascade name parameters and objectives of electrophysiology (section 3.2.3).
_STAGES = ("v_myo", "v_lv", "v_rv", "qrs_duration", "electrical_axis")

#: All methods by name, in the order of tables and legends.
METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method("fixed", "#882255", "fixed start only"),
        Method("fixed-default", "#AA4499", "default values only"),
        Method("vito-initial", "#DDCC77", "data-driven start only"),
        Method(PAPER, "#0072B2", title="vito: the paper's agent", training=POLICY),
        Method("vito-deterministic", "#56B4E9", training=POLICY, act=_deterministic),
        Method("vito-hindsight", "#CC79A7", title="vito, with hindsight", training=HINDSIGHT),
        Method(
            CONTINUOUS_AGENT,
            "#000000",
            title="vito, continuous actions",
            training=CONTINUOUS,
            begins=True,
        ),
        Method(
            "least-squares-nearest",
            "#66C2A5",
            "least squares from stored runs",
            training=_opponent("NearestLeastSquares"),
        ),
        Method("quadratic", "#E78AC3", "quadratic emulator", training=_opponent("Quadratic")),
        Method(
            "gp-emulator", "#332288", "Gaussian-process emulator", training=_opponent("Gaussian")
        ),
        Method("correlation", "#A6761D", "correlation matrix", training=_opponent("Correlation")),
        Method("bobyqa-simple", "#999999", "BOBYQA simple", build=_optimiser("BobyqaSimple")),
        Method(
            "bobyqa-cascade",
            "#B8A800",
            "BOBYQA cascade, capped",
            build=_optimiser("BobyqaCascade"),
            needs=_STAGES,
        ),
        Method(
            "bobyqa-cascade-stable",
            "#6B5B00",
            "BOBYQA cascade, until stable",
            build=_optimiser("BobyqaCascade", until_stable=True),
            needs=_STAGES,
        ),
        Method("nelder-mead", "#D55E00", build=_optimiser("NelderMead")),
        Method("nelder-mead-unweighted", "#E69F00", build=_optimiser("NelderMead", weighted=False)),
        Method("nelder-mead-wide", "#8C510A", build=_optimiser("NelderMead", width=0.1)),
        Method("least-squares", "#009E73", build=_optimiser("LeastSquares")),
        Method(
            "least-squares-multistart",
            "#00523C",
            build=_optimiser("LeastSquares", multistart=True),
        ),
        Method(
            "least-squares-default",
            "#7FBC41",
            "least squares from the default values",
            build=_optimiser("LeastSquares", multistart=True, from_default=True),
        ),
    )
}
#: Names of the methods that learn from walks, and of those that learn nothing.
AGENTS = tuple(name for name, method in METHODS.items() if method.training is not None)
REFERENCES = tuple(name for name, method in METHODS.items() if method.build is not None)


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
    """
    known = tuple(among)
    if name not in known:
        raise ValueError(f"method is {name!r}, expected one of {', '.join(known)}")
    return METHODS[name]


def check_agents(names: Sequence[str], what: str = "methods") -> None:
    """Refuse an empty selection of agents, and names that are no agents.

    Raises
    ------
    ValueError
    """
    if not names or not set(names).issubset(AGENTS):
        raise ValueError(f"{what} are {list(names)}, expected some of {', '.join(AGENTS)}")


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
    walks : Trajectories
        Training walks. For leave-one-out they hold nothing of the patient; see
        `vitolab.validation.training`.
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
