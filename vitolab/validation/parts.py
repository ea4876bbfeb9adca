"""What all studies share: parts, their work, and the walks that agents learn from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import pandas as pd

from vitolab.asked import checked_seed
from vitolab.exploration import explore
from vitolab.failures import HOPELESS, Failure, Kind, NothingAnswers, Record, all_failed
from vitolab.files import digest
from vitolab.fit import StopReason
from vitolab.methods import EPISODE
from vitolab.parallel.workers import parallel
from vitolab.problem import Patient, Problem
from vitolab.settings import Settings
from vitolab.store.tables import failure_table
from vitolab.trajectories import Trajectories


class PartStore(Protocol):
    """Where finished parts are kept."""

    @property
    def until(self) -> float:
        """When no further part is begun (s, epoch)."""
        ...

    def has_part(self, key: str) -> bool:
        """Whether the part is there, whole."""
        ...

    def read_part(self, key: str) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Personalisations of a finished part, and their forward runs where it has any."""
        ...

    def write_part(
        self,
        key: str,
        personalizations: pd.DataFrame,
        traces: pd.DataFrame | None = None,
        failures: pd.DataFrame | None = None,
    ) -> None:
        """Keep a part, and what is known of its failed runs."""
        ...

    def write_failures(self, key: str, failures: pd.DataFrame | None) -> None:
        """Keep what is known of failed runs of an exploration; None if all answered."""
        ...

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell how far the study is."""
        ...


class Part(NamedTuple):
    """What a fold found.

    Attributes
    ----------
    personalizations : DataFrame
    traces : DataFrame or None
    failures : sequence of Failure
        Runs that failed, in the order in which they were made.
    """

    personalizations: pd.DataFrame
    traces: pd.DataFrame | None = None
    failures: Sequence[Failure] = ()


def child_seed(seed: int, *parts: Any) -> int:
    """Derive a seed from another and a key: the same for any order of work.

    Raises
    ------
    ValueError
        If the seed is no whole number from 0 to 2^63 - 1.
    """
    return int(digest("seed", checked_seed(seed), *parts)[:8], 16)


def given(max_runs: int | None) -> tuple[int, ...]:
    """What the number of runs adds to the key of a part: nothing by default."""
    return () if max_runs is None else (max_runs,)


def unlike_the_paper(settings: Settings) -> tuple[Any, ...]:
    """What settings of acting add to the key of a part: nothing if they are the paper's."""
    return tuple(
        item
        for name in ("epsilon", "recurrences")
        if (value := getattr(settings, name)) != getattr(Settings, name)
        for item in (name, value)
    )


def walks_for(
    problem: Problem,
    patients: Sequence[Patient],
    n_samples: int,
    seed: int,
    n_jobs: int = 1,
    cache: Path | None = None,
    episode: int = EPISODE,
) -> Trajectories:
    """Explore as many episodes as `n_samples` transitions per patient take.

    The walks come in the order of the patients' names, so that what is learned from them does
    not depend on the order of the patients. More of them extend the same sequence, whatever the
    number of transitions per ``episode``. Walks of one step, from which methods without states
    learn, start by the scale of each parameter; longer ones are the paper's.
    """
    n_episodes = math.ceil(n_samples / episode)
    ordered = sorted(patients, key=lambda patient: patient.name)
    return explore(
        problem, ordered, n_episodes, episode, seed, n_jobs, cache, by_scale=episode == 1
    )


def recorded_walks(
    run: PartStore,
    setup: str,
    problem: Problem,
    patients: Sequence[Patient],
    n_samples: int,
    seed: int,
    n_jobs: int = 1,
    cache: Path | None = None,
    episode: int = EPISODE,
) -> Trajectories:
    """Explore as `walks_for` does, and keep in the run what is known of failed runs.

    The record belongs to the walks, whatever part asks for them and how often: it replaces an
    earlier one of the same walks, and of fewer and more of them the larger counts.

    Parameters
    ----------
    run : PartStore
    setup : str
        Name of the setup in the stored tables.
    problem, patients, n_samples, seed, n_jobs, cache, episode
        See `walks_for`.

    Raises
    ------
    ValueError
        If no run answers; the record is kept all the same.
    """
    names = sorted(patient.name for patient in patients)
    walk = digest("exploration", setup, problem.name, problem.version, names, episode, seed)
    key = f"exploration-{walk}-{n_samples:012d}"

    def keep(failures: Sequence[Failure]) -> None:
        columns = [p.name for p in problem.parameters]
        known = failure_table("exploration", setup, columns, failures) if failures else None
        run.write_failures(key, known)

    try:
        walks = walks_for(problem, patients, n_samples, seed, n_jobs, cache, episode)
    except NothingAnswers as error:
        keep(error.failures)
        raise
    keep(walks.failures)
    return walks


def workers(problem: Problem) -> Literal["threads", "processes"]:
    """What runs methods of many short steps of Python, which threads would take in turns.

    A model that has processes of its own is waited for in threads: processes that start processes
    would be too many.
    """
    return "threads" if getattr(problem.simulate, "own_processes", False) else "processes"


def check_patients(patients: Sequence[Patient], which: str = "patients") -> None:
    """Refuse too few patients to leave one out.

    Raises
    ------
    ValueError
    """
    if len(patients) < 2:
        raise ValueError(f"{len(patients)} {which}, expected at least 2 to leave one out")


def learned_from(problem: Problem, patients: Sequence[Patient]) -> list[Patient]:
    """Patients from whom agents learn: those with all measurements."""
    return [p for p in patients if problem.observed(p) is problem]


def training(walks: Trajectories, problem: Problem, patient: Patient) -> Trajectories:
    """Walks of everybody else, with the objectives that were measured of a patient."""
    others = walks.without(patient.name) if patient.name in walks.patients else walks
    observed = problem.observed(patient)
    if observed is problem:
        return others
    names = [o.name for o in problem.objectives]
    return others.observing([names.index(o.name) for o in observed.objectives])


def work_through(
    run: PartStore,
    stage: str,
    work: Mapping[str, tuple[Any, ...]],
    fold: Callable[..., Part],
    n_jobs: int,
    *,
    walks: Callable[[], Trajectories] | None = None,
    prefer: Literal["threads", "processes"] = "threads",
) -> None:
    """Compute the parts that the run lacks and keep each as soon as it is finished.

    When the time of the run is spent, no further part is begun.

    Parameters
    ----------
    run : PartStore
    stage : str
        What progress is reported under.
    work : mapping of str to tuple
        By the key of each part, what its fold is given.
    fold : callable
        Gives the part, or the first of its fields: ``fold(*work[key])``, after the walks if there
        are any.
    n_jobs, prefer
        Folds at the same time, see `vitolab.parallel.workers.parallel`.
    walks : callable, optional
        Gives what all folds learn from; called once, and only if a part is missing.

    Raises
    ------
    ValueError
        If no run of any patient answered, where there were no walks either; with the first cause.
    RuntimeError
        If every personalisation ended by an error of its method; with the first.
    """
    missing = [key for key in work if not run.has_part(key)]
    if not missing or time.time() >= run.until:
        return
    if walks is not None:
        run.progress(f"{stage}: exploring", 0, len(work))
        fold = partial(fold, walks())

    done = len(work) - len(missing)
    # explored walks hold answers, and what was done before was judged
    judged = () if walks is not None or done else work.values()
    judge = Judge(stage, (p.name for given in judged for p in given if isinstance(p, Patient)))
    run.progress(stage, done, len(work))
    items = ((key, work[key], run.until) for key in missing)
    for key, part, failures in parallel(compute_part, fold, items, n_jobs, prefer):
        if part is None:
            continue
        personalizations, traces, _ = part
        write_with_failures(run, key, personalizations, traces, failures)
        judge.hear(personalizations, failures)
        done += 1
        run.progress(stage, done, len(work))
    if len(missing) == len(work):
        judge.end()


def compute_part(
    fold: Callable[..., Part], key: str, given: tuple[Any, ...], until: float
) -> tuple[str, Part | None, tuple[Failure, ...]]:
    """Part of a key, and the runs that failed meanwhile; nothing once the time is over."""
    if time.time() >= until:
        return key, None, ()
    part = Part(*fold(*given))
    record = Record()
    record.update(part.failures)
    return key, part, record.failures


def _named(personalizations: pd.DataFrame) -> tuple[str, list[str]]:
    """Setup and names of the parameters of a part."""
    names = [name[2:] for name in personalizations.columns if name.startswith("x:")]
    return str(personalizations["setup"].iloc[0]), names


def write_with_failures(
    run: PartStore,
    key: str,
    personalizations: pd.DataFrame,
    traces: pd.DataFrame | None,
    failures: Sequence[Failure],
) -> None:
    """Keep a part with what is known of its failed runs."""
    named = _named(personalizations)
    known = failure_table("personalization", *named, failures) if failures else None
    run.write_part(key, personalizations, traces, known)


class Judge:
    """Ends work of which no run answers, or every method raises, whoever the patient.

    Parameters
    ----------
    what : str
        The work, for the message.
    patients : iterable of str
        Without an answer for any of these the work is ended; none for work that is not judged.
    """

    def __init__(self, what: str, patients: Iterable[str]) -> None:
        self.what, self.n_runs, self.failures = what, 0, list[Failure]()
        self.unheard = set(patients)
        self.hopeful = not self.unheard
        self.ends: set[str] = set()  # how personalisations ended
        self.errors: list[Failure] = []

    def hear(self, personalizations: pd.DataFrame, failures: Sequence[Failure]) -> None:
        """Take note of a part.

        Raises
        ------
        ValueError
            If at least `HOPELESS` runs were made, of all patients, and all of them failed.
        """
        self.ends |= set(personalizations.get("stop_reason", [""]))
        self.errors += [failure for failure in failures if failure.kind is Kind.METHOD][:1]
        if self.hopeful or "n_failed" not in personalizations:
            return
        n_runs, n_failed = personalizations["n_runs"], personalizations["n_failed"]
        self.hopeful = bool((n_failed < n_runs).any())
        self.n_runs += int(n_runs.sum())
        self.failures += failures
        self.unheard -= set(personalizations["patient"])
        if not self.hopeful and not self.unheard and self.n_runs >= HOPELESS:
            raise all_failed(self.what, self.failures, _named(personalizations)[1])

    def end(self) -> None:
        """Take note that the work is done.

        Raises
        ------
        RuntimeError
            If every personalisation ended by an error of its method; with the first.
        """
        if self.ends == {StopReason.ERROR} and self.errors:
            text = self.errors[0].text
            raise RuntimeError(f"{self.what}: every personalisation ended by an error: {text}")
