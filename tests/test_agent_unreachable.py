"""Patients whose measurements the model cannot reach: ended early, with what contradicts what."""

from dataclasses import replace

import numpy as np
import pytest
from test_agent_emulator import cubic_patients, cubic_problem

from vitolab import Settings
from vitolab.agent import ContinuousVito
from vitolab.exploration import explore
from vitolab.fit import Fit, StopReason
from vitolab.problem import Objective


def three(x, patient):
    """Three outputs of two parameters: the third is the sum of the others."""
    a, b = x.T
    u, w = a + 0.1 * b**2 + patient.data["load"], b - 0.4 * a
    return np.column_stack([u, w, u + w])


@pytest.fixture(scope="module")
def contradicted():
    """Problem, walks, and patients of whom the first has a sum that is wrong by three."""
    problem = replace(
        cubic_problem(three),
        name="sum",
        objectives=tuple(Objective(n, n.upper(), "mL", 0.2) for n in ("u", "w", "s")),
    )
    rng, patients = np.random.default_rng(9), []
    for patient in cubic_patients(6):
        y = three(rng.uniform(-3.0, 3.0, (1, 2)), patient)[0]
        patients.append(
            replace(patient, measurements=dict(zip(("u", "w", "s"), map(float, y), strict=True)))
        )
    wrong = dict(patients[0].measurements)
    wrong["s"] += 3.0
    patients[0] = replace(patients[0], measurements=wrong)
    return problem, explore(problem, patients[1:], n_episodes=10, n_steps=1, seed=0), patients


def test_a_contradiction_ends_early_and_is_named(contradicted):
    problem, walks, patients = contradicted
    fit = ContinuousVito.learn(problem, walks, give_up=1e-3).personalize(patients[0])
    assert fit.stop_reason is StopReason.UNREACHABLE
    assert not fit.solved
    assert fit.n_runs <= 10
    assert "No parameters are expected to meet all measurements (chance below 1e-" in fit.note
    assert "S by -1 mL (tolerance 0.2)" in fit.note
    # by least squares, each of the three takes a third of the contradiction
    np.testing.assert_allclose(np.abs(fit.misfits), 1.0, atol=0.1)


def test_without_the_rule_all_runs_are_used(contradicted):
    problem, walks, patients = contradicted
    fit = ContinuousVito.learn(problem, walks).personalize(patients[0], max_runs=25)
    assert fit.stop_reason is StopReason.BUDGET
    assert fit.n_runs == 25
    assert fit.note == ""


def test_solvable_patients_are_not_given_up(contradicted):
    problem, walks, patients = contradicted
    for give_up in (0.0, 1e-3):
        for patient in patients[1:]:
            train = walks.without(patient.name)
            agent = ContinuousVito.learn(problem, train, settings=Settings(give_up=give_up))
            assert agent.personalize(patient).solved


def test_the_note_is_kept_with_the_fit_and_the_rule_with_the_agent(contradicted, tmp_path):
    problem, walks, patients = contradicted
    agent = ContinuousVito.learn(problem, walks, give_up=1e-3)
    fit = agent.personalize(patients[0])
    fit.save(tmp_path / "fit.npz")
    assert Fit.load(tmp_path / "fit.npz").note == fit.note
    assert "unreachable: No parameters are expected" in repr(fit)
    agent.save(tmp_path / "agent")
    loaded = ContinuousVito.load(tmp_path / "agent", problem)
    assert loaded.give_up == 1e-3
    assert loaded.personalize(patients[0]).note == fit.note


@pytest.mark.parametrize("give_up", [-0.1, 1.0, 7.0])
def test_a_chance_is_a_share(contradicted, give_up):
    problem, walks, _ = contradicted
    with pytest.raises(ValueError, match=r"give_up is .*, expected from 0 to below 1"):
        ContinuousVito.learn(problem, walks, give_up=give_up)


def test_agents_of_earlier_versions_are_refused_with_what_to_do(contradicted, tmp_path):
    problem, walks, _ = contradicted
    agent = ContinuousVito.learn(problem, walks)
    agent.save(tmp_path / "agent")
    arrays = dict(np.load(tmp_path / "agent" / "arrays.npz"))
    arrays["variation"] = np.zeros((1, 5, 3))
    np.savez(tmp_path / "agent" / "arrays.npz", **arrays)
    description = (tmp_path / "agent" / "continuous.json").read_text()
    (tmp_path / "agent" / "continuous.json").write_text(description.replace("sha256", "was"))
    with pytest.raises(ValueError, match=r"saved by an earlier version, .*; learn it again"):
        ContinuousVito.load(tmp_path / "agent", problem)
