"""The circulation as a problem: the paper's tables, units, checks and failed runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import vitolab.models
from vitolab.kernels import circulation as kernel
from vitolab.models import circulation
from vitolab.models.circulation.inputs import pack
from vitolab.problem import Patient

PATIENT = Patient("P1", {}, {"heart_rate": 75})


@pytest.mark.parametrize(("setup", "n"), [("2p", 2), ("3p", 3), ("5p", 5), ("6p", 6)])
def test_setups_are_those_of_the_paper(setup, n):
    problem = circulation.problem(setup)
    assert problem.name == f"circulation-{setup}"
    assert problem.n_parameters == problem.n_objectives == n
    names = "initial_volume lv_emax aortic_resistance aortic_compliance lv_dead_volume time_to_emax"
    assert [p.name for p in problem.parameters] == names.split()[:n]
    names = "lv_edv lv_esv aortic_mean aortic_systolic aortic_diastolic ejection_time"
    assert [o.name for o in problem.objectives] == names.split()[:n]
    np.testing.assert_array_equal(problem.lower, [200, 0.2, 500, 0.5, -50, 100][:n])
    np.testing.assert_array_equal(problem.upper, [1000, 5, 2500, 6, 500, 600][:n])
    np.testing.assert_array_equal(problem.default, [400, 2.4, 1100, 1.4, 10, 300][:n])
    np.testing.assert_array_equal(problem.tolerance, [20, 20, 10, 10, 10, 50][:n])
    np.testing.assert_allclose(problem.step, 0.005 * (problem.upper - problem.lower))
    assert problem.n_actions == 6 * n
    assert problem.border == "clip"


def test_units_give_the_human_diastolic_time_constant():
    row = pack(np.array([[400, 2.4, 1100, 1.4, 10, 300]]), PATIENT)[0]
    resistance, compliance = row[kernel.AORTIC_RESISTANCE], row[kernel.AORTIC_COMPLIANCE]
    assert resistance == pytest.approx(0.8251, abs=5e-5)  # mmHg s/mL
    assert compliance == pytest.approx(1.8665, abs=5e-5)  # mL/mmHg
    assert resistance * compliance == pytest.approx(1.54)  # s
    assert row[kernel.LV_TIME_TO_EMAX] == 0.3  # s
    assert row[kernel.HEART_PERIOD] == 0.8  # s
    # the default row of the kernel is the default of the paper at 75 beats per minute
    np.testing.assert_allclose(row, kernel.DEFAULTS, rtol=1e-15)


def test_smaller_setups_hold_the_other_parameters_at_their_defaults():
    full = circulation.problem("20p")
    expected = full.simulate(full.default[np.newaxis], PATIENT)
    for setup, n in circulation.SETUPS.items():
        problem = circulation.problem(setup)
        y = problem.simulate(problem.default[np.newaxis], PATIENT)
        # the larger ones convert their defaults to the kernel's units and back
        np.testing.assert_allclose(y, expected[:, :n], rtol=0.0 if n == 20 else 1e-10)


def test_healthy_defaults_give_a_healthy_heart():
    outputs = circulation.run([[400, 2.4, 1100, 1.4, 10, 300]], PATIENT).outputs[0]
    o = dict(zip(kernel.OUTPUTS, outputs, strict=True))
    stroke = o["lv_edv"] - o["lv_esv"]
    assert 0.55 < stroke / o["lv_edv"] < 0.65
    assert 5.5 < stroke * 75 / 1000 < 6.5  # L/min
    assert 10 < o["pulmonary_mean"] < 20
    assert 4 < o["la_mean"] < 8
    assert o["rv_edv"] - o["rv_esv"] == pytest.approx(stroke, abs=0.05)


def test_curves_are_the_beat_behind_the_outputs():
    x = np.array([600, 0.8, 1300, 1.2, 50, 320])
    outputs = dict(
        zip(kernel.OUTPUTS, circulation.run(x[np.newaxis], PATIENT).outputs[0], strict=True)
    )
    curves = circulation.curves(x, PATIENT)
    assert curves["time"][0] == 0
    assert curves["time"][-1] == pytest.approx(0.8)
    assert curves["lv_volume"].max() == pytest.approx(outputs["lv_edv"], abs=0.5)
    assert curves["lv_volume"].min() == pytest.approx(outputs["lv_esv"], abs=0.5)
    assert curves["aortic_pressure"].max() == pytest.approx(outputs["aortic_systolic"], abs=0.1)
    assert curves["aortic_pressure"].min() == pytest.approx(outputs["aortic_diastolic"], abs=0.5)
    mean = np.trapezoid(curves["aortic_pressure"], curves["time"]) / 0.8
    assert mean == pytest.approx(outputs["aortic_mean"], abs=0.1)
    for name, values in curves.items():
        if name != "time":  # a periodic beat ends where it starts
            assert abs(values[-1] - values[0]) < 0.05 + 0.01 * np.ptp(values)
    volumes = sum(values for name, values in curves.items() if name.endswith("_volume"))
    np.testing.assert_allclose(volumes, 600 + 275, rtol=1e-12)
    both = curves["mitral_flow"].min(), curves["aortic_flow"].min()
    assert both == (0, 0)  # no valve leaks


@pytest.mark.parametrize("rate", [None, "fast", float("nan"), 29.9, 200.1])
def test_heart_rate_is_checked(rate):
    patient = Patient("P7", {}, {} if rate is None else {"heart_rate": rate})
    problem = circulation.problem("2p")
    with pytest.raises(ValueError, match=r"'P7': heart_rate is .*expected 30 to 200"):
        problem.simulate(problem.default[np.newaxis], patient)


@pytest.mark.parametrize("rate", [30, 200, np.float64(60)])
def test_extreme_heart_rates_run(rate):
    problem = circulation.problem("6p")
    patient = Patient("P8", {}, {"heart_rate": rate})
    assert np.isfinite(problem.simulate(problem.default[np.newaxis], patient)).all()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (0, np.nan, "row 1: initial_volume is nan mL, expected a finite number"),
        (2, -5.0, "row 1: aortic_resistance is -5 .*positive"),
        (3, 0.0, "row 1: aortic_compliance is 0 .*positive"),
        (5, np.inf, "row 1: time_to_emax is inf ms"),
        (1, 0.03, "row 1: lv_emax is 0.03 mmHg/mL, expected above the minimum elastance 0.04"),
    ],
)
def test_impossible_parameters_are_refused(column, value, message):
    problem = circulation.problem("6p")
    x = np.tile(problem.default, (2, 1))
    x[1, column] = value
    with pytest.raises(ValueError, match=message):
        problem.simulate(x, PATIENT)


def test_parameters_outside_the_domain_are_not_clipped():
    problem = circulation.problem("2p")
    y = problem.simulate(np.array([[1000.0, 2.4], [1100.0, 2.4]]), PATIENT)
    assert y[1, 0] > y[0, 0] + 5


def test_a_run_without_periodic_state_is_a_row_of_nan():
    hasty = circulation.problem("3p", numerics=circulation.Numerics(max_beats=2))
    y = hasty.simulate(hasty.default[np.newaxis], PATIENT)
    assert y.shape == (1, 3)
    assert np.isnan(y).all()
    runs = circulation.run(
        hasty.default[np.newaxis], PATIENT, "3p", circulation.Numerics(max_beats=2)
    )
    assert runs.failed.all()
    assert np.isfinite(runs.outputs).all()
    with pytest.raises(ValueError, match="'P1': no periodic state"):
        circulation.curves(hasty.default, PATIENT, "3p", circulation.Numerics(max_beats=2))


def test_an_empty_batch_gives_an_empty_answer():
    assert circulation.problem("5p").simulate(np.empty((0, 5)), PATIENT).shape == (0, 5)


def test_options_are_part_of_the_version():
    plain = circulation.problem("6p")
    assert plain.version == circulation.problem("2p").version
    others = [
        circulation.problem("6p", cosine_shape=1.0),
        circulation.problem("6p", lv_emin=0.05),
        circulation.problem("6p", numerics=circulation.Numerics(time_step=2e-3)),
    ]
    assert len({plain.version, *(p.version for p in others)}) == 4
    x = plain.default[np.newaxis]
    ejection = plain.simulate(x, PATIENT)[0, 5] - others[0].simulate(x, PATIENT)[0, 5]
    assert ejection == pytest.approx(44.6, abs=0.5)  # ms, the cosine relaxes sooner


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="setup is '4p', expected one of 2p, 3p, 5p, 6p"):
        circulation.problem("4p")
    with pytest.raises(ValueError, match="'emin' is not a constant"):
        circulation.problem("6p", emin=0.05)
    with pytest.raises(ValueError, match="constant 'lv_emin' is nan"):
        circulation.problem("6p", lv_emin=float("nan"))
    with pytest.raises(ValueError, match=r"time_step is 0\.02 s"):
        circulation.Numerics(time_step=0.02)
    with pytest.raises(ValueError, match="tolerance is 0"):
        circulation.Numerics(tolerance=0.0)
    with pytest.raises(ValueError, match="max_beats is 0"):
        circulation.Numerics(max_beats=0)
    with pytest.raises(ValueError, match=r"x has shape \(1, 2\), expected \(n, 3\)"):
        circulation.problem("3p").simulate(np.ones((1, 2)), PATIENT)
    with pytest.raises(AttributeError, match="no attribute 'lungs'"):
        _ = vitolab.models.lungs


def test_one_step_at_the_defaults_is_a_small_part_of_every_tolerance():
    problem = circulation.problem("6p")
    rows = np.tile(problem.default, (7, 1))
    rows[1:] += np.diag(problem.step)
    y = problem.simulate(rows, PATIENT)
    moved = np.abs(y[1:] - y[0]) / problem.tolerance
    assert moved.max() < 0.14
    assert moved[4, 1] == moved.max()  # dead volume on the end-systolic volume


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.floats(45, 120))
def test_more_blood_widens_the_ventricle(u, rate):
    problem = circulation.problem("6p")
    patient = Patient("P", {}, {"heart_rate": rate})
    x = problem.lower + np.array(u) * (problem.upper - problem.lower)
    assume(not circulation.run(x[np.newaxis], patient).status[0] & kernel.LOW_OUTPUT)
    y = problem.simulate(x + np.array([[0.0], [40.0]]) * np.eye(6)[0], patient)
    assume(np.isfinite(y).all())
    assert y[1, 0] > y[0, 0] + 0.5
    assert y[1, 2] > y[0, 2]


def test_runs_without_stressed_or_with_negative_volume_fail_and_say_so():
    """Each x of Ω with a flag of the kernel, none without, and in no setup as an answer."""
    problem = circulation.problem("6p")
    patient = Patient("P", {}, {"heart_rate": 75.0})
    x = problem.draw(np.random.default_rng(0), 4000)
    found = problem.run(x, patient)
    y = found.y
    runs = circulation.run(x, patient)
    empty = (runs.status & kernel.NO_STRESSED_VOLUME) != 0
    below = (runs.status & kernel.NEGATIVE_VOLUME) != 0
    stressed = x[:, 0] + 275 - x[:, 4] - 18
    assert np.array_equal(empty, stressed <= 0)
    assert empty.any()
    assert below.any()
    assert not runs.failed.any()
    bad = empty | below
    assert np.array_equal(np.isnan(y).all(axis=1), bad)
    assert np.array_equal(y[~bad], runs.outputs[~bad, :6])
    said = [f.text for f in found.failures]
    assert sum(t.startswith("stressed volume is -") for t in said) == empty.sum()
    assert sum(t.startswith("smallest LV volume is -") for t in said) == (below & ~empty).sum()
