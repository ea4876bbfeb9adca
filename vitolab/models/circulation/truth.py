"""True parameters of the synthetic cohort, for figures; nothing that personalises imports this.

They are parameters of a richer model: the personalised model at the true parameters does not meet
the measurements in general, so recovering them is no measure of success.
"""

from __future__ import annotations

from pathlib import Path

from vitolab.models.circulation.parameters import (
    CONSTANTS,
    FURTHER_PARAMETERS,
    LAB_PARAMETERS,
    MMHG,
    PAPER_PARAMETERS,
)
from vitolab.models.frozen import read_checked

CHECKSUM = "10da523375c5a89c4def212b0f3b57e5c66cd053e7408672e946a1dfa2234f91"


def _rows() -> list[dict[str, str]]:
    """Read the frozen table."""
    return read_checked(Path(__file__).with_name("truth.csv"), CHECKSUM)


def truth() -> dict[str, dict[str, float]]:
    """True parameters of all setups, by patient and parameter, in the paper's units.

    Raises
    ------
    ValueError
        If the file was changed.
    """
    found = {}
    for row in _rows():
        true = {p.name: float(row[p.name]) for p in PAPER_PARAMETERS}
        for p in FURTHER_PARAMETERS + LAB_PARAMETERS:
            name, factor = CONSTANTS[p.name]
            true[p.name] = float(row[f"constant:{name}"]) / factor
        # the parameter is the total resistance, the constant what follows the root of the artery
        true["pulmonary_resistance"] += (
            float(row["constant:pulmonary_characteristic_resistance"]) * MMHG
        )
        true["la_active_elastance"] -= true["la_emin"]
        true["ra_active_elastance"] -= true["ra_emin"]
        # the constant is a share of the aortic resistance
        true["aortic_characteristic_resistance"] = (
            float(row["constant:characteristic_share"]) * true["aortic_resistance"]
        )
        found[row["patient"]] = true
    return found
