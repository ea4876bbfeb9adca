"""What the study of cohorts from nothing cannot do is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from vitolab.studies import checked_parameters, find_study


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"setups": ["7p"]}, "setups holds '7p', expected one of 2p, 3p, .*, glucose, rosenbrock"),
        ({"methods": ["vito"]}, "methods holds 'vito', expected one of vito-continuous,"),
        ({"methods": ["bobyqa-cascade"]}, "methods holds 'bobyqa-cascade', expected one of"),
        ({"n_glucose_patients": 31}, "n_glucose_patients holds 31, expected at most 30"),
        ({"n_functions": 1}, "n_functions holds 1, expected at least 2"),
        ({"give_up": 1.0}, "give_up is 1.0, expected from 0 to below 1"),
        ({"give_up": 0.0}, "give_up holds 0, expected above 0"),
    ],
)
def test_what_cannot_be_is_refused(overrides: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=f"^from-nothing: {says}"):
        checked_parameters(find_study("from-nothing"), "quick", overrides)
