"""How Vito acts where it does not act as in the paper: threshold and recurrences."""

import json

import numpy as np
import pytest

from vitolab.agent import Vito
from vitolab.exploration import explore
from vitolab.fit import Event
from vitolab.problem import Patient


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients):
    return explore(linear_problem, linear_patients, n_episodes=4, seed=0)


@pytest.mark.parametrize("recurrences", [2, 3])
def test_a_later_recurrence_makes_the_oscillation(linear_problem, walks, recurrences):
    """A vector is met so many times between two starts, and no more."""
    vito = Vito.learn(linear_problem, walks, 60, 0, recurrences=recurrences)
    far = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})
    fit = vito.personalize(far, max_runs=400, seed=0)
    parts = np.split(fit.trace.x, np.flatnonzero(fit.trace.event == Event.RESTART))
    most = [np.unique(part, axis=0, return_counts=True)[1].max() for part in parts]
    assert max(most) == recurrences
    assert fit.n_restarts > 0


def test_a_saved_agent_keeps_what_it_takes_for_an_oscillation(linear_problem, walks, tmp_path):
    vito = Vito.learn(linear_problem, walks, 40, recurrences=2, epsilon=0.5)
    vito.save(tmp_path / "agent")
    loaded = Vito.load(tmp_path / "agent", linear_problem)
    assert (loaded.recurrences, loaded.policy.epsilon) == (2, 0.5)
    file = tmp_path / "agent" / "vito.json"
    description = json.loads(file.read_text())
    file.write_text(json.dumps(description | {"recurrences": 0}))
    with pytest.raises(ValueError, match=r"vito.json: recurrences is 0, expected at least 1"):
        Vito.load(tmp_path / "agent", linear_problem)
    del description["recurrences"]  # as agents of before were saved
    file.write_text(json.dumps(description))
    assert Vito.load(tmp_path / "agent", linear_problem).recurrences == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"epsilon": 1.5}, "epsilon is 1.5, expected from 0 to 1"),
        ({"epsilon": float("nan")}, "epsilon is nan, expected from 0 to 1"),
        ({"recurrences": 0}, "recurrences is 0, expected at least 1"),
        ({"recurrences": 1.5}, "recurrences is 1.5, expected a whole number"),
    ],
)
def test_settings_out_of_range_are_refused(linear_problem, walks, wrong, said):
    with pytest.raises(ValueError, match=said):
        Vito.learn(linear_problem, walks, 40, **wrong)
