"""The synthetic heart-failure cohort, frozen: measurements and measured curves, no truth.

56 synthetic patients, made by `vitolab.models.circulation.generate` with a richer model than the
one that is personalised; results on them are not comparable to the paper's success rates.

The measurements of all 56 (the paper's in brackets): end-diastolic LV volume 130 to 631 mL (129 to
647), end-systolic 71 to 498 mL (63 to 529), mean aortic pressure 68 to 118 mmHg (68 to 121),
peak-systolic 85 to 163 (83 to 182), end-diastolic 49 to 93 (48 to 99), ejection time 116 to 512 ms
(115 to 514).

Not every patient need have a solution in every setup. With two and three parameters the dead
volume is fixed, and the model does not reach the largest hearts (C10, 631 mL). How many patients
any method solved is part of each convergence study: `vitolab.plots.solvable_table`. In 20p each of
the 48 patients for evaluation has one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitolab.kernels.circulation import FURTHER_OUTPUTS, OUTPUTS
from vitolab.models.frozen import Cohort, read_checked
from vitolab.problem import FloatArray, Patient

CHECKSUMS = {
    "cohort.csv": "b970b316ad171ea13bdac002af25ead980111a365d79dc37882ddee9374e5719",
    "cohort_further.csv": "6f8e626ac58ecd5b3a855bb9e3bdbb62b02e85b38e2dab399a41a7364c9d1ad6",
    "cohort_curves.csv": "e7c8e85b932f7f3d1bedb9f8328348382fa63f18e093c49efbf8374a3c894497",
}


def _rows(name: str) -> list[dict[str, str]]:
    """Read a frozen table that lies beside this module."""
    return read_checked(Path(__file__).with_name(name), CHECKSUMS[name])


def cohort() -> Cohort:
    """Load the patients C01 to C56, 48 of them for evaluation.

    Each has the six objectives, right-heart measurements for richer problems (``rv_edv``,
    ``rv_esv``, ``pulmonary_mean``, ``pulmonary_systolic``, ``pulmonary_diastolic``, ``la_mean``;
    for 20p those of `vitolab.kernels.circulation.FURTHER_OUTPUTS`) and ``heart_rate`` in its data.

    Raises
    ------
    ValueError
        If the file was changed.
    """
    patients: dict[str, list[Patient]] = {"scouting": [], "evaluation": []}
    for row, more in zip(_rows("cohort.csv"), _rows("cohort_further.csv"), strict=True):
        measurements = {name: float(row[name]) for name in OUTPUTS}
        measurements |= {name: float(more[name]) for name in FURTHER_OUTPUTS}
        data = {"heart_rate": float(row["heart_rate"])}
        patients[row["split"]].append(Patient(row["patient"], measurements, data))
    return Cohort(**patients)


def measured_curves() -> dict[str, dict[str, FloatArray]]:
    """Load each patient's noisy LV volume (mL) and aortic pressure (mmHg) over one beat.

    The volume was taken at another heart rate and is stretched in time to the catheter's, as when
    MRI and catheter curves are shown together.

    Returns
    -------
    dict of str to dict of str to ndarray, shape (60,)
        By patient: ``time`` (s since the start of ventricular contraction), ``lv_volume`` and
        ``aortic_pressure``.

    Raises
    ------
    ValueError
        If a file was changed.
    """
    found = cohort()
    period = {p.name: 60.0 / p.data["heart_rate"] for p in found.scouting + found.evaluation}
    points: dict[str, list[tuple[float, float, float]]] = {name: [] for name in period}
    for row in _rows("cohort_curves.csv"):
        name, phase = row["patient"], float(row["phase"])
        point = (phase * period[name], float(row["lv_volume"]), float(row["aortic_pressure"]))
        points[name].append(point)
    names = ("time", "lv_volume", "aortic_pressure")
    return {
        patient: dict(zip(names, np.array(rows).T, strict=True)) for patient, rows in points.items()
    }
