"""Which measurements of a patient contradict each other, in words."""

from __future__ import annotations

import numpy as np

from vitolab.problem import FloatArray, Problem

SMALLEST = -12  # power of ten that a chance is said to be below
CLOSE = 0.5  # tolerances from which a misfit at the best compromise is named


def unreachable(problem: Problem, misfits: FloatArray, log_probability: float) -> str:
    """Say that no parameters are expected to meet all measurements, and by how much they fail.

    Parameters
    ----------
    problem : Problem
    misfits : ndarray, shape (n_objectives,)
        Expected over ψ at the best compromise, see `vitolab.agent.planning.compromise`.
    log_probability : float
        Largest one found that all measurements are met.

    Returns
    -------
    str
        One sentence.
    """
    pairs = zip(problem.objectives, misfits, strict=True)
    named = [
        f"{o.label} by {c * o.tolerance:+.3g} {o.unit}".rstrip() + f" (tolerance {o.tolerance:g})"
        for o, c in sorted(pairs, key=lambda pair: -abs(pair[1]))
        if abs(c) >= CLOSE
    ]
    power = max(int(np.floor(log_probability / np.log(10.0))) + 1, SMALLEST)
    return (
        f"No parameters are expected to meet all measurements (chance below 1e{power}): "
        f"the best compromise misses {', '.join(named) or 'them between runs'}."
    )
