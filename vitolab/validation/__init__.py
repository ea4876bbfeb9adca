"""Leave-one-out studies: every method on every patient, in parts that survive an interruption.

A part is one fold: everything that was personalised for one patient with one setting. Parts
that a run already holds are skipped, so the same call goes on where an earlier one was stopped.
"""

from vitolab.fit import budget
from vitolab.methods import EPISODE
from vitolab.validation.folds import initial_errors, leave_one_out
from vitolab.validation.grids import grid
from vitolab.validation.orders import from_nothing
from vitolab.validation.parts import (
    Judge,
    PartStore,
    child_seed,
    recorded_walks,
    walks_for,
    write_with_failures,
)
from vitolab.validation.policies import policy_arrays
from vitolab.validation.references import (
    fixed_errors,
    reference_runs,
    reference_starts,
)

__all__ = [
    "EPISODE",
    "Judge",
    "PartStore",
    "budget",
    "child_seed",
    "fixed_errors",
    "from_nothing",
    "grid",
    "initial_errors",
    "leave_one_out",
    "policy_arrays",
    "recorded_walks",
    "reference_runs",
    "reference_starts",
    "walks_for",
    "write_with_failures",
]
