"""A fluid bolus: stroke volume and arterial pressure before, to forecast the pressure after.

The circulation model with four free parameters for the four measurements that monitoring during
surgery gives: stroke volume and mean, systolic and diastolic pressure of an arterial line, which is
taken as the pressure in the aorta although peripheral arteries have a higher systolic pressure.
LV dead volume and time to maximum elastance keep their defaults, 10 mL and 300 ms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from vitolab.files import source_version
from vitolab.models.circulation import model as circulation
from vitolab.problem import FloatArray, Objective, Patient, Problem
from vitolab.running import Answers, asked

__all__ = ["FREE", "PRESSURES", "SYNTHETIC", "problem"]

VERSION = "1"
FREE = ("initial_volume", "lv_emax", "aortic_resistance", "aortic_compliance")
PRESSURES = ("aortic_mean", "aortic_systolic", "aortic_diastolic")

#: Synthetic measurements in the form of the real file, see `vitolab.models.bolus.generate`.
SYNTHETIC = Path(__file__).with_name("synthetic.csv")


@dataclass(frozen=True)
class _Outputs:
    """Stroke volume and the three pressures."""

    full: Problem

    def __call__(self, x: FloatArray, patient: Patient) -> FloatArray:
        """Run the model, shape (n, 4)."""
        return self.answers(x, patient).y

    def answers(self, x: FloatArray, patient: Patient) -> Answers:
        """Run the circulation at the fixed defaults, with its reasons."""
        full = self.full
        rows = np.tile(full.default, (len(x), 1))
        rows[:, [i for i, p in enumerate(full.parameters) if p.name in FREE]] = x
        found = asked(full.simulate, rows, patient)
        y = dict(zip((o.name for o in full.objectives), found.y.T, strict=True))
        columns = [y["lv_edv"] - y["lv_esv"], *(y[name] for name in PRESSURES)]
        return Answers(np.column_stack(columns), found.reasons)


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
        simulate=_Outputs(full),
    )
