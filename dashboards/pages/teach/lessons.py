"""What the page Teach offers: models, patients, and an agent learned from a few of the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from vitolab.agent import Vito, n_states_at_most
from vitolab.exploration import explore
from vitolab.problem import Patient, Problem
from vitolab.trajectories import Trajectories

SEED = 0
STEPS = 100  # of an episode
_LEARNING = threading.Lock()  # what is learned is learned once, for all sessions


@dataclass(frozen=True)
class Lesson:
    """A model to personalise by hand.

    Attributes
    ----------
    name : str
        What an address calls it.
    title : str
    problem : callable
    patients : callable
        Patients to choose from.
    n_training : int
        Further patients whose walks the agent learns from.
    n_episodes : int
        Walks of each of them.
    n_states : int
    max_runs : int
        Forward runs that methods of the scoreboard may take.
    note : str
        What is special about it.
    first : str
        Patient that is offered first; the first of all by default.
    """

    name: str
    title: str
    problem: Callable[[], Problem]
    patients: Callable[[], list[Patient]]
    n_training: int
    n_episodes: int
    n_states: int
    max_runs: int
    note: str = ""
    first: str = ""

    @property
    def learning(self) -> str:
        """How the agent learns, in a sentence."""
        n = self.n_training * self.n_episodes * STEPS
        return (
            f"This Vito learned from {n:,} samples of {self.n_training} other patients (seed "
            f"{SEED}, {self.n_states} states at most), far fewer than in the studies, so that it "
            "takes seconds. It never saw this patient."
        )


def _circulation(setup: str, n_states: int) -> Lesson:
    """Lesson of one setup of the circulation."""
    n = int(setup[0])

    def problem() -> Problem:
        from vitolab.models import circulation

        return circulation.problem(setup)

    def patients() -> list[Patient]:
        from vitolab.models import circulation

        return circulation.cohort().evaluation

    title = f"Circulation, {n} parameters"
    return Lesson(f"circulation-{setup}", title, problem, patients, 10, 10, n_states, 50 * n)


def _rosenbrock() -> Problem:
    from vitolab.models import rosenbrock

    return rosenbrock.problem(border="clip")


def _functions() -> list[Patient]:
    from vitolab.models import rosenbrock

    return rosenbrock.cohort(40)


def _electrophysiology() -> Problem:
    from vitolab.models import electrophysiology

    return electrophysiology.problem("bem")


def _hearts() -> list[Patient]:
    from vitolab.models import electrophysiology

    return electrophysiology.cohort().evaluation


LESSONS = {
    lesson.name: lesson
    for lesson in (
        Lesson(
            "rosenbrock",
            "Rosenbrock function",
            _rosenbrock,
            _functions,
            n_training=20,
            n_episodes=100,
            n_states=500,
            max_runs=200,
            note="Each patient is a function; a move out of the domain ends on its border.",
        ),
        _circulation("2p", 70),
        _circulation("3p", 150),
        _circulation("5p", 300),
        _circulation("6p", 300),
        Lesson(
            "electrophysiology-bem",
            "Electrophysiology",
            _electrophysiology,
            _hearts,
            n_training=5,
            n_episodes=8,
            n_states=60,
            max_runs=100,
            first="E04",
            note="When a heart is used for the first time it is built, which takes a while.",
        ),
    )
}
FIRST = "circulation-2p"


@cache
def problem_of(name: str) -> Problem:
    """Problem of a lesson."""
    return LESSONS[name].problem()


@cache
def patients_of(name: str) -> dict[str, Patient]:
    """Patients of a lesson by name."""
    return {patient.name: patient for patient in LESSONS[name].patients()}


@cache
def _walks(name: str) -> Trajectories:
    """Walks of the training patients and one more, who takes the place of the one left out."""
    lesson = LESSONS[name]
    patients = list(patients_of(name).values())
    n = lesson.n_training + 1
    spread = [patients[round(i * (len(patients) - 1) / (n - 1))] for i in range(n)]
    return explore(problem_of(name), spread, lesson.n_episodes, STEPS, SEED)


@lru_cache(maxsize=32)
def _agent(name: str, left_out: str) -> Vito:
    """Agent that learned from others."""
    walks, problem = _walks(name), problem_of(name)
    others = [other for other in walks.patients if other != left_out]
    walks = walks.select(others[: LESSONS[name].n_training])
    n_states = min(LESSONS[name].n_states, n_states_at_most(problem, walks))
    return Vito.learn(problem, walks, n_states, SEED)


def agent(name: str, patient: str) -> Vito:
    """Vito for a patient of a lesson, learned when first asked for; in a worker.

    Parameters
    ----------
    name : str
        Of the lesson.
    patient : str
        Left out of the training.
    """
    with _LEARNING:
        left_out = patient if patient in _walks(name).patients else ""
        return _agent(name, left_out)


def hope(name: str, patient: Patient) -> str:
    """Whether a solution is known to exist, in a sentence; in a worker."""
    if name == "rosenbrock":
        return "This function has its minimum in the domain: there is a solution."
    if name.startswith("electrophysiology"):
        from vitolab.models import electrophysiology

        if electrophysiology.is_solvable(patient):
            return "A search over the whole domain found a solution for this patient."
        return "A search over the whole domain found no solution for this patient: try another."
    return "Not every patient need have a solution: if all methods fail, this one may have none."
