"""The picture of the README: what the agent learns, what it does, what it gains from training."""

from __future__ import annotations

from typing import Any

from vitolab.methods import PAPER
from vitolab.plots.convergence import learning_panel
from vitolab.plots.learning import policy_map
from vitolab.plots.style import layout
from vitolab.plots.walks import function_map, personalization_paths
from vitolab.store.stored import Run


def overview(tour: Run, convergence: Run) -> Any:
    """Policy, personalisations and learning curves side by side.

    Parameters
    ----------
    tour : Run
        Of the study ``tour``: policy and personalisations of one Rosenbrock function.
    convergence : Run
        Of the study ``wbc-convergence``.

    Returns
    -------
    HoloViews layout
    """
    size = (3.4, 3.4)
    problem = tour.manifest.problems["extended"]
    axis = tour.arrays["landscape/axis"]
    background = function_map(
        axis, axis, tour.arrays["landscape/values"], label="log₁₀ f(x)", faint=True
    )
    traces = tour.traces[tour.traces["method"] == PAPER]
    shown = tour.patients["patient"] == traces["patient"].iloc[0]
    truth = tour.patients.loc[shown, ["truth:x1", "truth:x2"]].to_numpy(float)[0]
    starts = sorted(int(start) for start in traces["start"].unique())
    policy = policy_map(
        tour.arrays["policy/x"],
        tour.arrays["policy/steps"],
        background=background,
        title="learned: the best action (Rosenbrock)",
        size=size,
    )
    paths = personalization_paths(
        {f"start {start + 1}": traces[traces["start"] == start] for start in starts},
        problem,
        background=background,
        truth=truth,
        title="applied to an unseen function",
        size=size,
        limits=(axis[0], axis[-1], axis[0], axis[-1]),
    )
    n = convergence.personalizations["patient"].nunique()
    curves = learning_panel(
        convergence.personalizations,
        title=f"circulation, {n} synthetic patients",
        size=size,
    )
    return layout([policy, paths, curves], columns=3, size=size, gap=(0.28, 0.3))
