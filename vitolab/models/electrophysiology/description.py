"""Which heart a patient has, from the data of the patient.

``anatomy`` names a preset or the path of a mesh; other entries change the shape of a preset
(`vitolab.models.electrophysiology.shapes.Shape`), the seed and spacing of its mesh, or where it
lies in the torso. With ``mesh_checksum`` beside a path the file is refused once it holds something
else.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Any

from vitolab.files import checksum, digest
from vitolab.models.electrophysiology.shapes import PRESETS, Shape
from vitolab.problem import Patient

FINEST = 1.0  # mm between nodes, some 200,000 of them
TURNS = ("azimuth", "elevation", "roll")  # degrees beside the usual orientation
SHIFTS = ("offset_x", "offset_y", "offset_z")  # mm beside the centre of the torso frame
SHAPE = tuple(field.name for field in fields(Shape))
NUMBERS = (*SHAPE, *TURNS, *SHIFTS, "mesh_seed", "spacing")


@dataclass(frozen=True)
class Description:
    """Which heart it is; equal for equal hearts, whosever and wherever they are.

    Attributes
    ----------
    anatomy : str
        Name of a preset, or the checksum of a mesh.
    numbers : tuple of (str, float)
        Those of `NUMBERS` that were given.
    path : str
        Where the mesh is; empty for a preset.
    patient : str
        Name, for refusals.
    """

    anatomy: str
    numbers: tuple[tuple[str, float], ...]
    path: str = field(default="", compare=False)
    patient: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """Digest of what makes it this heart."""
        return digest(self.anatomy, self.numbers)


def described(patient: Patient) -> Description:
    """Tell which heart the data of a patient name.

    Parameters
    ----------
    patient : Patient
        See `heart`.

    Returns
    -------
    Description

    Raises
    ------
    ValueError
        If the data name no heart, or a mesh that is absent or no longer has its
        ``mesh_checksum``.
    """
    data = patient.data
    named = data.get("anatomy")
    if not isinstance(named, str) or not (named in PRESETS or os.path.isfile(named)):
        raise ValueError(
            f"patient {patient.name!r}: anatomy is {named!r:.200}, expected "
            f"{', '.join(PRESETS)} or the path of a mesh that is there"
        )
    given = tuple(
        (name, _number(patient, name, data[name])) for name in NUMBERS if data.get(name) is not None
    )
    if named in PRESETS:
        return Description(named, given, patient=patient.name)
    shaped = [name for name, _ in given if name in (*SHAPE, "mesh_seed", "spacing")]
    if shaped:
        raise ValueError(
            f"patient {patient.name!r}: {shaped[0]} is given beside the anatomy {named!r}, "
            f"expected it with one of {', '.join(PRESETS)} only"
        )
    found, expected = mesh_checksum(named), data.get("mesh_checksum")
    if expected is not None and found != expected:
        raise ValueError(
            f"patient {patient.name!r}: the mesh {named!r} has the checksum {found[:12]}, "
            f"expected {str(expected)[:12]}: it was changed"
        )
    return Description(found, given, named, patient.name)


def _number(patient: Patient, name: str, value: Any) -> float:
    """Checked entry of a patient's data."""
    # the exact type first: this is asked with every batch of forward runs
    is_number = type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
    if not (is_number and math.isfinite(value)):
        expected = "a finite number"
    elif name == "mesh_seed" and not (value >= 0 and value == int(value)):
        expected = "a whole number of at least 0"
    elif name == "spacing" and not value >= FINEST:
        expected = f"at least {FINEST:g} mm"
    else:
        return float(value)
    raise ValueError(f"patient {patient.name!r}: {name} is {value!r}, expected {expected}")


def mesh_checksum(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a mesh, with the .h5 file of the same name that may hold the arrays of an .xdmf.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    files = [os.fspath(path)]
    stem, suffix = os.path.splitext(files[0])
    if suffix.lower() == ".xdmf" and os.path.isfile(f"{stem}.h5"):
        files.append(f"{stem}.h5")
    found = [os.stat(file) for file in files]
    return _checksum(tuple(files), tuple((one.st_mtime_ns, one.st_size) for one in found))


@lru_cache(maxsize=256)
def _checksum(files: tuple[str, ...], _changed: tuple[tuple[int, int], ...]) -> str:
    """SHA-256 of files, computed again when one of them changes."""
    sums = [checksum(Path(file)) for file in files]
    return sums[0] if len(sums) == 1 else digest(*sums)
