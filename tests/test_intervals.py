"""Intervals over patients, against closed forms and constructed tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest

from vitolab import intervals
from vitolab.intervals import mean_interval, resampled_ratio, share_interval, wilson, worded


def table(solved: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of each patient (first axis) in each repeat, and whether each was solved."""
    n, n_repeats = solved.shape
    patient = np.repeat([f"P{i:03d}" for i in range(n)], n_repeats)
    rows = pd.DataFrame({"patient": patient, "repeat": np.tile(np.arange(n_repeats), n)})
    return rows, solved.ravel().astype(float)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Newcombe, Statistics in Medicine 17:857, 1998, table I, method 3
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_is_the_published_one(k: int, n: int, low: float, high: float):
    assert wilson(k / n, n) == pytest.approx((low, high), abs=5e-5)


def test_a_patient_personalised_once_is_a_trial():
    rows, solved = table(np.repeat([[1], [0]], [47, 1], axis=0))
    known = binomtest(47, 48).proportion_ci(0.95, method="wilson")
    assert share_interval(rows, solved) == pytest.approx((100 * known.low, 100 * known.high))


def test_repeats_that_end_alike_are_no_further_trials():
    """Ten repeats that only copy the first leave the interval as wide as one."""
    once = np.repeat([[1.0], [0.0]], [30, 10], axis=0)
    rows, solved = table(np.repeat(once, 10, axis=1))
    low, high = share_interval(rows, solved)
    known = 100 * binom.ppf([0.025, 0.975], 40, 0.75) / 40
    assert (low, high) == pytest.approx(tuple(known))
    naive = 100 * np.array(wilson(0.75, 400))
    assert high - low > 2.5 * (naive[1] - naive[0])


def test_the_interval_over_patients_covers_as_often_as_it_says():
    """Patients differ in how easily they are solved; the share of a new cohort is met."""
    rng = np.random.default_rng(5)
    met = naive = 0
    for _ in range(200):
        ease = rng.beta(1.0, 0.5, size=(48, 1))  # mean 2/3
        rows, solved = table(rng.random((48, 5)) < ease)
        low, high = share_interval(rows, solved)
        met += low <= 100 * 2 / 3 <= high
        low, high = wilson(float(solved.mean()), len(solved))
        naive += low <= 2 / 3 <= high
    # binomial error of 200 cohorts is 1.5 points
    assert met / 200 == pytest.approx(0.95, abs=0.04)
    assert naive / 200 < 0.85  # as if repeats were patients


def test_where_all_end_alike_resampling_says_nothing_and_wilson_does():
    rows, solved = table(np.ones((48, 5)))
    assert share_interval(rows, solved) == pytest.approx(tuple(100 * np.array(wilson(1.0, 48))))
    rows, solved = table(np.ones((5, 10)))
    crossed = share_interval(rows, solved, crossed=True)
    assert crossed == pytest.approx(tuple(100 * np.array(wilson(1.0, 50))))


def test_the_mean_of_normal_runs_has_the_interval_of_its_standard_error():
    runs = np.random.default_rng(0).normal(30.0, 5.0, size=(200, 1))
    rows, values = table(np.zeros((200, 1)))
    low, high = mean_interval(rows, runs.ravel())
    half = 1.96 * runs.std() / np.sqrt(200)
    assert (low, high) == pytest.approx((runs.mean() - half, runs.mean() + half), abs=0.05)
    assert values.size == 200


def test_two_patients_are_resampled_in_closed_form():
    """A quarter of resamples is one of them twice: the ends of the interval are the patients."""
    rows, _ = table(np.zeros((2, 3)))
    assert mean_interval(rows, [1, 2, 3, 10, 10, 10]) == (2.0, 10.0)


def test_crossed_intervals_widen_with_what_differs_between_repeats():
    """What was explored differs between repeats and is shared by all patients of one."""
    rng = np.random.default_rng(1)
    luck = rng.normal(0.0, 10.0, size=10)
    runs = 50.0 + luck[np.newaxis] + rng.normal(0.0, 1.0, size=(5, 10))
    rows, _ = table(np.zeros((5, 10)))
    low, high = mean_interval(rows, runs.ravel())
    wide = mean_interval(rows, runs.ravel(), crossed=True)
    half = 1.96 * luck.std() / np.sqrt(10)
    assert high - low < 3.0
    assert wide == pytest.approx((runs.mean() - half, runs.mean() + half), abs=1.5)


def test_only_values_that_are_there_count():
    rows, _ = table(np.zeros((4, 1)))
    assert mean_interval(rows, [1.0, 1.0, np.nan, np.nan]) == (1.0, 1.0)
    assert np.isnan(mean_interval(rows, [np.nan] * 4)).all()
    assert np.isnan(share_interval(rows, [np.nan] * 4)).all()


def test_one_patient_has_no_interval_of_a_mean():
    rows, _ = table(np.zeros((1, 3)))
    assert np.isnan(mean_interval(rows, [1.0, 2.0, 3.0])).all()
    assert worded(intervals.NONE) == ""


def test_intervals_are_the_same_bits_in_any_order_of_the_rows():
    rng = np.random.default_rng(2)
    rows, _ = table(np.zeros((20, 3)))
    runs = rng.integers(1, 100, size=60)
    order = rng.permutation(60)
    assert mean_interval(rows, runs) == mean_interval(rows.iloc[order], runs[order])
    assert resampled_ratio(runs, np.ones(60), seed=1) != resampled_ratio(runs, np.ones(60))
