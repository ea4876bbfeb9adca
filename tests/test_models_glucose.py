"""Glucose, insulin and beta cells as a problem, and its synthetic cohort."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitolab as vl
from vitolab.catalogue import GLUCOSE, MODELS, synthetic_patients
from vitolab.files import source_version
from vitolab.identifiability import sensitivity
from vitolab.kernels import glucose as kernel
from vitolab.models import glucose
from vitolab.models.glucose import generate, model
from vitolab.problem import Patient, Problem
from vitolab.problemfile import ProblemError, read_problem

DOSE = {"glucose_dose": 0.3}
PATIENT = Patient("P1", {}, DOSE)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return glucose.problem()


def outputs(problem: Problem, x: Any, patient: Patient = PATIENT) -> dict[str, float]:
    y = problem.run(np.atleast_2d(x), patient).y[0]
    return dict(zip((o.name for o in problem.objectives), y.tolist(), strict=True))


def test_the_defaults_are_the_published_equilibrium(problem):
    """G = 100, I = 10 and β = 300 before the dose, and again after a year."""
    found = outputs(problem, problem.default)
    assert found["fasting_glucose"] == pytest.approx(100.0, rel=1e-12)
    assert found["fasting_insulin"] == pytest.approx(10.0, rel=1e-12)
    assert found["year_glucose"] == pytest.approx(100.0, rel=1e-5)
    end = glucose.course(problem.default, PATIENT, [0.0, model.YEAR])[-1]
    np.testing.assert_allclose(end, (100.0, 10.0, 300.0), rtol=1e-4)


def test_a_dose_raises_glucose_by_its_concentration(problem):
    """0.3 g/kg in 1.7 dL/kg are 176 mg/dL, of which little is gone after a second."""
    just_after = glucose.course(problem.default, PATIENT, [1.0 / 86400.0])[0, 0]
    assert just_after == pytest.approx(100.0 + 300.0 / 1.7, rel=1e-3)


def test_the_objectives_are_points_of_the_course(problem):
    x = problem.default * np.array([1.2, 0.4, 0.7, 1.1, 0.8, 1.05])
    found = outputs(problem, x)
    times = np.array([0.0, 5.0, 30.0, 60.0, 120.0, 365.0 * 1440.0]) / 1440.0
    g, i, _ = glucose.course(x, PATIENT, times).T
    expected = [g[0], i[0], i[1], g[2], i[2], g[3], g[4], i[4], g[5]]
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-12)


def test_a_row_does_not_depend_on_the_others(problem):
    x = problem.draw(np.random.default_rng(0), 20)
    y = problem.run(x, PATIENT).y
    assert np.isfinite(y).all()
    alone = np.concatenate([problem.run(row[np.newaxis], PATIENT).y for row in x])
    np.testing.assert_array_equal(y, alone)


def test_all_of_the_domain_has_an_answer(problem):
    """At all 64 corners, for the smallest and the largest dose."""
    corners = np.array(np.meshgrid(*zip(problem.lower, problem.upper, strict=True)))
    corners = corners.reshape(problem.n_parameters, -1).T
    for dose in GLUCOSE.ranges["glucose_dose"][:2]:
        runs = problem.run(corners, Patient("P1", {}, {"glucose_dose": dose}))
        assert not runs.failures
        assert (runs.y >= 0.0).all()


def test_more_of_each_parameter_moves_the_outputs_the_way_physiology_does(problem):
    base = outputs(problem, problem.default)
    moved = {}
    for i, p in enumerate(problem.parameters):
        x = problem.default.copy()
        x[i] *= 1.2
        moved[p.name] = outputs(problem, x)

    def rises(parameter: str, objective: str) -> bool:
        return moved[parameter][objective] > base[objective]

    assert rises("glucose_production", "fasting_glucose")
    assert not rises("insulin_sensitivity", "glucose_120")
    assert not rises("beta_cell_mass", "fasting_glucose")
    assert rises("beta_cell_mass", "insulin_30")
    assert not rises("insulin_clearance", "insulin_5")
    assert rises("half_secretion", "fasting_glucose")
    assert rises("beta_cell_loss", "year_glucose")
    # a matter of months: today's glucose does not know of it
    today = moved["beta_cell_loss"]["glucose_120"]
    assert today == pytest.approx(base["glucose_120"], rel=1e-3)


def test_nine_measurements_determine_six_parameters(problem):
    """Every combination moves the outputs by more than a tolerance over Ω, clearance least."""
    found = sensitivity(problem, problem.default, PATIENT, share=1e-4)
    by_ratio = found.jacobian * (problem.default * np.log(problem.upper / problem.lower))
    by_ratio /= problem.upper - problem.lower
    size, directions = np.linalg.svd(by_ratio)[1:]
    assert size[-1] > 1.0
    assert size[0] / size[-1] > 30.0  # widely different, as in practice
    assert found.parameters[int(np.argmax(np.abs(directions[-1])))] == "insulin_clearance"
    # without the sample at five minutes it is not determined
    rest = [i for i, name in enumerate(found.objectives) if name != "insulin_5"]
    assert np.linalg.svd(by_ratio[rest])[1][-1] < 0.6


@pytest.mark.parametrize("constant", ["secretion", "glucose_effectiveness"])
def test_what_is_not_determined_is_not_free(problem, constant):
    """A constant that is held fixed can be made up for by those that are free."""
    rows = np.tile(kernel.DEFAULTS, (2 * (problem.n_parameters + 1), 1))
    rows[:, kernel.DOSE] = model.rise(PATIENT)
    names = [*(p.name for p in problem.parameters), constant]
    spans = np.append(np.log(problem.upper / problem.lower), np.log(20.0))
    for i, (name, span) in enumerate(zip(names, spans, strict=True)):
        rows[2 * i, kernel.NAMES.index(name)] *= np.exp(1e-3 * span)
        rows[2 * i + 1, kernel.NAMES.index(name)] *= np.exp(-1e-3 * span)
    times = np.array(sorted({time for time, _ in model.SAMPLED}))
    states = kernel.simulate(rows, times, 1e-8)[0]
    y = np.array([states[:, times.tolist().index(t), s] for t, s in model.SAMPLED])
    jacobian = (y[:, ::2] - y[:, 1::2]) / 2e-3 / problem.tolerance[:, np.newaxis]
    assert np.linalg.svd(jacobian)[1][-1] < 0.1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "missing"),
        ({"glucose_dose": "much"}, "'much'"),
        ({"glucose_dose": 30.0}, "30.0"),
        ({"glucose_dose": float("nan")}, "nan"),
    ],
)
def test_a_dose_that_is_none_is_refused_in_one_sentence(problem, data, said):
    with pytest.raises(ValueError, match=rf"^patient 'P1': glucose_dose is {said}, expected 0.05"):
        glucose.course(problem.default, Patient("P1", {}, data), [0.0])


@pytest.mark.parametrize(
    ("x", "times", "said"),
    [
        ([1.0, 2.0], [0.0], r"x has shape \(1, 2\), expected \(n, 6\)"),
        ([864, -1, 300, 2e4, 432, 0.06], [0.0], "row 0: insulin_sensitivity is -1 mL/μU/d, exp"),
        ([864, 0.7, 300, 2e4, 432, 0.06], [1.0, 0.0], "times are .*, expected rising"),
        ([864, 0.7, 300, 2e4, 432, 0.06], [-1.0], "times are .*, expected rising"),
        ([864, 0.7, 300, 2e4, 432, 0.06], [np.inf], "times are .*, expected rising"),
    ],
)
def test_a_course_that_cannot_be_is_refused(x, times, said):
    with pytest.raises(ValueError, match=said):
        glucose.course(x, PATIENT, times)


def test_a_row_that_cannot_run_fails_alone(problem):
    x = np.tile(problem.default, (3, 1))
    x[1, 0] = -1.0
    runs = problem.run(x, PATIENT)
    assert np.isnan(runs.y[1]).all()
    assert np.isfinite(runs.y[[0, 2]]).all()
    assert sum(failure.n_runs for failure in runs.failures) == 1


def test_an_integration_that_gives_up_is_a_failed_run_with_its_reason(problem, monkeypatch):
    def given_up(rows, times, tolerance):
        states = np.ones((len(rows), len(times), 3))
        return states, np.array([kernel.SUCCESS, kernel.TOO_MANY_STEPS])

    monkeypatch.setattr(kernel, "simulate", given_up)
    runs = problem.run(np.tile(problem.default, (2, 1)), PATIENT)
    assert np.isnan(runs.y[1]).all()
    assert np.isfinite(runs.y[0]).all()
    assert "integration failed" in runs.failures[0].text


def test_another_kernel_is_another_version(problem):
    assert problem.version.endswith(source_version(kernel.__file__, model.__file__))


def test_the_package_of_models_names_each_that_the_catalogue_has():
    assert sorted(MODELS) == sorted(vl.models.__all__)


def test_a_model_of_ones_own_takes_the_name_of_no_built_in_one(tmp_path):
    starter = Path(__file__).parents[1] / "notebooks" / "starter" / "problem.toml"
    text = starter.read_text(encoding="utf-8")
    for name in MODELS:
        path = tmp_path / f"{name}.toml"
        path.write_text(re.sub(r'(?m)^name = ".*"', f'name = "{name}-own"', text, count=1))
        with pytest.raises(ProblemError, match=f"{name}-own"):
            read_problem(path)


# --- the cohort -----------------------------------------------------------------------------------


def test_the_cohort_is_whole_and_within_the_limits_of_a_file(problem):
    cohort = glucose.cohort()
    assert (len(cohort.scouting), len(cohort.evaluation)) == (8, 30)
    patients = cohort.scouting + cohort.evaluation
    assert len({p.name for p in patients}) == 38
    for patient in patients:
        assert set(patient.measurements) == {o.name for o in problem.objectives}
        for name, value in {**patient.measurements, **patient.data}.items():
            low, high, _ = GLUCOSE.ranges[name]
            assert low <= value <= high
    assert synthetic_patients(GLUCOSE, "6p", 1) == cohort.evaluation


def test_the_cohort_is_what_its_generator_draws():
    """By tolerance: integration and rounding may differ by a digit between machines."""
    rng = generate.stream("glucose cohort", generate.SEED)
    patients = sorted(glucose.cohort().scouting + glucose.cohort().evaluation, key=lambda p: p.name)
    drawn = [found for found in (generate._patient(rng) for _ in range(12)) if found]
    assert len(drawn) > 3
    for (measured, dose), patient in zip(drawn, patients, strict=False):
        assert dose == patient.data["glucose_dose"]
        for name, value in measured.items():
            assert value == pytest.approx(patient.measurements[name], rel=0.01, abs=0.11)


def test_the_richer_model_without_its_terms_is_the_one_that_is_personalised(problem):
    """A remote compartment that follows at once, and no drift."""
    row = kernel.DEFAULTS.copy()
    row[kernel.DOSE] = model.rise(PATIENT)
    found = generate._course(row, 1e7, 0.0)
    expected = list(outputs(problem, problem.default).values())
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    late = generate._course(row, generate.REMOTE[0], 0.0)
    assert late[3] > expected[3] + problem.tolerance[3]  # glucose at 30 min falls late


def test_who_is_solvable_is_what_a_search_finds(problem):
    """One who is, by a solution; and one who is not, after all its starts."""
    found = glucose.solvable()
    patients = {p.name: p for p in glucose.cohort().scouting + glucose.cohort().evaluation}
    assert sum(found.values()) == 35
    yes = next(name for name in sorted(found) if found[name])
    no = next(name for name in sorted(found) if not found[name])
    assert generate.is_solvable(problem, patients[yes])
    assert not generate.is_solvable(problem, patients[no])
    assert "there is one" in GLUCOSE.solvable(patients[yes])
    assert "there may be none" in GLUCOSE.solvable(patients[no])
    namesake = replace(patients[yes], measurements={**patients[yes].measurements, "insulin_5": 1.0})
    assert "need have a solution" in GLUCOSE.solvable(namesake)


def test_a_changed_cohort_is_refused(monkeypatch):
    from vitolab.models.glucose import frozen

    monkeypatch.setattr(frozen, "CHECKSUM", "0" * 64)
    with pytest.raises(ValueError, match=r"cohort\.csv: SHA-256 is .*, expected 000000000000"):
        frozen.cohort()


def test_curves_hold_what_their_picture_draws(problem):
    patient = glucose.cohort().evaluation[0]
    answer = GLUCOSE.answer(problem, problem.default, patient)
    for panel in GLUCOSE.picture.panels:
        assert len(answer[panel.x]) == len(answer[panel.y]) > 100
    y = outputs(problem, problem.default, patient)
    assert answer["glucose"][[0, 30, 60, 120]] == pytest.approx(
        [y[n] for n in ("fasting_glucose", "glucose_30", "glucose_60", "glucose_120")]
    )
    assert answer["daily_glucose"][-1] == pytest.approx(y["year_glucose"], rel=1e-5)


def test_an_agent_personalises_a_patient_from_others(problem):
    """Two of the scouting patients, from five others."""
    *others, patient = glucose.cohort().scouting[:6]
    assert glucose.solvable()[patient.name]
    walks = vl.explore(problem, others, n_episodes=2, n_steps=1, seed=0)
    fit = vl.ContinuousVito.learn(problem, walks).personalize(patient, max_runs=100, seed=0)
    assert fit.solved
    assert (np.abs(fit.misfits) < problem.tolerance).all()
