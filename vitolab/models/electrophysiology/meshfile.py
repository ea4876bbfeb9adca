"""Mesh files, read and written by meshio, which is optional."""

from __future__ import annotations

import io
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.files import atomic
from vitolab.problem import FloatArray, IntArray

FORMATS = {".vtu": "vtu", ".vtk": "vtk", ".msh": "gmsh", ".xdmf": "xdmf"}
INSTALL = "pip install 'vitolab[mesh]'"
_ALONE = threading.Lock()  # standard output and filters of warnings are the whole process's


@dataclass(frozen=True)
class MeshFile:
    """What a file holds.

    Attributes
    ----------
    points : ndarray, shape (n_points, 3)
    tets : ndarray of int, shape (n_tets, 4)
    triangles : ndarray of int, shape (n_triangles, 3)
        Corners; cells of higher order have no others here.
    at_points, at_tets, at_triangles : dict of str to ndarray
        Arrays by name.
    dropped : tuple of str
        How many solid cells of other types are left out.
    """

    points: FloatArray
    tets: IntArray
    triangles: IntArray
    at_points: dict[str, NDArray[Any]]
    at_tets: dict[str, NDArray[Any]]
    at_triangles: dict[str, NDArray[Any]]
    dropped: tuple[str, ...]

    @property
    def names(self) -> str:
        """Names of all arrays, as text."""
        names = sorted({*self.at_points, *self.at_tets, *self.at_triangles})
        return ", ".join(names) if names else "none"


def format_of(path: Path) -> str:
    """Name that meshio has for the format of a heart's file.

    Raises
    ------
    ValueError
        If its name ends in none of `FORMATS`.
    """
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"the name ends in {path.suffix!r}, expected one of {', '.join(FORMATS)}")
    return FORMATS[path.suffix.lower()]


def read(path: Path, kind: str | None = None) -> MeshFile:
    """Read a file.

    Parameters
    ----------
    path : Path
    kind : str, optional
        Name that meshio has for the format, which is otherwise told by the name of the file.

    Raises
    ------
    ValueError
        If it is absent, empty, damaged or of an unknown format.
    ModuleNotFoundError
        If meshio, or what it needs for the format, is not installed.
    """
    if not os.path.isfile(path):  # which of a name too long says no
        found = "a folder" if os.path.isdir(path) else "absent"
        raise ValueError(f"it is {found}, expected a file with a mesh")
    if path.stat().st_size == 0:
        raise ValueError("it is empty, expected a file with a mesh")
    meshio = _meshio()
    with _silenced() as said:
        try:
            mesh = meshio.read(path, file_format=kind)
        except ModuleNotFoundError as error:
            raise _missing(error.name, path) from None
        except SystemExit:
            reason = said.getvalue()
        except Exception as error:  # damaged files raise in many ways
            reason = str(error) or type(error).__name__
        else:
            return _content(mesh)
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    because = f" ({lines[0].rstrip('.')})" if lines and "read file" not in lines[0] else ""
    raise ValueError(f"it cannot be read as {path.suffix}{because}, expected a mesh in this format")


def write(path: Path, points: FloatArray, tets: IntArray, data: Mapping[str, NDArray[Any]]) -> None:
    """Write tetrahedra and arrays at their nodes, whole or not at all.

    Raises
    ------
    ValueError
        If the name ends in none of `FORMATS`.
    ModuleNotFoundError
        If meshio, or what it needs for the format, is not installed.
    """
    kind = format_of(path)
    meshio = _meshio()
    mesh = meshio.Mesh(points, [("tetra", tets)], point_data=dict(data))
    options = {"data_format": "XML"} if kind == "xdmf" else {}  # one file, not two
    with atomic(path) as temporary, _silenced():
        try:
            meshio.write(temporary, mesh, file_format=kind, **options)
        except ModuleNotFoundError as error:
            raise _missing(error.name, path) from None


def numbers(values: Any, name: str, width: int) -> FloatArray:
    """Array as numbers, shape (n, width), or (n,) for width 1.

    Raises
    ------
    ValueError
        If it has another shape or no numbers.
    """
    array = np.asarray(values)
    if width == 1 and array.shape[1:] == (1,):
        array = array[:, 0]
    expected = (len(array),) if width == 1 else (len(array), width)
    if array.dtype.kind not in "fiub" or array.shape != expected:
        raise ValueError(
            f"{name} has shape {array.shape} of {array.dtype}, expected numbers of shape {expected}"
        )
    return array.astype(np.float64)


def _missing(name: str | None, path: Path) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"{path}: this format needs {name}: {INSTALL}")


def _meshio() -> Any:
    """Import meshio."""
    try:
        import meshio
    except ImportError:
        raise ModuleNotFoundError(f"reading and writing meshes needs meshio: {INSTALL}") from None
    return meshio


@contextmanager
def _silenced() -> Iterator[io.StringIO]:
    """Catch what meshio prints; numbers cut short are an error."""
    said = io.StringIO()
    with _ALONE, redirect_stdout(said), redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "string or file could not be read", DeprecationWarning)
        yield said


def _content(mesh: Any) -> MeshFile:
    """What is read from a mesh of meshio."""
    kinds = {"tetra": 4, "triangle": 3}
    cells, data = {}, {}
    for kind, n in kinds.items():
        own = [i for i, block in enumerate(mesh.cells) if block.type.startswith(kind)]
        found = [np.asarray(mesh.cells[i].data)[:, :n] for i in own]
        cells[kind] = np.concatenate([np.empty((0, n), np.int64), *found]).astype(np.int64)
        data[kind] = {
            name: np.concatenate([np.asarray(values[i]) for i in own])
            for name, values in mesh.cell_data.items()
            if own
        }
    points = numbers(mesh.points, "the array of coordinates", 3)
    return MeshFile(
        points,
        cells["tetra"],
        cells["triangle"],
        dict(mesh.point_data),
        data["tetra"],
        data["triangle"],
        tuple(
            f"{len(block.data)} cells of type {block.type} dropped"
            for block in mesh.cells
            if block.dim == 3 and not block.type.startswith("tetra")
        ),
    )
