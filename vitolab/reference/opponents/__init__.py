"""Opponents of the agent: what a user who owns the same stored runs would build.

They learn from the walks from which the agent learns, count every forward run as all methods do,
and stop at the first one that is within all tolerances. They are learned where they are used: what
they learn is not saved.
"""

from vitolab.reference.opponents.correlation import Correlation
from vitolab.reference.opponents.gaussian import Gaussian
from vitolab.reference.opponents.nearest import NearestLeastSquares
from vitolab.reference.opponents.neural import NeuralPosterior
from vitolab.reference.opponents.quadratic import Quadratic

__all__ = [
    "Correlation",
    "Gaussian",
    "NearestLeastSquares",
    "NeuralPosterior",
    "Quadratic",
]
