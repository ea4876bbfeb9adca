"""A measurement of another size than those of all others is used, and warned of."""

from __future__ import annotations

import pytest

from vitolab.patients import read_patients
from vitolab.patients.markers import strange


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["55", "0.5", "60", "35"], [(1, "less than a twentieth of the other values (35 to 60)")]),
        (
            ["90", "1e30", "110", "70"],
            [(1, "more than 20 times as large as the other values (70 to 110)")],
        ),
        (
            ["-60", "-3000", "-70", "-50"],
            [(1, "more than 20 times as large as the other values (-")],
        ),
        (["90", "200", "110", "70"], []),
        (["0.01", "3", "-4", "2"], []),  # which differ in sign
        (["0.01", "3", "100", "2"], []),  # which are far apart themselves
        (["0.0", "0.0", "5", "0.0"], []),
        (["1e30", "90", "100"], []),
        (["999", "3", "4", "5"], []),  # a marker, of which is said something else
        ([], []),
    ],
)
def test_a_number_of_another_size_than_all_others_is_strange(cells, found):
    got = strange(cells)
    assert [i for i, _ in got] == [i for i, _ in found]
    for (_, said), (_, expected) in zip(got, found, strict=True):
        assert said.startswith(expected)


def test_a_measurement_in_another_unit_is_used_and_warned_of(linear_problem, tmp_path):
    file = tmp_path / "clinic.csv"
    rows = "\n".join(f"P{i},{u},1" for i, u in enumerate([50, 55, 0.5, 60, 45]))
    file.write_text(f"patient,u [mL],w [mmHg]\n{rows}\n", encoding="utf-8")
    table = read_patients(file, linear_problem)
    assert len(table.patients) == 5
    assert table.warnings == (
        f"{file}, row 4, column 'u [mL]': 0.5 is less than a twentieth of the other values (45 to "
        "60), and is used as it is; see whether it has the unit of the column",
    )
    assert read_patients(file, linear_problem, ranges={"u": (0.0, 99.0, "mL")}).warnings == ()
