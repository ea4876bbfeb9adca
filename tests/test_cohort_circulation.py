"""The synthetic cohort: frozen, plausible, and made by another model than the personalised one."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from vitolab.models import circulation
from vitolab.models.circulation import frozen, generate, truth

FOLDER = Path(frozen.__file__).parent
# measured range of the paper's patients, table wbc_objectives
PAPER = {
    "lv_edv": (129, 647),
    "lv_esv": (63, 529),
    "aortic_mean": (68, 121),
    "aortic_systolic": (83, 182),
    "aortic_diastolic": (48, 99),
    "ejection_time": (115, 514),
}


@pytest.fixture(scope="module")
def patients():
    cohort = circulation.cohort()
    return cohort.scouting + cohort.evaluation


def test_eight_patients_scout_and_48_are_evaluated(patients):
    cohort = circulation.cohort()
    assert (len(cohort.scouting), len(cohort.evaluation)) == (8, 48)
    assert sorted(p.name for p in patients) == [f"C{i:02d}" for i in range(1, 57)]
    for setup in circulation.SETUPS:
        problem = circulation.problem(setup)
        for patient in patients:
            assert np.isfinite(problem.measured(patient)).all()
            assert 50 <= circulation.heart_rate(patient) <= 115


def test_measurements_lie_within_the_papers_ranges_and_nearly_fill_them(patients):
    for name, (low, high) in PAPER.items():
        values = [p.measurements[name] for p in patients]
        assert low <= min(values)
        assert max(values) <= high
        assert max(values) - min(values) > 0.75 * (high - low)


def test_measurements_are_plausible(patients):
    for patient in patients:
        z, rate = patient.measurements, patient.data["heart_rate"]
        assert z["aortic_diastolic"] < z["aortic_mean"] < z["aortic_systolic"]
        assert z["pulmonary_diastolic"] < z["pulmonary_systolic"] < z["aortic_systolic"]
        ejected = z["lv_edv"] - z["lv_esv"]
        assert 0.10 < ejected / z["lv_edv"] < 0.65
        assert 2300 < ejected * rate < 9500
        assert 0 < z["la_mean"] < 38
        assert z["rv_esv"] < z["rv_edv"]


def test_regenerating_gives_the_frozen_files(patients):
    allowed = dict.fromkeys(frozen.CHECKSUMS, 0.11) | {"truth.csv": 1e-9}  # last digit
    for name, rows in generate.generate().items():
        with (FOLDER / name).open(newline="") as file:
            stored = list(csv.reader(file))
        assert rows[0] == stored[0]
        assert len(rows) == len(stored)
        for made, kept in zip(rows[1:], stored[1:], strict=True):
            assert made[0] == kept[0]
            words = 2 if name in ("cohort.csv", "truth.csv") else 1
            assert made[:words] == kept[:words]
            found, expected = (np.array(row[words:], dtype=float) for row in (made, kept))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=allowed[name])


def test_a_changed_file_is_refused(tmp_path):
    content = (FOLDER / "cohort.csv").read_text()
    changed = tmp_path / "cohort.csv"
    changed.write_text(content)
    rows = frozen.read_checked(changed, frozen.CHECKSUMS["cohort.csv"])
    assert len(rows) == 56
    changed.write_text(content.replace("scouting", "evaluation", 1))
    with pytest.raises(ValueError, match=r"cohort\.csv: SHA-256 is .*, restore the file"):
        frozen.read_checked(changed, frozen.CHECKSUMS["cohort.csv"])


def test_curves_agree_with_the_measurements(patients):
    curves = circulation.measured_curves()
    assert set(curves) == {p.name for p in patients}
    for patient in patients:
        c = curves[patient.name]
        assert c["time"].shape == c["lv_volume"].shape == c["aortic_pressure"].shape == (60,)
        assert c["time"][-1] < 60 / patient.data["heart_rate"]
        assert c["lv_volume"].max() == pytest.approx(patient.measurements["lv_edv"], abs=10)
        assert c["lv_volume"].min() == pytest.approx(patient.measurements["lv_esv"], abs=10)
        top = patient.measurements["aortic_systolic"]
        assert c["aortic_pressure"].max() == pytest.approx(top, abs=5)


def test_the_patients_are_not_the_personalised_model(patients):
    # At the true parameters most patients miss a tolerance, so success is no parameter recovery.
    problem, true = circulation.problem("6p"), truth.truth()
    assert set(true) == {p.name for p in patients}
    misfits = []
    for patient in patients:
        x = np.array([[true[patient.name][p.name] for p in problem.parameters]])
        y = problem.simulate(x, patient)[0]
        misfits.append(problem.misfit(y, problem.measured(patient)))
    assert problem.is_solved(np.array(misfits)).mean() < 0.4
    rms = np.sqrt(np.mean((np.array(misfits) / problem.tolerance) ** 2, axis=0))
    assert np.all(rms > 0.3)
    assert np.all(rms < 2.5)


def test_three_patients_come_from_the_tails(patients):
    tail = [row["patient"] for row in truth._rows() if row["source"] == "tail"]
    assert len(tail) == 3
    largest = max(patients, key=lambda p: p.measurements["lv_edv"])
    longest = max(patients, key=lambda p: p.measurements["ejection_time"])
    assert {largest.name, longest.name} <= set(tail)


def test_candidates_depend_on_the_random_generator_alone():
    first = generate.draw(np.random.default_rng(5), 40, tail=False)
    second = generate.draw(np.random.default_rng(5), 40, tail=False)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    column = generate.kernel.MITRAL_LEAK
    leaks = generate.draw(np.random.default_rng(6), 4000, tail=True)[0][:, column]
    assert np.mean(leaks > 0) == pytest.approx(0.35, abs=0.03)
    assert leaks.max() <= 1 / 4


def test_patients_are_asked_for_by_number_and_name() -> None:
    found = circulation.cohort()
    assert found.first(12) == found.evaluation[:12]
    assert found.named("C10").name == "C10"
    with pytest.raises(ValueError, match="49 patients, expected 1 to 48"):
        found.first(49)
    with pytest.raises(ValueError, match="-1 patients"):
        found.first(-1)
    with pytest.raises(ValueError, match="patient is 'C02', expected one of C01, "):
        found.named("C02")
