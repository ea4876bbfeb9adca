"""What a posterior leaves open of each parameter, from the stored tables of a run."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vitolab.problem import Problem
from vitolab.uncertainty.summary import POSTERIOR, groups


def width_table(personalizations: pd.DataFrame, problems: Mapping[str, Problem]) -> pd.DataFrame:
    """Central 90 % interval of each parameter as a share of its domain, over patients.

    Parameters
    ----------
    personalizations : DataFrame
        Of `vitolab.uncertainty.posteriors`; empty for runs that did not store the widths.
    problems : mapping of setup name to Problem

    Returns
    -------
    DataFrame
        Per setup and parameter: the median over patients, the least and the largest [%], and the
        number of patients.
    """
    rows = []
    found = personalizations[personalizations["method"] == POSTERIOR]
    for setup, problem, _, own in groups(found, problems):
        for p in problem.parameters:
            if f"width:{p.name}" not in own:
                continue
            width = 100.0 * own[f"width:{p.name}"].dropna()
            rows.append(
                {
                    "setup": setup,
                    "parameter": p.label,
                    "90 % interval / domain, median [%]": width.median(),
                    "least [%]": width.min(),
                    "largest [%]": width.max(),
                    "patients": len(width),
                }
            )
    return pd.DataFrame(rows)


def left_open(table: pd.DataFrame) -> str:
    """Sentence per setup of a table of widths: of which parameters next to nothing is known."""
    sentences = []
    for setup, own in table.groupby("setup", sort=False) if len(table) else ():
        wide = own[own["90 % interval / domain, median [%]"] >= 50.0]
        names = ", ".join(wide["parameter"]) or "none"
        sentences.append(
            f"{setup}: the central 90 % interval spans half of the domain or more for {len(wide)} "
            f"of {len(own)} parameters ({names}), for the median of {own['patients'].max()} "
            "patients."
        )
    return "\n".join(sentences)
