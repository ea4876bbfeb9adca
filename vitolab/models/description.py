"""The facts of a model, each once: setups, patients, what their file holds, what a picture shows.

Each built-in model has one `Model` in its module ``about``, which loads without the model itself.
`vitolab.catalogue` lists them; the command line, the dashboard and Python find them there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from vitolab.problem import FloatArray, Patient, Problem

    Arrays = dict[str, NDArray[Any]]

#: Lowest and highest value of a quantity, and their unit.
Range = tuple[float, float, str]


@dataclass(frozen=True)
class Panel:
    """Curves over each other, as plain data.

    Attributes
    ----------
    title : str
    x, y : str
        Names of the arrays that are drawn, see `Model.answer`.
    x_label, y_label : str
        With units.
    levels : mapping of str to str
        Objectives that are a level of the curve, and a short name of each.
    measured : bool
        Whether a measured curve may stand beside the model's, see `Model.background`.
    note : str
        Words of the legend.
    """

    title: str
    x: str
    y: str
    x_label: str
    y_label: str
    levels: Mapping[str, str] = field(default_factory=dict)
    measured: bool = False
    note: str = "model"


@dataclass(frozen=True)
class Curves:
    """A picture of curves, a panel each."""

    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Landscape:
    """A picture of a function of two parameters.

    `Model.background` gives its ``map``, log₁₀ of the function on a square grid, and its
    ``optimum``.

    Attributes
    ----------
    limit : float
        Half width of the square, about the origin.
    """

    limit: float


@dataclass(frozen=True)
class Electrocardiogram:
    """A picture of activation times, ``segments``, and an ECG, ``leads`` over ``time``."""


Picture = Curves | Landscape | Electrocardiogram


@dataclass(frozen=True)
class Lesson:
    """A problem to personalise by hand, beside an agent that learned it.

    Attributes
    ----------
    name : str
    title : str
    problem : callable
        ``problem()``.
    n_training : int
        Further patients whose walks the agent learns from.
    n_episodes : int
        Walks of each of them.
    n_states : int
        Representative states, at most.
    max_runs : int
        Forward runs that a method may take.
    n_patients : int, optional
        Patients to choose from, the first ones; all by default.
    note : str
        What is special about it.
    first : str
        Patient that is offered first; the first of all by default.
    """

    name: str
    title: str
    problem: Callable[[], Problem]
    n_training: int
    n_episodes: int
    n_states: int
    max_runs: int
    n_patients: int | None = None
    note: str = ""
    first: str = ""


def _as_they_are(patients: Sequence[Patient], folder: Path) -> list[Patient]:
    """Take the patients of a file as they are."""
    return list(patients)


def _nothing_to_prepare(patients: Sequence[Patient], setup: str, n_jobs: int) -> None:
    """Prepare nothing."""


def _no_other(problem: Problem) -> Problem | None:
    """Know no stored problem again."""
    return None


def _nothing_known(problem: Problem, patient: Patient) -> Arrays:
    """Show nothing of a patient."""
    return {}


def _parameters(problem: Problem, x: FloatArray, patient: Patient) -> Arrays:
    """Show the parameters alone."""
    return {"x": x}


def _is_harmless(patient: Patient) -> bool:
    """Take any patient: the data name no files."""
    return True


def _unknown(patient: Patient) -> str:
    """Say that a solution need not exist."""
    return "Not every patient need have a solution: if all methods fail, this one may have none."


@dataclass(frozen=True)
class Model:
    """A model and what has to be known to use it.

    Attributes
    ----------
    name : str
        Problems are named after it: ``name`` or ``name-setup``.
    n_states : mapping of str to int
        Setups, and the number of representative states for each: the paper's where it has one.
    setup : str
        The default setup.
    problem : callable
        ``problem(setup)``: the problem of a setup; a ValueError if there is no such setup.
    patients : callable, optional
        ``patients()``: synthetic patients to learn from and to evaluate on; none by default.
    n_patients : int
        Number of these.
    prepare : callable
        ``prepare(patients, setup, n_jobs)``: builds what forward runs of these patients need; a
        ValueError of one sentence that names the patient.
    prepares : str
        What it builds, in the plural; empty if nothing.
    located : callable
        ``located(patients, folder)``: patients whose data name files relative to `folder`, with
        the files found; a ValueError as above.
    max_runs : int or None
        Forward runs allowed per patient; None for 50 per parameter.
    data : mapping of str to str
        Name and unit of the numbers that the model needs to know of a patient.
    texts : mapping of str to str
        Name of the texts that it needs to know, and the value of an absent one.
    ranges : mapping of str to (lower, upper, unit)
        Limits by name of quantity, outside which a value of a file is refused.
    rising : sequence of (str, str)
        Pairs of measurements of which the first must be the smaller one.
    examples : mapping of str to sequence of float
        Data of the example patients of a template.
    picture : Picture, optional
        What a picture of an answer shows.
    answer : callable
        ``answer(problem, x, patient)``: arrays of the picture at parameters of shape
        (n_parameters,); a ValueError where the model has no answer.
    background : callable
        ``background(problem, patient)``: arrays of the picture that no parameter changes.
    is_slow : bool
        Whether the first answer for a patient takes seconds.
    is_safe : callable
        ``is_safe(patient)``: False if the data of a stored patient make the model open a file.
    current : callable
        ``current(problem)``: a stored problem as this version of the model has it; None if it is
        none of the model's.
    solvable : callable
        ``solvable(patient)``: whether a solution is known to exist, in a sentence.
    lessons : tuple of Lesson
    """

    name: str
    n_states: Mapping[str, int]
    setup: str
    problem: Callable[[str], Problem]
    patients: Callable[[], list[Patient]] | None = None
    n_patients: int = 0
    prepare: Callable[[Sequence[Patient], str, int], None] = _nothing_to_prepare
    prepares: str = ""
    located: Callable[[Sequence[Patient], Path], list[Patient]] = _as_they_are
    max_runs: int | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)
    rising: Sequence[tuple[str, str]] = ()
    examples: Mapping[str, Sequence[float]] = field(default_factory=dict)
    picture: Picture | None = None
    answer: Callable[[Problem, FloatArray, Patient], Arrays] = _parameters
    background: Callable[[Problem, Patient], Arrays] = _nothing_known
    is_slow: bool = False
    is_safe: Callable[[Patient], bool] = _is_harmless
    current: Callable[[Problem], Problem | None] = _no_other
    solvable: Callable[[Patient], str] = _unknown
    lessons: tuple[Lesson, ...] = ()


def setup_of(problem: Problem) -> str:
    """Setup of a problem of a model, such as ``6p`` or ``bem``."""
    return problem.name.partition("-")[2]
