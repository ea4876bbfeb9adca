"""Hearts made ready to run: anatomy, graph and lead weights of a patient, built once and kept.

A patient's ``data`` say which heart it is: ``anatomy`` names a preset or the path of a mesh; other
entries change the shape of a preset (`vitolab.models.electrophysiology.shapes.Shape`), the seed
and spacing of its mesh, or where it lies in the torso.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from vitolab.files import ArrayCache, checksum, digest, source_version
from vitolab.models.electrophysiology.anatomy import Anatomy
from vitolab.models.electrophysiology.graph import Graph, connect
from vitolab.models.electrophysiology.importer import load_anatomy
from vitolab.models.electrophysiology.leadfield import Leads, orient, prepare
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS, Shape
from vitolab.models.electrophysiology.torso import superellipsoid
from vitolab.problem import FloatArray, Patient

LEAD_FIELDS = ("bem", "infinite")
SPACING = 3.6  # mm
RATIO = 0.5  # of cross-fibre to fibre speed
TURNS = ("azimuth", "elevation", "roll")  # degrees beside the usual orientation
SHIFTS = ("offset_x", "offset_y", "offset_z")  # mm beside the centre of the torso frame
SHAPE = tuple(field.name for field in fields(Shape))
NUMBERS = (*SHAPE, *TURNS, *SHIFTS, "mesh_seed", "spacing")


@dataclass(frozen=True)
class Heart:
    """A heart that can be run.

    Attributes
    ----------
    anatomy : Anatomy
    placed : ndarray, shape (n, 3)
        Nodes in the torso frame, mm.
    graph : Graph
    volume : ndarray, shape (n,)
        Volume of each node, mm³.
    weights : ndarray, shape (12, n)
        Potential of each lead per membrane potential of each node, see
        `vitolab.models.electrophysiology.leadfield.Leads.weights`.
    """

    anatomy: Anatomy
    placed: FloatArray
    graph: Graph
    volume: FloatArray
    weights: FloatArray


def heart(patient: Patient, lead_field: str = "bem") -> Heart:
    """Heart of a patient; built when first asked for, then read from the cache.

    Parameters
    ----------
    patient : Patient
        With ``anatomy`` in its data: the name of a preset, whose shape further data may change, or
        the path of a mesh.
    lead_field : {"bem", "infinite"}
        A homogeneous torso, or an infinite medium.

    Raises
    ------
    ValueError
        If the data name no heart, or one that cannot be built.
    """
    if lead_field not in LEAD_FIELDS:
        raise ValueError(f"lead_field is {lead_field!r}, expected one of {', '.join(LEAD_FIELDS)}")
    return prepared(described(patient), lead_field)


def cache_folder() -> Path:
    """Folder in which built hearts are kept: ``VITOLAB_CACHE``, or the user's cache."""
    configured = os.environ.get("VITOLAB_CACHE")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "vitolab"


@lru_cache(maxsize=1)
def version() -> str:
    """Change whenever a heart may be built differently."""
    folder = Path(__file__).parent
    names = (
        "anatomy",
        "shapes",
        "mesh",
        "fibres",
        "graph",
        "leadfield",
        "torso",
        "repair",
        "importer",
        "ldrb",
    )
    sources = source_version(*(folder / f"{name}.py" for name in names), __file__)
    return digest(sources, np.__version__, scipy.__version__)[:12]


def cached(name: str, compute: Any) -> dict[str, NDArray[Any]]:
    """Arrays of this name from the cache, or computed and kept there if it can be written."""
    store = ArrayCache(cache_folder() / "hearts")
    found = store.load(version(), name)
    if found is None:
        found = compute()
        with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
            store.store(version(), name, found)
    return found


def described(patient: Patient) -> str:
    """Give the data that say which heart it is, as canonical JSON; equal for equal hearts.

    Raises
    ------
    ValueError
        If the data name no heart.
    """
    named = patient.data.get("anatomy")
    if not isinstance(named, str) or not named:
        raise ValueError(
            f"patient {patient.name!r}: anatomy is {named!r}, expected "
            f"{', '.join(PRESETS)} or the path of a mesh"
        )
    data: dict[str, Any] = {"anatomy": named}
    for name in NUMBERS:
        value = patient.data.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise ValueError(
                f"patient {patient.name!r}: {name} is {value!r}, expected a finite number"
            )
        data[name] = float(value)
    if named not in PRESETS:
        shaped = [name for name in (*SHAPE, "mesh_seed", "spacing") if name in data]
        if shaped:
            raise ValueError(
                f"patient {patient.name!r}: {shaped[0]} is given beside the anatomy {named!r}, "
                f"expected it with one of {', '.join(PRESETS)} only"
            )
        path = Path(named)
        if not path.is_file():
            raise ValueError(
                f"patient {patient.name!r}: anatomy is {named!r}, expected "
                f"{', '.join(PRESETS)} or the path of a mesh"
            )
        data["checksum"] = _checksum(path, path.stat().st_mtime_ns, path.stat().st_size)
    return json.dumps(data, sort_keys=True)


@lru_cache(maxsize=256)
def _checksum(path: Path, _changed: int, _size: int) -> str:
    """SHA-256 of a mesh, computed again when the file changes."""
    return checksum(path)


@lru_cache(maxsize=256)
def prepared(described: str, lead_field: str) -> Heart:
    """Give the heart of a description, from memory, from the cache, or built."""
    data = json.loads(described)
    arrays = cached(digest(data, lead_field), lambda: _to_arrays(_build(data, lead_field)))
    return _from_arrays(arrays)


def _build(data: Mapping[str, Any], lead_field: str) -> Heart:
    """Build a heart."""
    if data["anatomy"] in PRESETS:
        changed = {name: data[name] for name in SHAPE if name in data}
        shape = replace(PRESETS[data["anatomy"]], **changed)
        anatomy = generate(shape, data.get("spacing", SPACING), int(data.get("mesh_seed", 0)))
        graph = connect(anatomy, RATIO, distance=shape.distance)
    else:
        anatomy = load_anatomy(data["anatomy"])
        graph = connect(anatomy, RATIO)
    turn = orient(**{name: data.get(name, 0.0) for name in TURNS})
    shift = np.array([data.get(name, 0.0) for name in SHIFTS])
    placed = in_torso(anatomy, turn, shift)
    weights = _leads(lead_field).weights(placed, anatomy.tets)
    return Heart(anatomy, placed, graph, anatomy.lumped, weights)


def in_torso(anatomy: Anatomy, turn: FloatArray, shift: FloatArray) -> FloatArray:
    """Place a heart in the torso frame.

    Parameters
    ----------
    anatomy : Anatomy
    turn : ndarray, shape (3, 3)
        Rotation of the heart frame, see `vitolab.models.electrophysiology.leadfield.orient`.
    shift : ndarray, shape (3,)
        Centre of the myocardium in the torso frame, mm.

    Returns
    -------
    ndarray, shape (n, 3)
    """
    placed: FloatArray = (anatomy.nodes - anatomy.centroid) @ anatomy.frame.T @ turn.T + shift
    return placed


@lru_cache(maxsize=2)
def _leads(lead_field: str) -> Leads:
    """Leads that all personalised hearts share."""
    return prepare(torso=None if lead_field == "infinite" else superellipsoid())


_GRAPH = tuple(field.name for field in fields(Graph))
_ANATOMY = tuple(field.name for field in fields(Anatomy))


def _to_arrays(built: Heart) -> dict[str, NDArray[Any]]:
    """Plain arrays of a heart."""
    arrays = {f"graph.{name}": getattr(built.graph, name) for name in _GRAPH}
    arrays |= {f"anatomy.{name}": getattr(built.anatomy, name) for name in _ANATOMY}
    return arrays | {name: getattr(built, name) for name in ("placed", "volume", "weights")}


def _from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Heart:
    """Heart of plain arrays."""
    return Heart(
        anatomy=Anatomy(**{name: arrays[f"anatomy.{name}"] for name in _ANATOMY}),
        graph=Graph(**{name: arrays[f"graph.{name}"] for name in _GRAPH}),
        placed=arrays["placed"],
        volume=arrays["volume"],
        weights=arrays["weights"],
    )
