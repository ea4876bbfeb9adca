"""Patients personalised in their order, by a method that learns from each round of them.

Nothing is explored. A patient is a part of the run, so that a call that was interrupted goes on
with what the finished patients taught: their forward runs are read back from the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vitolab.asked import checked_count
from vitolab.experience import Experience
from vitolab.failures import NothingAnswers
from vitolab.files import digest
from vitolab.fit import Fit, StopReason, budget
from vitolab.methods import AGENTS, METHODS
from vitolab.parallel.workers import parallel
from vitolab.problem import Patient, Problem
from vitolab.store.tables import failure_table, fit_row, stored_fit, table
from vitolab.validation.continuing import Continuing
from vitolab.validation.outcomes import patient_part
from vitolab.validation.parts import (
    Judge,
    Part,
    PartStore,
    child_seed,
    compute_part,
    workers,
    write_with_failures,
)
from vitolab.validation.watching import Watch

if TYPE_CHECKING:
    import pandas as pd

STAGE = "personalising one after the other"


def one_after_another(
    run: PartStore,
    setup: str,
    method: Continuing,
    patients: Sequence[Patient],
    *,
    known: Callable[[Patient], Experience] | None = None,
    known_as: str = "known before",
    n_samples: int | None = None,
    max_runs: int | None = None,
    total_runs: int | None = None,
    at_a_time: int = 1,
    n_jobs: int = 1,
) -> Continuing:
    """Personalise patients in their order, in rounds, each learning from the rounds before.

    Parameters
    ----------
    run : PartStore
        Receives one part per patient. Besides the columns of all studies its rows hold ``order``
        and ``round`` (from 1), and ``history``, the `Experience.key` of what the method had
        learned from: a part of another history is computed again.
    setup : str
        Name of the setup in the stored tables.
    method : Continuing
        With the experience to begin with.
    patients : sequence of Patient
    known : callable, optional
        ``known(patient)``: experience to begin with for a patient, instead of the method's.
    known_as : str
        What the patients of that experience are called in the column ``training``.
    n_samples : int, optional
        Of walks that were explored, for the stored tables.
    max_runs : int, optional
        Forward runs allowed per patient; by default `budget`.
    total_runs : int, optional
        Forward runs allowed for all patients together. A round shares what is left equally among
        its patients, those who come first taking one more where it does not divide, and nobody
        takes more than `max_runs`. A patient for whom none is left is not begun.
    at_a_time : int
        Patients of a round. The outcome depends on it, and not on how many work at the same time.
    n_jobs : int
        Patients of a round at the same time.

    Returns
    -------
    Continuing
        The method after all patients.

    Raises
    ------
    ValueError
        If a number is none of those allowed, or none of the first `HOPELESS` runs of the first
        patient answered where nothing was known before, which is said with the first cause.
    RuntimeError
        If every personalisation ended by an error of its method.
    """
    at_a_time = checked_count("at_a_time", at_a_time)
    if total_runs is not None:
        total_runs = checked_count("total_runs", total_runs)
        if not METHODS[method.method].keeps_to_budget:
            raise ValueError(
                f"total_runs is {total_runs}, which {method.method} does not keep to, expected "
                "another method or no total"
            )
    most = budget(method.problem, max_runs)
    keys = [digest("one after another", setup, method.method, p.name) for p in patients]
    n_found = sum([run.has_part(key) for key in keys])  # of all, so that the run knows of them
    label = {"setup": setup, "repeat": None, "start": None, "seed": method.seed}
    label |= {"n_states": None, "n_samples": n_samples}
    fits: list[tuple[Patient, Fit]] = []
    judge = Judge(STAGE, () if n_found else (p.name for p in patients))
    n_used = 0
    names = [p.name for p in method.problem.parameters]
    hopeless, is_told = f"exploration-{digest(keys)}-0", False
    run.write_failures(hopeless, None)  # of an earlier attempt
    run.progress(STAGE, 0, len(patients))
    for first in range(0, len(patients), at_a_time):
        group = range(first, min(first + at_a_time, len(patients)))
        left = None if total_runs is None else max(0, total_runs - n_used)
        work: dict[str, tuple[Any, ...]] = {}
        for i, allowed in zip(group, shares(left, len(group), most), strict=True):
            patient = patients[i]
            begun = method if known is None else replace(method, experience=known(patient))
            learned = begun.after(fits)
            further = {
                "order": i + 1,
                "round": first // at_a_time + 1,
                "history": learned.experience.key,
            }
            training = _training(method, begun.experience, learned.experience, known_as)
            note = "" if allowed == most else f"The total of {total_runs} forward runs was used up."
            note = note if allowed else f"Not begun. {note}"
            alone = i == 0 and not n_found and not len(begun.experience.u)
            watch = Watch(names, not is_told, f"patient {patient.name!r}, the first" * alone)
            work[keys[i]] = (learned, patient, label, training, further, allowed, note, watch)
        missing = {key: work[key] for key in work if not _is_done(run, key, *work[key][4:7])}
        if missing and time.time() >= run.until:
            break
        items = [(key, given, run.until) for key, given in missing.items()]
        at_once = n_jobs if len(items) > 1 else 1  # one patient needs no worker
        prefer = workers(method.problem)
        try:
            for key, part, failures in parallel(compute_part, _fold, items, at_once, prefer):
                if part is not None:
                    write_with_failures(run, key, part.personalizations, part.traces, failures)
                    judge.hear(part.personalizations, failures)
                    is_told |= bool(failures)
                    del missing[key]
        except NothingAnswers as error:
            if not run.has_part(keys[0]):  # else they are those of finished parts
                causes = failure_table("personalization", setup, names, error.failures)
                run.write_failures(hopeless, causes)
            raise
        if missing:
            break  # no time is left
        for i in group:  # read back whether computed or found, so that both teach the same
            fits += read_fits(method.problem, patients[i : i + 1], *run.read_part(keys[i]))
            n_used += fits[-1][1].n_runs
        run.progress(STAGE, len(fits), len(patients))
    if not n_found:
        judge.end()
    return method.after(fits)


def shares(left: int | None, n: int, most: int) -> list[int]:
    """Forward runs allowed to each of the patients of a round, see `one_after_another`."""
    if left is None:
        return [most] * n
    return [min(most, left // n + (i < left % n)) for i in range(n)]


def _training(method: Continuing, begun: Experience, learned: Experience, known_as: str) -> str:
    """Whom a method learned from, in words, and who was left out of what it knew."""
    if method.method not in AGENTS:
        return ""
    n = len(learned.known) - len(begun.known)
    before = f"{n} patient{'s' if n > 1 else ''} before" if n else "nobody before"
    if len(begun.known):
        unnamed = begun.names.count("")  # by an earlier version: nobody of them can be left out
        whose = f", {unnamed} of them without a name," if unnamed else ""
        before = f"{len(begun.known)} {known_as}{whose} and {before}"
    left_out = sorted(set(method.experience.names) - set(begun.names))
    return f"{before}, without {' and '.join(left_out)}" if left_out else before


def _fold(
    method: Continuing,
    patient: Patient,
    label: dict[str, Any],
    training: str,
    further: dict[str, Any],
    allowed: int,
    note: str,
    watch: Watch,
) -> Part:
    """Personalise one patient, or note that no run is left."""
    problem = method.problem
    observed = problem.observed(patient)
    n_known = method.experience.n_runs if method.method in AGENTS else None
    if not allowed:
        row = {**label, "patient": patient.name, "method": method.method, **further}
        row |= {"n_states_used": None, "n_training_runs": n_known, "training": training}
        row["not_measured"] = ""
        nothing = stored_fit(observed, {"stop_reason": StopReason.BUDGET, "note": note}, None)
        return Part(table([{**row, **fit_row(problem, nothing, observed)}]))
    seed = child_seed(method.seed, "patient", patient.name)
    acting = {method.method: method.personalizer(patient)}
    more = (n_known, further, watch)
    part = patient_part(problem, patient, acting, label, training, allowed, seed, *more)
    ended = part.personalizations["stop_reason"] == StopReason.BUDGET
    if note and ended.any():  # no column where there is nothing to say
        part.personalizations.loc[ended, "note"] = note
    return part


def _is_done(run: PartStore, key: str, further: dict[str, Any], allowed: int, note: str) -> bool:
    """Whether a run holds what the patient would come to.

    Of the number of runs that are allowed a personalisation takes note when it is reached alone.
    """
    if not run.has_part(key):
        return False
    row = run.read_part(key)[0].iloc[0]
    if row.get("history") != further["history"] or row["n_runs"] > allowed:
        return False
    if row["stop_reason"] != StopReason.BUDGET:
        return True
    return bool(row["n_runs"] == allowed and (row.get("note") or "") == note)


def read_fits(
    problem: Problem,
    patients: Sequence[Patient],
    personalizations: pd.DataFrame,
    traces: pd.DataFrame | None,
) -> list[tuple[Patient, Fit]]:
    """Read back what patients taught, in their order.

    Parameters
    ----------
    problem : Problem
    patients : sequence of Patient
    personalizations, traces : DataFrame
        Of one method and setup; no traces where nothing was run.
    """
    rows = {str(row["patient"]): row for row in personalizations.to_dict("records")}
    own = {} if traces is None else dict(list(traces.groupby("patient", sort=False)))
    return [(p, stored_fit(problem.observed(p), rows[p.name], own.get(p.name))) for p in patients]
