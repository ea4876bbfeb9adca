"""Ensembles of a posterior: whether they agree, and what the posterior leaves open."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from vitolab.uncertainty import sample_posterior
from vitolab.uncertainty.posterior import split_r_hat
from vitolab.uncertainty.widths import left_open, width_table

ERROR = {"u": 0.3, "w": 0.2}


def test_split_r_hat_is_the_ratio_of_the_spreads_within_and_over_all_halves():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(2, 400, 8, 2))
    draws[1, ..., 1] += 2.0  # the second ensemble is elsewhere in the second parameter
    found = split_r_hat(draws)
    assert found[0] == pytest.approx(1.0, abs=0.005)
    # means 0, 0, 2, 2: their variance is 4 / 3, that within is 1
    assert found[1] == pytest.approx(np.sqrt(1.0 + 4.0 / 3.0), rel=0.03)
    assert np.isnan(split_r_hat(np.zeros((2, 10, 4, 1)))).all()


def test_a_walk_that_drifts_has_not_converged():
    drift = np.linspace(0.0, 3.0, 100)[np.newaxis, :, np.newaxis, np.newaxis]
    noise = np.random.default_rng(1).normal(size=(1, 100, 4, 1))
    assert split_r_hat(drift + noise)[0] > 1.2


def test_ensembles_that_do_not_know_of_each_other_agree(linear_problem, linear_patients):
    start = np.zeros((1, 2))
    found = sample_posterior(
        linear_problem, linear_patients[0], ERROR, start, n_steps=2000, n_burn=300
    )
    assert found.n_ensembles == 2
    assert found.x.shape[1] == 2 * 32
    assert not np.array_equal(found.x[:, :32], found.x[:, 32:])
    assert (found.r_hat < 1.01).all()


def test_the_first_ensemble_is_the_same_however_many_there_are(linear_problem, linear_patients):
    draw = partial(
        sample_posterior,
        linear_problem,
        linear_patients[0],
        ERROR,
        np.zeros((1, 2)),
        n_steps=20,
        n_burn=5,
    )
    assert np.array_equal(draw(n_ensembles=2).x[:, :32], draw(n_ensembles=1).x)


def test_what_is_left_open_is_said_by_parameter(linear_problem):
    problem = linear_problem
    names = [p.name for p in problem.parameters]
    rows = pd.DataFrame(
        {"setup": "2p", "method": "posterior", f"width:{names[0]}": [0.1, 0.2, 0.9]}
        | {f"width:{names[1]}": [0.4, 0.5, 0.6]}
    )
    table = width_table(rows, {"2p": problem})
    assert table["90 % interval / domain, median [%]"].tolist() == pytest.approx([20.0, 50.0])
    assert left_open(table) == (
        "2p: the central 90 % interval spans half of the domain or more for 1 of 2 parameters "
        f"({problem.parameters[1].label}), for the median of 3 patients."
    )
    assert width_table(rows[["setup", "method"]], {"2p": problem}).empty
