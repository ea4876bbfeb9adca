"""The demonstration: quick studies, then a table of Vito beside the references."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vitolab.methods import is_agent
from vitolab.store.info import RunInfo
from vitolab.store.stored import Run
from vitolab.studies import find_study
from vitolab.studies.running import run

if TYPE_CHECKING:
    import pandas as pd

#: Studies of the demonstration, each at its quick profile.
DEMO = ("rosenbrock-grid", "wbc-convergence", "ep-personalization")


def demo(results: Path | str = Path("results")) -> list[RunInfo]:
    """Run quick studies and print how Vito stands beside the references.

    Returns
    -------
    list of RunInfo
        Up to the first that failed.
    """
    infos = []
    for name in DEMO:
        infos.append(run(find_study(name), "quick", results=results))
        if infos[-1].status != "complete":
            return infos
    for info in infos:
        stored = Run.load(info.path)
        print(f"\n{find_study(info.study).title}")
        print(_table(standing(stored.personalizations)))
        if "solvable" in stored.patients:
            for setup, own in stored.patients.groupby("setup", sort=False):
                print(
                    f"{setup}: {own['solvable'].sum()} of {len(own)} patients have a solution, as "
                    "far as a search over the domain tells"
                )
    print(
        "\nThe functions and patients are synthetic: they show how methods are run and compared, "
        "not what they do\nfor a real patient. "
        "Runs are forward runs of the model, each one counted; not solved counts as all that were "
        "allowed. n is the\nnumber of personalisations, for references of the clinical models "
        "patients times random starts; 95 % intervals are over\nthe patients. Of several training "
        "sizes the largest is shown. This is the quick size: "
        "the agent has few patients and samples to learn from. `--profile standard` takes all.\n"
    )
    for info in infos:
        print(f"{info.study}: {info.path}")
    folder = shlex.quote(str(results))
    print(
        "\nA plain least-squares solver beats the paper's agent where outputs are smooth; an agent "
        "that keeps what it explored\nbeats both. What experience adds: "
        f"vitolab run continuous-convergence --results {folder}"
    )
    print(f"\nBrowse them and play against Vito: vitolab dashboard --results {folder}")
    return infos


def standing(personalizations: pd.DataFrame) -> pd.DataFrame:
    """Success and cost of each method in each setup, Vito first.

    Parameters
    ----------
    personalizations : DataFrame
        Table of a stored run. Of several training sizes only the largest counts; where all
        methods went from the same numbered starts, only starts that all of a setup used.

    Returns
    -------
    DataFrame
        See `vitolab.plots.summary.summarize`; by setup and method.
    """
    from vitolab.plots.summary import summarize
    from vitolab.store.tables import largest

    table = largest(personalizations)
    numbered = table.groupby("setup")["start"].transform(lambda start: start.notna().all())
    used = table.groupby(["setup", "start"])["method"].transform("nunique")
    methods = table.groupby("setup")["method"].transform("nunique")
    told = ("success", "runs_all")
    kept = table[~numbered | (used == methods)]
    summary = summarize(kept, ["setup", "method"], intervals=told)
    summary["reference"] = ~summary["method"].map(is_agent).astype(bool)
    ordered = summary.sort_values(["setup", "reference", "method"], ignore_index=True)
    return ordered.drop(columns="reference")


def _table(summary: pd.DataFrame) -> str:
    """Text of a summary."""
    from vitolab.intervals import worded
    from vitolab.plots.summary import ends_of

    width = max(5, *(len(str(setup)) for setup in summary["setup"]))
    head = (
        f"{'setup':<{width}}  {'method':<26}{'success':>9}{'95 %':>16}{'runs: all':>11}{'95 %':>16}"
        f"{'solved':>9}{'n':>7}"
    )
    lines = [head]
    for row in summary.to_dict("records"):
        solved = "-" if math.isnan(row["runs_solved"]) else f"{row['runs_solved']:.1f}"
        lines.append(
            f"{row['setup']:<{width}}  {row['method']:<26}{row['success']:>7.1f} %"
            f"{worded(ends_of(row, 'success')):>16}{row['runs_all']:>11.1f}"
            f"{worded(ends_of(row, 'runs_all')):>16}{solved:>9}{row['n']:>7}"
        )
    return "\n".join(lines)
