"""Personalize computational models with an agent that learns how they behave.

Public names load when they are first used, so that ``import vitolab`` costs nothing:

>>> import vitolab as vl
>>> problem = vl.models.circulation.problem("6p")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers what the table below says; a test compares
    from vitolab import adapters as adapters
    from vitolab import methods as methods
    from vitolab import models as models
    from vitolab import plots as plots
    from vitolab import store as store
    from vitolab import studies as studies
    from vitolab.agent import ContinuousVito as ContinuousVito
    from vitolab.agent import Vito as Vito
    from vitolab.catalogue import find_model as find_model
    from vitolab.exploration import explore as explore
    from vitolab.fit import Fit as Fit
    from vitolab.fit import StopReason as StopReason
    from vitolab.initialization import Initializer as Initializer
    from vitolab.mdp import MDP as MDP
    from vitolab.mdp import Policy as Policy
    from vitolab.problem import Objective as Objective
    from vitolab.problem import Parameter as Parameter
    from vitolab.problem import Patient as Patient
    from vitolab.problem import Problem as Problem
    from vitolab.reference import BobyqaCascade as BobyqaCascade
    from vitolab.reference import BobyqaSimple as BobyqaSimple
    from vitolab.reference import LeastSquares as LeastSquares
    from vitolab.reference import NelderMead as NelderMead
    from vitolab.settings import Settings as Settings
    from vitolab.states import StateSpace as StateSpace
    from vitolab.store import Run as Run
    from vitolab.trajectories import Trajectories as Trajectories
    from vitolab.validation import leave_one_out as leave_one_out

    __version__: str

# public names by the module in which they live, and modules that are public themselves
_NAMES = {
    "agent": ("ContinuousVito", "Vito"),
    "catalogue": ("find_model",),
    "exploration": ("explore",),
    "fit": ("Fit", "StopReason"),
    "initialization": ("Initializer",),
    "mdp": ("MDP", "Policy"),
    "problem": ("Objective", "Parameter", "Patient", "Problem"),
    "reference": ("BobyqaCascade", "BobyqaSimple", "LeastSquares", "NelderMead"),
    "settings": ("Settings",),
    "states": ("StateSpace",),
    "store": ("Run",),
    "trajectories": ("Trajectories",),
    "validation": ("leave_one_out",),
}
_MODULES = ("adapters", "methods", "models", "plots", "store", "studies")
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_MODULES, *_HOMES]


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
