"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analytic import linear, obstructed
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from vitolab.problem import Objective, Parameter, Patient, Problem

# other tests run at the same time: how long an example takes is no claim
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Tests that are named, on the command line, run in one process: workers take seconds."""
    return None if config.args == config.getini("testpaths") else 0


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """A file stays in one process, for its fixtures; so do all tests in the browser."""
    return Files(config, log)


class Files(LoadScopeScheduling):
    """Gives whole files to workers, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "browser" if "/browser/" in file else file


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """Folder of reference data sets, which are not part of the project."""
    folder = os.environ.get("VITOLAB_REFERENCE_DATA")
    if not folder:
        pytest.skip("the environment variable VITOLAB_REFERENCE_DATA is not set")
    if not Path(folder).is_dir():
        pytest.skip(f"VITOLAB_REFERENCE_DATA is {folder}, which is not a folder")
    return Path(folder)


@pytest.fixture(scope="session")
def linear_problem() -> Problem:
    """An analytic problem that is solvable everywhere in the middle of its domain."""
    return Problem(
        name="linear",
        version="1",
        parameters=(
            Parameter("a", "a", "mL", -5.0, 5.0, 0.0, 0.02),
            Parameter("b", "b", "ms", -5.0, 5.0, 0.0, 0.02),
        ),
        objectives=(
            Objective("u", "u", "mL", 0.5),
            Objective("w", "w", "mmHg", 0.5),
        ),
        simulate=linear,
    )


@pytest.fixture(scope="session")
def linear_patients(linear_problem) -> list[Patient]:
    """Ten patients whose true parameters lie within [-3, 3]."""
    rng = np.random.default_rng(7)
    patients = []
    for i in range(10):
        offset = rng.uniform(-0.5, 0.5)
        truth = rng.uniform(-3, 3, size=(1, 2))
        blank = Patient(f"P{i}", {}, {"offset": offset})
        u, w = linear(truth, blank)[0]
        patients.append(Patient(f"P{i}", {"u": u, "w": w}, {"offset": offset}))
    return patients


@pytest.fixture(scope="session")
def obstructed_problem() -> Problem:
    """An analytic problem with a forbidden region in the middle of its domain."""
    return Problem(
        name="disc",
        version="1",
        parameters=(
            Parameter("a", "a", "", -5.0, 5.0, 0.0, 0.02),
            Parameter("b", "b", "", -5.0, 5.0, 0.0, 0.02),
        ),
        objectives=(Objective("u", "u", "", 0.2), Objective("w", "w", "", 0.2)),
        simulate=obstructed,
    )


@pytest.fixture(scope="session")
def obstructed_patients() -> list[Patient]:
    """Thirty-two patients whose true parameters lie on the right of the forbidden region."""
    rng = np.random.default_rng(7)
    patients = []
    for i in range(32):
        data = {"offset": rng.uniform(-0.3, 0.3)}
        truth = rng.uniform([2.0, -1.5], [4.0, 1.5], (1, 2))
        u, w = obstructed(truth, Patient(f"P{i}", {}, data))[0]
        patients.append(Patient(f"P{i}", {"u": u, "w": w}, data))
    return patients
