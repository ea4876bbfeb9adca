"""The 17 segments of the left ventricle, and mean activation times in them."""

from __future__ import annotations

import numpy as np

from vitolab.problem import BoolArray, FloatArray, IntArray

CAP = 0.1  # apex-base coordinate below which the wall is the apex proper, segment 17
SEGMENTS = (
    "basal anterior",
    "basal anteroseptal",
    "basal inferoseptal",
    "basal inferior",
    "basal inferolateral",
    "basal anterolateral",
    "mid anterior",
    "mid anteroseptal",
    "mid inferoseptal",
    "mid inferior",
    "mid inferolateral",
    "mid anterolateral",
    "apical anterior",
    "apical septal",
    "apical inferior",
    "apical lateral",
    "apex",
)
# per ring, basal first: number of segments, angle in the picture at which the first begins, and
# inner and outer radius
RINGS = ((6, 60.0, 0.75, 1.0), (6, 60.0, 0.5, 0.75), (4, 45.0, 0.25, 0.5), (1, 0.0, 0.0, 0.25))


def segments(
    apex_base: FloatArray, rotation: FloatArray, right: BoolArray, cap: float = CAP
) -> IntArray:
    """AHA segment of each node (Cerqueira et al. 2002).

    Mid-septum stands at 180° in the picture, and the angle grows with ``rotation`` to inferior at
    270°: in the usual orientation the heart frame's +y points down and to the back of the
    patient, and the picture shows the heart seen from its apex.

    Parameters
    ----------
    apex_base, rotation : ndarray, shape (n,)
        Coordinates along (0 to 1) and about the long axis (radians, 0 at mid-septum, rising
        to inferior).
    right : ndarray of bool, shape (n,)
        Free wall of the right ventricle.
    cap : float
        The apex, segment 17, ends here; three rings of equal height reach from it to the base.

    Returns
    -------
    ndarray of int, shape (n,)
        1 to 17 in the left ventricle with its septum, 0 elsewhere. The septum is the 120° about
        its middle, not what lies between the insertions of the right ventricle.
    """
    angle = 180.0 + np.degrees(rotation)
    height = (apex_base - cap) / (1.0 - cap)
    ring = np.where(height < 0.0, 3, 2 - np.clip((3.0 * height).astype(np.int64), 0, 2))
    label = np.full(len(angle), 17, dtype=np.int64)
    for k, first in enumerate((1, 7, 13)):
        n, begin, _, _ = RINGS[k]
        turn = np.mod(angle - begin, 360.0) * (n / 360.0)
        label = np.where(ring == k, first + np.minimum(turn.astype(np.int64), n - 1), label)
    return np.where(right, 0, label)


def segment_means(tau: FloatArray, volume: FloatArray, label: IntArray) -> FloatArray:
    """Mean activation time per segment, weighted by volume.

    Parameters
    ----------
    tau : ndarray, shape (n,)
        ms; NaN where activation never arrives, which is left out.
    volume : ndarray, shape (n,)
    label : ndarray of int, shape (n,)
        See `segments`.

    Returns
    -------
    ndarray, shape (17,)
        NaN for a segment without nodes.
    """
    known = np.isfinite(tau)
    label, weight = label[known], volume[known]
    total = np.bincount(label, weights=weight * tau[known], minlength=18)
    with np.errstate(invalid="ignore"):
        means: FloatArray = (total / np.bincount(label, weights=weight, minlength=18))[1:]
    return means
