"""Charts of one stored personalisation, built once for a problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import panel as pn

from vitolab.problem import Problem

from ...charts import answers
from ...charts.bokeh import MisfitBars, in_one_message, row, unit
from ...charts.histories import History, MisfitHistory, Pick, parameter_histories
from ...charts.pictures import Plane, picture
from ...kit import safe
from ...kit.table import Table
from ...kit.worker import Worker
from .film import Film

AROUND = 3  # sentences shown before and after the selected run


class Screen:
    """What is shown of one personalisation at one of its runs.

    Parameters
    ----------
    problem : Problem
    pick : callable
        Called with a run, from 1, that was clicked in a chart.
    worker : Worker
        Runs the model.
    """

    def __init__(self, problem: Problem, pick: Pick, worker: Worker) -> None:
        self.worker, self._pick = worker, pick
        self._at = -1
        self._film: Film | None = None
        self.told, self.run_tables = safe.html(""), safe.html("")
        self.states, self.note = safe.html(""), safe.html("")
        self.bars, self.misfits = MisfitBars(problem), MisfitHistory(problem, pick)
        self.parameters = parameter_histories(problem, pick)
        self.state = History(
            ["state"], "States; 0 is success", "state number", pick=pick, kind="step", height=200
        )
        self.picture = picture(problem)
        self.table = Table(
            _columns(problem), single=True, size=15, caption="All forward runs, to choose one"
        )
        self.table.param.watch(self._listed, "chosen")
        self.runs = pn.Column(
            safe.html("<h3>Parameters and states</h3>"),
            row(*(history.pane for history in self.parameters), self.state.pane),
            self.states,
            safe.html("<h3>All forward runs of this fit</h3>"),
            self.table,
            sizing_mode="stretch_width",
            margin=0,
        )
        self.panel = pn.Column(
            self.told,
            safe.html("<h3>The selected run</h3>"),
            row(self.bars.pane, self.misfits.pane),
            self.run_tables,
            safe.html("<h3>Model against measurements, at the selected run</h3>"),
            self.note,
            *([self.picture.pane] if self.picture else []),
            self.runs,
            sizing_mode="stretch_width",
            margin=0,
        )

    @in_one_message
    def show(self, film: Film) -> None:
        """Show another personalisation; `at` says at which run."""
        self._film = film
        # a result without its runs is no walk of one run
        self.runs.visible = self.misfits.pane.visible = film.traced
        self.misfits.show(film.c, film.restarts)
        for k, history in enumerate(self.parameters):
            history.show(film.x[:, [k]], film.restarts)
        self.state.pane.visible = film.has_states
        if film.has_states:
            self.state.show(film.state[:, None], film.restarts)
        self.states.object = (
            safe.fill("<p>Sequence of states (⟲ restart): {words}</p>", words=film.states)
            if film.has_states and film.states
            else ""
        )
        self.note.object = safe.note_html("info", film.note) if film.note else ""
        self.table.show(_rows(film))
        if self.picture is None:
            return
        self.picture.pane.visible = film.runs_again
        self.picture.patient(film.patient, {})
        # no curves of one patient under the name of another, however long the answer takes
        self.picture.show({}, np.full(film.problem.n_objectives, np.nan))
        if isinstance(self.picture, Plane):
            self.picture.walked(film.x, film.restarts)
        if film.runs_again:
            self.worker.submit(
                answers.background,
                film.problem,
                film.patient,
                done=lambda known: self._known(film, known),
                failed=lambda why: self._not_known(film, why),
                key="patient-background",
                pool=answers.pool_of(film.problem),
            )

    @in_one_message
    def at(self, k: int) -> None:
        """Show a run, from 0."""
        film = self._film
        assert film is not None
        for history in (self.misfits, self.state, *self.parameters):
            history.at(k + 1)
        self._at = k
        self.table.chosen = [str(k + 1)]
        if not self.table.order:
            self.table.page = k // self.table.size
        self.bars.show(film.c[k])
        self.told.object = film.told_html(k, AROUND)
        tables = _numbers(film.problem, film.x[k], film.y[k], film.z, film.c[k])
        which = f"run {k + 1}" if film.traced else "the result"
        captions = (f"Parameters of {which}", f"Outputs of {which}")
        self.run_tables.object = '<div class="row">{}{}</div>'.format(
            *(safe.table_html(t, caption=c) for t, c in zip(tables, captions, strict=True))
        )
        if self.picture is not None and film.runs_again:
            self.worker.submit(
                answers.simulate,
                film.problem,
                film.x[k],
                film.patient,
                done=lambda answer: self._answered(film, k, answer),
                failed=lambda why: self._answered(film, k, {}),
                key="patient-answer",
                pool=answers.pool_of(film.problem),
            )

    def _listed(self, event: Any) -> None:
        """A row of the table was chosen."""
        if event.new and event.new != [str(self._at + 1)]:
            self._pick(int(event.new[0]))

    @in_one_message
    def _known(self, film: Film, known: answers.Answer) -> None:
        """Show what is known of the patient."""
        if film is self._film and self.picture is not None:
            self.picture.patient(film.patient, known)

    def _not_known(self, film: Film, why: str) -> None:
        """Say why the model cannot be run."""
        if film is self._film and self.picture is not None:
            self.picture.pane.visible = False
            words = f"The model cannot be run for this patient: {why}"
            self.note.object = safe.note_html("info", words)

    @in_one_message
    def _answered(self, film: Film, k: int, answer: answers.Answer) -> None:
        """Show what the model answers at a run."""
        if film is self._film and self.picture is not None:
            self.picture.show(answer, film.c[k])


def _columns(problem: Problem) -> list[dict[str, Any]]:
    """Columns of the table of all runs."""
    short = [
        (
            f"x{k}",
            f"{p.label} [{p.unit}]" if p.unit else p.label,
            max(0, math.ceil(-math.log10(p.step))),
        )
        for k, p in enumerate(problem.parameters)
    ]
    short += [(f"c{k}", f"{o.label} [tol.]", 2) for k, o in enumerate(problem.objectives)]
    return [
        {"field": "run", "title": "run", "digits": 0},
        {"field": "event", "title": "event", "keep": True},
        {"field": "state", "title": "state", "digits": 0},
        *(
            {"field": field, "title": safe.plain(name, 60), "digits": digits}
            for field, name, digits in short
        ),
        {"field": "what", "title": "what", "keep": True},
    ]


def _rows(film: Film) -> list[dict[str, Any]]:
    """Rows of the table of all runs."""
    c = film.c / film.problem.tolerance
    rows = []
    for k, words in enumerate(film.sentences):
        values = {f"x{i}": value for i, value in enumerate(film.x[k])}
        values |= {f"c{i}": value for i, value in enumerate(c[k])}
        rows.append(
            {
                "key": str(k + 1),
                "choice": True,
                "label": f"run {k + 1}",
                "run": k + 1,
                "event": safe.plain(film.events[k], 20),
                "state": int(film.state[k]) if film.state[k] >= 0 else None,
                "what": safe.plain(words.partition(": ")[2].partition(", because")[0].strip(".")),
            }
            | {name: float(value) if np.isfinite(value) else None for name, value in values.items()}
        )
    return rows


def _numbers(problem: Problem, x: Any, y: Any, z: Any, c: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables of one forward run: parameters, and outputs against measurements."""
    parameters = pd.DataFrame(
        {
            "parameter": [p.label for p in problem.parameters],
            "value": [
                f"{value:.5g} {p.unit}" for p, value in zip(problem.parameters, x, strict=True)
            ],
            "domain": [f"{p.lower:g} to {p.upper:g}" for p in problem.parameters],
        }
    )
    rows = list(zip(problem.objectives, y, z, c, strict=True))
    objectives = pd.DataFrame(
        {
            "objective": [unit(o) for o, *_ in rows],
            "model": [f"{value:.4g}" for _, value, *_ in rows],
            "measured": [f"{value:.4g} ± {o.tolerance:g}" for o, _, value, _ in rows],
            "misfit": [f"{value:+.4g}" for *_, value in rows],
            "met": ["✓" if abs(value) < o.tolerance else "✗" for o, *_, value in rows],
        }
    )
    return parameters, objectives
