"""A user's own patients, personalised: see `personalize_file`."""

from vitolab.personalization.outcomes import FLOAT_FORMAT, fit_table, what_it_took
from vitolab.personalization.overlap import training_overlap
from vitolab.personalization.running import personalize_file

__all__ = ["FLOAT_FORMAT", "fit_table", "personalize_file", "training_overlap", "what_it_took"]
