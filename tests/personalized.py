"""Patients of a file, personalised."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from stores import write_csv

from vitolab.patients import read_patients
from vitolab.personalization import personalize_file
from vitolab.problem import Patient, Problem

DATA = {"offset": ""}


@pytest.fixture
def run(linear_problem: Problem, tmp_path: Path):
    """Personalise patients with small settings."""

    def call(patients: list[Patient], train_on: list[Patient], **more) -> pd.DataFrame:
        table = more.pop("table", None)
        if table is None:
            path = write_csv(tmp_path / "clinic.csv", patients)
            table = read_patients(path, linear_problem, data=DATA)
        settings = {"setup": "2p", "n_states": 12, "n_samples": 200, "max_runs": 60, "seed": 3}
        settings |= {"results_root": tmp_path / "results", "train_on": train_on}
        return personalize_file(linear_problem, table, **(settings | more))

    return call
