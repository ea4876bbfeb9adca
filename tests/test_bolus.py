"""The fluid bolus: its problem, the reader of its file, and forecasts on data made by the model."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from part_store import Parts

from vitolab.files import checksum
from vitolab.models import bolus, circulation
from vitolab.models.bolus import generate
from vitolab.patients import InputError
from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.uncertainty import Bolus, Methods, forecast_table, forecasts, read_bolus, refit_volume
from vitolab.uncertainty.bolus import QUANTITIES, column


@pytest.fixture(scope="module")
def problem() -> Problem:
    return bolus.problem()


def measured(problem: Problem, x: np.ndarray, name: str, rate: float) -> Patient:
    """What the model itself answers, without any error."""
    y = problem.simulate(x[np.newaxis], Patient(name, {}, {"heart_rate": rate}))[0]
    values = {o.name: float(v) for o, v in zip(problem.objectives, y, strict=True)}
    return Patient(name, values, {"heart_rate": rate})


# --- the problem ---------------------------------------------------------------------------


def test_outputs_are_those_of_the_circulation_at_the_fixed_defaults(problem):
    patient = Patient("P", {}, {"heart_rate": 80.0})
    x = np.array([[500.0, 1.5, 1300.0, 1.1], [350.0, 3.0, 900.0, 2.0]])
    full = np.column_stack([x, np.full(2, 10.0), np.full(2, 300.0)])
    y = circulation.problem("6p").simulate(full, patient)
    found = problem.simulate(x, patient)
    assert found[:, 0].tolist() == (y[:, 0] - y[:, 1]).tolist()
    assert found[:, 1:].tolist() == y[:, 2:5].tolist()
    assert problem.tolerance.tolist() == [10.0, 10.0, 10.0, 10.0]
    assert problem.default.tolist() == [400.0, 2.4, 1100.0, 1.4]


# --- the file ------------------------------------------------------------------------------


def test_the_synthetic_file_is_what_its_generator_makes():
    with bolus.SYNTHETIC.open(newline="", encoding="utf-8") as file:
        stored = list(csv.reader(file))
    made = generate.generate()
    assert stored[0] == made[0]
    assert len(stored) == len(made) == 1 + generate.N_SUBJECTS
    # across machines to rounding
    values = [np.array([row[1:] for row in rows[1:]], dtype=float) for rows in (stored, made)]
    assert values[0] == pytest.approx(values[1], abs=1.01)
    assert checksum(bolus.SYNTHETIC).startswith("5e18e0e2e73e")


def test_a_subject_is_read_as_it_stands():
    with bolus.SYNTHETIC.open(newline="", encoding="utf-8") as file:
        row = list(csv.DictReader(file))[4]
    subject = read_bolus(bolus.SYNTHETIC)[4]
    for when, patient in (("pre", subject.before), ("post", subject.after)):
        assert patient.name == row["subject"]
        for quantity in QUANTITIES:
            known = {**patient.measurements, **patient.data}
            assert known[quantity] == float(row[column(quantity, when)])


def test_the_form_is_that_of_the_published_file(reference_data):
    path = reference_data / "invasive_pressure_fluid_bolus.csv"
    found = read_bolus(path)
    assert len(found) == 25
    assert dict(found[0].after.measurements) == {
        "stroke_volume": 125.5,
        "aortic_mean": 73.0,
        "aortic_systolic": 154.0,
        "aortic_diastolic": 51.0,
    }
    assert found[0].before.data["heart_rate"] == 62.3
    headers = [p.read_text(encoding="utf-8").splitlines()[0] for p in (path, bolus.SYNTHETIC)]
    assert headers[0] == headers[1]


def changed(folder: Path, change) -> Path:
    """Copy of the synthetic file with a change to its rows."""
    with bolus.SYNTHETIC.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    change(rows)
    path = folder / "bolus.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def put(row: int, header: str, text: str):
    """Change of one cell; row 0 is the header."""

    def change(rows) -> None:
        rows[row][rows[0].index(header)] = text

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(0, "SV_mL_pre", "SV_L_pre"), "found column 'SV_L_pre', expected 'SV_mL_pre'"),
        (
            put(0, "MAP_mmHg_post", "MAP_kPa_post"),
            "found column 'MAP_kPa_post', expected 'MAP_mmHg_post'",
        ),
        (
            put(0, "HR_from_CI_SVI_pre_bpm", "rate"),
            "column 'HR_from_CI_SVI_pre_bpm' is missing",
        ),
        (put(0, "subject", "name"), "column 'subject' is missing"),
        (put(0, "CVP_mmHg_pre", "SV_mL_pre"), "column 'SV_mL_pre' occurs twice"),
        (put(3, "SV_mL_pre", ""), "row 4, column 'SV_mL_pre': the cell is empty"),
        (put(3, "SV_mL_pre", "8O.5"), "row 4, column 'SV_mL_pre': found '8O.5', expected a number"),
        (put(3, "SV_mL_pre", "nan"), "found 'nan', expected a number"),
        (
            put(2, "MAP_mmHg_post", "9.2"),
            "row 3, column 'MAP_mmHg_post': found 9.2 mmHg, expected 15 to 300 mmHg",
        ),
        (
            put(2, "HR_from_CI_SVI_post_bpm", "1.2"),
            "found 1.2 bpm, expected 30 to 200 bpm",
        ),
        (
            put(2, "DAP_mmHg_pre", "95"),
            "row 3: found DAP_mmHg_pre 95 and MAP_mmHg_pre 82, expected DAP_mmHg_pre below",
        ),
        (put(2, "subject", "1"), "row 3, column 'subject': found '1' again, .* not in row 2"),
        (put(2, "subject", ""), "row 3, column 'subject': the cell is empty"),
        (lambda rows: rows[5].pop(), "row 6: found 17 fields, expected 18"),
        (lambda rows: rows.__delitem__(slice(1, None)), "found 1 rows, expected a header and one"),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence(tmp_path, change, message):
    path = changed(tmp_path, change)
    with pytest.raises(InputError, match=message) as refused:
        read_bolus(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_bolus(tmp_path / "none.csv")
    path = tmp_path / "latin.csv"
    path.write_bytes(b"subject\xe9")
    with pytest.raises(InputError, match="not UTF-8"):
        read_bolus(path)
    with pytest.raises(InputError, match="there is no such file"):
        read_bolus(tmp_path)


# --- forecasts -----------------------------------------------------------------------------


def test_the_volume_is_recovered_from_the_stroke_volume(problem):
    x = np.array([420.0, 2.2, 1050.0, 1.2])
    for volume in (250.0, 537.0, 900.0):
        true = np.array([volume, *x[1:]])
        patient = measured(problem, true, "P", 75.0)
        found = refit_volume(problem, x, patient, patient.measurements["stroke_volume"])
        assert found.volume == pytest.approx(volume, abs=0.2)
        assert found.y == pytest.approx(problem.measured(patient), abs=0.1)
        assert found.n_runs == 123


def test_a_stroke_volume_out_of_reach_ends_at_the_border(problem):
    x = np.array([420.0, 2.2, 1050.0, 1.2])
    patient = Patient("P", {}, {"heart_rate": 75.0})
    assert refit_volume(problem, x, patient, 500.0).volume == 1000.0


def line(x, _patient):
    """Stroke volume and pressures as straight lines; no answer at a small volume."""
    y = np.column_stack([x[:, 0] / 10.0, *(x[:, 0] * k + x[:, 1] for k in (0.1, 0.2, 0.05))])
    y[x[:, 0] < 150.0] = np.nan
    return y


def test_failed_runs_are_no_refit():
    linear = Problem(
        "line",
        "1",
        (
            Parameter("initial_volume", "V", "mL", 0, 1000, 400, 4),
            Parameter("b", "b", "mmHg", 0, 100, 50, 1),
        ),
        (
            Objective("stroke_volume", "SV", "mL", 1.0),
            *(Objective(name, name, "mmHg", 1.0) for name in bolus.PRESSURES),
        ),
        line,
    )
    found = refit_volume(linear, np.array([400.0, 50.0]), Patient("P", {}), 10.0)
    assert found.volume == pytest.approx(150.0, abs=1.0)
    assert np.isfinite(found.y).all()


def subjects(problem: Problem, n: int = 6) -> list[Bolus]:
    """Made by the model itself: after the bolus nothing but the initial volume differs."""
    rng = np.random.default_rng(5)
    made = []
    for i in range(n):
        x = np.array([420.0, 2.2, 1050.0, 1.2]) * rng.uniform(0.85, 1.15, 4)
        after = np.array([x[0] + rng.uniform(80.0, 250.0), *x[1:]])
        made.append(
            Bolus(measured(problem, x, f"S{i}", 70.0), measured(problem, after, f"S{i}", 70.0))
        )
    return made


def test_forecasts_of_the_model_about_itself_are_right(problem):
    # tolerances so small that the fit before is the truth
    exact = Problem(
        problem.name,
        "exact",
        problem.parameters,
        tuple(Objective(o.name, o.label, o.unit, 0.05) for o in problem.objectives),
        problem.simulate,
    )
    store = Parts()
    forecasts(
        store,
        exact,
        subjects(problem),
        methods=Methods(("least-squares-multistart",)),
        max_runs=600,
    )
    rows = store.personalizations
    assert rows["solved"].all()
    table = forecast_table(rows).set_index(["pressure", "forecast"])["mean |error| [mmHg]"]
    for pressure in bolus.PRESSURES:
        assert table[pressure, "no change"] > 8.0
        assert table[pressure, "model"] < 1.0
        assert table[pressure, "model's change"] < 1.0


def test_what_the_fit_leaves_over_cancels_in_the_change(problem):
    store = Parts()
    forecasts(store, problem, subjects(problem), methods=Methods(("least-squares",)))
    rows = store.personalizations
    left = np.abs(rows[[f"misfit:{p}" for p in bolus.PRESSURES]].to_numpy()).mean()
    table = forecast_table(rows).set_index("forecast")["mean |error| [mmHg]"]
    assert left > 1.0
    assert table["model's change"].mean() < table["model"].mean()
    assert table["model's change"].mean() < table["no change"].mean()


def test_forecast_errors_are_counted_by_hand():
    rows = {"method": ["m", "m"], "solved": [True, False]}
    for name in bolus.PRESSURES:
        rows |= {f"before:{name}": [60.0, 60.0], f"after:{name}": [70.0, 64.0]}
        rows |= {f"model:{name}": [69.0, 70.0], f"model's change:{name}": [70.0, 64.0]}
    table = forecast_table(pd.DataFrame(rows)).set_index(["pressure", "forecast"])
    naive, model = (table.loc[("aortic_mean", f)] for f in ("no change", "model"))
    assert naive["mean |error| [mmHg]"] == 7.0
    assert naive["bias [mmHg]"] == -7.0
    assert model["mean |error| [mmHg]"] == 3.5
    assert model["bias [mmHg]"] == 2.5
    assert model["difference [mmHg]"] == -3.5  # (-9 + 2) / 2
    assert model["nearer than no change [%]"] == 50.0
    assert (model["from"], model["to"]) == (-9.0, 2.0)
    assert model["fitted before [%]"] == 50.0
    assert (model["subjects"], model["without a forecast"]) == (2, 0)


def test_a_subject_whose_model_failed_has_no_forecast():
    """Counted, and left out of all rows."""
    rows = {"method": ["m"] * 3, "solved": [True, True, False]}
    for name in bolus.PRESSURES:
        rows |= {f"before:{name}": [60.0, 60.0, 60.0], f"after:{name}": [70.0, 64.0, 90.0]}
        rows |= {f"model:{name}": [69.0, 70.0, np.nan]}
        rows |= {f"model's change:{name}": [70.0, 64.0, np.nan]}
    table = forecast_table(pd.DataFrame(rows)).set_index(["pressure", "forecast"])
    for forecast, error in (("no change", 7.0), ("model", 3.5)):
        own = table.loc[("aortic_mean", forecast)]
        assert own["mean |error| [mmHg]"] == error
        assert (own["subjects"], own["without a forecast"]) == (2, 1)
    assert table.loc[("aortic_mean", "model"), "nearer than no change [%]"] == 50.0


def test_a_fit_without_a_finite_run_is_stored_without_a_forecast(problem):
    broken = replace(problem, simulate=lambda x, patient: np.full((len(x), 4), np.nan))
    store = Parts()
    forecasts(store, broken, subjects(problem, 2), methods=Methods(("least-squares",)), max_runs=5)
    rows = store.personalizations
    assert not rows["solved"].any()
    assert rows["model:aortic_mean"].isna().all()
    assert forecast_table(rows).empty


def test_agents_learn_the_heart_rate_as_those_of_the_circulation_do(problem):
    full = circulation.problem("6p")
    assert problem.features == full.features == ("heart_rate",)
    assert (problem.border, problem.multipliers) == (full.border, full.multipliers)


def test_forecasts_are_the_same_bits_for_any_number_of_workers(problem):
    tables = []
    for n_jobs in (1, 2):
        store = Parts()
        forecasts(
            store, problem, subjects(problem, 3), methods=Methods(("least-squares",)), n_jobs=n_jobs
        )
        tables.append(store.personalizations)
    pd.testing.assert_frame_equal(*tables)
