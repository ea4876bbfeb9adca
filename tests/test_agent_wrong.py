"""An agent with values that no learning gives is refused, when it is saved and when it is read."""

import json
from dataclasses import replace

import numpy as np
import pytest

from vitolab.agent import ContinuousVito, Vito
from vitolab.exploration import explore


@pytest.fixture(scope="module")
def agents(linear_problem, linear_patients):
    walks = explore(linear_problem, linear_patients[1:5], n_episodes=4, n_steps=5, seed=0)
    return {
        Vito: Vito.learn(linear_problem, walks, 12, seed=0),
        ContinuousVito: ContinuousVito.learn(linear_problem, walks),
    }


def rewritten(folder, sums, changes):
    """Write changed arrays into the folder of an agent, with or without sums of what was stored."""
    with np.load(folder / "arrays.npz") as stored:
        arrays = {key: stored[key] for key in stored.files}
    for name, change in changes.items():
        arrays[name] = change(arrays[name])
    np.savez(folder / "arrays.npz", **arrays)
    if not sums:
        (file,) = folder.glob("*.json")
        told = json.loads(file.read_text())
        del told["sha256"]
        file.write_text(json.dumps(told))


def put(value, at=-1):
    def change(array):
        array = array.copy()
        array.flat[at] = value
        return array

    return change


IMPOSSIBLE = [
    *((ContinuousVito, "u", put(v)) for v in (-0.2, 1.3, 1e308, np.nan)),
    *((ContinuousVito, "y", put(v)) for v in (1e308, -1e200)),
    *((ContinuousVito, "patient", put(v)) for v in (-1, 10**6)),
    (Vito, "policy/residuals", put(-1e-9)),
    (Vito, "policy/residuals", lambda a: a[:0]),
    (Vito, "mdp/counts", put(0)),
    (Vito, "mdp/counts", put(2**62)),
    (Vito, "states/centroids", put(0.3, at=0)),
    (Vito, "states/centroids", put(1e308)),
    (Vito, "initializer/x", put(1e6)),
    (Vito, "initializer/y", put(1e308)),
    (Vito, "initializer/centroids", put(-1e300)),
    (Vito, "policy/q", put(-0.5)),
    (Vito, "policy/v", put(-0.5)),
    (Vito, "policy/q", lambda a: a[:, ::-1]),
]


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    IMPOSSIBLE,
    ids=[f"{n}-{i}" for i, (_, n, _) in enumerate(IMPOSSIBLE)],
)
def test_values_that_no_learning_gives_are_refused(
    agents, kind, name, change, linear_problem, tmp_path
):
    agents[kind].save(tmp_path / "wrong")
    rewritten(tmp_path / "wrong", False, {name: change})
    with pytest.raises(ValueError, match=rf"wrong/arrays\.npz: .*{name}"):
        kind.load(tmp_path / "wrong", linear_problem)


@pytest.mark.parametrize("kind", [Vito, ContinuousVito])
def test_no_array_can_be_changed_without_notice(agents, kind, linear_problem, tmp_path):
    agents[kind].save(tmp_path / "whole")
    rng = np.random.default_rng(0)
    with np.load(tmp_path / "whole" / "arrays.npz") as stored:
        names = stored.files
        sizes = {name: stored[name].size for name in names}
    assert kind.load(tmp_path / "whole", linear_problem)
    changed = [name for name in names if sizes[name] for _ in range(5)]
    for i, name in enumerate(changed):
        folder = tmp_path / f"wrong{i}"
        agents[kind].save(folder)

        def slightly(array):
            at = int(rng.integers(array.size))
            if array.dtype.kind == "U":
                return np.char.add(array, "x")
            if array.dtype.kind == "b":
                return ~array
            return put(array.flat[at] + 1, at)(array)

        def cut(array):
            return array[: len(array) // 2] if array.ndim else ~array

        rewritten(folder, True, {name: (slightly, cut)[i % 2]})
        with pytest.raises(ValueError, match=rf"wrong{i}/arrays\.npz: {name} is not the array"):
            kind.load(folder, linear_problem)


@pytest.mark.parametrize("kind", [Vito, ContinuousVito])
def test_an_agent_stored_without_sums_is_read(agents, kind, linear_problem, tmp_path):
    agents[kind].save(tmp_path / "old")
    rewritten(tmp_path / "old", False, {})
    assert kind.load(tmp_path / "old", linear_problem) == agents[kind]


def test_what_could_not_be_read_is_not_saved(agents, tmp_path):
    vito, continuous = agents[Vito], agents[ContinuousVito]
    bad = (
        replace(vito, policy=replace(vito.policy, q=put(np.nan)(vito.policy.q))),
        replace(vito, policy=replace(vito.policy, epsilon=np.nan)),
        replace(vito, states=replace(vito.states, centroids=put(np.inf)(vito.states.centroids))),
        replace(
            continuous,
            experience=replace(continuous.experience, y=put(np.nan)(continuous.experience.y)),
        ),
        replace(
            continuous,
            experience=replace(continuous.experience, u=put(2.0)(continuous.experience.u)),
        ),
    )
    for agent in bad:
        with pytest.raises(ValueError, match=r"the agent is not saved: .*, expected"):
            agent.save(tmp_path / "agent")
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [Vito, ContinuousVito])
def test_a_folder_that_is_no_such_agent_is_named(agents, kind, linear_problem, tmp_path):
    with pytest.raises(FileNotFoundError, match="absent: there is no such folder, expected"):
        kind.load(tmp_path / "absent", linear_problem)
    other = ContinuousVito if kind is Vito else Vito
    agents[other].save(tmp_path / "other")
    with pytest.raises(ValueError, match=r"other: the JSON file is \w+\.json, expected \w+\.json"):
        kind.load(tmp_path / "other", linear_problem)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty: the JSON file is none, expected \w+\.json"):
        kind.load(tmp_path / "empty", linear_problem)
    agents[kind].save(tmp_path / "half")
    (tmp_path / "half" / "arrays.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"arrays\.npz: there is no such file"):
        kind.load(tmp_path / "half", linear_problem)
