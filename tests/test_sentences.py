"""What is refused is refused by a sentence that says what was expected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vitolab.experience import Experience
from vitolab.exploration import explore
from vitolab.mdp import MDP
from vitolab.problem import Objective, Parameter, Patient, Problem


@pytest.fixture(scope="module")
def walks(linear_problem: Problem, linear_patients: list[Patient]):
    return explore(linear_problem, linear_patients[:2], n_episodes=2, n_steps=2, seed=0)


def test_every_refusal_of_runs_and_quantities_says_what_was_expected(linear_problem, walks):
    other = replace(linear_problem, name="other", objectives=linear_problem.objectives[:1])
    stored = Experience.learn(linear_problem, walks)
    unknown = replace(linear_problem, objectives=(Objective("q", "q", "", 1.0),))
    refused = {
        "no runs": lambda: Experience.learn(linear_problem, Experience.none(linear_problem)),
        "other objectives": lambda: Experience.learn(other, stored),
        "unknown objective": lambda: stored.observing(unknown),
        "nobody": lambda: walks.select(["nobody"]),
        "falling": lambda: replace(walks, patient=walks.patient[::-1].copy()),
        "no name": lambda: Patient("", {}),
        "no number": lambda: Parameter("a", "a", "", 0.0, np.inf, 1.0, 0.1),
        "nothing": lambda: replace(linear_problem, parameters=()),
        "not there": lambda: linear_problem.observing(["q"]),
        "states": lambda: MDP.count([0], [0], [5], 5, 2),
        "lengths": lambda: MDP.count([0, 1], [0], [0], 5, 2),
        "dead": lambda: Experience.learn(
            linear_problem, replace(walks, y=np.full_like(walks.y, np.nan))
        ),
    }
    for what, call in refused.items():
        with pytest.raises(ValueError, match="expected") as error:
            call()
        sentence = str(error.value)
        assert "\n" not in sentence, what
        assert "not in list" not in sentence, what
