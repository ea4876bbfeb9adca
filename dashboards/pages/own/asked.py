"""What the user of the page Your own model asks, and the commands that answer it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from vitolab.plots.budget import LIMITS, Plan
from vitolab.settings import RUNS_PER_PARAMETER
from vitolab.studies import from_nothing

from ...kit import safe

#: Seconds of each unit.
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
#: Numbers that are asked for, by their names in the selection; and what they are called.
LABELS = {
    "run_time": "One forward run takes",
    "n_patients": "Patients",
    "n_parameters": "Parameters",
    "n_workers": "Runs at a time",
    "hours": "Budget [h]",
}


def plan_of(typed: Mapping[str, str], unit: str) -> Plan:
    """Plan of what was typed.

    Parameters
    ----------
    typed : mapping of str to str
        By the names of `LABELS`.
    unit : str
        One of `UNITS`, of ``run_time``.

    Raises
    ------
    ValueError
        With one sentence on the first that is no number that can be.
    """
    n_patients, n_parameters, n_workers = (
        int(_number(name, typed[name], whole=True))
        for name in ("n_patients", "n_parameters", "n_workers")
    )
    seconds = _number("run_time", typed["run_time"], unit)
    return Plan(seconds, n_patients, n_parameters, _number("hours", typed["hours"]), n_workers)


def _number(name: str, words: str, unit: str = "", *, whole: bool = False) -> float:
    """A number that was typed; a time in s."""
    key = "seconds" if unit else name
    least, most = LIMITS[key]
    kind = "a whole number" if whole else "a number"
    expected = f"{kind} from {_written(least)} to {_written(most)}{' s' if unit else ''}"
    told = f'"{safe.plain(words.strip(), 30)}"' if words.strip() else "empty"
    refused = f'"{LABELS[name]}" is {told}{f" {unit}" if unit else ""}, expected {expected}.'
    try:
        value = float(words) * UNITS.get(unit, 1.0)
    except ValueError:
        raise ValueError(refused) from None
    if not least <= value <= most or (whole and value != math.floor(value)):
        raise ValueError(refused)
    return value


def _written(value: float) -> str:
    """A limit in plain digits."""
    return f"{value:,.0f}" if value >= 1.0 else f"{value:g}"


def total_runs(plan: Plan) -> int:
    """Forward runs to allow: those of the budget, or as many as these patients may take."""
    return min(plan.n_runs, RUNS_PER_PARAMETER * plan.n_parameters * plan.n_patients)


def commands(plan: Plan, results: Path) -> list[str]:
    """Commands that spend the budget."""
    folder = "my_problem"
    lines = [
        f"vitolab new problem {folder}",
        f"vitolab check {folder}/problem.toml --patients {folder}/patients.csv",
    ]
    if plan.n_runs:
        n_workers = min(plan.n_workers, plan.n_patients)
        rounds = f" --at-a-time {n_workers} --jobs {n_workers}" if n_workers > 1 else ""
        lines.append(
            f"vitolab personalize {folder}/problem.toml --patients {folder}/patients.csv "
            f"--learn-as-you-go --agent my_agent --total-runs {total_runs(plan)}{rounds} "
            f"--out {folder}/fit.csv --results {shlex.quote(str(results))}"
        )
    return lines


def command_for_runs(plan: Plan, results: Path, nearest: int | None) -> tuple[str, str]:
    """Command that makes stored runs nearer to a plan, and how long it takes; empty if none does.

    Parameters
    ----------
    plan : Plan
    results : Path
    nearest : int or None
        Number of parameters of the stored runs; None if there are none.
    """
    study = from_nothing.STUDY
    where = f"--results {shlex.quote(str(results))}"
    if nearest is None:
        return f"vitolab run {study.name} --profile quick {where}", study.duration["quick"]
    sizes = {
        int(found[1]): found[0]
        for setup in map(str, study.choices["setups"])
        if (found := re.fullmatch(r"(\d+)p", setup))
    }
    best = min(sizes, key=lambda n: abs(n - plan.n_parameters))
    if abs(best - plan.n_parameters) >= abs(nearest - plan.n_parameters):
        return "", ""
    return f"vitolab run {study.name} -p 'setups=[\"{sizes[best]}\"]' {where}", ""
