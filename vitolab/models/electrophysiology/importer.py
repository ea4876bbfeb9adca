"""Read a heart from a file with a tetrahedral mesh, and write one.

What a file leaves open is found from the mesh, what is damaged is repaired where that needs no
guess; all else is refused in one sentence.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitolab.models.electrophysiology.anatomy import (
    EPI,
    INTERIOR,
    LV_ENDO,
    RV_ENDO,
    SURFACES,
    Anatomy,
    tet_volumes,
)
from vitolab.models.electrophysiology.landmarks import coordinates, find_roots
from vitolab.models.electrophysiology.ldrb import ldrb
from vitolab.models.electrophysiology.meshfile import MeshFile, format_of, numbers, read, write
from vitolab.models.electrophysiology.repair import Cleaned, clean, mend_fibres, node_fibres
from vitolab.models.electrophysiology.surfacecheck import check, summary
from vitolab.models.electrophysiology.surfaces import complete, match, segment
from vitolab.problem import BoolArray, FloatArray, IntArray

Code = int | Sequence[int]
Tags = str | Mapping[str, str | os.PathLike[str]]

TAGS = {"lv_endo": LV_ENDO, "rv_endo": RV_ENDO, "epi": EPI}
CODES: Mapping[str, Code] = {**TAGS, "base": 4}
COORDINATES = ("base", "transmural", "apex_base", "rotation", "right", "frame")
ROOTS = {1: LV_ENDO, 2: RV_ENDO}


def load_anatomy(
    path: str | os.PathLike[str],
    *,
    units: str | None = None,
    tags: Tags | None = None,
    codes: Mapping[str, Code] = CODES,
    fibres: str | None = None,
    confirm: bool = False,
    endo: float = 60.0,
    epi: float = -60.0,
) -> Anatomy:
    """Read a bi-ventricular heart from VTU, legacy VTK, Gmsh or XDMF.

    Parameters
    ----------
    path : path-like
        Ending in .vtu, .vtk, .msh or .xdmf. Tetrahedra are read, other cells dropped.
    units : {"mm", "cm", "m"}, optional
        Guessed from the size if absent.
    tags : str or mapping, optional
        Name of the array at nodes or triangles that tells the surfaces (``surface`` if absent), or
        a file for each of ``lv_endo``, ``rv_endo``, ``epi`` and ``base`` in the unit of the mesh.
        Needed are the endocardia, the right one with the right side of the septum.
    codes : mapping of str to int or sequence of int
        Values in that array.
    fibres : str, optional
        Name of the array of vectors at nodes or tetrahedra (``fibres`` if absent); without one
        fibres follow the rule of `vitolab.models.electrophysiology.ldrb`.
    confirm : bool
        Accept surfaces told by the shape alone if the file has no tags.
    endo, epi : float
        Helix angles of the rule, degrees.

    Returns
    -------
    Anatomy
        In mm, in the axes and the order of the file. Roots, frame and coordinates are those of the
        file if `save_anatomy` wrote it.

    Warns
    -----
    UserWarning
        If something was repaired: how many of what.

    Raises
    ------
    ValueError
        If the file cannot be read or leaves something open that only the user can know.
    ModuleNotFoundError
        If meshio is not installed.
    """
    path = Path(path)
    try:
        file = read(path, format_of(path))
        cleaned = clean(file.points, file.tets, units)
        repairs = [*file.dropped, *cleaned.repairs]
        surface, given = _surfaces(file, cleaned, tags, codes, confirm, repairs)
        direction = _fibres(file, cleaned, fibres)
        if direction is None:
            direction = ldrb(cleaned.nodes, cleaned.tets, surface, given["base"], endo, epi)
        direction, n_mended = mend_fibres(direction, cleaned.tets)
        if n_mended:
            repairs.append(f"{n_mended} fibres taken from their neighbours")
        roots = _roots(file, cleaned, surface)
        if roots is None:
            roots = find_roots(cleaned.nodes, cleaned.triangles, surface, given["apex_base"])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if repairs:
        warnings.warn(f"{path}: {'; '.join(repairs)}", UserWarning, stacklevel=2)
    return Anatomy(
        nodes=cleaned.nodes,
        tets=cleaned.tets,
        surface=surface,
        fibres=direction,
        roots=roots,
        **given,
    )


def save_anatomy(anatomy: Anatomy, path: str | os.PathLike[str]) -> None:
    """Write a heart so that `load_anatomy` reads the same one.

    Parameters
    ----------
    anatomy : Anatomy
    path : path-like
        Ending in .vtu, .vtk, .msh or .xdmf.

    Raises
    ------
    ValueError
        If it ends otherwise.
    ModuleNotFoundError
        If meshio is not installed.
    """
    roots = np.zeros(anatomy.n_nodes, dtype=np.int64)
    roots[anatomy.roots] = list(ROOTS)
    arrays: dict[str, NDArray[Any]] = {
        **{name: getattr(anatomy, name) for name in COORDINATES},
        "surface": anatomy.surface,
        "roots": roots,
        "fibres": anatomy.fibres,
        "frame": np.tile(anatomy.frame.ravel(), (anatomy.n_nodes, 1)),
    }
    data = {
        name: values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
        for name, values in arrays.items()
    }
    try:
        write(Path(path), anatomy.nodes, anatomy.tets, data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _surfaces(
    file: MeshFile,
    cleaned: Cleaned,
    tags: Tags | None,
    codes: Mapping[str, Code],
    confirm: bool,
    repairs: list[str],
) -> tuple[IntArray, dict[str, Any]]:
    """Tags of the nodes, and frame and coordinates that go with them; adds to `repairs`."""
    nodes, triangles = cleaned.nodes, cleaned.triangles
    tagged = _tagged(file, cleaned, tags, codes)
    if tagged is None:
        surface, base = segment(nodes, triangles)
        if not confirm:
            raise ValueError(
                f"no array {'surface' if tags is None else tags!r} tells the surfaces (arrays: "
                f"{file.names}); the shape alone would give "
                f"{summary(nodes, triangles, surface, base)}: name the array with tags, or accept "
                "this with confirm=True"
            )
        tagged = surface, base
    given = _coordinates(file, cleaned)
    surface = tagged[0]
    if given is None:
        surface, base, filled = complete(nodes, triangles, *tagged)
        repairs += filled
    check(nodes, triangles, surface)
    if given is None:
        given = coordinates(nodes, cleaned.tets, triangles, surface, base)
    return surface, given


def _tagged(
    file: MeshFile, cleaned: Cleaned, tags: Tags | None, codes: Mapping[str, Code]
) -> tuple[IntArray, BoolArray | None] | None:
    """Tags of the nodes and the base, None for what the file does not tell."""
    if isinstance(tags, Mapping):
        return _matched(cleaned, _sheets(tags))
    for name in codes:
        if name not in CODES:
            raise ValueError(f"codes name {name!r}, expected {', '.join(CODES)}")
    name = "surface" if tags is None else tags
    if name in file.at_points:
        values = numbers(file.at_points[name], name, 1)
        _refuse_other_codes(values, name, codes)
        last = len(SURFACES)  # of merged points the lower tag counts, the interior last
        raw = np.full(len(values), last)
        for role, tag in TAGS.items():
            raw[np.isin(values, codes.get(role, ()))] = tag
        surface = np.full(len(cleaned.nodes), last)
        kept = cleaned.node_of >= 0
        np.minimum.at(surface, cleaned.node_of[kept], raw[kept])
        base = _at_nodes(np.isin(values, codes.get("base", ())), cleaned)
        return np.where(surface == last, INTERIOR, surface), base if base.any() else None
    if name in file.at_triangles:
        values = numbers(file.at_triangles[name], name, 1)
        _refuse_other_codes(values, name, codes)
        corners = {role: file.triangles[np.isin(values, code)] for role, code in codes.items()}
        return _matched(
            cleaned,
            {role: file.points[np.unique(own)] for role, own in corners.items() if own.size},
        )
    if tags is not None:
        raise ValueError(f"no array {name!r} tells the surfaces, expected one of {file.names}")
    return None


def _refuse_other_codes(values: FloatArray, name: str, codes: Mapping[str, Code]) -> None:
    """Refuse tags without the codes of the endocardia."""
    for role in ("lv_endo", "rv_endo"):
        if not np.isin(values, codes.get(role, ())).any():
            found = np.unique(values)
            shown = ", ".join(f"{value:g}" for value in found[:10])
            raise ValueError(
                f"{name} holds {shown}{', ...' if len(found) > 10 else ''}, expected "
                f"{codes.get(role, 'a code')} for {role} somewhere"
            )


def _sheets(files: Mapping[str, str | os.PathLike[str]]) -> dict[str, FloatArray]:
    """Points of the triangles of a file for each surface."""
    sheets = {}
    for role, file in files.items():
        if role not in CODES:
            raise ValueError(f"tags name {role!r}, expected {', '.join(CODES)}")
        try:
            sheet = read(Path(file))
        except ValueError as error:
            raise ValueError(f"tags of {role}: {file}: {error}") from None
        sheets[role] = sheet.points[np.unique(sheet.triangles)]
    return sheets


def _matched(
    cleaned: Cleaned, sheets: Mapping[str, FloatArray]
) -> tuple[IntArray, BoolArray | None]:
    """Tags of the nodes that are near points of the surfaces, given in the unit of the file."""
    scaled = {role: points * cleaned.factor for role, points in sheets.items()}
    nearest, base = match(cleaned.nodes, cleaned.triangles, scaled)
    surface = np.full(len(cleaned.nodes), INTERIOR)
    for role, tag in TAGS.items():
        surface[nearest == role] = tag
    return surface, base


def _coordinates(file: MeshFile, cleaned: Cleaned) -> dict[str, Any] | None:
    """Frame and coordinates if all are in the file, as `save_anatomy` writes them."""
    if not all(name in file.at_points for name in COORDINATES):
        return None
    found: dict[str, Any] = {}
    for name in COORDINATES:
        width = 9 if name == "frame" else 1
        values = _at_nodes(numbers(file.at_points[name], name, width), cleaned)
        if not np.isfinite(values).all():
            raise ValueError(f"{name} is no number at some nodes, expected finite numbers")
        found[name] = values != 0.0 if name in ("base", "right") else values
    found["frame"] = found["frame"][0].reshape(3, 3)
    if not np.allclose(found["frame"] @ found["frame"].T, np.eye(3), atol=1e-6):
        raise ValueError("frame is no rotation, expected three unit axes at right angles")
    return found


def _fibres(file: MeshFile, cleaned: Cleaned, fibres: str | None) -> FloatArray | None:
    """Fibres at the nodes as the file has them, or None."""
    name = "fibres" if fibres is None else fibres
    if name in file.at_points:
        return _at_nodes(numbers(file.at_points[name], name, 3), cleaned)
    if name in file.at_tets:
        values = numbers(file.at_tets[name], name, 3)[cleaned.cell_of]
        volumes = tet_volumes(cleaned.nodes, cleaned.tets)
        return node_fibres(values, cleaned.tets, volumes, len(cleaned.nodes))
    if fibres is not None:
        raise ValueError(f"no array {name!r} holds fibres, expected one of {file.names}")
    return None


def _roots(file: MeshFile, cleaned: Cleaned, surface: IntArray) -> IntArray | None:
    """Root nodes of the file, or None."""
    if "roots" not in file.at_points:
        return None
    values = _at_nodes(numbers(file.at_points["roots"], "roots", 1), cleaned)
    found = []
    for code, tag in ROOTS.items():
        own = np.flatnonzero(values == code)
        if len(own) != 1 or surface[own[0]] != tag:
            where = ", ".join(SURFACES[surface[node]] for node in own[:3])
            raise ValueError(
                f"roots is {code} at {len(own)} nodes{f' ({where})' if len(own) else ''}, expected "
                f"one of the {SURFACES[tag]}"
            )
        found.append(own[0])
    return np.array(found)


def _at_nodes(values: NDArray[Any], cleaned: Cleaned) -> NDArray[Any]:
    """Values of the points of a file at the nodes; of merged points the first counts."""
    kept = np.flatnonzero(cleaned.node_of >= 0)[::-1]
    placed = np.zeros((len(cleaned.nodes), *values.shape[1:]), dtype=values.dtype)
    placed[cleaned.node_of[kept]] = values[kept]
    return placed
