"""What the page Teach offers: models, patients, and an agent learned from a few of the others."""

from __future__ import annotations

import threading
from functools import cache, lru_cache

from vitolab.agent import Vito
from vitolab.catalogue import MODELS, model_of
from vitolab.exploration import explore
from vitolab.methods import EPISODE, POLICY
from vitolab.models.description import Lesson
from vitolab.problem import Patient, Problem
from vitolab.settings import Settings
from vitolab.trajectories import Trajectories

SEED = 0
_LEARNING = threading.Lock()  # what is learned is learned once, for all sessions


FIRST = "circulation-2p"


def offered() -> dict[str, Lesson]:
    """Lessons of all models, by name."""
    return {lesson.name: lesson for model in MODELS.values() for lesson in model.lessons}


def learning(lesson: Lesson) -> str:
    """How the agent of a lesson learns, in a sentence."""
    n = lesson.n_training * lesson.n_episodes * EPISODE
    return (
        f"This Vito learned from {n:,} samples of {lesson.n_training} other patients (seed "
        f"{SEED}, {lesson.n_states} states at most), far fewer than in the studies, so that it "
        "takes seconds. It never saw this patient."
    )


@cache
def problem_of(name: str) -> Problem:
    """Problem of a lesson."""
    return offered()[name].problem()


@cache
def patients_of(name: str) -> dict[str, Patient]:
    """Patients of a lesson by name."""
    model = model_of(problem_of(name))
    patients = [] if model is None or model.patients is None else model.patients()
    return {patient.name: patient for patient in patients[: offered()[name].n_patients]}


@cache
def _walks(name: str) -> Trajectories:
    """Walks of the training patients and one more, who takes the place of the one left out."""
    lesson = offered()[name]
    patients = list(patients_of(name).values())
    n = lesson.n_training + 1
    spread = [patients[round(i * (len(patients) - 1) / (n - 1))] for i in range(n)]
    return explore(problem_of(name), spread, lesson.n_episodes, EPISODE, SEED)


@lru_cache(maxsize=32)
def _agent(name: str, left_out: str) -> Vito:
    """Agent that learned from others."""
    walks, problem = _walks(name), problem_of(name)
    others = [other for other in walks.patients if other != left_out]
    walks = walks.select(others[: offered()[name].n_training])
    # `vitolab.methods.learn` would keep an error until Vito is to move: this page tells it at once
    agent: Vito = POLICY.learn(problem, walks, SEED, Settings(n_states=offered()[name].n_states))
    return agent


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


def hope(patient: Patient, problem: Problem) -> str:
    """Whether a solution is known to exist, in a sentence; in a worker."""
    model = model_of(problem)
    return "" if model is None else model.solvable(patient)
