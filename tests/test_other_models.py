"""Patients that another model made: which tables are read, and who of them is personalised."""

from __future__ import annotations

import pandas as pd
import pytest

from vitolab.studies.other_models import COLUMNS, STUDY, first, patients_of

TABLE = """\
patient,heart_rate [1/min],lv_edv [mL],lv_esv [mL],aortic_mean [mmHg],aortic_systolic [mmHg],\
aortic_diastolic [mmHg],ejection_time [ms]
example 1,75,134.3,52.41,92.61,119.8,71.79,269.4
example 2,60,164.1,74.36,88.4,120.7,68.45,297.6
"""


@pytest.fixture
def own(tmp_path):
    """A table with the header that the command line prints."""
    file = tmp_path / "patients.csv"
    file.write_text(TABLE, encoding="utf-8")
    return file


def renamed(file):
    """The same table under the names of the public one."""
    text = file.read_text(encoding="utf-8")
    theirs = {ours.partition(" ")[0]: name for name, ours in COLUMNS.items()}
    header, _, rows = text.partition("\n")
    names = [theirs[name.partition(" ")[0]] for name in header.split(",")]
    other = file.with_name("public.csv")
    other.write_text(",".join(names) + "\n" + rows, encoding="utf-8")
    return other


def test_the_columns_of_the_public_table_are_those_of_the_template(own):
    ours, theirs = patients_of(own), patients_of(renamed(own))
    assert [p.name for p in ours] == [p.name for p in theirs]
    assert [dict(p.measurements) for p in ours] == [dict(p.measurements) for p in theirs]


def test_implausible_rows_are_left_out_and_two_have_to_remain(own):
    table = pd.read_csv(own)
    more = pd.concat([table, table.assign(patient=["a", "b"])])
    more["heart_rate [1/min]"] = [75.0, 60.0, 130.0, 75.0]
    more.to_csv(own, index=False)
    assert [p.name for p in patients_of(own)] == ["example 1", "example 2", "b"]
    with pytest.raises(ValueError, match=r"patients.csv: 1 of 4 patients have a heart rate of at"):
        patients_of(own, most_heart_rate=60.0)


def test_a_row_that_cannot_be_read_is_named_with_its_file(own):
    own.write_text(own.read_text(encoding="utf-8").replace("134.3", "many"), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^{own}, row 2, column 'lv_edv \[mL\]': found 'many'"):
        patients_of(own)


def test_fewer_patients_are_spread_evenly_over_the_table(own):
    patients = patients_of(own) * 5
    assert first(patients, 2) == [patients[0], patients[5]]
    assert first(patients, 99) == patients


def test_the_public_cohort_is_read_and_filtered(reference_data):
    file = reference_data / "modularcirc_naghavi_cohort.csv"
    patients = patients_of(file)
    table = pd.read_csv(file)
    plausible = table[(table["HR_bpm"] <= 120) & (table["mean_AoP_mmHg"] <= 140)]
    assert [p.name for p in patients] == plausible["sample"].astype(str).tolist()
    assert STUDY.profiles["standard"]["n_subjects"] >= len(patients)
