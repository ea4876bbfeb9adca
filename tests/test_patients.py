"""A user's file is read completely: columns, ways to write it, units."""

from __future__ import annotations

import csv
import io

import patient_files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patient_files import GOOD, HEADER, PROBLEM, read_patients, template

from vitolab.patients import InputError

write = patient_files.write


# --- what is taken ---------------------------------------------------------------------


def test_patients_come_in_file_order_with_measurements_data_and_further_columns(write):
    path = write(f"{HEADER},sex,ejection_time [ms]\nP2,60,200,120,90,f,280\n{GOOD},,\n")
    table = read_patients(path, PROBLEM)
    assert [patient.name for patient in table.patients] == ["P2", "P1"]
    assert dict(table.patients[1].measurements) == {
        "lv_edv": 180.0,
        "lv_esv": 110.0,
        "aortic_mean": 95.0,
    }
    assert dict(table.patients[1].data) == {"heart_rate": 72.0}
    # a measurement of another setup, with its unit, does not stand in the way
    assert table.extra.to_dict() == {
        "sex": {"P2": "f", "P1": ""},
        "ejection_time [ms]": {"P2": "280", "P1": ""},
    }
    assert table.skipped == []


def test_columns_may_stand_in_any_order(write):
    names = HEADER.split(",")
    turned = [[*names[3:], *names[:3]], [*GOOD.split(",")[3:], *GOOD.split(",")[:3]]]
    path = write("\n".join(",".join(row) for row in turned))
    assert read_patients(path, PROBLEM).patients[0].measurements["lv_esv"] == 110.0


@pytest.mark.parametrize(
    "content",
    [
        f"{HEADER}\r\n{GOOD}\r\n".encode(),
        f"{HEADER}\r{GOOD}\r".encode(),
        f"{HEADER}\n{GOOD}".encode("utf-8-sig"),
        f"\n{HEADER}\n\n{GOOD}\n,,,,\n\n".encode(),
        f'"patient", heart_rate [1/min] ,lv_edv[ mL ],{HEADER.split(",", 3)[3]}\n'
        f'"P1", 72 ,"180",1.1e2,+95.'.encode(),
    ],
    ids=["crlf", "cr", "byte order mark", "blank rows", "quotes and spaces"],
)
def test_ways_in_which_programs_write_the_same_file_make_no_difference(write, content):
    table = read_patients(write(content), PROBLEM)
    assert [(p.name, *p.measurements.values(), *p.data.values()) for p in table.patients] == [
        ("P1", 180.0, 110.0, 95.0, 72.0)
    ]


def test_patients_with_an_empty_cell_go_without_it_or_are_left_out_when_that_is_allowed(write):
    rows = ["P1,72,180,,95,f", "P2,,180,110, ,m", "P3,72,180,110,95,f", "P4,72,,,,m"]
    path = write("\n".join([f"{HEADER},sex", *rows]))
    table = read_patients(path, PROBLEM, allow_missing=True)
    assert {patient.name: list(patient.measurements) for patient in table.patients} == {
        "P1": ["lv_edv", "aortic_mean"],
        "P3": ["lv_edv", "lv_esv", "aortic_mean"],
    }
    assert table.skipped == [
        ("P2", "heart_rate and aortic_mean not measured (row 3)"),
        ("P4", "lv_edv and lv_esv and aortic_mean not measured (row 5)"),
    ]
    assert list(table.extra["sex"]) == ["f", "m", "f", "m"]


def test_other_cells_of_a_patient_who_is_left_out_are_checked_all_the_same(write):
    with pytest.raises(InputError, match="row 2, column 'aortic_mean"):
        read_patients(write(f"{HEADER}\nP1,72,180,,x"), PROBLEM, allow_missing=True)


FACTORS = {  # how many of the problem's units one of these is
    "heart_rate": {"bpm": 1.0, "beats/min": 1.0, "1/s": 60.0, "Hz": 60.0, "min^-1": 1.0},
    "lv_edv": {"L": 1000.0, "ml": 1.0, "cm^3": 1.0, "dm³": 1000.0, "cL": 10.0},
    "lv_esv": {"L": 1000.0, "cm**3": 1.0, "µL": 1e-3},
    "aortic_mean": {
        "kPa": 7.500616827,
        "mm Hg": 1.0,
        "dyn/cm^2": 7.500616827e-4,
        "bar": 750.0616827,
    },
}


# --- units -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_measurements_in_other_units_are_those_in_the_units_of_the_problem(tmp_path_factory, data):
    rate = data.draw(st.floats(35, 190))
    edv = data.draw(st.floats(60, 1400))
    esv = data.draw(st.floats(3, 59))
    pressure = data.draw(st.floats(20, 290))
    header, cells = ["patient"], ["P1"]
    truth = dict(zip(FACTORS, (rate, edv, esv, pressure), strict=True))
    for name, value in truth.items():
        unit, factor = data.draw(st.sampled_from(sorted(FACTORS[name].items())))
        header.append(f"{name} [{unit}]")
        cells.append(repr(value / factor))
    path = tmp_path_factory.mktemp("units") / "p.csv"
    path.write_text("\n".join([",".join(header), ",".join(cells)]), encoding="utf-8")
    (patient,) = read_patients(path, PROBLEM).patients
    # the factors above are printed to ten digits; 1 mmHg = 133.322387415 Pa
    assert {**patient.data, **patient.measurements} == pytest.approx(truth, rel=2e-7)


def test_a_range_is_applied_after_conversion(write):
    path = write(
        f"{HEADER.replace('lv_edv [mL]', 'lv_edv [L]')}\nP1,72,0.18,110,95\nP2,72,180,110,95"
    )
    with pytest.raises(InputError) as refused:
        read_patients(path, PROBLEM)
    assert str(refused.value) == (
        f"{path}, row 3, column 'lv_edv [L]': found 180 L (180000 mL), expected 20 to 1500 mL"
    )


@pytest.mark.parametrize(
    "unit", ["kPa", "foo", "10 mL", "1/mL", "m L", "(", "9**9**9**9", "__import__('os')", "a" * 99]
)
def test_a_unit_that_does_not_convert_is_refused_without_being_evaluated(write, unit):
    path = write(f"{HEADER.replace('lv_edv [mL]', f'lv_edv [{unit}]')}\n{GOOD}")
    with pytest.raises(InputError) as refused:
        read_patients(path, PROBLEM)
    assert str(refused.value) == (
        f"{path}, row 1, column 'lv_edv [{unit}]': found unit '{unit}', expected mL or a unit "
        "that converts to it"
    )


# --- the built-in setups ---------------------------------------------------------------


def test_template_is_plain_csv_with_one_header_and_two_rows():
    rows = list(csv.reader(io.StringIO(template(PROBLEM))))
    assert rows[0] == HEADER.split(",")
    assert [len(row) for row in rows] == [5, 5, 5]
