"""What has to be known of the circulation before a bolus to use it; it loads when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitolab.models.circulation.about import MODEL as CIRCULATION
from vitolab.models.description import Model

if TYPE_CHECKING:
    from vitolab.problem import Problem

_SHARED = ("heart_rate", "aortic_mean", "aortic_systolic", "aortic_diastolic")


def _problem(setup: str) -> Problem:
    """Problem of the only setup."""
    from vitolab.models.bolus import model

    if setup not in MODEL.n_states:
        raise ValueError(f"setup is {setup!r}, expected {MODEL.setup}")
    return model.problem()


def _current(problem: Problem) -> Problem | None:
    """The only setup."""
    return _problem(MODEL.setup)


MODEL = Model(
    name="bolus",
    # 100 per parameter, as the largest setup of the circulation
    n_states={"4p": 400},
    setup="4p",
    problem=_problem,
    data=CIRCULATION.data,
    ranges={
        "stroke_volume": (3.0, 400.0, "mL"),
        **{name: CIRCULATION.ranges[name] for name in _SHARED},
    },
    rising=tuple(pair for pair in CIRCULATION.rising if set(pair) <= set(_SHARED)),
    examples=CIRCULATION.examples,
    current=_current,
)
