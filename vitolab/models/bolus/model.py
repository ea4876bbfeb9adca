"""A fluid bolus: stroke volume and arterial pressure before, to forecast the pressure after.

The circulation model with four free parameters for the four measurements that monitoring during
surgery gives: stroke volume and mean, systolic and diastolic pressure of an arterial line, which is
taken as the pressure in the aorta although peripheral arteries have a higher systolic pressure.
LV dead volume and time to maximum elastance keep their defaults, 10 mL and 300 ms.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from vitolab.files import source_version
from vitolab.models.circulation import model as circulation
from vitolab.problem import FloatArray, Objective, Patient, Problem

__all__ = ["FREE", "PRESSURES", "SYNTHETIC", "problem"]

VERSION = "1"
FREE = ("initial_volume", "lv_emax", "aortic_resistance", "aortic_compliance")
PRESSURES = ("aortic_mean", "aortic_systolic", "aortic_diastolic")

#: Synthetic measurements in the form of the real file, see `vitolab.models.bolus.generate`.
SYNTHETIC = Path(__file__).with_name("synthetic.csv")


def _outputs(x: FloatArray, patient: Patient, full: Problem) -> FloatArray:
    """Stroke volume and the three pressures."""
    rows = np.tile(full.default, (len(x), 1))
    rows[:, [i for i, p in enumerate(full.parameters) if p.name in FREE]] = x
    y = dict(zip((o.name for o in full.objectives), full.simulate(rows, patient).T, strict=True))
    return np.column_stack([y["lv_edv"] - y["lv_esv"], *(y[name] for name in PRESSURES)])


def problem() -> Problem:
    """Personalise to stroke volume and arterial pressure.

    Patients need ``heart_rate`` (beats per minute, 30 to 200) in their data. The tolerances are
    10 mL and 10 mmHg.

    Returns
    -------
    Problem
        Named ``bolus``.
    """
    full = circulation.problem("6p")
    return replace(
        full,
        name="bolus",
        version=f"{VERSION}-{full.version}-{source_version(Path(__file__))}",
        parameters=tuple(p for p in full.parameters if p.name in FREE),
        objectives=(
            Objective("stroke_volume", "Stroke volume", "mL", 10),
            *(o for o in full.objectives if o.name in PRESSURES),
        ),
        simulate=partial(_outputs, full=full),
    )
