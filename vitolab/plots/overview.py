"""The picture of the README: what the agent does, and what it gains from training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitolab.plots.convergence import learning_panel
from vitolab.plots.learning import policy_map
from vitolab.plots.style import layout
from vitolab.plots.walks import personalization_paths
from vitolab.problem import Problem
from vitolab.records import ProblemRecord

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def overview(
    background: Any,
    points: FloatArray,
    steps: IntArray,
    traces: Mapping[str, pd.DataFrame],
    problem: Problem | ProblemRecord,
    truth: FloatArray,
    personalizations: pd.DataFrame,
) -> Any:
    """Policy, personalisations and learning curve side by side.

    Parameters
    ----------
    background : HoloViews element
        From `function_map`, faint.
    points, steps : ndarray, shape (n, 2)
        Of the policy; see `policy_map`.
    traces : mapping of a label to DataFrame
        Personalisations; see `personalization_paths`.
    problem : Problem or ProblemRecord
    truth : ndarray, shape (2,)
    personalizations : DataFrame
        Of a run of the study ``wbc-convergence``.
    """
    size = (3.6, 3.6)
    limits = (
        problem.parameters[0].lower,
        problem.parameters[0].upper,
        problem.parameters[1].lower,
        problem.parameters[1].upper,
    )
    policy = policy_map(
        points, steps, background=background, title="learned: the best action", size=size
    )
    paths = personalization_paths(
        traces,
        problem,
        background=background,
        truth=truth,
        title="applied: from anywhere to the solution",
        size=size,
        limits=limits,
    )
    curve = learning_panel(personalizations, title="circulation, synthetic patients", size=size)
    return layout([policy, paths, curve], columns=3, size=size, gap=(0.28, 0.3))
