"""Intervals and tests of methods on the same patients, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from vitolab.intervals import wilson
from vitolab.plots.paired import bootstrap, mcnemar


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_a_share_is_wilsons(trials: tuple[int, int]) -> None:
    k, n = trials
    known = binomtest(k, n).proportion_ci(0.95, method="wilson")
    assert wilson(k / n, n) == pytest.approx((known.low, known.high), abs=1e-12)


def test_the_ends_of_the_interval_solve_wilsons_equation() -> None:
    """|share − p| = z √(p(1 − p)/n), also for a share that no whole number of successes has."""
    for p in wilson(0.123, 48):
        z = abs(0.123 - p) / math.sqrt(p * (1.0 - p) / 48)
        assert z == pytest.approx(1.959963984540054)


@pytest.mark.parametrize(("share", "n"), [(0.5, 0), (1.1, 10), (-0.1, 10), (math.nan, 10)])
def test_what_is_no_share_is_refused(share: float, n: int) -> None:
    with pytest.raises(ValueError, match=f"the share is {share} of {n} trials, expected 0 to 1"):
        wilson(share, n)


@pytest.mark.parametrize("n", [1, 5, 10])
def test_patients_whom_only_one_method_solves_are_coins_that_all_fall_alike(n: int) -> None:
    both = [True] * 7
    one, other = [True] * n + both, [False] * n + both
    assert mcnemar(one, other) == (n, 0, pytest.approx(min(1.0, 2.0 * 0.5**n)))
    assert mcnemar(other, one) == (0, n, pytest.approx(min(1.0, 2.0 * 0.5**n)))


def test_the_exact_test_sums_both_tails_of_the_binomial_distribution() -> None:
    one = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0]
    other = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0]
    expected = 2.0 * binom.cdf(2, 10, 0.5)
    assert mcnemar(one, other) == (8, 2, pytest.approx(expected))


def test_patients_whom_both_solve_equally_often_say_nothing() -> None:
    assert mcnemar([1, 0, 1], [1, 0, 1]) == (0, 0, 1.0)


def test_repeats_of_a_patient_are_no_further_patients() -> None:
    once = mcnemar([1, 1, 0], [0, 0, 1])
    assert mcnemar([20, 20, 0], [0, 0, 20]) == once


def test_a_constant_difference_is_certain() -> None:
    assert bootstrap([3.0, 5.0, 9.0], [1.0, 3.0, 7.0]) == (2.0, 2.0, 2.0)


def test_the_interval_of_zeros_and_ones_is_that_of_the_binomial_distribution() -> None:
    """A resampled mean of them is a binomial count over n: its quantiles are known."""
    difference = np.repeat([1.0, 0.0], [30, 70])
    mean, low, high = bootstrap(difference, np.zeros(100))
    known = binom.ppf([0.025, 0.975], 100, 0.3) / 100
    assert mean == pytest.approx(0.3)
    assert (low, high) == pytest.approx(known, abs=0.0101)


def test_the_interval_turns_with_the_methods_and_is_the_same_for_a_seed() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=20), rng.normal(size=20)
    mean, low, high = bootstrap(one, other)
    assert bootstrap(other, one) == pytest.approx((-mean, -high, -low))
    assert bootstrap(one, other) == (mean, low, high)
    assert bootstrap(one, other, seed=1) != (mean, low, high)
