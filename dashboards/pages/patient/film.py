"""One stored personalisation as the page Patient shows it, run by run; made in a worker."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vitolab.explain import has_reasons, knowledge, sentences, state_words
from vitolab.fit import StopReason
from vitolab.methods import learns_states
from vitolab.problem import Patient, Problem
from vitolab.store import Run
from vitolab.store.problems import as_stored
from vitolab.store.tables import KEYS

from ...charts import answers
from ...kit.safe import text
from ...kit.stored import Stored

NOT_TRACED = (
    "The runs of this personalisation are not stored, only its result: a study keeps those of its "
    "largest training size, last repeat and first starts. Fits with stored runs come first in the "
    "list of fits."
)
EXPLAINED = (
    "This run is of an earlier version, whose agents left no reasons: those told come from the "
    "stored policy, which was learned from all patients. The agent that acted had learned without "
    "this one, its states have other numbers, and it may have valued the actions otherwise."
)
#: Methods whose steps the stored policy explains.
#: Columns that tell the personalisations of one patient by one method.
OWN = ("n_samples", "n_states", "repeat", "start")
Key = tuple[int | None, ...]


@dataclass(frozen=True)
class Film:
    """One personalisation, run by run.

    Attributes
    ----------
    problem : Problem
    patient : Patient
    outcome : dict
        Row of the personalisation.
    traced : bool
        Whether the runs are stored; if not, the result stands for the only one.
    lost : dict of str to str
        What is stored of this and cannot be read, and why.
    x, y, c : ndarray, shape (n_runs, n_parameters) and twice (n_runs, n_objectives)
        Parameters, outputs and misfits, in the units of the problem.
    restarts : ndarray of bool, shape (n_runs,)
    state : ndarray of int, shape (n_runs,)
    sentences : list of str
    states : str
        Sequence of states in words; empty for methods without states.
    events : list of str
        The runs for reading.
    runs_again : bool
        Whether the model can be run for this patient here.
    note : str
        What is to be said about that; empty if nothing is.
    explained : bool
        Whether the stored policy explains the decisions, in place of the agent that acted.
    """

    problem: Problem
    patient: Patient
    outcome: Mapping[Any, Any]
    traced: bool
    lost: Mapping[str, str]
    x: Any
    y: Any
    c: Any
    restarts: Any
    state: Any
    sentences: list[str]
    states: str
    events: list[str]
    runs_again: bool
    note: str
    explained: bool

    @property
    def has_states(self) -> bool:
        """Whether the method has states."""
        return self.traced and bool((self.state >= 0).any())

    @property
    def z(self) -> Any:
        """Measurements."""
        return np.array([self.patient.measurements[o.name] for o in self.problem.objectives])

    @property
    def notes(self) -> list[str]:
        """What is to be said about the whole."""
        told = [] if self.traced or self.lost else [NOT_TRACED]
        told += [f"{what} cannot be read: {why}." for what, why in self.lost.items()]
        return told + [EXPLAINED] * self.explained

    def words(self, method: str) -> str:
        """How a personalisation ended, in a sentence."""
        outcome = self.outcome
        runs, restarts = int(outcome["n_runs"]), outcome.get("n_restarts", 0)
        restarts = 0 if pd.isna(restarts) else int(restarts)
        end = "solved" if outcome["solved"] else "not solved"
        worst = float(worst_misfit(pd.DataFrame([outcome]), self.problem).iloc[0])
        told = f"{self.patient.name} by {method}: {end} after {runs} forward run"
        told += "" if runs == 1 else "s"
        if restarts:
            told += f" with {restarts} restart{'' if restarts == 1 else 's'}"
        best = "" if outcome["solved"] else " of the best run"
        told += f"; the worst misfit{best} is {worst:.2f} tolerances."
        with contextlib.suppress(ValueError):  # a reason of another version
            told += f" {StopReason(str(outcome.get('stop_reason'))).sentence}"
        return told

    def told_html(self, at: int, around: int) -> str:
        """Sentences of the runs around one, which stands out; HTML."""
        lines = []
        for k in range(max(0, at - around), min(len(self.sentences), at + around + 1)):
            style = "font-weight:600" if k == at else "opacity:.75"
            mark = "▶" if k == at else "⟲" if self.restarts[k] else "·"
            lines.append(
                f'<li style="{style};list-style:none">{mark} {text(self.sentences[k], 500)}</li>'
            )
        return f'<ul style="padding-left:0;margin:6px 0" aria-live="polite">{"".join(lines)}</ul>'


def film(stored: Stored, setup: str, patient: str, method: str, key: Key) -> Film:
    """Everything that is shown of one personalisation.

    Raises
    ------
    ValueError
        If the run holds nothing of the kind.
    """
    problem = as_stored(stored.problems[setup])
    outcome = _rows(stored.personalizations, setup, patient, method, key)
    if outcome.empty:
        raise ValueError(f"{patient} was not personalised by {method} in this run")
    trace = _rows(traces(stored), setup, patient, method, key)
    traced = len(trace) > 0
    person = _person(stored, setup, patient)
    for objective in problem.objectives:
        if objective.name not in person.measurements:
            raise ValueError(f"the run holds no {objective.name!r} of {patient}")
    trace = trace.sort_values("iteration") if traced else _result(outcome, problem, person)
    known = None
    own = traced and has_reasons(trace)
    explained_by_run = learns_states(method) and not own
    if explained_by_run:
        known = stored.source.made(
            stored.id, f"{setup}/knowledge", lambda run: knowledge(_arrays(run), setup, problem)
        )
    wanted = {"The stored forward runs": "traces"} if not traced else {}
    wanted |= {"The stored policy": "arrays"} if explained_by_run and known is None else {}
    lost = {what: why for what, name in wanted.items() if (why := stored.why_not(name))}
    columns = [f"x:{p.name}" for p in problem.parameters]
    columns += [f"{prefix}:{o.name}" for prefix in "yc" for o in problem.objectives]
    missing = [name for name in columns if name not in trace]
    if missing:
        raise ValueError(f"the forward runs of {patient} have no column {missing[0]!r}")
    told = sentences(trace, problem, known)
    if not traced:
        told = ["The result, without the runs that led to it."]
    runs_again, note = _model(problem, person)
    x, y, c = (
        trace[[f"{prefix}:{item.name}" for item in named]].to_numpy(float)
        for prefix, named in (
            ("x", problem.parameters),
            ("y", problem.objectives),
            ("c", problem.objectives),
        )
    )
    return Film(
        problem=problem,
        patient=person,
        outcome=outcome.to_dict("records")[0],
        traced=traced,
        lost=lost,
        x=x,
        y=y,
        c=c,
        restarts=(trace["event"] == "restart").to_numpy(),
        state=trace["state"].to_numpy(int),
        sentences=told,
        states=state_words(trace),
        events=trace["event"].astype(str).tolist(),
        runs_again=runs_again,
        note=note,
        explained=known is not None and traced,
    )


def traces(stored: Stored) -> pd.DataFrame:
    """One row per forward run of what was traced; none where none can be read."""
    try:
        return stored.traces
    except ValueError:
        return pd.DataFrame(columns=[*KEYS, "iteration", "event", "action", "state"])


def _arrays(run: Run) -> Mapping[str, Any]:
    """Arrays by name; none where none can be read."""
    try:
        return run.arrays
    except ValueError:
        return {}


def _person(stored: Stored, setup: str, patient: str) -> Patient:
    """Patient of a setup."""
    rows = stored.patients
    rows = rows[(rows["setup"] == setup) & (rows["patient"] == patient)]
    if rows.empty:
        raise ValueError(f"the run holds no measurements of {patient}")
    return answers.patient_of(rows.to_dict("records")[0])


def _result(outcome: pd.DataFrame, problem: Problem, patient: Patient) -> pd.DataFrame:
    """The result of a personalisation in the place of its runs."""
    row = outcome.iloc[0]
    made: dict[str, Any] = {"iteration": 0, "event": "start", "action": -1, "state": -1}
    made |= {f"x:{p.name}": row[f"x:{p.name}"] for p in problem.parameters}
    for objective in problem.objectives:
        c = float(row[f"misfit:{objective.name}"])
        made[f"c:{objective.name}"] = c
        made[f"y:{objective.name}"] = patient.measurements[objective.name] + c
    return pd.DataFrame([made])


def _rows(table: pd.DataFrame, setup: str, patient: str, method: str, key: Key) -> pd.DataFrame:
    """Rows of one personalisation."""
    kept = (table["setup"] == setup) & (table["patient"] == patient) & (table["method"] == method)
    own = table[kept]
    for name, value in zip(OWN, key, strict=True):
        own = own[own[name].isna()] if value is None else own[(own[name] == value).fillna(False)]
    return own


def _model(problem: Problem, patient: Patient) -> tuple[bool, str]:
    """Whether the model can be run for a patient here, and what is to be said about that."""
    if not answers.is_safe(problem, patient):
        return False, "this heart is a mesh outside the store: it is not opened here"
    model = answers.current(problem)
    if model is None:
        return False, f"the model {problem.name} is none of this package: it is not run here"
    if model.version != problem.version:
        return True, (
            "The model was changed since this run was stored: its pictures may differ a little "
            "from the stored numbers."
        )
    return True, ""


def worst_misfit(table: pd.DataFrame, problem: Problem) -> pd.Series:
    """Largest misfit of each row in tolerances, of what was measured."""
    columns = [f"misfit:{o.name}" for o in problem.objectives]
    tolerance = problem.tolerance
    values = np.abs(table[columns].to_numpy(float)) / tolerance
    if "not_measured" in table:
        told = [str(names).split(" and ") for names in table["not_measured"].fillna("")]
        for i, objective in enumerate(problem.objectives):
            values[[objective.name in names for names in told], i] = 0.0
    return pd.Series(values.max(axis=1), index=table.index)
