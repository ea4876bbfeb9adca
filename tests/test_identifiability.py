"""Which parameters the objectives determine, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from vitolab.identifiability import sensitivity
from vitolab.models import circulation
from vitolab.problem import Objective, Parameter, Patient, Problem

PATIENT = Patient("P1", {}, {"heart_rate": 75})
WIDTHS, TOLERANCES = np.array([2.0, 10.0, 0.5]), np.array([0.1, 4.0, 1.0])
SLOPES = np.array([[3.0, 1.0, 0.0], [1.0, -2.0, 5.0], [0.0, 4.0, 8.0]])


def made(simulate, n_objectives=3, kind="difference") -> Problem:
    parameters = tuple(
        Parameter(f"x{i}", f"x{i}", "1", -1.0, -1.0 + width, -1.0, 0.1)
        for i, width in enumerate(WIDTHS)
    )
    objectives = tuple(
        Objective(f"y{i}", f"y{i}", "1", TOLERANCES[i], kind) for i in range(n_objectives)
    )
    return Problem("made", "1", parameters, objectives, simulate)


def middle(problem: Problem) -> np.ndarray:
    return (problem.lower + problem.upper) / 2


def test_a_linear_model_has_its_own_matrix_in_tolerances_per_domain():
    problem = made(lambda x, _: x @ SLOPES.T)
    expected = SLOPES * WIDTHS / TOLERANCES[:, np.newaxis]
    for x in (middle(problem), problem.lower, problem.upper):  # one-sided at the borders
        found = sensitivity(problem, x, PATIENT)
        np.testing.assert_allclose(found.jacobian, expected, rtol=1e-9, atol=1e-9)
        # singular values squared are the eigenvalues of SᵀS, directions its eigenvectors
        squared = np.linalg.eigvalsh(expected.T @ expected)[::-1]
        np.testing.assert_allclose(found.singular_values**2, squared, rtol=1e-7)
        for value, direction in zip(found.singular_values, found.directions, strict=True):
            np.testing.assert_allclose(
                expected.T @ expected @ direction, value**2 * direction, atol=1e-6 * squared[0]
            )
            assert direction[np.argmax(np.abs(direction))] > 0
    assert found.failed == ()


def test_central_differences_are_exact_for_parabolas():
    problem = made(lambda x, _: x**2)
    x = middle(problem) + 0.1
    found = sensitivity(problem, x, PATIENT, share=0.1)
    np.testing.assert_allclose(found.jacobian, np.diag(2 * x * WIDTHS / TOLERANCES), atol=1e-9)
    order = np.argsort(-np.abs(2 * x * WIDTHS / TOLERANCES))
    for i, j in enumerate(order):
        assert found.combination(i) == pytest.approx({f"x{j}": 1.0})


def test_what_only_acts_as_a_sum_has_a_direction_of_zero():
    def simulate(x, _):
        share = (x + 1.0) / WIDTHS
        return np.stack([share[:, 0] + share[:, 1], 3 * share[:, 2], share[:, 2]], axis=1)

    found = sensitivity(made(simulate), middle(made(simulate)), PATIENT)
    assert found.singular_values[-1] == pytest.approx(0.0, abs=1e-9)
    weights = found.combination()
    assert set(weights) == {"x0", "x1"}
    assert weights["x0"] == pytest.approx(-weights["x1"])
    assert abs(weights["x0"]) == pytest.approx(np.sqrt(0.5))


def test_fewer_objectives_than_parameters_leave_directions_of_zero():
    problem = made(lambda x, _: x @ SLOPES[:1].T, n_objectives=1)
    found = sensitivity(problem, middle(problem), PATIENT)
    assert found.jacobian.shape == (1, 3)
    np.testing.assert_array_equal(found.singular_values[1:], 0.0)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.directions[1:] @ found.jacobian[0], 0.0, atol=1e-12)


def test_runs_stay_within_the_domain():
    seen = []

    def simulate(x, _):
        seen.append(x)
        return x

    problem = made(simulate)
    for x in (problem.lower, problem.upper, problem.lower + 1e-4):
        sensitivity(problem, x, PATIENT, share=1.0)
    rows = np.concatenate(seen)
    assert rows.shape == (18, 3)
    assert np.all((rows >= problem.lower) & (rows <= problem.upper))


def test_a_failed_run_is_said_and_leaves_the_others():
    def simulate(x, _):
        y = x @ SLOPES.T
        y[x[:, 1] > 4.01, 0] = np.nan  # one side of the second parameter, one objective
        return y

    problem = made(simulate)
    found = sensitivity(problem, middle(problem), PATIENT)
    assert found.failed == ("x1",)
    assert np.isnan(found.jacobian[:, 1]).all()
    kept = (SLOPES * WIDTHS / TOLERANCES[:, np.newaxis])[:, [0, 2]]
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(kept)[1], rtol=1e-9)
    assert found.directions.shape == (2, 3)
    assert not found.directions[:, 1].any()
    nothing = made(lambda x, _: np.full_like(x, np.nan))
    found = sensitivity(nothing, middle(nothing), PATIENT)
    assert found.failed == ("x0", "x1", "x2")
    assert found.singular_values.size == 0
    with pytest.raises(ValueError, match="direction is -1, expected one of 0"):
        found.combination()


def test_angles_are_differenced_the_short_way_round():
    def simulate(x, _):
        angle = 179.9 + 10.0 * (x + 1.0)  # passes 180°
        return np.where(angle > 180.0, angle - 360.0, angle)

    problem = made(simulate, kind="angle")
    found = sensitivity(problem, problem.lower + 0.01, PATIENT, share=0.02)
    np.testing.assert_allclose(found.jacobian, np.diag(10.0 * WIDTHS / TOLERANCES), atol=1e-9)


@pytest.mark.parametrize(
    ("x", "share", "message"),
    [
        ([0.0, 0.0], 0.01, r"x has shape \(2,\), expected \(3,\)"),
        ([0.0, -1.1, -0.9], 0.01, r"x1 is -1.1 1, expected within \[-1, 9\]"),
        ([np.nan, 0.0, -0.9], 0.01, "x0 is nan"),
        ([0.0, 0.0, -0.9], 0.0, "share is 0"),
    ],
)
def test_what_cannot_be_differenced_is_refused(x, share, message):
    with pytest.raises(ValueError, match=message):
        sensitivity(made(lambda x, _: x), x, PATIENT, share=share)


def test_equal_stroke_volumes_leave_one_direction_of_twelve_unseen():
    exact = circulation.Numerics(time_step=5e-3, tolerance=1e-6)
    problem = circulation.problem("12p", exact)
    found = sensitivity(problem, problem.default, PATIENT)
    assert found.failed == ()
    assert found.singular_values[-2] > 0.5
    assert found.singular_values[-1] < 1e-4
    # what is ejected: left end-diastolic - end-systolic - right end-diastolic + end-systolic
    rows = {name: i for i, name in enumerate(found.objectives)}
    strokes = np.zeros(12)
    strokes[[rows["lv_edv"], rows["rv_esv"]]] = 1.0
    strokes[[rows["lv_esv"], rows["rv_edv"]]] = -1.0
    assert np.abs(strokes @ found.jacobian).max() < 1e-3
    assert next(iter(found.combination())) == "rv_emin"


@pytest.mark.parametrize("setup", ["2p", "3p", "5p", "6p", "9p"])
def test_every_direction_of_the_smaller_setups_is_seen_at_the_defaults(setup):
    problem = circulation.problem(setup)
    found = sensitivity(problem, problem.default, PATIENT)
    assert found.singular_values.min() > 0.5
