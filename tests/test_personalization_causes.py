"""The report states why a patient has no answer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stores import write_csv

from vitolab.patients import read_patients
from vitolab.personalization import personalize_file
from vitolab.problem import Patient
from vitolab.reference import LeastSquares


@pytest.fixture
def report(linear_problem, linear_patients, tmp_path: Path):
    """Personalise an able patient, and one whose model fails now in one way, now in another."""

    seen = []

    def simulate(x, patient):
        if patient.name != "broken":
            return linear_problem.simulate(x, patient)
        if not seen:
            seen.append(x)
            raise ArithmeticError("seldom")
        raise ValueError("valve does not close")

    def call(method: str):
        broken = Patient("broken", dict(linear_patients[0].measurements), {"offset": 0.0})
        file = write_csv(tmp_path / "clinic.csv", [broken, linear_patients[1]])
        problem = replace(linear_problem, simulate=simulate)
        table = read_patients(file, problem, data={"offset": ""})
        fitted = personalize_file(
            problem,
            table,
            setup="2p",
            train_on=linear_patients[2:],
            n_states=12,
            n_samples=200,
            max_runs=40,
            methods=(method,),
            results_root=tmp_path / "results",
        )
        return fitted.set_index("patient")["stop_reason"]

    return call


@pytest.mark.parametrize("method", ["vito", "vito-continuous"])
def test_where_all_runs_failed_the_most_frequent_cause_is_stated(report, method):
    reasons = report(method)
    assert "All 40 runs failed, mostly: raised: ValueError: valve" in reasons["broken"]
    assert "failed" not in reasons["P1"]


def test_an_error_of_the_method_is_stated(report, monkeypatch):
    def fails(self, patient, start, max_runs, rng):
        if patient.name == "broken":
            raise RuntimeError("no descent")
        return ended(self, patient, start, max_runs, rng)

    ended = LeastSquares._fit
    monkeypatch.setattr(LeastSquares, "_fit", fails)
    reasons = report("least-squares")
    assert "RuntimeError: no descent" in reasons["broken"]
    assert np.all(["descent" not in said for said in reasons.drop("broken")])
