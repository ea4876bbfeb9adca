"""Models in SBML, run by libroadrunner, which is optional."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from vitolab.adapters.timecourse import TimeCourse, unreadable
from vitolab.problem import FloatArray

RELATIVE_TOLERANCE = 1e-8
_ALONE = threading.Lock()  # a loaded model is one for all callers


@dataclass(frozen=True)
class SbmlModel(TimeCourse):
    """A model in SBML; its fields are those of `TimeCourse`.

    Names are ids of the file: parameters and species (``S`` is the amount of a species, ``[S]``
    its concentration), and as outputs also compartments and reactions. What follows by initial
    assignments from what is set follows; an initial assignment of what is set is overruled.
    """

    def _names(self) -> tuple[Collection[str], Collection[str]]:
        with _ALONE:
            model = _loaded(self.path, self._stamp, frozenset())
        ids = set(model.getIds())
        # amounts follow from the size of a compartment in ways that depend on the file
        fixed = {*model.getAssignmentRuleIds(), *model.model.getCompartmentIds()}
        settable = {name for name in ids if f"init({name})" in ids} - fixed
        return settable, {name for name in ids if not {"(", "'"} & set(name)}

    def _run(self, values: Mapping[str, float], variables: list[str]) -> dict[str, FloatArray]:
        with _ALONE:
            model = _loaded(self.path, self._stamp, frozenset())
            free = {name.strip("[]") for name in values} & set(model.getInitialAssignmentIds())
            model = _loaded(self.path, self._stamp, frozenset(free))
            model.resetToOrigin()  # as in the file, whatever ran before
            for name, value in values.items():
                model.model[f"init({name})"] = value
            model.resetAll()  # to these initial values
            found = model.simulate(0.0, self.duration, self.n_points, ["time", *variables])
            return {name: found[:, i + 1].copy() for i, name in enumerate(variables)}


def _roadrunner() -> Any:
    """Import libroadrunner."""
    try:
        import roadrunner
    except ImportError:
        raise ValueError(
            "reading SBML needs libroadrunner, expected `pip install vitolab[sbml]`"
        ) from None
    return roadrunner


@lru_cache(maxsize=8)
def _loaded(path: Path, stamp: tuple[int, int], free: frozenset[str]) -> Any:
    """Load a model, without initial assignments of what is free."""
    roadrunner = _roadrunner()
    try:
        model = roadrunner.RoadRunner(str(path))
    except Exception as error:  # of several kinds
        raise unreadable(path, "a model in SBML", error) from None
    for name in sorted(free):
        model.removeInitialAssignment(name)
    model.integrator.setValue("relative_tolerance", RELATIVE_TOLERANCE)
    return model
