"""Functional mock-up units for co-simulation, run by fmpy, which is optional.

An FMU is native code, which runs with the rights of whoever runs the model. FMI 2.0 is tested;
fmpy also runs 1.0 and 3.0.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from vitolab.adapters.timecourse import TimeCourse, unreadable
from vitolab.parallel.folders import own_folder
from vitolab.problem import FloatArray

_NUMBERS = {"Real", "Float64", "Float32"}
_ALONE = threading.Lock()  # an FMU may allow one instance in a process


@dataclass(frozen=True)
class FmuModel(TimeCourse):
    """An FMU for co-simulation; its fields are those of `TimeCourse`, and `trusted`.

    Names are those of its variables. Every run is a new instance of the FMU. Its points are where
    it communicates: what it does between them, and how exactly, is its own affair.

    Attributes
    ----------
    trusted : bool
        That the native code in the file may run, which has to be said. Nothing of it runs before
        the model is called.
    """

    trusted: bool = False

    def __post_init__(self) -> None:
        if not self.trusted:
            raise ValueError(
                f"{Path(self.path).name} is native code that runs with your rights, expected "
                "trusted to be true from who trusts its source"
            )
        super().__post_init__()

    def _names(self) -> tuple[Collection[str], Collection[str]]:
        with _ALONE:
            unit = _loaded(self.path, self._stamp)
        numbers = [v for v in unit.description.modelVariables if v.type in _NUMBERS]
        settable = [v.name for v in numbers if v.start is not None and v.variability != "constant"]
        return settable, [v.name for v in numbers]

    def _run(self, values: Mapping[str, float], variables: list[str]) -> dict[str, FloatArray]:
        fmpy = _fmpy()
        with _ALONE:
            unit = _loaded(self.path, self._stamp)
            instance = fmpy.instantiate_fmu(unit.folder.name, unit.description, "CoSimulation")
            try:
                found = fmpy.simulate_fmu(
                    unit.folder.name,
                    start_time=0.0,
                    stop_time=self.duration,
                    output_interval=self.duration / (self.n_points - 1),
                    start_values=dict(values),
                    output=variables,
                    model_description=unit.description,
                    fmu_instance=instance,
                )
            finally:
                instance.freeInstance()
        if len(found) != self.n_points:
            raise RuntimeError(
                f"{self.path.name} ended at {found['time'][-1]:g}, expected {self.duration:g}"
            )
        return {name: np.array(found[name], dtype=np.float64) for name in variables}


@dataclass(frozen=True)
class _Loaded:
    """An FMU that is unpacked, in a folder that goes with the process, and what it describes."""

    folder: TemporaryDirectory[str]
    description: Any


def _fmpy() -> Any:
    """Import fmpy."""
    try:
        import fmpy
    except ImportError:
        raise ValueError("reading FMUs needs fmpy, expected `pip install vitolab[fmu]`") from None
    return fmpy


@lru_cache(maxsize=8)
def _loaded(path: Path, stamp: tuple[int, int]) -> _Loaded:
    """Unpack and read an FMU; none of its code runs."""
    fmpy = _fmpy()
    folder = own_folder()
    try:
        fmpy.extract(str(path), unzipdir=folder.name)
        description = fmpy.read_model_description(folder.name)
        platforms = fmpy.supported_platforms(folder.name)
    except Exception as error:  # of many kinds
        raise unreadable(path, "a functional mock-up unit", error) from None
    if description.coSimulation is None:
        raise ValueError(f"{path.name} is for model exchange only, expected co-simulation")
    if fmpy.platform not in platforms:
        raise ValueError(
            f"{path.name} is for {', '.join(platforms) or 'no platform'}, expected {fmpy.platform}"
        )
    return _Loaded(folder, description)
