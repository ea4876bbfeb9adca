"""Personalise computational models with an agent that learns how they behave.

Public names load when they are first used, so that ``import vitolab`` costs nothing:

>>> import vitolab as vl
>>> problem = vl.models.circulation.problem("6p")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitolab import (
        agent,
        explain,
        exploration,
        identifiability,
        initialization,
        mdp,
        models,
        patients,
        plots,
        problem,
        reference,
        states,
        store,
        studies,
        trajectories,
        uncertainty,
        validation,
    )
    from vitolab.agent import ContinuousVito, Vito
    from vitolab.catalogue import find_model
    from vitolab.exploration import explore
    from vitolab.fit import Fit, StopReason
    from vitolab.initialization import Initializer
    from vitolab.mdp import MDP, Policy
    from vitolab.problem import Objective, Parameter, Patient, Problem
    from vitolab.reference import BobyqaCascade, BobyqaSimple, LeastSquares, NelderMead
    from vitolab.states import StateSpace
    from vitolab.store.stored import Run
    from vitolab.trajectories import Trajectories
    from vitolab.validation import leave_one_out

    __version__: str

__all__ = [
    "MDP",
    "BobyqaCascade",
    "BobyqaSimple",
    "ContinuousVito",
    "Fit",
    "Initializer",
    "LeastSquares",
    "NelderMead",
    "Objective",
    "Parameter",
    "Patient",
    "Policy",
    "Problem",
    "Run",
    "StateSpace",
    "StopReason",
    "Trajectories",
    "Vito",
    "__version__",
    "agent",
    "explain",
    "exploration",
    "explore",
    "find_model",
    "identifiability",
    "initialization",
    "leave_one_out",
    "mdp",
    "models",
    "patients",
    "plots",
    "problem",
    "reference",
    "states",
    "store",
    "studies",
    "trajectories",
    "uncertainty",
    "validation",
]

# module in which each public name lives; what is not here is a module itself
_HOMES = {
    "Parameter": "problem",
    "Objective": "problem",
    "Patient": "problem",
    "Problem": "problem",
    "Trajectories": "trajectories",
    "Fit": "fit",
    "StopReason": "fit",
    "explore": "exploration",
    "find_model": "catalogue",
    "StateSpace": "states",
    "MDP": "mdp",
    "Policy": "mdp",
    "Initializer": "initialization",
    "ContinuousVito": "agent",
    "Vito": "agent",
    "NelderMead": "reference",
    "BobyqaCascade": "reference",
    "BobyqaSimple": "reference",
    "LeastSquares": "reference",
    "leave_one_out": "validation",
    "Run": "store",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: Any
    if name == "__version__":
        value = import_module("importlib.metadata").version(__name__)
    elif name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        value = import_module(f"{__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
