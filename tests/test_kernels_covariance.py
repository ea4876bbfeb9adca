"""The covariance of runs stands in a kernel, in numpy for one point, and in the posterior."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vitolab.agent.covariance import JITTER, Covariance, posterior
from vitolab.agent.emulator import Emulator


def drawn(n=14, n_inputs=3, n_outputs=2, seed=0):
    """A covariance and runs of three patients."""
    rng = np.random.default_rng(seed)
    parts = rng.uniform(0.2, 3.0, (5, n_outputs))
    length = rng.uniform(0.4, 3.0, (n_outputs, n_inputs))
    covariance = Covariance(rng.normal(size=n_outputs), length, *parts)
    a, group = rng.uniform(-1.0, 1.0, (n, n_inputs)), rng.integers(0, 3, n)
    return covariance, a, group, rng.normal(size=(n, n_outputs))


def between(c, o, a, b, same):
    """Covariance of two outputs without noise, as the docstring of `Covariance` has it."""
    away = sum(((p - q) / s) ** 2 for p, q, s in zip(a, b, c.length[o], strict=True))
    smooth = np.exp(-0.5 * away)
    shared = c.shared[o] * smooth + c.linear[o] * (1.0 + sum(a * b))
    return shared + (c.constant[o] + c.own[o] * smooth if same else 0.0)


def matrix(c, o, a, group):
    """Covariances of runs, entry by entry, noise included."""
    n = len(a)
    k = [[between(c, o, a[i], a[j], group[i] == group[j]) for j in range(n)] for i in range(n)]
    return np.array(k) + c.noise[o] * np.eye(n)


def test_covariances_of_runs_are_those_of_the_formula():
    c, a, group, _ = drawn()
    found = c.of_runs(a, group)
    for o in range(2):
        np.testing.assert_allclose(found[o], np.tril(matrix(c, o, a, group)), rtol=1e-12)


def test_one_point_and_runs_covary_by_the_same_formula():
    c, a, group, _ = drawn()
    whole = c.of_runs(a, group)
    for i in range(len(a)):
        np.testing.assert_allclose(
            c.across(a[i], a[:i], group[:i] == group[i]), whole[:, i, :i], rtol=1e-12
        )
        np.testing.assert_allclose(c.variance(a[i]) + c.noise, whole[:, i, i], rtol=1e-12)


def test_the_posterior_is_learned_by_the_same_formula():
    """The value at some covariance is that of a normal density whose matrix the kernel gives."""
    c, a, group, y = drawn()
    loss, centre = posterior(a, group, y[:, 0], 0.1)
    spread = np.array([1.5, 1.5, 1.5, 1.5, 1.0, 1.0, 1.0, 1.0])

    def value(h):
        variances = np.exp(2.0 * h[:5])
        variances[4] += JITTER * variances[0]
        own = Covariance(c.mean[:1], np.exp(h[np.newaxis, 5:]), *variances[:, np.newaxis])
        k = own.of_runs(a, group)[0]
        k = k + np.tril(k, -1).T
        fit = 0.5 * y[:, 0] @ np.linalg.solve(k, y[:, 0]) + 0.5 * np.linalg.slogdet(k)[1]
        return fit + 0.5 * (((h - centre) / spread) ** 2).sum()

    for seed in range(5):
        h = centre + np.random.default_rng(seed).normal(size=len(centre))
        np.testing.assert_allclose(loss(h)[0], value(h), rtol=1e-9)


def test_outputs_are_expected_as_by_the_textbook():
    """Mean and variance by solving with the full matrix (Rasmussen & Williams, eq. 2.25, 2.26)."""
    c, a, group, y = drawn()
    points = np.random.default_rng(5).uniform(-1.0, 1.0, (4, 3))
    found = Emulator.given(c, a, group, y).at(points, 1, 3)
    for o in range(2):
        k = matrix(c, o, a, group)
        for i, point in enumerate(points):
            runs = zip(a, group, strict=True)
            across = np.array([between(c, o, point, b, g == 1) for b, g in runs])
            mean = c.mean[o] + across @ np.linalg.solve(k, y[:, o] - c.mean[o])
            left = between(c, o, point, point, True) - across @ np.linalg.solve(k, across)
            np.testing.assert_allclose(found.mean[i, o], mean, rtol=1e-9)
            np.testing.assert_allclose(found.variance[i, o], left, rtol=1e-9)


DERIVATIVES = "test_derivatives_are_those_of_differences"


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="this is the run without compiling")
def test_without_compiling_the_kernels_do_the_same():
    """All tests of this file and those of the derivatives, in Python."""
    here = Path(__file__)
    files = [here, f"{here.parent / 'test_agent_emulator.py'}::{DERIVATIVES}"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
