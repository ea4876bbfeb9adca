"""A damaged agent is refused when it is read, never later."""

import json
import shutil

import numpy as np
import pytest

from vitolab.agent import ContinuousVito, Vito
from vitolab.exploration import explore


def hurt_array(rng, array):
    """Another shape, type, or value that cannot be."""
    how = rng.integers(6)
    if array.dtype.kind == "U":  # text may be anything, but not be missing
        return array[: len(array) - 1] if how < 3 else np.zeros(len(array))
    if how == 0:
        return array[..., np.newaxis]
    if how == 1:
        return array.astype(complex)
    if how == 2:
        return np.array([None, {}], dtype=object)
    if how == 3:
        return array.astype(str)
    if how == 4 and array.dtype.kind == "f" and array.size:
        hurt = array.copy()
        hurt.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf])
        return hurt
    if array.dtype.kind == "i" and array.size:
        hurt = array.copy()
        hurt.flat[rng.integers(array.size)] = rng.choice([-(10**6), 10**6 + 1])
        return hurt
    return array.astype(np.uint8)


def damage(rng, folder, name):
    how = rng.integers(6)
    file = folder / "arrays.npz"
    if how == 0:
        target = [file, folder / name][rng.integers(2)]
        content = target.read_bytes()
        target.write_bytes(content[: rng.integers(len(content) - 1)])
        return
    if how == 1:
        told = json.loads((folder / name).read_text())
        key = rng.choice(sorted(told))
        told[key] = [None, "x", [[]], {"a": 1}][rng.integers(4)]
        (folder / name).write_text(json.dumps(told))
        return
    with np.load(file) as stored:
        arrays = {key: stored[key] for key in stored.files}
    key = rng.choice(sorted(arrays))
    if how == 2:
        del arrays[key]
    elif how == 3:
        arrays["further"] = np.zeros(3)
    else:
        arrays[key] = hurt_array(rng, arrays[key])
    np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("kind", "name"), [(Vito, "vito.json"), (ContinuousVito, "continuous.json")]
)
def test_a_damaged_agent_is_refused_when_it_is_read(
    kind, name, linear_problem, linear_patients, tmp_path
):
    walks = explore(linear_problem, linear_patients[1:5], n_episodes=4, n_steps=5, seed=0)
    sizes = (12,) if kind is Vito else ()
    agent = kind.learn(linear_problem, walks, *sizes, seed=0)
    agent.save(tmp_path / "whole")
    one, other = (
        a.personalize(linear_patients[0], max_runs=10, seed=0)
        for a in (agent, kind.load(tmp_path / "whole", linear_problem))
    )
    assert np.array_equal(one.trace.x, other.trace.x)
    rng = np.random.default_rng(1)
    for _ in range(250):
        shutil.copytree(tmp_path / "whole", tmp_path / "hurt")
        damage(rng, tmp_path / "hurt", name)
        with pytest.raises(ValueError, match="hurt"):
            kind.load(tmp_path / "hurt", linear_problem)
        shutil.rmtree(tmp_path / "hurt")
