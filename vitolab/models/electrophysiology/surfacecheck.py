"""Surfaces that cannot be those of a heart are refused; what was found is summed up.

Arguments are those of `vitolab.models.electrophysiology.surfaces`.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from vitolab.models.electrophysiology.anatomy import (
    EPI,
    LV_ENDO,
    RV_ENDO,
    SURFACES,
)
from vitolab.models.electrophysiology.surfaces import (
    connected,
    enclosed,
    normals,
    septal,
    wall_thickness,
)
from vitolab.problem import BoolArray, FloatArray, IntArray

SEPTUM = 0.1  # of the RV endocardium: least share that faces away from the LV
WHOLE = 0.8  # of the nodes of an endocardium: least share in its largest piece
HOLLOW = 0.2  # of the convex hull of an endocardium: least share that its cavity fills


def check(nodes: FloatArray, triangles: IntArray, surface: IntArray) -> None:
    """Refuse absent, scattered, open or swapped endocardia, and a septum without its right side.

    Swapped means that the wall of the LV is the thinner one and its cavity the less convex one.

    Parameters
    ----------
    nodes, triangles, surface
        See the head of this module.

    Raises
    ------
    ValueError
        If a tag is absent, an endocardium is in pieces or encloses no cavity, the endocardia are
        swapped, or the right side of the septum is not tagged as RV endocardium.
    """
    for tag in (LV_ENDO, RV_ENDO, EPI):
        if not (surface == tag).any():
            raise ValueError(f"no node of the boundary is tagged as {SURFACES[tag]}, expected some")
    wall, bulge = {}, {}
    for tag in (LV_ENDO, RV_ENDO):
        patch = triangles[(surface[triangles] == tag).all(axis=1)]
        part = connected(patch)
        patch = patch[part == np.bincount(part, minlength=1).argmax()]
        within, n_tagged = len(np.unique(patch)), int((surface == tag).sum())
        if within < WHOLE * n_tagged:
            raise ValueError(
                f"{within} of {n_tagged} nodes of the {SURFACES[tag]} form one piece, expected at "
                f"least {100 * WHOLE:g} %"
            )
        wall[tag] = wall_thickness(nodes[surface == tag], nodes[surface == EPI])
        try:
            bulge[tag] = -enclosed(nodes, patch) / ConvexHull(nodes[patch.ravel()]).volume
        except QhullError:
            bulge[tag] = 0.0
        if bulge[tag] < HOLLOW:
            raise ValueError(
                f"the {SURFACES[tag]} encloses {100 * bulge[tag]:.0f} % of its convex hull, "
                f"expected a cavity with at least {100 * HOLLOW:g} %"
            )
    if wall[LV_ENDO] < wall[RV_ENDO] and bulge[LV_ENDO] < bulge[RV_ENDO]:
        raise ValueError(
            f"the wall at the LV endocardium measures {wall[LV_ENDO]:.1f} mm and that at the RV "
            f"endocardium {wall[RV_ENDO]:.1f} mm, expected the LV's thicker; are the tags swapped?"
        )
    share = septal(nodes, triangles, surface).sum() / (surface == RV_ENDO).sum()
    if share < SEPTUM:
        raise ValueError(
            f"{100 * share:.0f} % of the RV endocardium lies on the septum, expected at least "
            f"{100 * SEPTUM:g} %; tag the right side of the septum as RV endocardium, too"
        )


def summary(nodes: FloatArray, triangles: IntArray, surface: IntArray, base: BoolArray) -> str:
    """Node counts and areas (cm²) of the surfaces, as text to show to the user.

    Parameters
    ----------
    nodes, triangles, surface, base
        See the head of this module.

    Returns
    -------
    str
    """
    _, area = normals(nodes, triangles)
    of_base = base[triangles].all(axis=1)
    parts = [
        (SURFACES[tag], surface == tag, ~of_base & (surface[triangles] == tag).all(axis=1))
        for tag in (LV_ENDO, RV_ENDO, EPI)
    ]
    parts.append(("base", base, of_base))
    return ", ".join(
        f"{name} {int(own.sum())} nodes and {area[faces].sum() / 100.0:.1f} cm²"
        for name, own, faces in parts
    )
