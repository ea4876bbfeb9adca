"""What has to be known of the Rosenbrock family to use it; it loads when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitolab.models.description import Landscape, Lesson, Model

if TYPE_CHECKING:
    from vitolab.models.description import Arrays
    from vitolab.problem import Patient, Problem

#: Points along each side of the map, and half its width, beyond the domain of ±5.
MAP_POINTS, MAP_LIMIT = 121, 6.0


def _problem(setup: str) -> Problem:
    """Problem of a set of actions."""
    from vitolab.models.rosenbrock import model

    if setup not in MODEL.n_states:
        raise ValueError(f"setup is {setup!r}, expected one of {', '.join(MODEL.n_states)}")
    return model.problem(extended=setup == "extended")


def _clipped() -> Problem:
    """Problem whose moves end on the border."""
    from vitolab.models.rosenbrock import model

    return model.problem(border="clip")


def _patients() -> list[Patient]:
    """Functions of the family."""
    from vitolab.models.rosenbrock import model

    return model.cohort(MODEL.n_patients)


def _current(problem: Problem) -> Problem | None:
    """The same actions, signs and border."""
    from vitolab.models.rosenbrock import model

    return model.problem(
        extended=500 in problem.multipliers,
        absolute="absolute" in problem.version,
        border=problem.border,
    )


def _background(problem: Problem, patient: Patient) -> Arrays:
    """Map of a function, log₁₀, and its minimum."""
    import numpy as np

    from vitolab.models.rosenbrock import model

    axis = np.linspace(-MAP_LIMIT, MAP_LIMIT, MAP_POINTS)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    values = model.values(points, patient).reshape(MAP_POINTS, MAP_POINTS)
    return {"map": np.log10(values + 1e-3), "optimum": model.optimum(patient)}


def _solvable(patient: Patient) -> str:
    """Whether the minimum lies in the domain."""
    from vitolab.models.rosenbrock import model

    lower, upper = zip(*((p.lower, p.upper) for p in model.PARAMETERS), strict=True)
    x = model.optimum(patient)
    if (x >= lower).all() and (x <= upper).all():
        return "This function has its minimum in the domain: there is a solution."
    return "This function has its minimum outside the domain."


MODEL = Model(
    name="rosenbrock",
    # paper, section 3.1.2: with and without actions of ±500 steps
    n_states={"base": 100, "extended": 100},
    setup="base",
    problem=_problem,
    patients=_patients,
    n_patients=100,
    data={"alpha": ""},
    ranges={"alpha": (-2.0, 2.0, "")},
    picture=Landscape(MAP_LIMIT),
    background=_background,
    current=_current,
    solvable=_solvable,
    lessons=(
        Lesson(
            *("rosenbrock", "Rosenbrock function", _clipped),
            n_patients=40,
            n_training=20,
            n_episodes=100,
            n_states=500,
            max_runs=200,
            note="Each patient is a function; a move out of the domain ends on its border.",
        ),
    ),
)
