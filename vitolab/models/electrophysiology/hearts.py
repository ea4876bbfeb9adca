"""Hearts made ready to run: anatomy, graph and lead weights of a patient, built once and kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from vitolab.files import digest
from vitolab.models.electrophysiology.anatomy import Anatomy
from vitolab.models.electrophysiology.cache import cache_folder, cached, is_kept
from vitolab.models.electrophysiology.description import (
    NUMBERS,
    SHAPE,
    SHIFTS,
    TURNS,
    Description,
    described,
    mesh_checksum,
)
from vitolab.models.electrophysiology.graph import Graph, connect
from vitolab.models.electrophysiology.importer import load_anatomy
from vitolab.models.electrophysiology.leadfield import Leads, orient
from vitolab.models.electrophysiology.leadfield import prepare as prepare_leads
from vitolab.models.electrophysiology.mesh import generate
from vitolab.models.electrophysiology.shapes import PRESETS
from vitolab.models.electrophysiology.torso import superellipsoid
from vitolab.parallel.processes import watched
from vitolab.parallel.threads import one_thread
from vitolab.problem import FloatArray, Patient

__all__ = [
    "LEAD_FIELDS",
    "NUMBERS",
    "SHAPE",
    "Heart",
    "heart",
    "in_torso",
    "placed_anatomy",
    "prepare",
    "prepared",
]

LEAD_FIELDS = ("bem", "infinite")
SPACING = 3.6  # mm
RATIO = 0.5  # of cross-fibre to fibre speed
_BUILDING = threading.Lock()  # the number of BLAS threads is one for the whole process


@dataclass(frozen=True)
class Heart:
    """A heart that can be run; its arrays are shared and read-only.

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
        the path of a mesh, see `vitolab.models.electrophysiology.description`.
    lead_field : {"bem", "infinite"}
        A homogeneous torso, or an infinite medium.

    Returns
    -------
    Heart

    Raises
    ------
    ValueError
        If the data name no heart, or one that cannot be built.
    """
    _check([lead_field])
    return prepared(described(patient), lead_field)


def prepare(
    patients: Sequence[Patient], lead_fields: Sequence[str] = ("bem",), n_jobs: int = 1
) -> None:
    """Build the hearts of patients that are not in the cache yet, before they are needed.

    Parameters
    ----------
    patients : sequence of Patient
        See `heart`.
    lead_fields : sequence of {"bem", "infinite"}
    n_jobs : int
        Processes that build.

    Raises
    ------
    ValueError
        If a patient's data name no heart, or one that cannot be built; the sentence names the
        patient.
    """
    _check(lead_fields)
    folder = cache_folder()
    missing = [
        found
        for found in dict.fromkeys(described(patient) for patient in patients)
        if not all(is_kept(_name(found, part), folder) for part in (None, *lead_fields))
    ]
    if missing:
        Parallel(n_jobs=min(n_jobs, len(missing)))(
            delayed(watched(_prepare))(found, tuple(lead_fields), folder) for found in missing
        )


def _prepare(description: Description, lead_fields: Sequence[str], folder: Path) -> None:
    """Build one heart with its leads and keep it."""
    for lead_field in lead_fields:
        prepared(description, lead_field, folder)


def _check(lead_fields: Sequence[str]) -> None:
    """Refuse what is no lead field."""
    for name in lead_fields:
        if name not in LEAD_FIELDS:
            raise ValueError(f"lead_field is {name!r}, expected one of {', '.join(LEAD_FIELDS)}")


def _name(description: Description, lead_field: str | None = None) -> str:
    """Name in the cache of a heart without leads, or of its lead weights."""
    return digest(description.key, lead_field)


def prepared(description: Description, lead_field: str, folder: Path | None = None) -> Heart:
    """Give the heart of a description, from memory, from the cache, or built.

    Parameters
    ----------
    description : Description
    lead_field : {"bem", "infinite"}
    folder : Path, optional
        Of the cache, by default `cache_folder`.

    Returns
    -------
    Heart

    Raises
    ------
    ValueError
        If it cannot be built.
    """
    folder = cache_folder() if folder is None else folder
    geometry = _geometry(description, folder)
    return Heart(**geometry, weights=_weights(description, lead_field, folder))


def placed_anatomy(description: Description, folder: Path) -> tuple[Anatomy, FloatArray]:
    """Give a heart without its leads, as `prepared` does.

    Parameters
    ----------
    description : Description
    folder : Path
        Of the cache, see `cache_folder`.

    Returns
    -------
    anatomy : Anatomy
    placed : ndarray, shape (n, 3)
        Nodes in the torso frame, mm.

    Raises
    ------
    ValueError
        If it cannot be built.
    """
    geometry = _geometry(description, folder)
    return geometry["anatomy"], geometry["placed"]


@lru_cache(maxsize=100)  # 3 MB each
def _geometry(description: Description, folder: Path) -> dict[str, Any]:
    """All of a heart but its lead weights, which are its own for each lead field."""
    arrays = cached(
        _name(description), lambda: _built(description, lambda: _shaped(description)), folder
    )
    parts: dict[str, Any] = {name: arrays[name] for name in ("placed", "volume")}
    for name, kind in (("anatomy", Anatomy), ("graph", Graph)):
        parts[name] = kind(**{f.name: arrays[f"{name}.{f.name}"] for f in fields(kind)})
    return parts


@lru_cache(maxsize=200)  # 0.5 MB each
def _weights(description: Description, lead_field: str, folder: Path) -> FloatArray:
    """Lead weights of a heart."""

    def compute() -> dict[str, NDArray[Any]]:
        geometry = _geometry(description, folder)
        placed, tets = geometry["placed"], geometry["anatomy"].tets
        return _built(description, lambda: {"weights": _leads(lead_field).weights(placed, tets)})

    found: FloatArray = cached(_name(description, lead_field), compute, folder)["weights"]
    return found


def _built(
    description: Description, build: Callable[[], dict[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Build with one BLAS thread, as sums differ between numbers of threads; name the patient."""
    try:
        with _BUILDING, one_thread():
            return build()
    except (ValueError, ModuleNotFoundError) as error:
        raise ValueError(f"patient {description.patient!r}: {error}") from error


def _shaped(description: Description) -> dict[str, NDArray[Any]]:
    """Arrays of a heart without lead weights."""
    data = dict(description.numbers)
    if description.path:
        anatomy = load_anatomy(description.path)
        if mesh_checksum(description.path) != description.anatomy:
            raise ValueError(f"{description.path} was changed while it was read, expected it whole")
        graph = connect(anatomy, RATIO)
    else:
        changed = {name: data[name] for name in SHAPE if name in data}
        shape = replace(PRESETS[description.anatomy], **changed)
        anatomy = generate(shape, data.get("spacing", SPACING), int(data.get("mesh_seed", 0)))
        graph = connect(anatomy, RATIO, distance=shape.distance)
    turn = orient(**{name: data.get(name, 0.0) for name in TURNS})
    shift = np.array([data.get(name, 0.0) for name in SHIFTS])
    arrays = {"placed": in_torso(anatomy, turn, shift), "volume": anatomy.lumped}
    for name, whole in (("anatomy", anatomy), ("graph", graph)):
        arrays |= {f"{name}.{f.name}": getattr(whole, f.name) for f in fields(whole)}
    return arrays


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
    return prepare_leads(torso=None if lead_field == "infinite" else superellipsoid())
