"""The policy of all patients is kept beside the personalisations, which do not depend on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vitolab import validation
from vitolab.exploration import explore
from vitolab.methods import POLICY
from vitolab.settings import Settings
from vitolab.store.columns import check_arrays
from vitolab.store.policies import knowledge_arrays, read_knowledge
from vitolab.validation import policies

SIZES = {"n_states": {"one": 40, "two": 40}, "n_samples": {"one": 200, "two": 200}}


def test_a_policy_that_cannot_be_learned_is_missing_and_told(
    linear_problem, linear_patients, monkeypatch, capsys
):
    learn = policies.Vito.learn

    def failing(problem, *args, **kwargs):
        if problem.name == "other":
            raise np.linalg.LinAlgError("SVD did not converge")
        return learn(problem, *args, **kwargs)

    monkeypatch.setattr(policies.Vito, "learn", failing)
    problems = {"one": replace(linear_problem, name="other"), "two": linear_problem}
    arrays = validation.policy_arrays(problems, linear_patients, **SIZES)
    assert {name.partition("/")[0] for name in arrays} == {"two"}
    said = capsys.readouterr().err
    assert said.startswith("one: no policy of all patients is kept: LinAlgError: SVD did not con")
    assert said.count("\n") == 1


def test_an_error_of_the_machine_is_no_missing_policy(linear_problem, linear_patients, monkeypatch):
    def failing(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(policies.Vito, "learn", failing)
    with pytest.raises(MemoryError):
        validation.policy_arrays({"one": linear_problem}, linear_patients, **SIZES)


def damages(array):
    """An array as a damaged file may hold it."""
    yield np.array(array.flat[0])
    yield array[..., np.newaxis]
    yield np.full(array.shape, "x")
    yield np.full(array.shape, True)
    yield np.zeros_like(array, dtype=np.float64) + np.nan
    if array.ndim:
        yield array[:-1]
        yield array[:0]
        yield np.full_like(array, 1_000_000)


def test_a_stored_policy_that_is_damaged_is_refused_in_a_sentence(linear_problem, linear_patients):
    """Or what is damaged is not what the policy is made of."""
    walks = explore(linear_problem, linear_patients, 2, seed=0)
    vito = POLICY.learn(linear_problem, walks, 0, Settings(n_states=20))
    whole = knowledge_arrays("s", vito.states, vito.policy, vito.mdp)
    n_refused = 0
    for name, array in whole.items():
        for damaged in damages(array):
            arrays, said = whole | {name: damaged}, ""
            try:
                check_arrays("arrays.npz", arrays)
                known = read_knowledge(arrays, "s", linear_problem)
                assert np.isfinite(known.policy.probabilities).all()
            except ValueError as error:
                said = str(error)
                n_refused += 1
            where = ("arrays.npz: s/", "setup s: ", "MDP: ")
            assert not said or (said.startswith(where) and "\n" not in said), (name, said)
    assert n_refused > 30
