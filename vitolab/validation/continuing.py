"""Methods that learn from every patient whom they personalise, without exploration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from vitolab.asked import checked_seed
from vitolab.experience import Experience
from vitolab.files import stream
from vitolab.fit import Event, Fit, Personalizer, StopReason, Trace, budget
from vitolab.guard import personalized
from vitolab.methods import AGENTS, METHODS, Settings, build, learn, learns_states
from vitolab.problem import FloatArray, Patient, Problem
from vitolab.reference.least_squares import restarts
from vitolab.reference.optimiser import Counter, EndedError
from vitolab.scale import N_FIRST, Scale
from vitolab.validation.parts import child_seed


@dataclass(frozen=True)
class Continuing:
    """A method, and all runs from which it may learn so far.

    Attributes
    ----------
    problem : Problem
    method : str
        One that learns from runs and has no states; or a reference method, which stays as it is.
    experience : Experience
        Runs to begin with: `Experience.none`, or those of walks.
    settings : Settings
    seed : int

    Raises
    ------
    ValueError
        If the method learns states, for which single runs are not enough.

    Examples
    --------
    >>> import vitolab as vl
    >>> from vitolab.experience import Experience
    >>> from vitolab.validation.continuing import Continuing
    >>> problem = vl.models.rosenbrock.problem()
    >>> patients = vl.models.rosenbrock.cohort(6)
    >>> method = Continuing(problem, "vito-continuous", Experience.none(problem))
    >>> n_runs = [fit.n_runs for fit, _ in method.one_by_one(patients)]
    >>> sum(n_runs[:3]) > sum(n_runs[3:])
    True
    """

    problem: Problem
    method: str
    experience: Experience
    settings: Settings = field(default_factory=Settings)
    seed: int = 0

    def __post_init__(self) -> None:
        if learns_states(self.method):
            known = ", ".join(name for name in METHODS if can_continue(name))
            raise ValueError(
                f"method is {self.method!r}, which learns states, expected one of {known}"
            )

    def after(self, fits: Sequence[tuple[Patient, Fit]]) -> Continuing:
        """The method once it may learn from these personalisations, too; in their order."""
        return replace(self, experience=self.experience.after(fits))

    def personalizer(self, patient: Patient) -> Personalizer:
        """The method for a patient, learned from all runs so far."""
        observed = self.problem.observed(patient)
        if self.method not in AGENTS:
            return build(self.method, observed)
        known = self.experience.observing(observed)
        if len(known.u) >= N_FIRST or METHODS[self.method].begins:
            seed = child_seed(self.seed, "after", known.key)
            return learn([self.method], observed, known, seed, self.settings)[self.method]
        return _Beginning(observed, self.method, self.settings, known)

    def personalize(self, patient: Patient, max_runs: int | None = None) -> Fit:
        """Personalise a patient; an error of the method is that patient's outcome."""
        seed = child_seed(self.seed, "patient", patient.name)
        observed = self.problem.observed(patient)
        method = self.personalizer(patient)
        return personalized(
            observed, method, patient, max_runs=budget(self.problem, max_runs), seed=seed
        )[0]

    def one_by_one(
        self, patients: Sequence[Patient], *, max_runs: int | None = None
    ) -> Iterator[tuple[Fit, Continuing]]:
        """Personalise patients in their order, each after it has learned from those before.

        Yields
        ------
        Fit
        Continuing
            The method after that patient.
        """
        method = self
        for patient in patients:
            fit = method.personalize(patient, max_runs)
            method = method.after([(patient, fit)])
            yield fit, method


def can_continue(name: str) -> bool:
    """Whether a method learns from single runs, or needs none."""
    row = METHODS[name]
    return (row.training is not None and not learns_states(name)) or row.build is not None


@dataclass(frozen=True)
class _Beginning:
    """A method with too few runs to learn from: it begins with runs of the patient's own model."""

    problem: Problem
    method: str
    settings: Settings
    known: Experience

    def personalize(self, patient: Patient, *, max_runs: int | None = None, seed: int = 0) -> Fit:
        """Personalise one patient, beginning at the default values."""
        return self._fit(patient, None, budget(self.problem, max_runs), checked_seed(seed))

    def personalize_from(
        self, patient: Patient, starts: FloatArray, *, max_runs: int | None = None, seed: int = 0
    ) -> list[Fit]:
        """Personalise one patient, beginning at each of the given starts."""
        allowed, seed = budget(self.problem, max_runs), checked_seed(seed)
        return [self._fit(patient, start, allowed, seed) for start in starts]

    def _fit(self, patient: Patient, start: FloatArray | None, allowed: int, seed: int) -> Fit:
        problem = self.problem
        begun = first_runs(problem, patient, self.known, allowed, seed, start)
        known = self.known.after([(patient, begun)])
        if begun.solved or begun.n_runs == allowed:
            return begun
        agent = learn([self.method], problem, known, seed, self.settings)[self.method]
        rest = agent.personalize(patient, max_runs=allowed - begun.n_runs, seed=seed)
        trace = _joined(begun.trace, rest.trace)
        return Fit.from_trace(problem, trace, rest.stop_reason, rest.note)


def first_runs(
    problem: Problem,
    patient: Patient,
    known: Experience,
    allowed: int,
    seed: int,
    start: FloatArray | None = None,
) -> Fit:
    """Run a patient's model at the default values, or a start, and at points spread over Ω.

    As many as `N_FIRST` has more than are known, which is the agent's rule, too; and more until one
    answers. Ends with the first run that solves the patient.

    Parameters
    ----------
    problem : Problem
    patient : Patient
    known : Experience
        Runs from which the method may learn already, fewer than `N_FIRST`.
    allowed : int
        Runs at most.
    seed : int
    start : ndarray, shape (n_parameters,), optional
    """
    rng = stream("first runs", problem.name, seed, patient.name)
    scale, counter = Scale(problem), Counter(problem, patient, allowed)
    points = scale.first(rng)
    if start is not None:
        points[0] = scale.unit(np.clip(start, problem.lower, problem.upper))
    missing, answered = N_FIRST - len(known.u), bool(len(known.u))
    try:
        for x in chain(map(scale.parameters, points), restarts(problem, rng)):
            if answered and len(counter.x) >= missing:
                break
            answered |= bool(np.isfinite(counter.run(x)).all())
            counter.next_event = Event.RESTART
    except EndedError as ended:
        return counter.fit(ended.reason)
    return counter.fit(StopReason.BUDGET)


def _joined(first: Trace, rest: Trace) -> Trace:
    """One trace after the other."""
    event = rest.event.copy()
    event[event == Event.START] = Event.RESTART
    blank = np.full(first.y.shape, np.nan)
    expected = np.full(rest.y.shape, np.nan) if rest.expected is None else rest.expected
    return Trace(
        np.concatenate([first.x, rest.x]),
        np.concatenate([first.y, rest.y]),
        np.concatenate([first.misfits, rest.misfits]),
        np.concatenate([first.event, event]),
        np.concatenate([first.action, rest.action]),
        np.concatenate([first.state, rest.state]),
        np.concatenate([blank, expected]),
        failures=(*first.failures, *rest.failures),
    )
