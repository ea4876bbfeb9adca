"""Geometry of a heart in a few numbers, by which a method tells one patient from another.

At equal speeds, QRS duration depends on the ways that activation has to go, and the electrical
axis on how the heart lies in the torso. The numbers are measured on the mesh, so that presets,
generated and imported hearts have the same ones; the model is not run.

The set was compared to others on the evaluation patients of the synthetic cohort, by the runs of an
agent with Gaussian processes. Thickness of the walls in place of their volumes, and distances from
the roots over the endocardium in place of the extents, were no better. The position in the torso is
left out: 7 mm, the standard deviation of a coordinate in the cohort, move the axis by a small part
of its tolerance, and no runs were saved.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from vitolab.files import digest, source_version
from vitolab.models.electrophysiology.anatomy import LV_ENDO, RV_ENDO, Anatomy
from vitolab.models.electrophysiology.cache import cache_folder, cached
from vitolab.models.electrophysiology.description import Description, described
from vitolab.models.electrophysiology.hearts import placed_anatomy
from vitolab.problem import FloatArray, Patient

MM3_PER_ML = 1000.0
SIDES = ("left", "back", "head")  # axes of the torso frame
#: Unit of each number, by name, in their order; `measured` tells what they are.
GEOMETRY = {
    "lv_cavity_width": "mm",
    "lv_cavity_length": "mm",
    "rv_cavity_width": "mm",
    "rv_cavity_length": "mm",
    "lv_wall_volume": "mL",
    "rv_wall_volume": "mL",
    **{f"long_axis_{side}": "1" for side in SIDES},
    **{f"septal_axis_{side}": "1" for side in SIDES},
}


def of_patient(patient: Patient) -> FloatArray:
    """Geometry of a patient's heart, measured when first asked for, then read from the cache.

    Parameters
    ----------
    patient : Patient
        See `vitolab.models.electrophysiology.heart`.

    Returns
    -------
    ndarray, shape (len(GEOMETRY),)
        In the order and units of `GEOMETRY`, see `measured`. Read-only.

    Raises
    ------
    ValueError
        If the data name no heart, or one that cannot be built.
    """
    return _kept(described(patient), cache_folder())


@lru_cache(maxsize=1000)
def _kept(description: Description, folder: Path) -> FloatArray:
    """Geometry of a heart, which is not loaded if its geometry is in the cache."""
    name = digest(description.key, "geometry", source_version(Path(__file__)))
    kept = cached(name, lambda: {"f": measured(*placed_anatomy(description, folder))}, folder)
    f: FloatArray = kept["f"]
    return f


def measured(anatomy: Anatomy, placed: FloatArray) -> FloatArray:
    """Measure a heart.

    Sums over the nodes and a system of three equations, some milliseconds; no activation times, no
    leads. Sums are taken without BLAS, so that they have the same bits for any number of threads.

    Parameters
    ----------
    anatomy : Anatomy
    placed : ndarray, shape (n, 3)
        Its nodes in the torso frame, mm.

    Returns
    -------
    ndarray, shape (len(GEOMETRY),)
        In the order of `GEOMETRY`:

        lv_cavity_width, rv_cavity_width
            Extent of the endocardium along y of the heart frame, from front to back and parallel
            to the septum, mm.
        lv_cavity_length, rv_cavity_length
            Extent of the endocardium along the long axis, mm.
        lv_wall_volume, rv_wall_volume
            Myocardium of the left ventricle with its septum, and of the free wall of the right
            one, mL.
        long_axis_left, long_axis_back, long_axis_head
            Direction cosines of the long axis from apex to base in the torso frame.
        septal_axis_left, septal_axis_back, septal_axis_head
            Direction cosines of the axis across the septum from the right to the left ventricle.
    """
    nodes = np.einsum("ni,ki->nk", anatomy.nodes, anatomy.frame)
    extents = [
        np.ptp(nodes[anatomy.surface == tag, axis]) for tag in (LV_ENDO, RV_ENDO) for axis in (1, 2)
    ]
    volume = anatomy.lumped
    of_walls = [volume[own].sum() / MM3_PER_ML for own in (~anatomy.right, anatomy.right)]
    share = volume[:, np.newaxis] / volume.sum()
    centre = (share * placed).sum(axis=0)
    # rows: the axes of the heart frame in the torso frame
    own, there = nodes - (share * nodes).sum(axis=0), placed - centre
    across, _, along = np.linalg.solve(
        np.einsum("ni,nj->ij", own, own), np.einsum("ni,nj->ij", own, there)
    )
    return np.concatenate([extents, of_walls, along, across])
