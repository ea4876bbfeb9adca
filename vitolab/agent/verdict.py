"""Which measurements of a patient contradict each other, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitolab.agent.planning import Target, descended
from vitolab.problem import FloatArray

CLOSE = 0.5  # tolerances from which a misfit at the best compromise is named


def unreachable(target: Target, starts: Sequence[FloatArray], chance: float) -> str:
    """Say that no parameters are expected to meet all measurements, and by how much they fail.

    The best compromise has the least sum of squares, in tolerances, of what is expected.

    Parameters
    ----------
    target : Target
    starts : sequence of ndarray, shape (n_parameters,)
        From which the best compromise is sought.
    chance : float
        Logarithm of the largest chance to meet all measurements.

    Returns
    -------
    str
        One sentence.
    """
    misfits, _ = target.chances(np.array([descended(target, u) for u in starts]))
    c = misfits[int(np.argmin((misfits**2).sum(axis=1)))]
    named = [
        f"{o.label} by {value * o.tolerance:+.3g} {o.unit}".rstrip()
        + f" (tolerance {o.tolerance:g})"
        for o, value in sorted(
            zip(target.problem.objectives, c, strict=True), key=lambda pair: -abs(pair[1])
        )
        if abs(value) >= CLOSE
    ]
    power = int(np.floor(max(chance, -690.0) / np.log(10.0))) + 1
    return (
        f"No parameters are expected to meet all measurements (chance below 1e{power}): "
        f"the best compromise misses {', '.join(named) or 'them in between runs'}."
    )
