"""A user's file for the built-in models, in each setup."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import patient_files
import pytest
from patient_files import GOOD, HEADER, PROBLEM, read_patients, template

from vitolab import patients
from vitolab.catalogue import CIRCULATION, ELECTROPHYSIOLOGY, MODELS, read_table
from vitolab.patients import InputError, PatientTable
from vitolab.problem import Problem

write = patient_files.write

SETUPS = ("2p", "3p", "5p", "6p")


def circulation(setup: str) -> Problem:
    from vitolab.models import circulation

    return circulation.problem(setup)


def electrophysiology() -> Problem:
    from vitolab.models import electrophysiology

    return electrophysiology.problem()


def test_template_of_any_problem_is_accepted(write):
    table = read_patients(write(template(PROBLEM)), PROBLEM)
    assert [patient.name for patient in table.patients] == ["example 1", "example 2"]


@pytest.mark.parametrize("setup", [*SETUPS, "9p", "12p"])
def test_template_of_each_setup_is_accepted(write, setup):
    problem = circulation(setup)
    table = read_patients(write(template(problem)), problem)
    assert len(table.patients) == 2
    for patient in table.patients:
        assert np.isfinite(problem.simulate(problem.default[np.newaxis], patient)).all()


def test_ranges_name_quantities_of_the_built_in_models_in_their_units():
    for model in MODELS.values():
        units = dict(model.data)
        for setup in model.n_states:
            units |= {o.name: o.unit for o in model.problem(setup).objectives}
        found = {name: unit for name, (_, _, unit) in model.ranges.items()}
        assert found.items() <= units.items()
        if model.name in ("circulation", "electrophysiology"):  # a function is no living adult
            assert found == units
        assert {name for pair in model.rising for name in pair} <= set(units)
        assert set(model.examples) <= set(model.data)


def test_a_column_of_another_built_in_model_is_kept(write):
    """One file serves several models; where it is used, its own limits hold."""
    path = write(f"{HEADER},qrs_duration [ms]\n{GOOD},9000\n")
    table = read_table(CIRCULATION, path, "3p")
    assert table.extra["qrs_duration [ms]"].tolist() == ["9000"]
    head = "patient,qrs_duration [ms],electrical_axis [°],lv_edv [mL]"
    with pytest.raises(InputError, match="found 9000 ms, expected 30 to 400 ms"):
        read_table(ELECTROPHYSIOLOGY, write(f"{head}\nA,9000,30,\n"), "bem")


def test_what_a_reader_was_not_given_it_does_not_know(write):
    """The reader of a CSV file knows no physiology: it lies with the model."""
    header = "patient,lv_edv [mL],lv_esv [mL],aortic_mean [mmHg]"
    path = write(f"{header}\nP1,1e6,2e6,1e4")
    (patient,) = patients.read_patients(path, PROBLEM).patients
    assert patient.measurements["lv_esv"] == 2e6


@pytest.mark.parametrize("setup", SETUPS)
def test_independent_cohort_is_accepted_entirely_in_every_setup(write, reference_data, setup):
    columns = {
        "sample": "patient",
        "HR_bpm": "heart_rate [bpm]",
        "EDV_mL": "lv_edv [mL]",
        "ESV_mL": "lv_esv [mL]",
        "mean_AoP_mmHg": "aortic_mean [mmHg]",
        "peak_sys_AoP_mmHg": "aortic_systolic [mmHg]",
        "end_dia_AoP_mmHg": "aortic_diastolic [mmHg]",
        "ejection_time_ms": "ejection_time [ms]",
    }
    cohort = pd.read_csv(reference_data / "modularcirc_naghavi_cohort.csv")
    path = write(cohort.rename(columns=columns).to_csv(index=False))
    table = read_patients(path, circulation(setup))
    assert len(table.patients) == len(cohort) == 120  # also those beyond any plausibility filter
    assert table.patients[7].data["heart_rate"] == cohort["HR_bpm"][7]


def test_one_file_serves_every_setup_and_more_measurements_are_asked_for_by_name(write):
    full = template(circulation("12p"))
    for setup in (*SETUPS, "9p"):
        table = read_patients(write(full), circulation(setup))
        assert list(table.patients[0].measurements) == [
            o.name for o in circulation(setup).objectives
        ]
    path = write(template(circulation("6p")))
    with pytest.raises(InputError, match=r"row 1: column 'rv_esv \[mL\]' is missing, found 'pat"):
        read_patients(path, circulation("12p"))
    wedge = write(full.replace("la_mean [mmHg]", "LA mean [mmHg]"))
    with pytest.raises(InputError, match=r"'LA mean .*, did you mean 'la_mean \[mmHg\]'\?"):
        read_patients(wedge, circulation("12p"))
    lines = full.splitlines()
    lines[1] = lines[1].rpartition(",")[0] + ","
    with pytest.raises(InputError, match=r"row 2, column 'la_mean \[mmHg\]': the cell is empty"):
        read_patients(write("\n".join(lines)), circulation("12p"))
    table = read_patients(write("\n".join(lines)), circulation("12p"), allow_missing=True)
    assert table.skipped == []
    assert "la_mean" not in table.patients[0].measurements


def test_pulmonary_measurements_that_cannot_belong_together_are_refused(write):
    problem = circulation("12p")
    header, row, _ = template(problem).splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    cells["pulmonary_mean [mmHg]"] = "40"  # above the systolic pressure
    path = write("\n".join([header, ",".join(cells.values())]))
    with pytest.raises(InputError, match="expected pulmonary_mean below pulmonary_systolic"):
        read_patients(path, problem)


def test_the_synthetic_cohort_is_accepted_with_all_its_measurements(write):
    from vitolab.models.circulation import cohort

    problem, patients = circulation("12p"), cohort().scouting + cohort().evaluation
    lines = [template(problem).splitlines()[0]]
    for patient in patients:
        values = [patient.measurements[o.name] for o in problem.objectives]
        lines.append(",".join(map(str, [patient.name, patient.data["heart_rate"], *values])))
    table = read_patients(write("\n".join(lines)), problem)
    assert [p.name for p in table.patients] == [p.name for p in patients]


TEXTS = {"anatomy": "normal"}


def read_ecg(path: Path) -> PatientTable:
    return patients.read_patients(
        path, electrophysiology(), texts=TEXTS, ranges=ELECTROPHYSIOLOGY.ranges
    )


def test_a_text_that_is_absent_is_the_stated_one_and_is_told(write):
    head = "patient,qrs_duration [ms],electrical_axis [deg]"
    rows = ["a,100,20,,left", "b,120,270,hearts/b.vtu,right"]
    found = read_ecg(write("\n".join([f"{head},anatomy,side", *rows])))
    assert [p.data["anatomy"] for p in found.patients] == ["normal", "hearts/b.vtu"]
    assert found.extra.loc["a"].to_dict() == {"anatomy": "normal", "side": "left"}
    without = read_ecg(write(f"{head}\na,100,20"))
    assert without.patients[0].data["anatomy"] == "normal"
    assert without.extra["anatomy"].tolist() == ["normal"]


def test_an_axis_beyond_half_a_turn_is_the_same_axis(write):
    """Machines count from -90 to 270."""
    problem = electrophysiology()
    head = "patient,qrs_duration [ms],electrical_axis [°]"
    found = read_ecg(write(f"{head}\na,100,270\nb,100,-90")).patients
    c = problem.misfit(*(problem.measured(patient) for patient in found))
    assert np.abs(c).max() == 0.0
