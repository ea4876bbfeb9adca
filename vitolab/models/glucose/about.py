"""What has to be known of glucose and insulin to use the model; it loads when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitolab.models.description import Curves, Lesson, Model, Panel

if TYPE_CHECKING:
    from vitolab.models.description import Arrays
    from vitolab.problem import FloatArray, Patient, Problem

#: Smallest and largest dose; 0.3 and 0.5 g/kg are usual.
DOSE_RANGE = (0.05, 1.0, "g/kg")

#: As wide as those of the circulation: they catch mmol/L and pmol/L, not an unusual patient.
_GLUCOSE, _INSULIN = (20.0, 1500.0, "mg/dL"), (0.1, 1500.0, "μU/mL")

PICTURE = Curves(
    (
        Panel(
            *("Glucose", "minutes", "glucose", "time [min]", "glucose [mg/dL]"),
            levels={
                "fasting_glucose": "fasting",
                "glucose_30": "30 min",
                "glucose_60": "60 min",
                "glucose_120": "120 min",
            },
        ),
        Panel(
            *("Insulin", "minutes", "insulin", "time [min]", "insulin [μU/mL]"),
            levels={
                "fasting_insulin": "fasting",
                "insulin_5": "5 min",
                "insulin_30": "30 min",
                "insulin_120": "120 min",
            },
        ),
        Panel(
            *("Fasting glucose", "days", "daily_glucose", "time [d]", "glucose [mg/dL]"),
            levels={"fasting_glucose": "first", "year_glucose": "after a year"},
        ),
    )
)


def _problem(setup: str) -> Problem:
    """Problem of the only setup."""
    from vitolab.models.glucose import model

    if setup not in MODEL.n_states:
        raise ValueError(f"setup is {setup!r}, expected {MODEL.setup}")
    return model.problem()


def _current(problem: Problem) -> Problem | None:
    """The only setup."""
    return _problem(MODEL.setup)


def _patients() -> list[Patient]:
    """Patients for evaluation."""
    from vitolab.models.glucose import frozen

    return frozen.cohort().evaluation


def _answer(problem: Problem, x: FloatArray, patient: Patient) -> Arrays:
    """Course over three hours (minutes) and over a year (days)."""
    import numpy as np

    from vitolab.models.glucose import model

    minutes = np.arange(0.0, 181.0)
    # the days begin with the fasting state, and go on when the dose is gone
    days = np.arange(0.0, model.YEAR + 1.0)
    glucose, insulin, _ = model.course(x, patient, minutes / model.DAY).T
    daily = model.course(x, patient, days)[:, 0]
    return {
        "minutes": minutes,
        "glucose": glucose,
        "insulin": insulin,
        "days": days,
        "daily_glucose": daily,
    }


def _solvable(patient: Patient) -> str:
    """Whether a search found a solution."""
    from vitolab.models.glucose import frozen

    cohort = frozen.cohort()
    for known in cohort.scouting + cohort.evaluation:
        if known.name == patient.name and known.measurements == patient.measurements:
            if frozen.solvable()[patient.name]:
                return "A search from many starts found a solution: there is one."
            return "A search from many starts found no solution: there may be none."
    return "Not every patient need have a solution: if all methods fail, this one may have none."


MODEL = Model(
    name="glucose",
    # 100 per parameter, as the largest setup of the circulation
    n_states={"6p": 600},
    setup="6p",
    problem=_problem,
    patients=_patients,
    n_patients=30,
    data={"glucose_dose": "g/kg"},
    ranges={
        "glucose_dose": DOSE_RANGE,
        **dict.fromkeys(("fasting_glucose", "year_glucose"), _GLUCOSE),
        **{f"glucose_{minutes}": _GLUCOSE for minutes in (30, 60, 120)},
        **dict.fromkeys(("fasting_insulin", "insulin_5"), _INSULIN),
        **{f"insulin_{minutes}": _INSULIN for minutes in (30, 120)},
    },
    examples={"glucose_dose": (0.3, 0.5)},
    picture=PICTURE,
    answer=_answer,
    current=_current,
    solvable=_solvable,
    lessons=(
        Lesson(
            *("glucose", "Glucose, insulin and beta cells", lambda: _problem("6p")),
            n_training=10,
            n_episodes=10,
            n_states=300,
            max_runs=300,
        ),
    ),
)
