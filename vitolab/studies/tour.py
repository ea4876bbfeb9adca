"""The tour: from walks to a personalised model, step by step."""

from __future__ import annotations

from vitolab.studies import shared
from vitolab.studies.base import Content, Section, StoredRun, Study


def _map(stored: StoredRun, repeat: int) -> Content:
    import pandas as pd

    from vitolab import plots

    arrays = stored.arrays
    if "policy/x" not in arrays or "landscape/axis" not in arrays:
        raise ValueError("the run stored no map of its policy, which this figure shows")
    axis = arrays["landscape/axis"]
    ground = plots.function_map(
        axis, axis, arrays["landscape/values"], label="log₁₀ f(x)", faint=True
    )
    figure = plots.policy_map(arrays["policy/x"], arrays["policy/steps"], background=ground)
    steps = arrays["policy/steps"]
    points = {"x₁": arrays["policy/x"][:, 0], "x₂": arrays["policy/x"][:, 1]}
    table = pd.DataFrame(points | {"steps in x₁": steps[:, 0], "steps in x₂": steps[:, 1]})
    sentence = "The best action at points of parameter space, for one function."
    return Content(sentence, figure, (("Best action at each point", table),))


STUDY = Study(
    name="tour",
    notebook="tour.ipynb",
    title="From walks to a personalised model, step by step",
    profiles={"quick": {}, "standard": {}, "paper": {}},
    duration={"quick": "a minute", "standard": "a minute", "paper": "a minute"},
    sections=(Section("map", "Policy", _map), shared.PATHS, shared.METHODS),
    traces=True,
    policy=True,
)
