"""Numbers that are hardly meant: markers of a missing value (9, 99, -999), another unit's."""

from __future__ import annotations

import re
from collections.abc import Sequence

FEW = 3  # other values, with fewer of which a number is compared with nothing
APART = 20.0  # factor between a value and all others, which lie closer together
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


def strange(cells: Sequence[str]) -> list[tuple[int, str]]:
    """Positions of numbers of one column that are of another size than all others, and how.

    Such are a percentage beside shares, or a slip of a power of ten: `APART` times as large as the
    largest of the others, or as small as the smallest, where at least `FEW` others all have the
    same sign and differ by a factor below `APART`. What is written with nines alone is left to
    `suspects`.

    Parameters
    ----------
    cells : sequence of str
        Numbers, in one unit.

    Returns
    -------
    list of (int, str)
    """
    values = [float(cell) for cell in cells]
    if len(values) <= FEW:
        return []
    order = sorted(range(len(values)), key=values.__getitem__)
    found = []
    for i in (order[0], order[-1]):  # nothing between others is apart from all of them
        others = [values[j] for j in (order[1:] if i == order[0] else order[:-1])]
        low, high = sorted((abs(others[0]), abs(others[-1])))
        together = others[0] * others[-1] > 0 and high < APART * low
        if not together or is_marker(cells[i]):
            continue
        size = abs(values[i])
        beside = f"the other values ({others[0]:g} to {others[-1]:g})"
        if size > APART * high:
            found.append((i, f"more than {APART:g} times as large as {beside}"))
        elif APART * size < low:
            found.append((i, f"less than a twentieth of {beside}"))
    return found
