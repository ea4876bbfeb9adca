"""A user's file is read completely or refused with one sentence that says where and why."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab import patients
from vitolab.catalogue import CIRCULATION, ELECTROPHYSIOLOGY, MODELS, read_table
from vitolab.patients import InputError, PatientTable
from vitolab.problem import FloatArray, Objective, Parameter, Patient, Problem

HEADER = "patient,heart_rate [1/min],lv_edv [mL],lv_esv [mL],aortic_mean [mmHg]"
GOOD = "P1,72,180,110,95"


def answer(x: FloatArray, patient: Patient) -> FloatArray:
    """Outputs that rise with the parameters and fall with the heart rate."""
    return np.array([180.0, 110.0, 95.0]) + 10 * x - 0.1 * patient.data["heart_rate"]


PROBLEM = Problem(
    name="volumes",
    version="1",
    parameters=tuple(Parameter(name, name, "", 0.0, 1.0, 0.5, 0.01) for name in "abc"),
    objectives=(
        Objective("lv_edv", "end-diastolic volume", "mL", 20.0),
        Objective("lv_esv", "end-systolic volume", "mL", 20.0),
        Objective("aortic_mean", "mean pressure", "mmHg", 10.0),
    ),
    simulate=answer,
)


def read_patients(path: Path, problem: Problem, **options: Any) -> PatientTable:
    """Read what the circulation model needs, within its limits."""
    facts = {"data": CIRCULATION.data, "ranges": CIRCULATION.ranges, "rising": CIRCULATION.rising}
    return patients.read_patients(path, problem, **{**facts, **options})


def template(problem: Problem) -> str:
    """Template with what the circulation model needs."""
    facts = {"data": CIRCULATION.data, "ranges": CIRCULATION.ranges}
    return patients.template(problem, **facts, examples=CIRCULATION.examples)


@pytest.fixture
def write(tmp_path: Path):
    """Put text or bytes into a file."""

    def put(content: str | bytes) -> Path:
        path = tmp_path / "clinic.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put


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


# --- units -----------------------------------------------------------------------------

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


# --- what is refused -------------------------------------------------------------------


def header(old: str, new: str) -> str:
    """Give a file whose header differs."""
    return f"{HEADER.replace(old, new)}\n{GOOD}"


REFUSED = {
    "empty": ("", ": the file is empty, expected a header"),
    "blank": ("\n\n  \n", ": the file is empty, expected a header"),
    "header only": (f"{HEADER}\n\n", ": found a header and no further row, expected one row per"),
    "semicolons": (
        f"{HEADER}\n{GOOD}".replace(",", ";"),
        "row 1: found semicolons between columns",
    ),
    "tabs": (f"{HEADER}\n{GOOD}".replace(",", "\t"), "row 1: found tabs between columns"),
    "excel hint": (f"sep=;\n{HEADER}".replace(",", ";"), "row 1: found semicolons between columns"),
    "latin-1": (
        f"{HEADER}\n{GOOD}\nMüller,7".encode("latin-1"),
        "row 3: found byte 0xfc, which is",
    ),
    "utf-16": (f"{HEADER}\n{GOOD}".encode("utf-16"), "row 1: found byte 0xff, which is not UTF-8"),
    "utf-16-le": (f"{HEADER}\n{GOOD}".encode("utf-16-le"), "row 1: found a zero byte, expected"),
    "workbook": (b"PK\x03\x04rest", ": found a workbook, expected it saved as CSV (UTF-8)"),
    "open quote": (f'{HEADER}\n{GOOD}\n"P2,1,2', "row 3: found text that is not CSV"),
    "no unit": (
        header("lv_edv [mL]", "lv_edv"),
        "row 1: column 'lv_edv' has no unit, expected 'lv_e",
    ),
    "blank unit": (header("lv_edv [mL]", "lv_edv []"), "column 'lv_edv []' has no unit, expected"),
    "missing": (
        header("lv_edv [mL]", "q"),
        "row 1: column 'lv_edv [mL]' is missing, found 'patient'",
    ),
    "misspelt": (
        header("lv_edv", "lv_evd"),
        "column 'lv_evd [mL]' is not known, did you mean 'lv_edv",
    ),
    "parentheses": (header("lv_edv [mL]", "LV EDV (mL)"), "did you mean 'lv_edv [mL]'?"),
    "capital": (header("patient", "Patient"), "'Patient' is not known, did you mean 'patient'?"),
    "unknown": (
        f"{HEADER},bsa [m^2]\n{GOOD},2",
        "column 'bsa [m^2]' is not known, expected 'heart_",
    ),
    "twice": (f"{HEADER},lv_edv [L]\n{GOOD},2", "column 'lv_edv [L]' occurs twice, expected once"),
    "further twice": (f"{HEADER},q,q\n{GOOD},1,2", "column 'q' occurs twice, expected once"),
    "nameless": (f"{HEADER},,sex\n{GOOD},,f", "row 1: column 6 has no name, expected one"),
    "too few": (f"{HEADER}\n{GOOD}\nP2,72,180,110", "row 3: found 4 fields, expected 5"),
    "too many": (f"{HEADER}\nP1,72,180,110,95,1", "row 2: found 6 fields, expected 5"),
    "decimal comma": (f"{HEADER}\nP1,72,180,110,95,5", "with decimal points"),
    "quoted comma": (
        f'{HEADER}\nP1,72,180,110,"95,5"',
        "found '95,5', expected a number with a decim",
    ),
    "empty cell": (
        f"{HEADER}\nP1,72,180, ,95",
        "row 2, column 'lv_esv [mL]': the cell is empty, exp",
    ),
    "text": (
        f"{HEADER}\n\n\n{GOOD}x",
        "row 4, column 'aortic_mean [mmHg]': found '95x', expected a n",
    ),
    "nan": (
        f"{HEADER}\nP1,nan,180,110,95",
        "row 2, column 'heart_rate [1/min]': found 'nan', expected",
    ),
    "inf": (f"{HEADER}\nP1,inf,180,110,95", "found 'inf', expected a number"),
    "overflow": (f"{HEADER}\nP1,1e999,180,110,95", "found '1e999', expected a finite number"),
    "underscore": (f"{HEADER}\nP1,7_2,180,110,95", "found '7_2', expected a number"),
    "hexadecimal": (f"{HEADER}\nP1,0x48,180,110,95", "found '0x48', expected a number"),
    "nameless patient": (
        f"{HEADER}\n ,72,180,110,95",
        "row 2, column 'patient': the cell is empty",
    ),
    "same patient": (
        f"{HEADER}\n{GOOD}\n\n{GOOD}",
        "row 4, column 'patient': found 'P1' again, expec",
    ),
    "line in name": (
        f'{HEADER}\n"P\n1",72,180,110,95',
        "expected at most 64 letters, digits, spaces, dots, dashes",
    ),
    "markup in name": (
        f"{HEADER}\n<img src=x>,72,180,110,95",
        "found '<img src=x>', expected at most 64 letters",
    ),
    "range": (f"{HEADER}\nP1,20,180,110,95", "found 20 1/min, expected 30 to 200 1/min"),
    "volumes": (
        f"{HEADER}\nP1,72,110,110,95",
        "row 2: found lv_esv 110 mL and lv_edv 110 mL, expect",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_file_is_refused_in_one_sentence(write, case):
    content, expected = REFUSED[case]
    path = write(content)
    with pytest.raises(InputError) as refused:
        read_patients(path, PROBLEM)
    said = str(refused.value)
    assert said.startswith(str(path))
    assert expected in said
    assert "\n" not in said
    assert ". " not in said.removeprefix(str(path))


def test_what_is_not_a_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="found a directory, expected a CSV file"):
        read_patients(tmp_path, PROBLEM)
    with pytest.raises(InputError, match="there is no such file, expected a CSV file"):
        read_patients(tmp_path / "absent.csv", PROBLEM)


def test_rows_are_numbered_as_in_an_editor_after_a_cell_with_line_breaks(write):
    path = write(f'{HEADER},note\r\n{GOOD},"two\r\nlines"\r\nP2,72,180,110,x,\r\n')
    with pytest.raises(InputError, match=r"row 4, column 'aortic_mean \[mmHg\]'"):
        read_patients(path, PROBLEM)


@settings(deadline=None, max_examples=150)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)), st.booleans())
def test_no_file_whatever_leads_to_another_exception(tmp_path_factory, content, with_header):
    path = tmp_path_factory.mktemp("any") / "p.csv"
    path.write_bytes((HEADER.encode() + b"\n" if with_header else b"") + content)
    with pytest.raises(InputError) as refused:
        read_patients(path, PROBLEM)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


# --- the built-in setups ---------------------------------------------------------------

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


def test_template_is_plain_csv_with_one_header_and_two_rows():
    rows = list(csv.reader(io.StringIO(template(PROBLEM))))
    assert rows[0] == HEADER.split(",")
    assert [len(row) for row in rows] == [5, 5, 5]


# --- texts, which the model of the heart needs ---------------------------------------------------

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
