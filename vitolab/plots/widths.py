"""Figure of what a posterior leaves open of each parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vitolab.plots.style import layout
from vitolab.plots.uncertainty import share_dots, titled
from vitolab.problem import Problem
from vitolab.uncertainty.summary import POSTERIOR


def posterior_widths(
    personalizations: pd.DataFrame,
    problems: Mapping[str, Problem],
    *,
    patients: str = "synthetic patients",
) -> Any:
    """Central 90 % interval of each parameter as a share of its domain; dots are patients.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.posteriors`.
    problems : mapping of setup name to Problem
    patients : str
        Who was personalised, for the titles.

    Returns
    -------
    HoloViews layout
        A panel per setup whose widths are stored; bars are medians.

    Raises
    ------
    ValueError
        If the run stored no widths.
    """
    panels = []
    for setup, problem in problems.items():
        own = personalizations[
            (personalizations["setup"] == setup) & (personalizations["method"] == POSTERIOR)
        ]
        names = {f"width:{p.name}": p.name for p in problem.parameters}
        if own.empty or not set(names) <= set(own.columns):
            continue
        widths = own[list(names)].rename(columns=names)
        title = titled(own, setup, patients)
        tables = {POSTERIOR: ("posterior", widths)}
        panels.append(share_dots(tables, problem, title, "90 % interval / domain", 1.03))
    if not panels:
        raise ValueError("the run did not store how wide its posteriors are")
    return layout(panels, columns=1, title="", size=(5.0, 3.2), gap=(0.3, 0.6))
