"""Counts, chances and seeds that a caller asks for, checked where they come in."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

#: Largest whole number of 64 bits.
MOST = 2**63 - 1


def shown(value: Any) -> str:
    """Value in a message, cut where it is long."""
    if isinstance(value, int) and abs(value) >= 10**40:  # Python writes at most 4300 digits
        return "a number of more than 40 digits"
    return " ".join(f"{value!r:.60}".split())


def checked_count(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """Check a whole number.

    Parameters
    ----------
    name : str
        For the message.
    value : int
        Those of numpy are accepted, too.
    least, most : int
        Both are allowed.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is no whole number (truth values and floats are none), below the least or above the
        most.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} is {shown(value)}, expected a whole number")
    count = int(value)
    if not least <= count <= most:
        expected = f"at least {least}" if count < least else f"at most {most}"
        raise ValueError(f"{name} is {shown(count)}, expected {expected}")
    return count


def checked_chance(name: str, value: Any, *, certain: bool = False) -> float:
    """Check a chance below certainty, a number from 0 to below 1; or, if `certain`, to 1.

    Raises
    ------
    ValueError
        If it is something else.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0.0 <= float(value) <= 1.0 or (value == 1.0 and not certain):
        expected = "from 0 to 1" if certain else "from 0 to below 1"
        raise ValueError(f"{name} is {shown(value)}, expected {expected}")
    return float(value)


def checked_seed(seed: Any, name: str = "seed") -> int:
    """Check a seed: a whole number from 0 to 2^63 - 1.

    Raises
    ------
    ValueError
        If it is something else.
    """
    return checked_count(name, seed, 0)
