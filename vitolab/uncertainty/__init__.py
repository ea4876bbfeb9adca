"""What one answer leaves out: all solutions, their probability, their stability, a forecast.

Studies fill a run part by part, as those of `vitolab.validation` do: `posteriors` (with the sets
of solutions), `stability`, `forecasts`. Their tables are made by `vitolab.uncertainty.summary`,
their figures by `vitolab.plots`.
"""

from vitolab.uncertainty.bolus import Bolus, read_bolus
from vitolab.uncertainty.coverage import posteriors, simulated_patients
from vitolab.uncertainty.forecast import forecasts, refit_volume
from vitolab.uncertainty.methods import Learning, Methods
from vitolab.uncertainty.posterior import LogProbability, Posterior, sample_posterior
from vitolab.uncertainty.solutions import Solutions, solution_set
from vitolab.uncertainty.stability import perturbed, stability
from vitolab.uncertainty.summary import (
    coverage_table,
    forecast_table,
    identifiability_table,
    sampling_table,
    stability_table,
)

__all__ = [
    "Bolus",
    "Learning",
    "LogProbability",
    "Methods",
    "Posterior",
    "Solutions",
    "coverage_table",
    "forecast_table",
    "forecasts",
    "identifiability_table",
    "perturbed",
    "posteriors",
    "read_bolus",
    "refit_volume",
    "sample_posterior",
    "sampling_table",
    "simulated_patients",
    "solution_set",
    "stability",
    "stability_table",
]
