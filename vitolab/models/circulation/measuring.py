"""Measurements of the synthetic cohort: outputs of the model at two examinations, with noise."""

from __future__ import annotations

import numpy as np

from vitolab.kernels import circulation as kernel
from vitolab.problem import FloatArray

# Standard deviations of the measurement noise: volumes relative (MRI contours of the systolic
# ventricle and of the RV are the less certain), pressures in mmHg with a zero error common to all
# pressures of one transducer, time in ms.
VOLUME_NOISE = {"lv_edv": 0.03, "lv_esv": 0.04, "rv_edv": 0.04, "rv_esv": 0.05}
ZERO_ERROR, AORTIC_NOISE, PULMONARY_NOISE, TIME_NOISE = 1.5, 2.0, 1.5, 12.0
# Those of the setup 20p: relative, and in mmHg
FURTHER_NOISE = {
    "la_volume_max": 0.05,
    "la_volume_min": 0.06,
    "ra_volume_max": 0.05,
    "ra_volume_min": 0.06,
    "lv_dpdt": 0.05,
    "rv_dpdt": 0.05,
}
CATHETER_NOISE = {"lv_edp": 2.0, "ra_mean": 1.5}


def measure(rng: np.random.Generator, catheter: FloatArray, mri: FloatArray) -> FloatArray:
    """Noisy, rounded measurements.

    Parameters
    ----------
    rng : Generator
    catheter, mri : ndarray, shape (n, 12)
        Outputs of the model at either examination.

    Returns
    -------
    ndarray, shape (n, 12)
        In the order of `vitolab.kernels.circulation.OUTPUTS`.
    """
    n = len(catheter)
    measured = catheter.copy()
    for name, spread in VOLUME_NOISE.items():
        i = kernel.OUTPUTS.index(name)
        measured[:, i] = mri[:, i] * (1.0 + rng.normal(0.0, spread, n))
    for names, noise in (
        (("aortic_mean", "aortic_systolic", "aortic_diastolic"), AORTIC_NOISE),
        (
            ("pulmonary_mean", "pulmonary_systolic", "pulmonary_diastolic", "la_mean"),
            PULMONARY_NOISE,
        ),
    ):
        zero = rng.normal(0.0, ZERO_ERROR, n)
        for name in names:
            measured[:, kernel.OUTPUTS.index(name)] += zero + rng.normal(0.0, noise, n)
    measured[:, kernel.ET] += rng.normal(0.0, TIME_NOISE, n)
    return np.round(measured, 1)


def measure_further(rng: np.random.Generator, catheter: FloatArray, mri: FloatArray) -> FloatArray:
    """Noisy, rounded measurements that the setup 20p adds.

    Pressures and their slopes are the catheter's, in either side of the heart with a transducer
    that has been zeroed again; volumes are those of MRI.

    Parameters
    ----------
    rng : Generator
    catheter, mri : ndarray, shape (n, 8)
        Further outputs of the model at either examination.

    Returns
    -------
    ndarray, shape (n, 8)
        In the order of `vitolab.kernels.circulation.FURTHER_OUTPUTS`.
    """
    n, names = len(catheter), kernel.FURTHER_OUTPUTS
    measured = catheter.copy()
    for i, name in enumerate(names):
        if "volume" in name:
            measured[:, i] = mri[:, i]
    for name, spread in FURTHER_NOISE.items():
        measured[:, names.index(name)] *= 1.0 + rng.normal(0.0, spread, n)
    for name, noise in CATHETER_NOISE.items():
        zero = rng.normal(0.0, ZERO_ERROR, n)
        measured[:, names.index(name)] += zero + rng.normal(0.0, noise, n)
    return np.round(measured, 1)
