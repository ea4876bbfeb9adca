"""The methods that personalise: one table, which studies, figures and the command line read.

A method is an *agent*, which acts on what it learned from walks: Vito, and the *opponents* that a
user with the same walks would build; a *reference*, which learns nothing; or a *start*, a single
forward run. Adding one touches this table, the module that implements it, and the names of its
package. Modules are imported when a method is built: names, labels and colours cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from vitolab.methods.training import (
    CONTINUOUS,
    HINDSIGHT,
    NEAREST,
    POLICY,
    Training,
    opponent,
)

if TYPE_CHECKING:
    from vitolab.agent import Vito
    from vitolab.fit import Personalizer
    from vitolab.problem import Problem

#: Name of the paper's agent: drawn actions, representative states (sections 2.2 to 2.5).
PAPER = "vito"
#: Name of the agent that can begin without walks.
CONTINUOUS_AGENT = "vito-continuous"


def _itself(learned: Personalizer) -> Personalizer:
    return learned


def _deterministic(learned: Vito) -> Personalizer:
    return learned.acting(deterministic=True)


def _built(kind: str, settings: Mapping[str, Any], problem: Problem) -> Personalizer:
    from vitolab import reference  # by statement: a study's version follows imports

    optimiser: Personalizer = getattr(reference, kind)(problem, **settings)
    return optimiser


def _nothing() -> None:
    """Need nothing but the package."""


def _needs_sbi() -> None:
    from vitolab.reference.opponents.flow import check_installed

    check_installed()


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
    keeps_to_budget : bool
        Whether it ends when the forward runs allowed are made.
    begins : bool
        Whether it can act without any run to learn from.
    check : callable
        Raises `vitolab.failures.CannotRun` where an extra that the method needs is missing.
    one_start : bool
        Whether there is nothing random about it: where others have random starts, it has one.
    """

    name: str
    color: str
    label: str = ""
    title: str = ""
    training: Training | None = None
    act: Callable[[Any], Personalizer] = _itself
    build: Callable[[Problem], Personalizer] | None = None
    needs: tuple[str, ...] = ()
    keeps_to_budget: bool = True
    begins: bool = False
    check: Callable[[], None] = _nothing
    one_start: bool = False

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
        Method("vito-nearest", "#44AA99", title="vito, from stored runs", training=NEAREST),
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
            training=opponent("NearestLeastSquares"),
        ),
        Method("quadratic", "#661100", "quadratic emulator", training=opponent("Quadratic")),
        Method(
            "gp-emulator", "#332288", "Gaussian-process emulator", training=opponent("Gaussian")
        ),
        Method(
            "npe",
            "#E7298A",
            "neural posterior estimation",
            training=opponent("NeuralPosterior"),
            check=_needs_sbi,
        ),
        Method("correlation", "#A6761D", "correlation matrix", training=opponent("Correlation")),
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
            keeps_to_budget=False,
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
        Method(
            "nelder-mead-default",
            "#CC6677",
            "nelder-mead from the default values",
            build=_optimiser("NelderMead", from_default=True),
            one_start=True,
        ),
        Method(
            "bobyqa-simple-default",
            "#BBBBBB",
            "BOBYQA simple from the default values",
            build=_optimiser("BobyqaSimple", from_default=True),
            one_start=True,
        ),
        Method(
            "bobyqa-simple-ratio",
            "#8C6BC0",
            "BOBYQA simple, by ratio",
            build=_optimiser("BobyqaSimple", by_ratio=True),
        ),
    )
}
#: Names of the methods that learn from walks, and of those that learn nothing.
AGENTS = tuple(name for name, method in METHODS.items() if method.training is not None)
REFERENCES = tuple(name for name, method in METHODS.items() if method.build is not None)
