"""Arrays of a file that do not fit are refused with the row, and what was expected in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vitolab.saved import check_arrays, check_limits, check_range

FILE = Path("file.npz")


@pytest.mark.parametrize(
    ("array", "kind", "shape", "said"),
    [
        (
            np.zeros((3, 2)),
            "f",
            (4, 3),
            "3 rows of 2 float64 values, expected 4 rows of 3 numbers",
        ),
        (np.zeros(3, int), "f", (3,), "3 int64 values, expected 3 numbers"),
        (np.zeros(3), "i", (None,), "3 float64 values, expected any number of whole numbers"),
        (
            *(np.zeros(2), "f", (None, 2)),
            "2 float64 values, expected any number of rows of 2 numbers",
        ),
        (np.array([[1.0], [np.nan]]), "f", (2, 1), "nan in row 2, expected finite numbers"),
    ],
)
def test_an_array_of_another_kind_or_shape_is_refused_in_words(array, kind, shape, said):
    with pytest.raises(ValueError, match="u holds") as refused:
        check_arrays(FILE, {"u": array}, {"u": (kind, shape)})
    assert str(refused.value) == f"file.npz: u holds {said}"


def test_numbers_of_32_bits_are_refused_by_their_type():
    with pytest.raises(ValueError, match="u has type float32, expected float64"):
        check_arrays(FILE, {"u": np.zeros(2, np.float32)}, {"u": ("f", (2,))})


def test_what_lies_outside_is_named_with_its_row():
    u = np.zeros((5, 3))
    u[2, 1] = 1e30
    with pytest.raises(ValueError, match=r"u holds 1e\+30 in row 3, expected from 0 to 1"):
        check_limits(FILE, "u", u, 0.0, 1.0)
    with pytest.raises(ValueError, match="s holds 7 in row 2, expected from 0 to 3"):
        check_range(FILE, "s", np.array([1, 7]), 0, 3)
