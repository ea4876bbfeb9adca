"""A user's file that is bad is refused with one sentence that says where and why."""

from __future__ import annotations

import patient_files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patient_files import GOOD, HEADER, PROBLEM, read_patients

from vitolab.patients import InputError

write = patient_files.write


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
