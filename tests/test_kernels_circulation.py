"""The circulation kernel against a slow oracle and conservation laws."""

from __future__ import annotations

import os
import subprocess
import sys

import naive_circulation as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab.kernels import circulation as kernel

LOWER = np.array([200, 0.2, 500, 0.5, -50, 100])
UPPER = np.array([1000, 5, 2500, 6, 500, 600])
DEFAULT = (400, 2.4, 1100, 1.4, 10, 300)

# (V_init, Emax, R, C, V0, t_max), heart rate: EDV, ESV, MAP, PSAP, EDAP, ET of an independent
# implementation at a time step of 0.5 ms
GOLDEN = [
    (DEFAULT, 60, (144.867, 51.102, 85.357, 118.589, 62.042, 279.433)),
    (DEFAULT, 75, (134.337, 52.407, 92.612, 119.844, 71.788, 269.427)),
    (DEFAULT, 90, (124.468, 52.880, 96.807, 119.304, 78.347, 260.229)),
    (DEFAULT, 100, (118.335, 52.835, 98.296, 118.191, 81.280, 254.504)),
    ((700, 0.6, 1300, 1.2, 60, 320), 80, (337.115, 264.588, 102.206, 126.493, 81.931, 249.841)),
    ((950, 0.3, 1500, 1.5, 250, 280), 70, (623.672, 571.266, 74.362, 97.609, 61.159, 223.608)),
    ((300, 4, 900, 3, 0, 200), 95, (68.782, 15.859, 62.848, 92.135, 54.217, 183.466)),
    ((1000, 0.2, 1100, 1.4, 10, 300), 75, (533.030, 470.180, 71.940, 92.543, 57.189, 247.649)),
    ((400, 2.4, 1100, 1.4, 10, 600), 100, (99.185, 44.205, 82.798, 92.335, 70.387, 380.968)),
]
RICH = {
    "aortic_valve_loss": 4e-5,
    "mitral_loss": 1e-5,
    "tricuspid_loss": 2e-5,
    "pulmonary_valve_loss": 1e-5,
    "mitral_leak": 1 / 8,
    "lv_source": 6e-4,
    "lv_stiffening": 0.003,
    "aortic_stiffening": 0.25,
    "hill_rise": 1.6,
    "hill_fall": 17.0,
    "lv_pressure_offset": 1.0,
    "rv_pressure_offset": 0.5,
    "la_pressure_offset": 0.3,
    "ra_pressure_offset": 0.2,
}


def simulate(rows, time_step=5e-3, tolerance=1e-2, max_beats=200, initial=None):
    rows = np.atleast_2d(rows)
    initial = kernel.initial_states(rows) if initial is None else initial
    return kernel.simulate(rows, initial, time_step, tolerance, max_beats)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    theta, rate = rng.uniform(LOWER, UPPER, (n, 6)), rng.uniform(55, 105, n)
    return np.array([naive.constants(t, r) for t, r in zip(theta, rate, strict=True)])


def curve(row, **kwargs):
    start = simulate(row, **kwargs)[3][0]
    table = kernel.beat(row, start, kwargs.get("time_step", 5e-3))[2]
    return {name: table[:, i] for i, name in enumerate(kernel.CURVES)}


def test_index_names_follow_the_table():
    for i, (name, default, unit, meaning) in enumerate(kernel.TABLE):
        assert getattr(kernel, name.upper()) == i
        assert np.isfinite(default)
        assert unit
        assert meaning


@pytest.mark.parametrize(("theta", "rate", "expected"), GOLDEN)
def test_golden_values(theta, rate, expected):
    row = naive.constants(theta, rate)
    fine = simulate(row, time_step=5e-4, tolerance=1e-8)[0][0, :6]
    np.testing.assert_allclose(fine, expected, atol=2e-3, rtol=0)  # mL, mmHg, ms
    outputs, status, beats, _ = simulate(row)
    np.testing.assert_allclose(outputs[0, :6], expected, rtol=1e-3)
    assert beats[0] < 10
    assert status[0] & (kernel.NOT_CONVERGED | kernel.NON_FINITE) == 0


@pytest.mark.parametrize(
    ("theta", "rate", "others"),
    [
        (DEFAULT, 75, {}),
        ((950, 0.3, 1500, 1.5, 250, 280), 70, {}),
        ((300, 4, 900, 3, 0, 200), 95, {}),
        ((400, 2.4, 1100, 1.4, 10, 600), 100, {}),
        ((700, 0.9, 1300, 1.2, 60, 320), 80, RICH),
    ],
)
def test_one_beat_agrees_with_an_adaptive_solver_with_events(theta, rate, others):
    row = naive.constants(theta, rate, **others)
    start = simulate(row)[3][0]
    expected, end = naive.beat(row, start)
    # EDV, ESV mL; MAP, PSAP, EDAP mmHg; ET ms; and the right side
    allowed = [0.002, 0.008, 0.016, 0.048, 0.008, 0.028, 0.002, 0.008, 0.01, 0.02, 0.008, 0.01]
    outputs, stop, _ = kernel.beat(row, start, 5e-3)
    assert np.all(np.abs(outputs - expected) < allowed)
    assert np.abs(stop - end)[:8].max() < 2e-3
    # a finer step is nearer
    _, finer, _ = kernel.beat(row, start, 1e-3)
    assert np.abs(finer - end)[:8].max() < 0.3 * np.abs(stop - end)[:8].max()


def test_default_time_step_is_far_more_exact_than_the_tolerances():
    rows = draw(60, seed=1)
    coarse = simulate(rows, tolerance=1e-6)[0][:, :6]
    fine = simulate(rows, time_step=5e-4, tolerance=1e-6)[0][:, :6]
    assert np.all(np.abs(coarse - fine).max(axis=0) < [0.01, 0.01, 0.03, 0.06, 0.06, 0.1])


def test_total_volume_is_kept():
    rows = draw(100, seed=2)
    _, _, beats, start = simulate(rows)
    volume = rows[:, kernel.INITIAL_VOLUME] + rows[:, kernel.REFERENCE_VOLUME]
    assert beats.max() > 5
    for row, state, total in zip(rows, start, volume, strict=True):
        assert abs(state[:8].sum() - total) < 1e-9
        assert abs(kernel.beat(row, state, 5e-3)[1][:8].sum() - total) < 1e-9


def test_initial_split_of_the_volume_does_not_matter():
    row = naive.constants(DEFAULT, 75)
    rng = np.random.default_rng(3)
    reference = simulate(row, tolerance=1e-9)[0]
    dead = np.zeros(8)
    dead[:4] = 4.0, 10.0, 4.0, 10.0
    initial = np.zeros((20, 12))
    initial[:, :8] = dead + (675.0 - dead.sum()) * rng.dirichlet(np.ones(8), 20)
    outputs, status, _, _ = simulate(np.tile(row, (20, 1)), tolerance=1e-9, initial=initial)
    assert not status.any()
    np.testing.assert_allclose(outputs, np.tile(reference, (20, 1)), rtol=1e-7)


def test_periodic_beat_balances_flows():
    # What leaves the LV in a beat passes the systemic resistance: mean flow is Δp / R.
    row = naive.constants(DEFAULT, 75)
    c = curve(row, time_step=1e-3, tolerance=1e-8)
    period = row[kernel.HEART_PERIOD]

    def mean(y):
        return np.trapezoid(y, c["time"]) / period

    stroke = c["lv_volume"].max() - c["lv_volume"].min()
    assert mean(c["aortic_flow"]) * period == pytest.approx(stroke, rel=1e-5)
    assert mean(c["pulmonary_flow"]) == pytest.approx(mean(c["aortic_flow"]), rel=1e-5)
    resistance = (1 - 0.06) * row[kernel.AORTIC_RESISTANCE]
    drop = mean(c["sa_pressure"]) - mean(c["sv_pressure"])
    assert drop / resistance == pytest.approx(mean(c["aortic_flow"]), rel=1e-5)
    root = 0.06 * row[kernel.AORTIC_RESISTANCE] * c["aortic_flow"]
    np.testing.assert_allclose(c["aortic_pressure"] - c["sa_pressure"], root, atol=1e-9)


@pytest.mark.parametrize("t_max", [0.1, 0.3, 0.45, 0.6])
@pytest.mark.parametrize("cosine", [0.0, 1.0])
def test_elastance_has_its_maximum_at_the_given_time(t_max, cosine):
    row = naive.constants(DEFAULT, 60, lv_time_to_emax=t_max, cosine_shape=cosine)
    c = curve(row, time_step=5e-3)
    elastance = c["lv_pressure"] / (c["lv_volume"] - 10.0)
    assert elastance.max() == pytest.approx(2.4, rel=1e-12)
    assert c["time"][np.argmax(elastance)] == pytest.approx(t_max)
    assert elastance[0] == pytest.approx(0.04)
    assert elastance[-1] == pytest.approx(0.04, abs=2e-3)


def test_activation_has_the_published_shape():
    row = naive.constants(DEFAULT, 60, lv_time_to_emax=0.4)
    c = curve(row, time_step=5e-3)
    e = (c["lv_pressure"] / (c["lv_volume"] - 10.0) - 0.04) / (2.4 - 0.04)
    assert e[np.searchsorted(c["time"], 0.54 - 1e-9)] == pytest.approx(0.065, abs=5e-4)
    assert e[np.searchsorted(c["time"], 0.60 - 1e-9)] == pytest.approx(0.007, abs=5e-4)
    assert np.abs(e[c["time"] > 0.801]).max() < 1e-12  # zero beyond twice the time to maximum


def test_cosine_shape_shortens_ejection():
    rows = [naive.constants(DEFAULT, 75, cosine_shape=shape) for shape in (0.0, 1.0)]
    hill, cosine = simulate(np.array(rows))[0][:, kernel.ET]
    assert hill == pytest.approx(269, abs=1)
    assert cosine == pytest.approx(225, abs=1)


def test_a_batch_gives_the_same_bits_as_single_rows():
    rows = draw(30, seed=4)
    rows[10:20, kernel.HEART_PERIOD] = 0.7  # neighbours that share a table
    rows[12:16, kernel.LV_TIME_TO_EMAX] = 0.25
    together = simulate(rows)
    for i, row in enumerate(rows):
        for batch, single in zip(together, simulate(row), strict=True):
            np.testing.assert_array_equal(batch[i], single[0])


def test_outputs_are_smooth_in_the_parameters():
    # Finite differences work: along a fine sweep the outputs follow a parabola.
    rows = np.tile(naive.constants(DEFAULT, 75), (101, 1))
    rows[:, kernel.LV_EMAX] *= np.linspace(0.999, 1.001, 101)
    y = simulate(rows)[0][:, :6]
    u = np.linspace(-1, 1, 101)
    rest = y - np.polynomial.polynomial.polyval(u, np.polynomial.polynomial.polyfit(u, y, 2)).T
    assert np.all(np.abs(rest).max(axis=0) < [5e-4, 5e-4, 3e-3, 3e-3, 3e-3, 5e-3])


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.floats(40, 150))
def test_anywhere_in_the_domain_a_periodic_state_is_found(u, rate):
    row = naive.constants(LOWER + np.array(u) * (UPPER - LOWER), rate)
    outputs, status, _, _ = simulate(row)
    o = dict(zip(kernel.OUTPUTS, outputs[0], strict=True))
    assert np.isfinite(outputs).all()
    assert status[0] & (kernel.NOT_CONVERGED | kernel.NON_FINITE) == 0
    assert o["lv_esv"] <= o["lv_edv"]
    assert o["aortic_diastolic"] <= o["aortic_mean"] <= o["aortic_systolic"]
    assert o["pulmonary_diastolic"] <= o["pulmonary_mean"] <= o["pulmonary_systolic"]
    assert 0 <= o["ejection_time"] <= 60000 / rate + 1e-9


@pytest.mark.parametrize("rate", [50, 75, 120])
def test_all_corners_of_the_domain_converge(rate):
    corners = np.array(np.meshgrid(*zip(LOWER, UPPER, strict=True))).reshape(6, -1).T
    rows = np.array([naive.constants(theta, rate) for theta in corners])
    outputs, status, beats, _ = simulate(rows)
    assert len(rows) == 64
    assert np.isfinite(outputs).all()
    assert not np.any(status & (kernel.NOT_CONVERGED | kernel.NON_FINITE))
    assert beats.max() <= 60


@pytest.mark.parametrize(
    ("flag", "theta", "rate"),
    [
        (kernel.NO_STRESSED_VOLUME, (210, 2, 2000, 4, 490, 300), 75),
        (kernel.LOW_OUTPUT, (210, 2, 2000, 4, 490, 300), 75),
        (kernel.NEGATIVE_VOLUME, (830, 2.9, 945, 3.6, -45, 456), 78),
        (kernel.AORTIC_ALWAYS_OPEN, (204.78, 0.45, 2438, 4.23, 470.84, 563.7), 110),
        (kernel.TMAX_CLAMPED, (400, 2.4, 1100, 1.4, 10, 500), 100),
    ],
)
def test_status_names_what_is_unusual(flag, theta, rate):
    outputs, status, _, _ = simulate(np.array([naive.constants(theta, rate)]))
    assert status[0] & flag
    assert np.isfinite(outputs).all()
    _, normal, _, _ = simulate(naive.constants(DEFAULT, 75))
    assert normal[0] == 0


def test_a_heart_that_does_not_beat_never_opens_the_aortic_valve():
    passive = {f"{chamber}_emax": 0.1 for chamber in ("lv", "rv", "la", "ra")}
    passive |= {f"{chamber}_emin": 0.1 for chamber in ("lv", "rv", "la", "ra")}
    outputs, status, _, _ = simulate(naive.constants(DEFAULT, 75, **passive), max_beats=1)
    assert status[0] & kernel.AORTIC_NEVER_OPENS
    assert status[0] & kernel.NOT_CONVERGED
    assert outputs[0, kernel.ET] == 0


def test_failed_runs_are_flagged_and_do_not_disturb_their_neighbours():
    rows = np.tile(naive.constants(DEFAULT, 75), (3, 1))
    rows[1, kernel.AORTIC_COMPLIANCE] = np.nan
    outputs, status, beats, _ = simulate(rows)
    assert status[1] & kernel.NON_FINITE
    assert beats[1] == 1
    assert status[0] == status[2] == 0
    np.testing.assert_array_equal(outputs[0], outputs[2])
    assert simulate(rows[:1], max_beats=2)[1][0] == kernel.NOT_CONVERGED


def test_times_beyond_the_clamp_are_one_model():
    rows = [naive.constants((400, 2.4, 1100, 1.4, 10, t), 100) for t in (480, 540, 600)]
    outputs = simulate(np.array(rows))[0]
    np.testing.assert_allclose(outputs[1:], outputs[[0, 0]], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "output", "sign"),
    [
        ("aortic_valve_loss", 5e-5, "lv_esv", 1),
        ("lv_source", 1e-3, "aortic_systolic", -1),
        ("lv_stiffening", 4e-3, "lv_edv", -1),
        ("mitral_leak", 0.1, "la_mean", 1),
        ("mitral_leak", 0.1, "aortic_mean", -1),
        ("aortic_stiffening", 0.3, "aortic_systolic", 1),
    ],
)
def test_richer_terms_act_as_physiology_says(name, value, output, sign):
    theta = (500, 2.4, 1100, 0.8, 10, 300)  # with a wide pulse pressure
    rows = [naive.constants(theta, 75, **{name: v}) for v in (0.0, value)]
    before, after = simulate(np.array(rows))[0][:, kernel.OUTPUTS.index(output)]
    assert sign * (after - before) > 0.1


def test_without_compilation_the_kernel_gives_the_same_numbers():
    code = (
        "import numpy as np; from vitolab.kernels import circulation as k;"
        "rows = k.DEFAULTS[None].copy();"
        "out = k.simulate(rows, k.initial_states(rows), 1e-2, 0.1, 20);"
        "print(hasattr(k.simulate, 'py_func'), out[2][0], *(float(v).hex() for v in out[0][0]))"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    words = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    outputs, _, beats, _ = simulate(kernel.DEFAULTS, time_step=1e-2, tolerance=0.1, max_beats=20)
    assert words[0] == "False"
    assert int(words[1]) == beats[0]
    np.testing.assert_allclose([float.fromhex(w) for w in words[2:]], outputs[0], rtol=1e-9)
