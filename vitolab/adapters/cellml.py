"""Models in CellML and MMT, run by myokit, which is optional."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from vitolab.adapters.timecourse import TimeCourse, unreadable
from vitolab.problem import FloatArray

ABSOLUTE_TOLERANCE = 1e-10
RELATIVE_TOLERANCE = 1e-8
_ALONE = threading.Lock()  # a loaded model is one for all callers


@dataclass(frozen=True)
class CellmlModel(TimeCourse):
    """A model in CellML or MMT; its fields are those of `TimeCourse`.

    Names are ``component.variable``. What is set is a constant that the file gives as a number,
    or a state, of which the value at time 0 is set; other constants and initial values follow.
    The protocol of an MMT file paces the model. myokit compiles the model with SUNDIALS, once
    in each process.
    """

    def _names(self) -> tuple[Collection[str], Collection[str]]:
        with _ALONE:
            loaded = _loaded(self.path, self._stamp)
        model = loaded.model
        states = [variable.qname() for variable in model.states()]
        readable = [v.qname() for v in model.variables(const=False, deep=False)]
        return [*loaded.constants, *states], readable

    def _run(self, values: Mapping[str, float], variables: list[str]) -> dict[str, FloatArray]:
        with _ALONE:
            loaded = _loaded(self.path, self._stamp)
            for name, default in loaded.constants.items():
                value = values.get(name, default)
                loaded.model.set_value(name, value)
                loaded.simulation.set_constant(name, value)
            initial = loaded.model.initial_values(as_floats=True)
            names = [variable.qname() for variable in loaded.model.states()]
            state = [values.get(name, v) for name, v in zip(names, initial, strict=True)]
            loaded.simulation.reset()
            loaded.simulation.set_state(state)
            # the last point is only logged by a run that goes beyond it
            end = self.duration * (1 + 1e-9)
            log = loaded.simulation.run(end, log=variables, log_times=self._times)
            return {name: np.array(log[name], dtype=np.float64) for name in variables}


@dataclass(frozen=True)
class _Loaded:
    """A model, its constants and their values in the file, and its compiled simulation."""

    model: Any
    constants: Mapping[str, float]
    simulation: Any


def _myokit() -> Any:
    """Import myokit."""
    try:
        import myokit
        import myokit.formats
    except ImportError:
        raise ValueError(
            "reading CellML and MMT needs myokit, expected `pip install vitolab[cellml]`"
        ) from None
    return myokit


@lru_cache(maxsize=8)
def _loaded(path: Path, stamp: tuple[int, int]) -> _Loaded:
    """Read and compile a model."""
    myokit = _myokit()
    protocol = None
    try:
        if path.suffix.lower() == ".mmt":
            model, protocol, _ = myokit.load(str(path))
        else:
            model = myokit.formats.importer("cellml").model(str(path))
        if model is None:
            raise ValueError("it holds no model")
        model.validate()
    except Exception as error:  # of many kinds
        raise unreadable(path, "a model in CellML or MMT", error) from None
    constants = {
        v.qname(): v.eval() for v in model.variables(const=True, deep=True) if v.is_literal()
    }
    try:
        simulation = myokit.Simulation(model, protocol)
    except myokit.CompilationError:
        raise ValueError(
            f"{path.name} cannot be compiled, expected a C compiler and SUNDIALS "
            "(on Debian `apt-get install gcc libsundials-dev`)"
        ) from None
    simulation.set_tolerance(ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE)
    return _Loaded(model, constants, simulation)
