"""Units as users write them, and the numbers by which they convert.

A conversion is made where it can surprise nobody. Angles convert to angles (``rad``, ``°``,
``turn``), shares to shares (``%``, ``ppm``), counts to counts; none of them converts to a plain
number or to one another, though the unit library would give a factor (a turn is 2π, a percent
0.01, a bit 1): whether 39 % is 39 or 0.39 is for the file to say. A ratio such as mg/g does
not convert to a plain number either. A conversion is asked for by a unit of the same kind in
the problem.
"""

from __future__ import annotations

import math
import re

#: Ways to write a unit that the unit library does not know.
_SPELLINGS = {"bpm": "1/min", "beats/min": "1/min", "/min": "1/min", "mm Hg": "mmHg", "deg": "°"}
_SHARES = ("percent", "permille", "ppm")
_LENGTH_POWER = re.compile(r"(?<!\w)([cdmµ]?m)([23])(?!\w)")
_MMHG = re.compile(r"(?<!\w)mmhg(?!\w)", re.IGNORECASE)

# products and quotients of units to one-digit powers: the unit library would also try to work
# out 9**9**9
_POWER = r"(?:[^\W\d_][^\W_]*|[°%])(?:(?:\*\*|\^)[+-]?\d|⁻[²³¹])?"
_UNIT = re.compile(rf"(?:1|{_POWER})(?:(?:\s*[*/·]\s*|\s+){_POWER})*")


def conversion(unit: str, expected: str) -> float | None:
    """Number by which values are multiplied to convert a unit; None if there is none.

    Parameters
    ----------
    unit : str
        As written; ``cm3`` and ``mmhg`` are cm³ and mmHg.
    expected : str
        Unit of the result; empty or ``1`` is a plain number.

    Returns
    -------
    float or None
        None where a unit is not known, where dimensions differ, where zeros differ
        (temperatures), and where an angle, share or count would become something else; see the
        module.
    """
    unit, expected = _spelled(unit), _spelled(expected)
    if unit == expected:
        return 1.0
    factor = _factor(unit, expected)
    return factor if factor is not None and _kind(unit) == _kind(expected) else None


def advice(unit: str, expected: str) -> str:
    """Say how to write values of a unit that is refused though it has a factor; else nothing.

    Returns
    -------
    str
        End of a sentence, with its semicolon.
    """
    if (
        conversion(unit, expected) is not None
        or _factor(_spelled(unit), _spelled(expected)) is None
    ):
        return ""
    return (
        "; angles, shares and counts are not converted to one another or to plain numbers, write "
        f"the values as {expected or 'plain numbers, without brackets in the header'}"
    )


def _spelled(unit: str) -> str:
    """Unit as the unit library writes it; empty for a plain number."""
    unit = _SPELLINGS.get(unit, unit)
    if unit == "1":
        return ""
    return _LENGTH_POWER.sub(r"\1**\2", _MMHG.sub("mmHg", unit))


def _factor(unit: str, expected: str) -> float | None:
    """Factor of the unit library, which takes angles, shares and counts for plain numbers."""
    if any(len(text) > 30 or not _UNIT.fullmatch(text or "1") for text in (unit, expected)):
        return None
    import pint

    try:
        zero, one = (float(pint.Quantity(n, unit).to(expected).magnitude) for n in (0.0, 1.0))
    except Exception:  # the text is the user's: the parser answers with exceptions of any kind
        return None
    # a unit with another zero (temperatures) does not convert by a factor
    return one if zero == 0.0 and math.isfinite(one) and one > 0.0 else None


def _kind(unit: str) -> tuple[object, ...]:
    """Equal for units between which a factor surprises nobody."""
    import pint

    found = pint.Unit(unit)
    # the roots keep angles, bits and counts, but take a percent for the number 0.01
    root = pint.Quantity(1.0, found).to_root_units()
    powers = dict(found._units)
    shares = sum(powers.get(name, 0) for name in _SHARES)
    plain = root.unitless and not shares
    return str(root.units), shares, float(root.magnitude) if plain else None
