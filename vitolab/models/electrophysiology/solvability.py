"""Which patients have a solution at all.

With the ratios of the speeds the axis is fixed, and QRS duration is inverse to the myocardial
speed: the best one follows in closed form, and a search over the two ratios covers all of Ω.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed

from vitolab.models.electrophysiology.model import Definition, outputs, problem
from vitolab.models.electrophysiology.ratios import RATIOS, REFERENCE
from vitolab.parallel.processes import watched
from vitolab.problem import FloatArray, IntArray, Patient, Problem

if TYPE_CHECKING:
    import pandas as pd

N_VALUES = 300  # of each ratio
N_BEST = 30  # points that are refined, and runs that confirm
N_REFINED = 9  # values of each ratio about a point


def is_solvable(patient: Patient, lead_field: str = "bem") -> bool:
    """Tell whether a solution within all tolerances was found, by an exact run.

    Parameters
    ----------
    patient : Patient
        With all measurements.
    lead_field : {"bem", "infinite"}

    Returns
    -------
    bool
        False is no proof: a search by the table may overlook a solution between its points.

    Raises
    ------
    ValueError
        If a measurement is missing, or the data name no heart.
    """
    exact = problem(lead_field)
    z = exact.measured(patient)
    lowest, highest = np.log(RATIOS)
    axis = np.linspace(lowest, highest, N_VALUES)
    ratio = _pairs(axis)
    _, worst = _fitted(exact, patient, lead_field, ratio)
    near = _pairs(np.linspace(axis[0] - axis[1], axis[1] - axis[0], N_REFINED))
    ratio = (ratio[_smallest(worst), np.newaxis] + near).reshape(-1, 2)
    x, worst = _fitted(exact, patient, lead_field, np.clip(ratio, lowest, highest))
    y = exact.simulate(x[_smallest(worst)], patient)
    return bool(exact.is_solved(exact.misfit(y, z)).any())


def solvable(
    patients: Sequence[Patient], lead_fields: Sequence[str] = ("bem",), n_jobs: int = 1
) -> pd.DataFrame:
    """Tell which patients can be solved at all, see `is_solvable`.

    Parameters
    ----------
    patients : sequence of Patient
    lead_fields : sequence of {"bem", "infinite"}
    n_jobs : int
        Processes.

    Returns
    -------
    DataFrame
        Columns ``setup`` (lead field), ``patient`` and ``solvable``.

    Raises
    ------
    ValueError
        As `is_solvable`.
    """
    import pandas as pd

    keys = list(product(lead_fields, patients))
    found = Parallel(n_jobs=n_jobs)(delayed(watched(is_solvable))(p, field) for field, p in keys)
    rows = [(field, p.name, can) for (field, p), can in zip(keys, found, strict=True)]
    return pd.DataFrame(rows, columns=["setup", "patient", "solvable"])


def _pairs(axis: FloatArray) -> FloatArray:
    """All pairs of values, shape (n², 2)."""
    return np.stack([grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij")], axis=1)


def _smallest(worst: FloatArray) -> IntArray:
    """Where the smallest values are, shape (N_BEST,)."""
    return np.argsort(worst, kind="stable")[:N_BEST]


def _fitted(
    exact: Problem, patient: Patient, lead_field: str, ratio: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Best speeds in Ω for each pair of log ratios, and their worst misfits in tolerances.

    Parameters
    ----------
    exact : Problem
    patient : Patient
    lead_field : {"bem", "infinite"}
    ratio : ndarray, shape (n, 2)

    Returns
    -------
    x : ndarray, shape (n, 3)
        mm/s.
    worst : ndarray, shape (n,)
        Infinite where no speed is in Ω, or the run fails.
    """
    z = exact.measured(patient)
    share = np.exp(np.column_stack([np.zeros(len(ratio)), ratio]))
    y = outputs(REFERENCE * share, patient, Definition(lead_field, "table"))
    lowest, highest = (exact.lower / share).max(axis=1), (exact.upper / share).min(axis=1)
    speed = np.minimum(np.maximum(y[:, 0] * REFERENCE / z[0], lowest), highest)
    y[:, 0] *= REFERENCE / speed
    x = np.clip(speed[:, np.newaxis] * share, exact.lower, exact.upper)
    worst = np.max(np.abs(exact.misfit(y, z)) / exact.tolerance, axis=1)
    worst[(lowest > highest) | np.isnan(worst)] = np.inf
    return x, worst
