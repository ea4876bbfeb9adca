"""A model in closed form, in a module of its own so that worker processes find it."""

from __future__ import annotations

import numpy as np


def linear(x, patient):
    """Well-conditioned linear map of the parameters, plus the patient's offset."""
    u = x[:, 0] + 0.4 * x[:, 1]
    w = 0.8 * x[:, 1] - 0.3 * x[:, 0]
    return np.stack([u, w], axis=1) + patient.data["offset"]


def obstructed(x, patient):
    """Smooth map of the parameters that fails on a disc in the middle of its domain."""
    a, b = x.T
    y = np.stack([a + 0.4 * b + 0.05 * a**2, 0.8 * b - 0.3 * a + 0.05 * a * b], axis=1)
    y[a**2 + b**2 < 4.0] = np.nan
    return y + patient.data["offset"]
