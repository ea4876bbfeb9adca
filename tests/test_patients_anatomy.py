"""An anatomy that cannot be had is refused with its row and column."""

from pathlib import Path

import pytest

from vitolab.catalogue import find_model, read_table
from vitolab.models.electrophysiology import load_anatomy, prepare
from vitolab.patients import InputError
from vitolab.problem import Patient

HEAD = "patient,qrs_duration [ms],electrical_axis [°],anatomy"


@pytest.mark.parametrize("named", ["none.vtu", "x" * 300 + ".vtu", "y/" * 4000 + "heart.vtu", "."])
def test_an_anatomy_that_is_not_there_is_named_with_its_cell(named: str, tmp_path: Path) -> None:
    file = tmp_path / "ecg.csv"
    file.write_text(f"{HEAD}\n\nA,90,30,\nB,95,20,{named}\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_table(find_model("electrophysiology"), file, "infinite")
    said = str(refused.value)
    assert said.startswith(f"{file}, row 4, column 'anatomy': patient 'B': anatomy is ")
    assert "expected" in said
    assert len(said) < 800
    assert "\n" not in said


def test_a_circle_of_links_is_no_anatomy(tmp_path: Path) -> None:
    (tmp_path / "heart.vtu").symlink_to(tmp_path / "heart.vtu")
    file = tmp_path / "ecg.csv"
    file.write_text(f"{HEAD}\nB,95,20,heart.vtu\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"ecg\.csv.*heart\.vtu"):
        read_table(find_model("electrophysiology"), file, "infinite")


def test_a_name_too_long_for_the_system_is_absent(tmp_path: Path) -> None:
    named = "x" * 5000
    with pytest.raises(ValueError, match="it is absent, expected a file with a mesh"):
        load_anatomy(tmp_path / f"{named}.vtu")
    with pytest.raises(ValueError, match="patient 'A': anatomy is 'xxx"):
        prepare([Patient("A", {"qrs_duration": 90.0}, {"anatomy": named})])
