"""Patients of a file, personalised."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from stores import write_csv

from vitolab.patients import read_patients
from vitolab.personalization import personalize_file
from vitolab.problem import Patient, Problem
from vitolab.store import list_runs
from vitolab.validation.continuing import Continuing

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


TABLES = ("personalizations.parquet", "traces.parquet", "patients.parquet")


@pytest.fixture
def go(run):
    """Personalise patients one after the other."""

    def call(patients: list[Patient], **more) -> pd.DataFrame:
        asked = {"learn_as_you_go": True, "n_samples": None, "give_up": 0.0}
        return run(patients, [], **(asked | more))

    return call


def in_order(problem: Problem, patients: list[Patient], folder: Path, **more) -> pd.DataFrame:
    """Personalise patients of another problem one after the other."""
    path = write_csv(folder / "clinic.csv", patients)
    table = read_patients(path, problem, data=DATA)
    asked = {"setup": "2p", "train_on": [], "n_states": 12, "results_root": folder / "results"}
    return personalize_file(problem, table, learn_as_you_go=True, **(asked | more))


def stored(results: Path) -> list[bytes]:
    (info,) = [info for info in list_runs(results) if info.status == "complete"]
    return [(info.path / name).read_bytes() for name in TABLES]


def counted(monkeypatch, stop_at: str = "") -> list[str]:
    """Names of the patients who are personalised from now on; one of them is stopped."""
    done: list[str] = []
    personalize = Continuing.personalizer

    def counts(self, patient):
        if patient.name == stop_at:
            raise KeyboardInterrupt
        done.append(patient.name)
        return personalize(self, patient)

    monkeypatch.setattr(Continuing, "personalizer", counts)
    return done
