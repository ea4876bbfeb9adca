"""Methods that learn from one patient after the other: all begin by the same rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from extras import AGENTS_HERE

from vitolab.experience import Experience
from vitolab.fit import Event
from vitolab.methods import AGENTS, METHODS
from vitolab.problem import Patient
from vitolab.scale import N_FIRST
from vitolab.validation import continuing
from vitolab.validation.continuing import Continuing, can_continue

CONTINUING = [name for name in AGENTS if can_continue(name)]
#: Out of reach of the linear problem.
FAR = Patient("far", {"u": 90.0, "w": -90.0}, {"offset": 0.0})


def solved_at_once(problem, patient: Patient) -> Patient:
    """The same patient, measured where the default values lead."""
    y = problem.simulate(problem.default[np.newaxis], patient)[0]
    names = (o.name for o in problem.objectives)
    return replace(patient, measurements=dict(zip(names, y.tolist(), strict=True)))


@pytest.mark.parametrize("name", [name for name in CONTINUING if name in AGENTS_HERE])
def test_a_method_begins_with_ten_runs_whatever_the_first_patient_took(
    name, linear_problem, linear_patients, monkeypatch
):
    """One stored run is too few: the runs that are missing are spread over the domain."""
    learned_from: list[int] = []
    learn = continuing.learn

    def noted(methods, problem, runs, *rest):
        learned_from.append(len(runs.u))
        return learn(methods, problem, runs, *rest)

    monkeypatch.setattr(continuing, "learn", noted)
    easy = solved_at_once(linear_problem, linear_patients[0])
    method = Continuing(linear_problem, name, Experience.none(linear_problem))
    first = method.personalize(easy)
    assert (first.solved, first.n_runs) == (True, 1)
    then = method.after([(easy, first)]).personalize(FAR, 15)
    assert then.n_runs == 15
    np.testing.assert_array_equal(then.trace.x[0], linear_problem.default)
    begun = then.trace.x[: N_FIRST - 1]
    assert (then.trace.event[1 : N_FIRST - 1] == Event.RESTART).all()
    assert (np.ptp(begun, axis=0) > 5.0).all()  # of a domain 10 wide
    if not METHODS[name].begins:  # which begins by itself
        assert learned_from == [N_FIRST]


def test_the_seed_of_a_learning_is_that_of_its_runs(linear_problem, linear_patients, monkeypatch):
    """Not of how many patients came before."""
    seeds: list[int] = []
    found: list[int] = []
    learn = continuing.learn

    def noted(methods, problem, runs, seed, settings):
        seeds.append(seed)
        return learn(methods, problem, runs, seed, settings)

    monkeypatch.setattr(continuing, "learn", noted)
    nothing = Continuing(linear_problem, "quadratic", Experience.none(linear_problem))
    for patient in (linear_patients[0], linear_patients[1], linear_patients[0]):
        taught = nothing.after([(patient, nothing.personalize(patient))])
        assert len(taught.experience.u) >= N_FIRST
        seeds.clear()
        taught.personalizer(linear_patients[2])
        found.append(*seeds)
    assert found[0] == found[2] != found[1]
