"""Numbers that stand for a value that is missing: 9, 99, 999, -9, -99, ..."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MARKER = re.compile(r"[+-]?(9+)(?:\.0*)?", re.ASCII)


def is_marker(cell: str) -> bool:
    """Whether a cell is written with nines alone, as markers of a missing value are."""
    return _MARKER.fullmatch(cell) is not None


def suspects(cells: Sequence[str]) -> list[int]:
    """Positions of cells of one column that look like markers among the other values.

    A number of nines alone is one if it is far from all values that are not written so: three
    nines or more, if the nearest is further than half the spread of these values and than a
    tenth of the marker, or if there is none; one or two nines, which are ordinary values of many
    quantities, only beside at least three other values, the nearest further than three times
    their spread.

    Parameters
    ----------
    cells : sequence of str
        Numbers, in one unit.

    Returns
    -------
    list of int
    """
    others = [float(cell) for cell in cells if not is_marker(cell)]
    spread = max(others) - min(others) if others else 0.0
    found = []
    for i, cell in enumerate(cells):
        match = _MARKER.fullmatch(cell)
        if match is None:
            continue
        value, long = float(cell), len(match[1]) >= 3
        if not others:
            far = long
        else:
            nearest = min(abs(value - other) for other in others)
            least = (0.5 if long else 3.0) * spread
            far = nearest > max(least, 0.1 * abs(value)) and (long or len(others) >= 3)
        if far:
            found.append(i)
    return found
