"""Covariances that the agent with continuous actions learns once, and uses for many patients."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import vitolab.agent.knowledge
from vitolab.agent import ContinuousVito
from vitolab.agent.covariance import Covariance
from vitolab.agent.knowledge import N_SMALL, Knowledge
from vitolab.experience import Experience
from vitolab.exploration import explore
from vitolab.problem import Objective, Parameter, Patient, Problem


def turning(x, patient):
    """One output and one angle, of which a feature of the patient is part."""
    a, b = x.T
    load = patient.data["load"]
    return np.column_stack([a**3 / 20 + b + load, (170.0 + 9.0 * b - 5.0 * a + load) % 360.0])


PROBLEM = Problem(
    "turning",
    "1",
    tuple(Parameter(name, name, "", -5.0, 5.0, 0.0, 0.01) for name in "ab"),
    (Objective("u", "u", "", 0.2), Objective("angle", "angle", "°", 5.0, "angle")),
    turning,
    features=("load",),
)


def patients(n=16):
    rng = np.random.default_rng(7)
    found = []
    for i in range(n):
        patient = Patient(f"C{i}", {"u": 0.0, "angle": 0.0}, {"load": float(rng.normal())})
        u, angle = turning(rng.uniform(-4.0, 4.0, (1, 2)), patient)[0]
        found.append(replace(patient, measurements={"u": float(u), "angle": float(angle)}))
    return found


@pytest.fixture
def learned(monkeypatch):
    """Numbers of runs from which covariances were learned, in their order."""
    numbers, learn = [], Covariance.learn

    def counted(a, group, y):
        numbers.append(len(a))
        return learn(a, group, y)

    monkeypatch.setattr(Covariance, "learn", counted)
    monkeypatch.setattr(vitolab.agent.knowledge, "_LEARNED", {})
    return numbers


def agent_of(n_runs):
    """An agent with so many stored runs, of ten patients."""
    walks = explore(PROBLEM, patients()[:10], n_episodes=n_runs // 20, n_steps=1, seed=0)
    agent = ContinuousVito.learn(PROBLEM, walks)
    assert len(agent.experience.u) == n_runs
    return agent


def test_covariances_are_handed_on_from_patient_to_patient(learned):
    agent = agent_of(120)  # a hundred count until there are 125
    for patient in patients()[10:13]:
        fit = agent.personalize(patient)
        assert fit.solved
        agent = agent.update([(patient, fit)])
    assert 120 < len(agent.experience.u) < 125
    assert learned == [100]


def test_covariances_are_learned_again_when_runs_are_a_quarter_more(learned):
    runs = agent_of(160).experience
    for n in (N_SMALL, 79, 80, 99, 100, 124, 125):
        assert Knowledge(runs.first(n)).covariance is not None
    assert learned == [64, 80, 100, 125]


def test_patients_of_a_round_share_covariances(learned):
    runs = agent_of(60).experience
    for patient in patients()[10:12]:
        known = runs.observing(PROBLEM.observed(patient))
        ContinuousVito.learn(PROBLEM, known).personalize(patient, max_runs=2)
    assert learned == [60]


def test_threads_that_need_the_same_covariances_learn_them_once(learned):
    runs = [agent_of(120).experience.observing(PROBLEM) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda each: Knowledge(each).covariance, runs))
    assert learned == [100]
    assert all(each is found[0] for each in found)


def test_a_centre_of_angles_that_moves_changes_no_bit_of_the_runs_before(learned):
    runs = agent_of(120).experience
    more = replace(runs, y=np.where(np.arange(120)[:, np.newaxis] < 110, runs.y, runs.y[:1] + 0.1))
    assert runs.centre[1] != more.centre[1]
    assert np.array_equal(runs.unwrapped(runs.y[:100]), more.unwrapped(runs.y[:100]))
    assert Knowledge(runs).covariance is Knowledge(more).covariance
    assert learned == [100]


def test_other_features_or_outputs_are_learned_from_again(learned):
    runs = agent_of(60).experience
    base = Knowledge(runs).covariance
    for other in (replace(runs, known=runs.known**3), replace(runs, y=runs.y**3)):
        assert not np.array_equal(Knowledge(other).covariance.length, base.length)
    assert learned == [60, 60, 60]


def test_an_error_while_covariances_are_learned_is_not_kept(monkeypatch, learned):
    runs = agent_of(60).experience
    with monkeypatch.context() as broken:
        broken.setattr(Covariance, "learn", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Knowledge(runs).covariance  # noqa: B018
    assert Knowledge(runs).covariance is not None
    assert learned == [60]


def test_covariances_are_the_same_in_whatever_portions_many_runs_came():
    """Beyond the first 64 runs, with a feature and an angle near the jump."""
    cohort = patients(14)
    agent, fits = agent_of(60), []
    for patient in cohort[10:]:
        fits.append((patient, agent.personalize(patient, max_runs=20)))
        agent = agent.update(fits[-1:])
    for other in (agent_of(60).update(fits), agent_of(60).update(fits[:1]).update(fits[1:])):
        assert other == agent
        mine, its = agent.knowledge, other.knowledge
        for name in ("inputs", "outputs"):
            assert np.array_equal(getattr(mine, name), getattr(its, name))
        assert np.array_equal(mine.covariance.length, its.covariance.length)


def test_what_many_runs_add_is_in_the_units_of_the_covariances():
    """Features in the standard deviations of the patients of the first runs."""
    runs = agent_of(120).experience
    known = Knowledge(runs)
    assert isinstance(known.base, Experience)
    assert len(known.base.u) == 100
    assert np.array_equal(known.inputs[:100], known.base.inputs)
    late = known.experience.patient >= len(known.base.known)
    assert late.any()
    loads = known.base.known[:, 0]
    expected = (runs.known[runs.patient[late], 0] - loads.mean()) / loads.std()
    np.testing.assert_allclose(known.inputs[late, 2], expected)
