"""What has to be known of the circulation to use it; the model loads when it is asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vitolab.models.description import Curves, Lesson, Model, Panel, setup_of
from vitolab.settings import RUNS_PER_PARAMETER

if TYPE_CHECKING:
    from vitolab.models.description import Arrays
    from vitolab.problem import FloatArray, Patient, Problem

#: Number of representative states that the paper chose (section 3.3.2).
PAPER_N_STATES = {"2p": 70, "3p": 150, "5p": 400, "6p": 600}

#: Lowest and highest value that is taken for a measurement of a living adult. Wide on purpose:
#: they catch a wrong unit or a lost digit, not an unusual patient. Heart rate is what the model
#: accepts; the rest is well beyond published extremes.
RANGES = {
    "heart_rate": (30.0, 200.0, "1/min"),
    "lv_edv": (20.0, 1500.0, "mL"),
    "lv_esv": (2.0, 1400.0, "mL"),
    "aortic_mean": (15.0, 300.0, "mmHg"),
    "aortic_systolic": (25.0, 450.0, "mmHg"),
    "aortic_diastolic": (8.0, 250.0, "mmHg"),
    "ejection_time": (20.0, 1000.0, "ms"),
    "rv_edv": (20.0, 1500.0, "mL"),
    "rv_esv": (2.0, 1400.0, "mL"),
    "pulmonary_mean": (2.0, 200.0, "mmHg"),
    "pulmonary_systolic": (4.0, 250.0, "mmHg"),
    "pulmonary_diastolic": (0.0, 150.0, "mmHg"),
    "la_mean": (-5.0, 100.0, "mmHg"),
    "ra_mean": (-5.0, 60.0, "mmHg"),
    "lv_edp": (-5.0, 100.0, "mmHg"),
    "lv_dpdt": (50.0, 10000.0, "mmHg/s"),
    "rv_dpdt": (20.0, 4000.0, "mmHg/s"),
    "la_volume_max": (5.0, 1500.0, "mL"),
    "la_volume_min": (1.0, 1400.0, "mL"),
    "ra_volume_max": (5.0, 1500.0, "mL"),
    "ra_volume_min": (1.0, 1400.0, "mL"),
}

#: Not so the diastolic and the mean pulmonary pressure, which lie within each other's error of
#: measurement.
RISING = (
    ("lv_esv", "lv_edv"),
    ("aortic_diastolic", "aortic_mean"),
    ("aortic_mean", "aortic_systolic"),
    ("aortic_diastolic", "aortic_systolic"),
    ("rv_esv", "rv_edv"),
    ("pulmonary_mean", "pulmonary_systolic"),
    ("pulmonary_diastolic", "pulmonary_systolic"),
    ("la_volume_min", "la_volume_max"),
    ("ra_volume_min", "ra_volume_max"),
)

PICTURE = Curves(
    (
        Panel(
            *("LV volume", "time", "lv_volume", "time [ms]", "LV volume [mL]"),
            levels={"lv_edv": "EDV", "lv_esv": "ESV"},
            measured=True,
        ),
        Panel(
            *("Aortic pressure", "time", "aortic_pressure"),
            *("time [ms]", "aortic pressure [mmHg]"),
            levels={
                "aortic_systolic": "systolic",
                "aortic_mean": "mean",
                "aortic_diastolic": "diastolic",
            },
            measured=True,
        ),
        Panel(
            *("Pressure-volume loop", "lv_volume", "lv_pressure"),
            *("LV volume [mL]", "LV pressure [mmHg]"),
            note="model; LV pressure was not measured",
        ),
    )
)


def _problem(setup: str) -> Problem:
    """Problem of a setup."""
    from vitolab.models.circulation import model

    return model.problem(setup)


def _patients() -> list[Patient]:
    """Patients for evaluation."""
    from vitolab.models.circulation import frozen

    return frozen.cohort().evaluation


def _current(problem: Problem) -> Problem | None:
    """The same setup."""
    return _problem(setup_of(problem)) if setup_of(problem) in MODEL.n_states else None


def _answer(problem: Problem, x: FloatArray, patient: Patient) -> Arrays:
    """Curves over a beat: ``time`` [ms], volume [mL] and pressures [mmHg]."""
    from vitolab.models.circulation import model

    curves = model.curves(x, patient, setup_of(problem))
    names = ("lv_volume", "lv_pressure", "aortic_pressure")
    return {"time": 1e3 * curves["time"], **{name: curves[name] for name in names}}


def _background(problem: Problem, patient: Patient) -> Arrays:
    """Measured curves of a synthetic patient; those of a namesake are not shown."""
    from vitolab.models.circulation import frozen

    cohort = frozen.cohort()
    for known in cohort.scouting + cohort.evaluation:
        shared = known.measurements.keys() & patient.measurements.keys()
        same = all(known.measurements[name] == patient.measurements[name] for name in shared)
        if known.name == patient.name and same and known.data == patient.data:
            curves = frozen.measured_curves()[known.name]
            return {**curves, "time": 1e3 * curves["time"]}
    return {}


def _lesson(setup: str, n_states: int) -> Lesson:
    """Lesson of one setup."""
    n = int(setup[:-1])
    return Lesson(
        *(f"circulation-{setup}", f"Circulation, {n} parameters", partial(_problem, setup)),
        n_training=10,
        n_episodes=10,
        n_states=n_states,
        max_runs=RUNS_PER_PARAMETER * n,
    )


MODEL = Model(
    name="circulation",
    # The further setups take 100 states per parameter, as 6p does; the scouting patients hardly
    # tell one number from another in 9p and 12p.
    n_states={**PAPER_N_STATES, "9p": 900, "12p": 1200, "20p": 2000},
    setup="6p",
    problem=_problem,
    patients=_patients,
    n_patients=48,
    data={"heart_rate": "1/min"},
    ranges=RANGES,
    rising=RISING,
    examples={"heart_rate": (75.0, 60.0)},
    picture=PICTURE,
    answer=_answer,
    background=_background,
    current=_current,
    lessons=(_lesson("2p", 70), _lesson("3p", 150), _lesson("5p", 300), _lesson("6p", 300)),
)
