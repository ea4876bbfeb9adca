"""What has to be known of electrophysiology to use it; the model loads when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from vitolab.models.description import Electrocardiogram, Lesson, Model, setup_of

if TYPE_CHECKING:
    from pathlib import Path

    from vitolab.models.description import Arrays
    from vitolab.problem import FloatArray, Patient, Problem


def _problem(setup: str) -> Problem:
    """Problem of a lead field."""
    from vitolab.models import electrophysiology

    return electrophysiology.problem(setup)


def _patients() -> list[Patient]:
    """Patients for evaluation."""
    from vitolab.models import electrophysiology

    return electrophysiology.cohort().evaluation


def _located(patients: Sequence[Patient], folder: Path) -> list[Patient]:
    """Find the mesh of each patient in a folder, and note its checksum."""
    from vitolab.files import resolved
    from vitolab.models import electrophysiology

    found = []
    for patient in patients:
        named = patient.data["anatomy"]
        if named not in electrophysiology.PRESETS:
            path = resolved(folder / named)
            data = {**patient.data, "anatomy": str(path)}
            if os.path.isfile(path):  # which of a name too long says no
                data["mesh_checksum"] = electrophysiology.mesh_checksum(path)
            patient = replace(patient, data=data)
        found.append(patient)
    return found


def _prepare(patients: Sequence[Patient], setup: str, n_jobs: int) -> None:
    """Build the heart of each patient."""
    from vitolab.models import electrophysiology

    electrophysiology.prepare(list(patients), [setup], n_jobs)


def _current(problem: Problem) -> Problem | None:
    """The same lead field, solved as the stored one was."""
    from vitolab.models import electrophysiology

    setup = setup_of(problem)
    if setup not in MODEL.n_states:
        return None
    exact, table = (electrophysiology.problem(setup, mode) for mode in ("exact", "table"))
    return table if table.version == problem.version else exact


def _is_safe(patient: Patient) -> bool:
    """Whether the anatomy of a patient is no file."""
    from vitolab.models import electrophysiology

    named = patient.data.get("anatomy")
    return named is None or (isinstance(named, str) and named in electrophysiology.PRESETS)


def _background(problem: Problem, patient: Patient) -> Arrays:
    """Segment and volume of each node."""
    from vitolab.models import electrophysiology
    from vitolab.models.electrophysiology.segments import segments

    heart = electrophysiology.heart(patient, setup_of(problem))
    anatomy = heart.anatomy
    found = segments(anatomy.apex_base, anatomy.rotation, anatomy.right)
    return {"segment": found, "volume": heart.volume}


def _answer(problem: Problem, x: FloatArray, patient: Patient) -> Arrays:
    """Mean activation times of the 17 segments [ms], and the ECG [mV] over ``time`` [ms]."""
    from vitolab.models import electrophysiology
    from vitolab.models.electrophysiology.segments import segment_means

    setup = setup_of(problem)
    tau = electrophysiology.activation(x, patient, setup)
    known = _background(problem, patient)
    time, leads = electrophysiology.ecg(x, patient, setup)
    means = segment_means(tau, known["volume"], known["segment"])
    return {"segments": means, "time": time, "leads": leads}


def _solvable(patient: Patient) -> str:
    """Whether a search found a solution."""
    from vitolab.models import electrophysiology

    if electrophysiology.is_solvable(patient):
        return "A search over the whole domain found a solution for this patient."
    return "A search over the whole domain found no solution for this patient: try another."


MODEL = Model(
    name="electrophysiology",
    # the paper has one lead field (section 3.2.2)
    n_states={"bem": 120, "infinite": 120},
    setup="bem",
    problem=_problem,
    patients=_patients,
    n_patients=75,
    prepare=_prepare,
    prepares="hearts",
    located=_located,
    max_runs=100,
    texts={"anatomy": "normal"},
    # wide on purpose, see `vitolab.models.circulation.about.RANGES`
    ranges={"qrs_duration": (30.0, 400.0, "ms"), "electrical_axis": (-180.0, 360.0, "°")},
    picture=Electrocardiogram(),
    answer=_answer,
    background=_background,
    is_slow=True,
    is_safe=_is_safe,
    current=_current,
    solvable=_solvable,
    lessons=(
        Lesson(
            *("electrophysiology-bem", "Electrophysiology", partial(_problem, "bem")),
            n_training=5,
            n_episodes=8,
            n_states=60,
            max_runs=100,
            first="E04",
            note="When a heart is used for the first time it is built, which takes a while.",
        ),
    ),
)
