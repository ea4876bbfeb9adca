"""What a user holds in the hand: problems, walks, agents and fits as objects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vitolab.agent import ContinuousVito, Vito
from vitolab.exploration import explore
from vitolab.fit import Personalizer
from vitolab.problem import Parameter, Patient
from vitolab.reference import BobyqaSimple, LeastSquares, NelderMead
from vitolab.trajectories import Trajectories


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients) -> Trajectories:
    return explore(linear_problem, linear_patients, n_episodes=3, n_steps=40, seed=1)


@pytest.fixture(scope="module")
def vito(linear_problem, walks) -> Vito:
    return Vito.learn(linear_problem, walks, 40, seed=2)


@pytest.fixture(scope="module")
def methods(linear_problem, walks, vito) -> list[Personalizer]:
    """One of each kind; no optimiser among them ends by itself within 100 runs of FAR."""
    return [vito, ContinuousVito.learn(linear_problem, walks), NelderMead(linear_problem)]


#: Out of reach, so that agents spend all the runs that they are allowed.
FAR = Patient("far", {"u": 90.0, "w": -90.0}, {"offset": 0.0})


def test_a_personalisation_may_take_fifty_runs_per_parameter(linear_problem, walks):
    three = replace(
        linear_problem,
        parameters=(*linear_problem.parameters, Parameter("k", "k", "", -1.0, 1.0, 0.0, 0.01)),
    )
    longer = replace(walks, x=np.concatenate([walks.x, 0.0 * walks.x[..., :1]], axis=-1))
    for problem, train in ((linear_problem, walks), (three, longer)):
        allowed = 50 * problem.n_parameters
        starts = problem.default[np.newaxis]
        for agent in (Vito.learn(problem, train, 40), ContinuousVito.learn(problem, train)):
            assert agent.personalize(FAR).n_runs == allowed
            assert agent.personalize_from(FAR, starts)[0].n_runs == allowed
        optimiser = LeastSquares(problem, multistart=True)
        assert optimiser.personalize(FAR).n_runs == allowed
        assert optimiser.personalize_from(FAR, starts)[0].n_runs == allowed
    with pytest.raises(ValueError, match="max_runs is 0, expected at least 1"):
        BobyqaSimple(linear_problem).personalize(FAR, max_runs=0)
