"""What a model answers for a patient, as maps and pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import patient_pages
import pytest
import stores

from vitolab.dashboard import load_dashboards
from vitolab.models import circulation, electrophysiology

learned = patient_pages.learned

answers = load_dashboards("charts.answers")
pictures = load_dashboards("charts.pictures")


def test_a_mesh_outside_the_store_is_not_opened(learned):
    """The data of a stored patient cannot make the page read a file."""
    _, patients, _ = learned
    hearts = electrophysiology.problem()
    evil = replace(patients[0], data={"anatomy": "/etc/passwd"})
    assert not answers.is_safe(hearts, evil)
    assert answers.is_safe(hearts, replace(evil, data={"anatomy": "normal"}))


def test_the_map_is_lowest_at_the_minimum():
    """log₁₀ of a Rosenbrock function over the square."""
    from vitolab.models import rosenbrock

    patient = rosenbrock.cohort(3)[1]
    known = answers.background(rosenbrock.problem(), patient)
    end = rosenbrock.MODEL.picture.limit
    axis = np.linspace(-end, end, len(known["map"]))
    row, column = np.unravel_index(np.argmin(known["map"]), known["map"].shape)
    optimum = rosenbrock.optimum(patient)
    assert (axis[column] - optimum[0]) ** 2 < 0.1
    assert abs(axis[row] - axis[column] ** 2) < 0.3


def test_the_heart_is_shown_as_the_model_has_it():
    """Mean activation times of segments, and leads cut to their column."""
    problem = electrophysiology.problem()
    patient = electrophysiology.cohort().first(1)[0]
    picture = pictures.picture(problem)
    x = problem.default
    answer = answers.simulate(problem, x, patient)
    picture.patient(patient, {})
    picture.show(answer, np.zeros(2))
    tau = electrophysiology.activation(x, patient)
    assert np.nanmin(answer["segments"]) >= 0.0
    assert np.nanmax(answer["segments"]) <= np.nanmax(tau)
    assert len(picture.leads.data["time"]) == 12
    assert picture.marks.data["right"][0] == patient.measurements["qrs_duration"] + 5.0
    picture.show({}, np.zeros(2))
    assert picture.leads.data["time"] == []


def test_every_stored_problem_finds_its_model():
    """Also where the stored one differs in its options; others have none."""
    from vitolab.models import rosenbrock

    stored = rosenbrock.problem(extended=True, border="reject")
    again = answers.current(stored)
    assert (again.version, again.border, again.multipliers) == (
        stored.version, "reject", stored.multipliers,
    )  # fmt: skip
    assert answers.current(circulation.problem("5p")).name == "circulation-5p"
    assert answers.current(stores.PROBLEM) is None
    assert pictures.picture(stores.PROBLEM) is None


@pytest.mark.parametrize("mode", ["exact", "table"])
def test_an_unchanged_model_is_known_again(mode):
    problem = electrophysiology.problem("bem", mode)
    assert answers.current(problem).version == problem.version
