"""Other people's simulators as the batched callable that a `Problem` takes.

Two of them make the callable: `FunctionModel` from a Python function of one parameter vector, in
processes of its own, and `ProgramModel` from an external program. The others make such a
function from what people have: `OdeFunction` from the right-hand side of an ordinary differential
equation; `SbmlModel`, `CellmlModel` and `FmuModel` from a file in a standard format.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitolab.adapters.cellml import CellmlModel
    from vitolab.adapters.files import FileFunction, KnownFiles
    from vitolab.adapters.fmu import FmuModel
    from vitolab.adapters.function import FunctionModel
    from vitolab.adapters.ode import OdeFunction
    from vitolab.adapters.program import ProgramModel
    from vitolab.adapters.sbml import SbmlModel

__all__ = [
    "CellmlModel",
    "FileFunction",
    "FmuModel",
    "FunctionModel",
    "KnownFiles",
    "OdeFunction",
    "ProgramModel",
    "SbmlModel",
]

_HOMES = {
    "CellmlModel": "cellml",
    "FmuModel": "fmu",
    "SbmlModel": "sbml",
    "FileFunction": "files",
    "KnownFiles": "files",
    "FunctionModel": "function",
    "OdeFunction": "ode",
    "ProgramModel": "program",
}


def __getattr__(name: str) -> Any:
    """Load an adapter when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # found here from now on
    return value


def __dir__() -> list[str]:
    """List the adapters, loaded or not."""
    return sorted(__all__)
