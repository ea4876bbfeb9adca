"""The kernel of glucose, insulin and beta cells, against closed forms and another method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from vitolab.kernels import glucose as kernel

YEAR = 365.0
TIMES = np.array([0.0, 5.0, 30.0, 60.0, 120.0, 1440.0, 30 * 1440.0, YEAR * 1440.0]) / 1440.0


def constants(**changes: float) -> np.ndarray:
    row = kernel.DEFAULTS.copy()
    for name, value in changes.items():
        row[kernel.NAMES.index(name)] = value
    return row


def derivatives(row: np.ndarray, g: float, i: float, beta: float) -> np.ndarray:
    """The equations of the paper, written out apart from the kernel."""
    r0, eg0, si, _, sigma, alpha, k, d0, r1, r2, _ = row
    return np.array(
        [
            r0 - (eg0 + si * i) * g,
            beta * sigma * g**2 / (alpha + g**2) - k * i,
            (-d0 + r1 * g - r2 * g**2) * beta,
        ]
    )


def radau(row: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The same course by Radau IIA, to tight tolerances, in G, I and ln β."""
    g, i = kernel.fasting(row)
    dose, beta = row[kernel.DOSE], row[kernel.BETA]

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        found = derivatives(row, y[0], y[1], np.exp(y[2]))
        found[2] = derivatives(row, y[0], y[1], 1.0)[2]
        return found

    start = [g + dose, i, np.log(beta)]
    found = solve_ivp(
        rates, (0.0, times[-1]), start, "Radau", times[1:], rtol=1e-10, atol=[1e-9, 1e-9, 1e-10]
    )
    states = np.vstack([[g, i, np.log(beta)], found.y.T])
    states[:, 2] = np.exp(states[:, 2])
    return states


def test_published_constants_rest_at_the_published_steady_state():
    """G = 100 mg/dL, I = 10 μU/mL, β = 300 mg, for a year."""
    row = constants()
    np.testing.assert_allclose(kernel.fasting(row), (100.0, 10.0), rtol=1e-14)
    np.testing.assert_allclose(derivatives(row, 100.0, 10.0, 300.0), 0.0, atol=1e-12)
    states, status = kernel.simulate(row[np.newaxis], TIMES, 1e-6)
    assert status.tolist() == [kernel.SUCCESS]
    np.testing.assert_allclose(states[0], np.tile([100.0, 10.0, 300.0], (len(TIMES), 1)), rtol=1e-9)


def test_the_three_published_steady_states_are_those_of_the_closed_form():
    """β rests where it is none, or where glucose is a root of d0 = r1 G − r2 G²: 100 and 250."""
    row = constants()
    d0, r1, r2 = (row[i] for i in (kernel.D0, kernel.R1, kernel.R2))
    roots = (r1 + np.array([-1.0, 1.0]) * np.sqrt(r1**2 - 4.0 * r2 * d0)) / (2.0 * r2)
    np.testing.assert_allclose(roots, [100.0, 250.0], rtol=1e-12)
    for g in roots:
        i = (row[kernel.R0] / g - row[kernel.EG0]) / row[kernel.SI]
        share = g**2 / (row[kernel.ALPHA] + g**2)
        beta = row[kernel.K] * i / (row[kernel.SIGMA] * share)
        np.testing.assert_allclose(derivatives(row, g, i, beta), 0.0, atol=1e-10)
        np.testing.assert_allclose(kernel.fasting(constants(beta_cell_mass=beta)), (g, i))
    # at 250 mg/dL: I = 2.8 μU/mL and β = 36.96 mg, a saddle
    assert (i, beta) == pytest.approx((2.8, 36.96), rel=1e-12)
    np.testing.assert_allclose(
        kernel.fasting(constants(beta_cell_mass=1e-9)), (600.0, 0.0), atol=1e-6
    )


@pytest.mark.parametrize(
    ("mass", "end"),
    [
        (30.0, (600.0, 0.0, 0.0)),  # below the saddle: glucose is toxic, diabetes
        (45.0, (100.0, 10.0, 300.0)),  # above it: beta cells grow back
        (150.0, (100.0, 10.0, 300.0)),
        (900.0, (100.0, 10.0, 300.0)),  # and too many of them die
    ],
)
def test_the_saddle_parts_recovery_from_diabetes(mass, end):
    states, status = kernel.simulate(
        constants(beta_cell_mass=mass)[np.newaxis], np.array([0.0, 1.0, 10 * YEAR]), 1e-6
    )
    assert status.tolist() == [kernel.SUCCESS]
    np.testing.assert_allclose(states[0, -1], end, rtol=1e-5, atol=1e-5)
    # the mass rises from day to day where 100 < G < 250, and falls elsewhere
    g = states[0, 0, 0]
    assert (states[0, 1, 2] > mass) == (100.0 < g < 250.0)


def test_every_state_agrees_with_another_method_from_minutes_to_a_year():
    """Against Radau, with tolerances of 1e-10, at constants all over the place."""
    rng = np.random.default_rng(0)
    rows = []
    while len(rows) < 12:
        row = constants(dose=rng.uniform(30.0, 500.0))
        row[: kernel.D0] *= np.exp(rng.uniform(-0.7, 0.7, kernel.D0))
        row[kernel.D0] = rng.uniform(0.04, 0.09)
        rows.append(row)
    states, status = kernel.simulate(np.array(rows), TIMES, 1e-6)
    assert (status == kernel.SUCCESS).all()
    for row, found in zip(rows, states, strict=True):
        np.testing.assert_allclose(found, radau(row, TIMES), rtol=2e-5, atol=1e-5)


def test_insulin_is_not_taken_to_be_at_rest():
    """After a dose it rises within minutes; insulin at rest would be there at once."""
    row = constants(dose=200.0)
    times = np.array([0.0, 1.0, 5.0]) / 1440.0
    states = kernel.simulate(row[np.newaxis], times, 1e-8)[0][0]
    g, i, beta = states[1]
    rest = beta * row[kernel.SIGMA] * g**2 / (row[kernel.ALPHA] + g**2) / row[kernel.K]
    assert i - 10.0 < 0.3 * (rest - 10.0)
    np.testing.assert_allclose(states[1:], radau(row, times)[1:], rtol=1e-7)


def test_a_step_is_of_order_four():
    """Halving the step divides the error of a fixed span by sixteen."""
    row = constants(insulin_clearance=20.0, secretion=2.0)  # not stiff
    start = (250.0, 12.0, np.log(200.0))

    def after(n: int) -> np.ndarray:
        y = start
        for _ in range(n):
            y, _ = kernel.step(row, y, 0.5 / n)
        return np.array(y)

    exact = after(2048)
    errors = [np.abs(after(n) - exact).max() for n in (32, 64, 128)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(orders - 4.0) < 0.4).all(), orders


def test_an_infinite_step_damps_the_fast_part():
    """L-stable: one step of a century ends where glucose and insulin rest, at the same β."""
    row = constants(beta_cell_loss=1e-300, beta_cell_gain=1e-300, glucose_toxicity=1e-300)
    y = (100.0 + 1e-6, 10.0 - 1e-6, np.log(300.0))
    found, _ = kernel.step(row, y, 36500.0)
    np.testing.assert_allclose(found[:2], (100.0, 10.0), rtol=1e-11)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-2.0, 2.0), min_size=kernel.D0, max_size=kernel.D0),
    st.floats(0.01, 0.12),
    st.floats(0.0, 600.0),
)
def test_nothing_becomes_negative_and_glucose_keeps_its_bound(logs, loss, dose):
    """G stays below what production and effectiveness alone would hold, plus the dose."""
    row = constants(beta_cell_loss=loss, dose=dose)
    row[: kernel.D0] *= np.exp(np.array(logs))
    states, status = kernel.simulate(row[np.newaxis], TIMES, 1e-6)
    assert status.tolist() == [kernel.SUCCESS]
    assert (states >= 0.0).all()
    limit = row[kernel.R0] / row[kernel.EG0]
    assert (states[0, :, 0] <= (limit + dose) * (1.0 + 1e-6)).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.floats(-4.0, 4.0), min_size=7, max_size=7))
def test_the_fasting_state_is_at_rest(logs):
    row = constants()
    row[:7] *= np.exp(np.array(logs))
    g, i = kernel.fasting(row)
    found = derivatives(row, g, i, row[kernel.BETA])
    assert 0.0 < g <= row[kernel.R0] / row[kernel.EG0]
    assert abs(found[0]) <= 1e-9 * row[kernel.R0]
    assert abs(found[1]) <= 1e-9 * row[kernel.K] * i


def test_only_the_product_of_mass_and_secretion_acts():
    """Twice the cells of half the secretion are the same glucose and insulin, for good."""
    rows = np.array(
        [
            constants(dose=200.0, beta_cell_mass=200.0),
            constants(dose=200.0, beta_cell_mass=400.0, secretion=21.6),
        ]
    )
    states, _ = kernel.simulate(rows, TIMES, 1e-8)
    np.testing.assert_allclose(states[0, :, :2], states[1, :, :2], rtol=1e-6)
    np.testing.assert_allclose(2.0 * states[0, :, 2], states[1, :, 2], rtol=1e-6)


def test_constants_that_are_no_numbers_fail_and_are_said_to():
    states, status = kernel.simulate(
        np.array([constants(insulin_sensitivity=np.nan), constants()]), TIMES, 1e-6
    )
    assert status.tolist() == [kernel.NON_FINITE, kernel.SUCCESS]
    assert np.isnan(states[0, 1:]).all()
    assert np.isfinite(states[1]).all()
