"""Outcomes of a user's patients as a table to read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitolab.failures import Failure, Kind
from vitolab.fit import StopReason
from vitolab.patients import PatientTable, headed
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.store.tables import IN_ORDER

#: Numbers of a table to read: a digit more would be finer than any measurement can tell. The
#: stored run holds all of them.
FLOAT_FORMAT = "%.5g"
LAST = 5  # solved patients by whose forward runs further ones are estimated


def fit_table(
    problem: Problem,
    table: PatientTable,
    personalizations: pd.DataFrame,
    methods: Sequence[str],
    failures: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Tabulate outcomes for reading, one row per patient and method, in the order of the file.

    Parameters
    ----------
    problem : Problem
    table : PatientTable
    personalizations : DataFrame
        Of the stored run.
    methods : sequence of str
    failures : DataFrame, optional
        Failed runs of the stored run, see `vitolab.store.Run.failures`.

    Returns
    -------
    DataFrame
        Columns ``patient``, ``method``, ``solved``, ``stop_reason`` (a sentence, with the most
        frequent cause where no run answered or the method failed), ``n_runs``,
        ``n_failed`` (of them), ``n_restarts``, ``training`` (how many patients the agent learned
        from, and who was left out), ``not_measured`` (objectives that the patient was personalised
        without); each parameter with its unit; each objective as measured, as modelled (angles in
        (-180, 180]), and the misfit; then the further columns of the file. A patient of the file
        who was skipped has one row with the reason and no numbers. Where patients were personalised
        one after the other, ``outcome`` (solved, not solved, unreachable or open, which is one for
        whom the total of forward runs did not last), ``order`` and ``round`` follow ``solved``.
    """
    keys = zip(personalizations["patient"], personalizations["method"], strict=True)
    outcomes = dict(zip(keys, personalizations.to_dict("records"), strict=True))
    patients = {patient.name: patient for patient in table.patients}
    skipped = dict(table.skipped)
    ordered = set(IN_ORDER) <= set(personalizations.columns)
    columns = ["patient", "method", "solved", *(("outcome", *IN_ORDER) if ordered else ())]
    columns += ["stop_reason", "n_runs", "n_failed", "n_restarts", "training", "not_measured"]
    columns += [headed(p.name, p.unit) for p in problem.parameters]
    columns += [
        headed(f"{o.name}_{what}", o.unit)
        for o in problem.objectives
        for what in ("measured", "modelled", "misfit")
    ]
    # a further column may be called as one of ours, for instance when a table is read again
    further = table.extra.set_axis(
        _own_names([str(name) for name in table.extra.columns], columns), axis=1
    )
    rows = []
    for name in further.index:
        kept = further.loc[name].to_dict()
        if name in skipped:
            rows.append({"patient": name, "stop_reason": f"Left out: {skipped[name]}.", **kept})
            continue
        for method in methods:
            outcome = outcomes[name, method]
            values = _values(problem, patients[name], outcome)
            if ordered:
                values |= {"outcome": _outcome(outcome), **{n: outcome[n] for n in IN_ORDER}}
            values["stop_reason"] += _cause(name, outcome, failures)
            rows.append({"patient": name, "method": method, **values, **kept})
    frame = pd.DataFrame(rows, columns=[*columns, *further.columns])
    whole = ("n_runs", "n_failed", "n_restarts", *(IN_ORDER if ordered else ()))
    counts = dict.fromkeys(whole, "Int64")
    return frame.astype({"solved": "boolean", **counts})


def what_it_took(fitted: pd.DataFrame, total_runs: int | None = None) -> str:
    """Sentences on a file whose patients were personalised one after the other.

    Parameters
    ----------
    fitted : DataFrame
        See `fit_table`.
    total_runs : int, optional
        Forward runs that were allowed for the file.

    Returns
    -------
    str
        How many patients are solved, unreachable, not solved and open, the runs that were made,
        and an estimate of what the open ones would take: each as many as the last patients who
        were solved, up to `LAST` of them; the first of all, whose runs are spread over the domain,
        is left out if there is another.
    """
    fitted = fitted[fitted["outcome"].notna()].sort_values("order")
    counts = fitted["outcome"].value_counts()
    told = [f"{counts.get(each, 0)} {each}" for each in ("solved", "unreachable", "not solved")]
    n_open = int(counts.get("open", 0))
    n_runs = int(fitted["n_runs"].sum())
    allowed = "" if total_runs is None else f" of {total_runs}"
    said = f"{', '.join(told)}, {n_open} open; {n_runs}{allowed} forward runs used."
    if not n_open:
        return said
    solved = fitted[fitted["outcome"] == "solved"]
    later = solved[solved["order"] > 1]
    last = (solved if later.empty else later)["n_runs"].tail(LAST)
    if last.empty:
        return f"{said} Nobody is solved yet, so there is no estimate of what more would take."
    each = float(last.mean())
    return (
        f"{said} An estimate: the {n_open} open would take about {each * n_open:.0f} more, "
        f"{each:.3g} each, the mean of the last {len(last)} solved."
    )


def _own_names(names: list[str], taken: list[str]) -> list[str]:
    """Names of further columns, ``(file)`` added until nothing else is called so."""
    used = {*taken, *names}
    found = []
    for name in names:
        own = name
        while own in taken or (own != name and own in used):
            own += " (file)"
        used.add(own)
        found.append(own)
    return found


def _cause(name: str, outcome: Mapping[Hashable, Any], failures: pd.DataFrame | None) -> str:
    """Sentence on why a patient has no answer; empty for one who has, or if it is not known."""
    if failures is None:
        return ""
    own = failures[(failures["patient"] == name) & (failures["stage"] == "personalization")]
    is_method = own["kind"] == str(Kind.METHOD)
    if outcome["stop_reason"] == StopReason.ERROR:
        own, begin = own[is_method], "The error"
    elif outcome["n_runs"] == outcome["n_failed"]:
        own, begin = own[~is_method], f"All {outcome['n_runs']} runs failed"
    else:
        return ""
    if own.empty:
        return ""
    # of equally frequent ones the same every time
    first = own.sort_values(["n_runs", "kind", "text"], ascending=[False, True, True]).iloc[0]
    said = Failure(name, Kind(first["kind"]), str(first["text"] or ""), ()).sentence
    return f" {begin}{', mostly' if len(own) > 1 else ''}: {said}."


def _note(outcome: Mapping[Hashable, Any]) -> str:
    """Sentence that the method or the study left on an outcome; empty if there is none."""
    note = outcome.get("note")
    return note if isinstance(note, str) else ""


def _outcome(outcome: Mapping[Hashable, Any]) -> str:
    """Outcome of a patient in one or two words."""
    reason = outcome["stop_reason"]
    if reason in (StopReason.SOLVED, StopReason.UNREACHABLE):
        return str(reason)
    return "open" if reason == StopReason.BUDGET and _note(outcome) else "not solved"


def _best_run(problem: Problem, c: FloatArray) -> str:
    """Sentence on the run whose misfits stand beside a note that tells of expected ones."""
    missed = [
        f"{o.label} by {misfit:+.3g} {o.unit}".rstrip()
        for o, misfit in zip(problem.objectives, c.tolist(), strict=True)
        if abs(misfit) >= o.tolerance
    ]
    return f" That is expected; of the runs made, the best misses {', '.join(missed)}."


def _values(problem: Problem, patient: Patient, outcome: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Columns of one personalisation."""
    names = ("solved", "n_runs", "n_failed", "n_restarts", "training", "not_measured")
    values = {name: outcome[name] for name in names}
    values["stop_reason"] = _note(outcome) or StopReason(outcome["stop_reason"]).sentence
    for p in problem.parameters:
        values[headed(p.name, p.unit)] = outcome[f"x:{p.name}"]
    z = np.array([patient.measurements.get(o.name, np.nan) for o in problem.objectives])
    c = np.array([outcome[f"misfit:{o.name}"] for o in problem.objectives])
    y = problem.misfit(z + c, 0.0)  # which wraps angles
    if outcome["stop_reason"] == StopReason.UNREACHABLE:
        values["stop_reason"] += _best_run(problem, c)
    for i, o in enumerate(problem.objectives):
        values[headed(f"{o.name}_measured", o.unit)] = z[i]
        values[headed(f"{o.name}_modelled", o.unit)] = y[i]
        values[headed(f"{o.name}_misfit", o.unit)] = c[i]
    return values
