"""Starts of walks drawn by ratio where parameters act by ratio."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest

import vitolab
from vitolab import validation
from vitolab.exploration import explore
from vitolab.files import stream
from vitolab.saved import read_object, write_object
from vitolab.store import open_run
from vitolab.trajectories import Trajectories
from vitolab.uncertainty import Learning, Methods
from vitolab.validation import parts

ROOT = Path(vitolab.__file__).parent


def by_ratio(x, patient):
    """Linear in the logarithm of the first parameter, and in the second one."""
    a, b = np.log(x[:, 0]), x[:, 1]
    return np.stack([a + 0.4 * b, 0.8 * b - 0.3 * a], axis=1) + patient.data["offset"]


@pytest.fixture(scope="module")
def ratio(linear_problem):
    """The first parameter spans three decades, the second one is linear."""
    a, b = linear_problem.parameters
    a = replace(a, lower=0.1, upper=100.0, default=1.0, step=0.01, scale="log")
    return replace(linear_problem, name="ratio", simulate=by_ratio, parameters=(a, b))


def shares(problem, x):
    """Share of its range where the first parameter lies, by ratio."""
    lower, upper = np.log(problem.lower[0]), np.log(problem.upper[0])
    return (np.log(x) - lower) / (upper - lower)


def test_starts_are_uniform_by_ratio_only_where_the_scale_is_logarithmic(ratio, linear_patients):
    uniform = explore(ratio, linear_patients, 50, 1, seed=2)
    scaled = explore(ratio, linear_patients, 50, 1, seed=2, by_scale=True)
    assert kstest(shares(ratio, scaled.x[:, 0, 0]), "uniform").pvalue > 0.01
    assert kstest(shares(ratio, uniform.x[:, 0, 0]), "uniform").pvalue < 1e-6
    assert np.array_equal(scaled.x[:, 0, 1], uniform.x[:, 0, 1])
    assert np.array_equal(scaled.action, uniform.action)
    assert scaled.by_scale
    assert not uniform.by_scale


def test_the_papers_walks_start_uniformly(ratio, linear_patients):
    walks = explore(ratio, linear_patients[:2], 3, 4, seed=5)
    for row, (patient, episode) in enumerate((p, e) for p in linear_patients[:2] for e in range(3)):
        rng = stream("explore", "ratio", 5, patient.name, episode)
        unit = rng.random(2)
        expected = ratio.lower + unit * (ratio.upper - ratio.lower)
        assert np.array_equal(walks.x[row, 0], expected)


def test_without_logarithmic_scales_nothing_differs(linear_problem, linear_patients, tmp_path):
    uniform = explore(linear_problem, linear_patients, 4, 3, seed=1, cache=tmp_path)
    stored = sorted(tmp_path.rglob("*.npz"))
    scaled = explore(linear_problem, linear_patients, 4, 3, seed=1, cache=tmp_path, by_scale=True)
    assert uniform == scaled
    assert sorted(tmp_path.rglob("*.npz")) == stored
    assert not scaled.by_scale


def test_the_cache_keeps_both_kinds_of_walks(ratio, linear_patients, tmp_path):
    for by_scale in (False, True, False, True):
        kept = explore(ratio, linear_patients, 3, 2, cache=tmp_path, by_scale=by_scale)
        assert kept == explore(ratio, linear_patients, 3, 2, by_scale=by_scale)
    more = explore(ratio, linear_patients, 6, 2, cache=tmp_path, by_scale=True, n_jobs=2)
    assert more == explore(ratio, linear_patients, 6, 2, by_scale=True)


def test_fresh_starts_after_failed_runs_are_drawn_alike(ratio, linear_patients):
    def failing(x, patient):
        y = by_ratio(x, patient)
        y[x[:, 1] > 0.0] = np.nan
        return y

    problem = replace(ratio, simulate=failing)
    walks = explore(problem, linear_patients, 10, 40, seed=3, by_scale=True)
    fresh = walks.x[:, 1:][walks.action < 0]
    assert len(fresh) > 200
    assert kstest(shares(problem, fresh[:, 0]), "uniform").pvalue > 0.01


def test_stored_walks_tell_how_they_were_drawn(ratio, linear_patients, tmp_path):
    walks = explore(ratio, linear_patients, 2, 2, by_scale=True)
    for part in (walks.first(2), walks.without("P1"), walks.observing([0])):
        assert part.by_scale
    walks.save(tmp_path / "walks.npz")
    assert Trajectories.load(tmp_path / "walks.npz") == walks
    description, arrays = read_object(tmp_path / "walks.npz", "Trajectories")
    del description["by_scale"]
    known = {name: description[name] for name in ("patients", "causes")}
    write_object(tmp_path / "old.npz", "Trajectories", known, arrays)
    assert Trajectories.load(tmp_path / "old.npz") == replace(walks, by_scale=False)
    write_object(tmp_path / "bad.npz", "Trajectories", known | {"by_scale": 1}, arrays)
    with pytest.raises(ValueError, match="by_scale is 1, expected bool"):
        Trajectories.load(tmp_path / "bad.npz")


def test_walks_of_one_step_start_by_scale_in_every_harness(
    ratio, linear_patients, tmp_path, monkeypatch
):
    asked = set()

    def explored(problem, patients, n_episodes, n_steps, *rest, **known):
        walks = explore(problem, patients, n_episodes, n_steps, *rest, **known)
        asked.add((n_steps, walks.by_scale))
        return walks

    monkeypatch.setattr(parts, "explore", explored)
    problems, patients = {"r": ratio}, linear_patients[:3]
    expected = {(1, True), (100, False)}
    validation.leave_one_out(
        open_run("folds", {}, results=tmp_path, seed=0),
        problems,
        patients,
        n_samples={"r": [100]},
        n_states={"r": [20]},
        methods=["vito", "vito-continuous"],
        episode={"vito-continuous": 1},
        max_runs=2,
    )
    assert asked == expected
    for episode in (1, 100):
        asked.clear()
        validation.grid(
            open_run(f"grid-{episode}", {}, results=tmp_path, seed=0),
            problems,
            patients,
            ratio.default[np.newaxis],
            n_states=20,
            n_samples=100,
            restarts={"r": [True]},
            agents=["vito"],
            episode=episode,
            max_runs=2,
        )
        assert asked == {(episode, episode == 1)}
    asked.clear()
    learners = {"vito-continuous": Learning(10, n_steps=1)}
    methods = Methods(learners=learners, training=patients)
    methods._explore(open_run("uncertainty", {}, results=tmp_path, seed=0), "r", ratio, 0, 1, None)
    assert asked == {(1, True)}


def test_harnesses_explore_in_one_place():
    def explores(path):
        return "exploration import explore" in path.read_text(encoding="utf-8")

    modules = [path.relative_to(ROOT) for path in ROOT.rglob("*.py")]
    packages = [path for path in modules if path.parts[0] != "_dashboards"]  # there in a wheel
    found = {path.as_posix() for path in packages if explores(ROOT / path)}
    assert found == {"__init__.py", "validation/parts.py"}
