"""Reference methods by ratio and from the default values: equal treatment, tested by symmetry."""

from __future__ import annotations

import numpy as np
import pytest
from part_store import Memory

from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.reference import BobyqaSimple, NelderMead
from vitolab.validation import reference_runs

OBJECTIVES = (Objective("u", "u", "1", 0.01), Objective("w", "w", "1", 0.01))
PATIENT = Patient("P", {"u": 1.3, "w": 2.1})


def _bent(u: np.ndarray) -> np.ndarray:
    return np.stack([u[:, 0] + 0.1 * u[:, 1] ** 2, u[:, 1] - 0.2 * u[:, 0] ** 2], axis=1)


BY_RATIO = Problem(
    "ratio",
    "1",
    tuple(Parameter(n, n, "1", 1.0, float(np.exp(3.0)), 2.0, 0.1, "log") for n in ("a", "b")),
    OBJECTIVES,
    lambda x, patient: _bent(np.log(x)),
)
BY_DIFFERENCE = Problem(
    "difference",
    "1",
    tuple(Parameter(n, n, "1", 0.0, 3.0, float(np.log(2.0)), 0.1) for n in ("a", "b")),
    OBJECTIVES,
    lambda x, patient: _bent(x),
)


@pytest.mark.parametrize("kind", [BobyqaSimple, lambda p, **k: NelderMead(p, width=0.1, **k)])
def test_moving_by_ratio_is_moving_the_logarithm_by_difference(kind):
    start = np.array([[0.8, 1.9]])
    by_ratio = kind(BY_RATIO, by_ratio=True).personalize_from(PATIENT, np.exp(start))[0]
    by_difference = kind(BY_DIFFERENCE).personalize_from(PATIENT, start)[0]
    assert by_ratio.solved
    assert by_ratio.n_runs == by_difference.n_runs
    np.testing.assert_allclose(np.log(by_ratio.trace.x), by_difference.trace.x, atol=1e-7)


def test_a_simplex_moves_speeds_by_ratio_as_least_squares_does():
    """Its first edges are 5 % of each value in either way."""
    start = np.array([[2.0, 5.0]])
    x = NelderMead(BY_RATIO).personalize_from(PATIENT, start, max_runs=3)[0].trace.x
    np.testing.assert_allclose(x, [[2.0, 5.0], [2.1, 5.0], [2.0, 5.25]])
    plain = NelderMead(BY_RATIO, by_ratio=False).personalize_from(PATIENT, start, max_runs=3)[0]
    np.testing.assert_allclose(plain.trace.x, x)
    assert NelderMead(BY_RATIO).by_ratio
    assert not BobyqaSimple(BY_RATIO).by_ratio  # the paper's


@pytest.mark.parametrize("kind", [NelderMead, BobyqaSimple])
def test_what_starts_at_the_default_values_starts_there_for_any_seed(kind):
    for seed in (0, 7):
        fit = kind(BY_DIFFERENCE, from_default=True).personalize(PATIENT, max_runs=1, seed=seed)
        moved = 0.75 if kind is BobyqaSimple else np.log(2.0)  # BOBYQA keeps off the border
        np.testing.assert_allclose(fit.x, moved)


def test_a_method_with_nothing_random_about_it_has_one_start():
    run = Memory()
    methods = ["nelder-mead", "nelder-mead-default", "bobyqa-simple-default"]
    reference_runs(run, {"s": BY_DIFFERENCE}, [PATIENT], methods=methods, n_starts=3)
    table, _ = run.tables()
    starts = table.groupby("method")["start"].nunique()
    assert starts.to_dict() == {
        "nelder-mead": 3,
        "nelder-mead-default": 1,
        "bobyqa-simple-default": 1,
    }
    assert (table["max_runs"] == 100).all()
