"""Optimisers that a user would take instead, behind one evaluation counter and stop rule.

All methods see the same forward model, domain and tolerances, count every forward run the
same way and stop at the first one that is within all tolerances. Parameters are scaled to
the unit cube of Ω.
"""

from vitolab.reference.bobyqa import BobyqaCascade, BobyqaSimple, Stage
from vitolab.reference.least_squares import LeastSquares
from vitolab.reference.optimiser import StartOnly, random_start
from vitolab.reference.simplex import NelderMead

__all__ = [
    "BobyqaCascade",
    "BobyqaSimple",
    "LeastSquares",
    "NelderMead",
    "Stage",
    "StartOnly",
    "random_start",
]
