"""Direction of the myocardial fibres in idealised ventricles."""

from __future__ import annotations

import numpy as np

from vitolab.problem import FloatArray


def helix(
    long_axis: FloatArray,
    transmural_direction: FloatArray,
    transmural: FloatArray,
    endo: float = 60.0,
    epi: float = -60.0,
) -> FloatArray:
    """Fibres whose helix angle falls linearly through the wall (Streeter 1969).

    A positive angle makes a right-handed helix about the long axis.

    Parameters
    ----------
    long_axis : ndarray, shape (3,)
        From the apex to the base; its sign has no effect on the fibres but theirs.
    transmural_direction : ndarray, shape (n, 3)
        Outward, from endocardium to epicardium; any length but zero.
    transmural : ndarray, shape (n,)
        0 on the endocardium to 1 on the epicardium.
    endo, epi : float
        Helix angles in degrees.

    Returns
    -------
    ndarray, shape (n, 3)
        Unit vectors at right angles to the transmural direction. Where this is parallel to the
        long axis, as at the apex, the angle is counted from an arbitrary tangent.
    """
    n = transmural_direction / np.linalg.norm(transmural_direction, axis=1, keepdims=True)
    axis = long_axis / np.linalg.norm(long_axis)
    up = axis - (n @ axis)[:, None] * n
    flat = np.linalg.norm(up, axis=1) < 1e-3
    if flat.any():
        other = np.eye(3)[np.argmin(np.abs(axis))]
        up[flat] = other - (n[flat] @ other)[:, None] * n[flat]
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    around = np.cross(up, n)
    angle = np.deg2rad(endo + (epi - endo) * transmural)[:, None]
    fibres: FloatArray = np.cos(angle) * around + np.sin(angle) * up
    return fibres
