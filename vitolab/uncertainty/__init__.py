"""What one answer leaves out: all solutions, their probability, their stability, a forecast.

Studies fill a run part by part, as those of `vitolab.validation` do: `posteriors` (with the sets
of solutions), `stability`, `forecasts`. Their tables are made by `vitolab.uncertainty.summary`,
their figures by `vitolab.plots.uncertainty`.
"""

from vitolab.uncertainty.coverage import posteriors, simulated_patients
from vitolab.uncertainty.methods import Methods, vito_learner
from vitolab.uncertainty.posterior import LogProbability, Posterior, sample_posterior
from vitolab.uncertainty.solutions import Solutions, solution_set
from vitolab.uncertainty.stability import perturbed, stability
from vitolab.uncertainty.summary import (
    coverage_table,
    identifiability_table,
    sampling_table,
    stability_table,
)

__all__ = [
    "LogProbability",
    "Methods",
    "Posterior",
    "Solutions",
    "coverage_table",
    "identifiability_table",
    "perturbed",
    "posteriors",
    "sample_posterior",
    "sampling_table",
    "simulated_patients",
    "solution_set",
    "stability",
    "stability_table",
    "vito_learner",
]
