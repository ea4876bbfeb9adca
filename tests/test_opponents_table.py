"""Opponents that own the same runs: their rows in the table of methods, and in studies."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from part_store import Parts

from vitolab import methods
from vitolab.exploration import explore
from vitolab.fit import StopReason
from vitolab.problem import Patient
from vitolab.reference import LeastSquares, opponents
from vitolab.studies import OWN, STUDIES
from vitolab.studies.base import OPPONENTS
from vitolab.trajectories import Trajectories
from vitolab.validation import grid, leave_one_out

#: Out of reach of the linear problem.
FAR = Patient("far", {"u": 90.0, "w": -90.0}, {"offset": 0.0})


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients) -> Trajectories:
    return explore(linear_problem, linear_patients[1:], n_episodes=6, n_steps=1, seed=1)


def test_least_squares_from_the_default_values_learn_nothing(linear_problem, linear_patients):
    patient = linear_patients[0]
    fits = [
        methods.build("least-squares-default", linear_problem).personalize(patient, seed=seed)
        for seed in (0, 1)
    ]
    for fit in fits:
        np.testing.assert_array_equal(fit.trace.x[0], linear_problem.default)
        assert fit.solved
    far = LeastSquares(linear_problem, multistart=True, from_default=True).personalize(FAR)
    assert far.stop_reason is StopReason.BUDGET
    assert far.n_restarts > 1


def test_opponents_are_agents_of_the_table_without_states(linear_problem, walks):
    learned = methods.learn(OPPONENTS, linear_problem, walks, 0)
    assert list(learned) == OPPONENTS
    homes = {type(method).__name__ for method in learned.values()}
    assert homes <= set(opponents.__all__)
    assert len(homes) == len(OPPONENTS)
    assert not any(map(methods.learns_states, OPPONENTS))


def test_opponents_stand_beside_the_agents_of_every_study_that_compares_agents():
    """Of a model of the user's own the user chooses: each method costs runs of that model."""
    compared = {s.name: s for s in STUDIES if "agents" in s.profiles["paper"]}
    everywhere = {"continuous-convergence", "other-models", "wbc-12p", "prediction", "problem"}
    assert set(compared) == {*everywhere, "npe"}  # which is about one of them
    for name in sorted(everywhere):
        study = compared[name]
        if study is OWN:
            assert study.choices is not None
            assert set(OPPONENTS) <= set(study.choices["agents"])
            continue
        for profile in ("standard", "paper"):
            assert set(OPPONENTS) <= set(study.profiles[profile]["agents"]), (name, profile)
    # the start at a stored run beside the one drawn from data
    for profile in compared["continuous-convergence"].profiles.values():
        assert {"vito", "vito-nearest"} <= set(profile["agents"])


def test_every_method_has_a_color_of_its_own():
    colors = [method.color.upper() for method in methods.METHODS.values()]
    assert len(set(colors)) == len(colors)


def test_nothing_of_the_held_out_patient_is_learned(linear_problem, linear_patients):
    """Whoever is measured alike but answers otherwise when explored gets the same start."""
    patients = linear_patients[:4]
    changed = replace(patients[0], data={"offset": 3.0})

    def first(others):
        run = Parts()
        leave_one_out(
            run,
            {"s": linear_problem},
            others,
            n_samples={"s": [10]},
            methods=OPPONENTS,
            episode=1,
            max_runs=1,
        )
        rows = run.personalizations
        return rows[rows["patient"] == patients[0].name].set_index("method")[["x:a", "x:b"]]

    found = first(patients)
    assert len(found) == len(OPPONENTS)
    assert found.equals(first([changed, *patients[1:]]))
    assert found.equals(first([*patients[:0:-1], patients[0]]))  # nor does order matter


def test_training_runs_are_counted_for_those_who_learn(linear_problem, linear_patients):
    from vitolab.plots.agents import agent_table
    from vitolab.plots.methods import methods_table

    run, patients = Parts(), linear_patients[:3]
    sizes = {"n_samples": {"s": [4]}, "n_states": {"s": [5]}}
    chosen = ["vito", "quadratic"]
    leave_one_out(
        run,
        {"s": linear_problem},
        patients,
        **sizes,
        methods=chosen,
        episode={"quadratic": 1, "vito": 4},
        max_runs=5,
    )
    rows = run.personalizations
    # two others: one walk of four steps, or four walks of one step
    expected = {"vito": 2 * 5, "quadratic": 2 * 8}
    assert rows.groupby("method")["n_training_runs"].unique().map(list).to_dict() == {
        name: [n] for name, n in expected.items()
    }
    for column, table in (
        ("name", agent_table(rows)),
        ("label", methods_table([("s", rows)])),
    ):
        shown = table.set_index("method")["training runs"]
        assert shown.to_dict() == {
            (name if column == "name" else methods.label(name)): str(n)
            for name, n in expected.items()
        }
    earlier = rows.drop(columns="n_training_runs")
    assert set(agent_table(earlier)["training runs"]) == {""}


def test_opponents_start_where_a_grid_says(linear_problem, linear_patients):
    run, starts = Parts(), np.array([[0.0, 0.0], [4.0, -4.0]])
    grid(
        run,
        {"g": linear_problem},
        linear_patients[:3],
        starts,
        restarts={"g": [True]},
        n_states=5,
        n_samples=10,
        max_runs=40,
        agents=OPPONENTS,
        methods=["least-squares"],
        episode=1,
    )
    rows = run.personalizations
    assert (rows.groupby("method").size() == 6).all()
    assert rows["solved"].all()
    learned = rows["method"] != "least-squares"
    assert (rows.loc[learned, "n_training_runs"] == 2 * 20).all()
    assert rows.loc[~learned, "n_training_runs"].isna().all()
    traces = [trace for _, trace in run.parts.values()]
    for trace in traces:
        first = trace[trace["iteration"] == 0]
        np.testing.assert_allclose(first[["x:a", "x:b"]], starts[first["start"].astype(int)])


def test_learning_is_quiet(linear_problem, walks):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opponents.Gaussian.learn(linear_problem, walks)
