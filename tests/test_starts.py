"""Several starts of one patient: what comes out at one does not depend on the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from part_store import Parts

from vitolab.files import bits
from vitolab.fit import StopReason
from vitolab.guard import personalized
from vitolab.methods import build
from vitolab.problem import Patient
from vitolab.reference import LeastSquares
from vitolab.validation import grid

#: Out of reach, so that every budget is used up and something is drawn.
FAR = Patient("far", {"u": 90.0, "w": -90.0}, {"offset": 0.0})
STARTS = np.array([[1.0, 2.0], [-4.0, 3.0], [2.0, -1.0]])


@dataclass(frozen=True, eq=False, repr=False)
class Choking(LeastSquares):
    """Raises at one of the starts, once it was run."""

    def _fit(self, patient, start, max_runs, rng):
        fit = super()._fit(patient, start, max_runs, rng)
        if np.array_equal(start, STARTS[1]):
            raise np.linalg.LinAlgError("Singular matrix")
        return fit


@pytest.mark.parametrize("name", ["least-squares-multistart", "nelder-mead", "bobyqa-simple"])
def test_a_start_of_a_reference_does_not_feel_the_others(linear_problem, name):
    method = build(name, linear_problem)
    together = method.personalize_from(FAR, STARTS, max_runs=60, seed=3)
    for i, fit in enumerate(together):
        alone = method.personalize_from(FAR, STARTS[i : i + 1], max_runs=60, seed=3)[0]
        np.testing.assert_array_equal(fit.trace.x, alone.trace.x)


def test_an_error_at_one_start_leaves_the_others_as_they_are(linear_problem):
    asked = {"max_runs": 60, "seed": 3, "starts": STARTS}
    calm = personalized(linear_problem, LeastSquares(linear_problem, True), FAR, **asked)
    fits = personalized(linear_problem, Choking(linear_problem, True), FAR, **asked)
    assert [fit.stop_reason for fit in fits] == [
        StopReason.BUDGET,
        StopReason.ERROR,
        StopReason.BUDGET,
    ]
    for fit, expected in zip(fits, calm, strict=True):  # the runs before the error, too
        np.testing.assert_array_equal(fit.trace.x, expected.trace.x)


def test_a_start_of_a_grid_does_not_depend_on_how_many_are_compared(
    linear_problem, linear_patients
):
    def rows(n_compared):
        run = Parts()
        grid(
            run,
            {"g": linear_problem},
            [FAR, *linear_patients[:1]],
            STARTS,
            restarts={"g": [False]},
            n_states=4,
            n_samples=5,
            max_runs=60,
            methods=["least-squares-multistart"],
            n_compared=n_compared,
            episode=5,
        )
        found = run.personalizations
        found = found[(found["method"] == "least-squares-multistart") & (found["patient"] == "far")]
        return found.set_index("start")[["x:a", "x:b", "n_runs"]]

    whole = rows(None)
    assert len(whole) == 3
    for n in (1, 2):
        some = rows(n)
        assert len(some) == n
        assert some.equals(whole.loc[some.index])


def test_zero_is_one_key_whatever_its_sign_and_nan_is_one_too():
    assert bits([0, -0.0]) == bits(np.zeros(2))
    assert len({bits([1.0, 2.0]), bits([2.0, 1.0]), bits([np.nan, 1.0])}) == 3
