"""Features of a series of values: closed forms, and what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from vitolab.adapters.features import FEATURES, feature


def test_features_of_a_half_sine_have_their_closed_forms():
    t = np.linspace(0.0, 2.0, 2001)
    v = 3.0 * np.sin(np.pi * t / 2.0)
    expected = {
        "initial": 0.0,
        "final": 0.0,
        "minimum": 0.0,
        "maximum": 3.0,
        "mean": 3.0 * 2.0 / np.pi,
        "time of maximum": 1.0,
    }
    assert set(expected) == set(FEATURES)
    for name, value in expected.items():
        assert feature(name, t, v) == pytest.approx(value, abs=1e-6)


def test_mean_is_over_time_however_the_points_lie():
    t = np.array([0.0, 0.1, 0.2, 0.3, 4.0])
    assert feature("mean", t, 5.0 - t) == pytest.approx(3.0, rel=1e-14)


def test_features_of_a_broken_series_are_not_numbers():
    t, v = np.arange(3.0), np.array([1.0, np.nan, 2.0])
    for name in ("minimum", "maximum", "mean", "time of maximum"):
        assert np.isnan(feature(name, t, v))
    assert feature("final", t, v) == 2.0


def test_an_unknown_feature_is_refused():
    with pytest.raises(ValueError, match=r"feature is 'median', expected one of initial, final"):
        feature("median", np.arange(2.0), np.arange(2.0))
