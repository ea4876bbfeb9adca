"""Opponents of the agent: what a user who owns the same stored runs would build.

They learn from the walks from which the agent learns, count every forward run as all methods do,
and stop at the first one that is within all tolerances. They are learned where they are used: what
they learn is not saved.
"""

from vitolab.opponents.correlation import Correlation
from vitolab.opponents.gaussian import GaussianEmulator
from vitolab.opponents.nearest import NearestLeastSquares
from vitolab.opponents.quadratic import QuadraticEmulator
from vitolab.opponents.stored import StoredRuns

__all__ = [
    "Correlation",
    "GaussianEmulator",
    "NearestLeastSquares",
    "QuadraticEmulator",
    "StoredRuns",
]
