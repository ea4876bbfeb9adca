"""Methods that are validated: each acts by its name and starts where it is said to."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from extras import AGENTS_HERE
from part_store import Memory

from vitolab import validation
from vitolab.methods import learns_states


@pytest.fixture(scope="module")
def all_agents(linear_problem, linear_patients):
    run = Memory()
    validation.leave_one_out(
        run,
        {"linear": linear_problem},
        linear_patients[:4],
        n_states={"linear": [30]},
        n_samples={"linear": [2, 200]},
        methods=AGENTS_HERE,
        n_replays=2,
    )
    return run


def test_agents_act_by_name_and_do_not_feel_each_other(all_agents, linear_problem, linear_patients):
    table, traces = all_agents.tables()
    assert table.groupby("method").size().to_dict() == dict.fromkeys(AGENTS_HERE, 4 * 2)
    continuous = table.method == "vito-continuous"
    without = ~table.method.map(learns_states)
    assert table.n_states.isna().equals(without)
    assert table.n_states_used.isna().equals(without)
    assert table[continuous].solved.all()
    expected = traces[traces.method == "vito-continuous"]["e:u"]
    assert expected.notna().all()
    assert traces[traces.method.map(learns_states)]["e:u"].isna().all()
    for methods in (("vito-continuous",), ("vito-deterministic",), ("vito", "vito-deterministic")):
        run = Memory()
        validation.leave_one_out(
            run,
            {"linear": linear_problem},
            linear_patients[:4],
            n_states={"linear": [30]},
            n_samples={"linear": [2, 200]},
            methods=methods,
            n_replays=7,
        )
        own, key = run.tables()[0], ["method", "n_samples", "patient"]
        expected = table[table.method.isin(methods)]
        own, expected = (t.sort_values(key, ignore_index=True) for t in (own, expected))
        pd.testing.assert_frame_equal(own, expected, check_exact=True)
        # parts of one of two that learn together are not taken for those of both
        assert set(run.parts) <= set(all_agents.parts) or methods == ("vito-deterministic",)


def test_an_agent_without_states_needs_no_numbers_of_them(linear_problem, linear_patients):
    run, problems = Memory(), {"linear": linear_problem}
    settings = {"n_samples": {"linear": [2]}, "methods": ["vito-continuous"]}
    validation.leave_one_out(run, problems, linear_patients[:3], **settings)
    validation.leave_one_out(run, problems, linear_patients[:3], episode=1, **settings)
    long, short = (pd.concat(run.parts[k][0] for k in run.computed[i : i + 3]) for i in (0, 3))
    assert len(run.computed) == 6
    assert not np.array_equal(long["x:a"], short["x:a"])
    both = Memory()
    by_method = {"vito-continuous": 1}
    settings |= {"methods": ["vito", "vito-continuous"], "n_states": {"linear": [10]}}
    validation.leave_one_out(both, problems, linear_patients[:3], episode=by_method, **settings)
    assert set(run.computed[3:]) < set(both.computed)
    with pytest.raises(ValueError, match="vito-hindsight: n_states is missing"):
        validation.leave_one_out(
            run, problems, linear_patients, n_samples={"linear": [2]}, methods=["vito-hindsight"]
        )
    for methods in ([], ["vito", "bobyqa-simple"]):
        with pytest.raises(ValueError, match="expected some of vito, vito-deterministic"):
            validation.leave_one_out(
                run, problems, linear_patients, n_samples={"linear": [2]}, methods=methods
            )


def test_agents_start_where_the_grid_says(linear_problem, linear_patients):
    run, starts = Memory(), np.array([[0.0, 0.0], [4.0, -4.0]])
    validation.grid(
        run,
        {"g": linear_problem, "h": linear_problem},
        linear_patients[:3],
        starts,
        restarts={"g": [True], "h": [False]},
        n_states=30,
        n_samples=20,
        max_runs=30,
        agents=["vito-hindsight", "vito-continuous"],
        episode=1,
    )
    table, traces = run.tables()
    assert table.groupby(["setup", "method"]).size().to_dict() == {
        ("g, restart", "vito-hindsight"): 6,
        ("g, restart", "vito-continuous"): 6,
        ("h", "vito-hindsight"): 6,
    }
    first = traces[traces.iteration == 0]
    assert np.array_equal(first[["x:a", "x:b"]], starts[first.start.astype(int)])
    assert table[table.method == "vito-continuous"].solved.all()
    with pytest.raises(ValueError, match=r"agents are \['least-squares'\]"):
        validation.grid(
            run,
            {"g": linear_problem},
            linear_patients,
            starts,
            restarts={"g": [True]},
            n_states=30,
            n_samples=20,
            max_runs=30,
            agents=["least-squares"],
        )


def _grid(problem, patients, **changes):
    """Personalisations of a small grid; names of its parts."""
    run, starts = Memory(), np.array([[0.0, 0.0], [4.0, -4.0]])
    sizes = {"n_states": 30, "n_samples": 20, "max_runs": 5}
    restarts = {"g": [False, True]}
    validation.grid(run, {"g": problem}, patients, starts, restarts=restarts, **sizes | changes)
    table = run.tables()[0].sort_values(["setup", "patient", "start"], ignore_index=True)
    return table, set(run.parts)


def test_functions_that_are_not_evaluated_are_still_learned_from(linear_problem, linear_patients):
    patients = linear_patients[:4]
    whole, parts = _grid(linear_problem, patients)
    some, kept = _grid(linear_problem, patients, evaluated=patients[1:3])
    assert kept < parts  # the same parts: a run may add functions later
    names = [p.name for p in patients[1:3]]
    expected = whole[whole["patient"].isin(names)].reset_index(drop=True)
    pd.testing.assert_frame_equal(some, expected)
    with pytest.raises(ValueError, match=r"evaluated holds 'P5', expected names of the 4 patients"):
        _grid(linear_problem, patients, evaluated=[linear_patients[5]])


def test_with_restarts_more_runs_extend_the_same_walks(linear_problem, linear_patients):
    few, parts = _grid(linear_problem, linear_patients[:3], max_runs=2)
    more, others = _grid(linear_problem, linear_patients[:3], max_runs=2, max_runs_restart=40)
    assert not parts & others
    restart = more["setup"] == "g, restart"
    assert more.loc[restart, "max_runs"].eq(40).all()
    assert more.loc[~restart, "max_runs"].eq(2).all()
    pd.testing.assert_frame_equal(few[~restart], more[~restart])
    in_time = more["solved"] & (more["n_runs"] <= 2)
    assert (few["solved"] == in_time)[restart].all()
    assert more.loc[restart, "solved"].sum() > few.loc[restart, "solved"].sum()


@pytest.mark.parametrize("changes", [{"epsilon": 0.5}, {"recurrences": 2}])
def test_how_vito_acts_is_part_of_the_key_where_it_is_not_the_papers(
    linear_problem, linear_patients, changes
):
    patients = linear_patients[:3]
    _, plain = _grid(linear_problem, patients)
    _, same = _grid(linear_problem, patients, epsilon=0.8, recurrences=1)
    _, other = _grid(linear_problem, patients, **changes)
    assert plain == same
    assert not plain & other
    sizes = {"n_states": {"g": [30]}, "n_samples": {"g": [20]}}
    runs = [Memory() for _ in range(2)]
    methods = ["vito", "vito-continuous"]
    for run, acting in zip(runs, ({}, changes), strict=True):
        validation.leave_one_out(
            run, {"g": linear_problem}, patients, methods=methods, **sizes, **acting
        )
    shared = set(runs[0].parts) & set(runs[1].parts)
    assert len(shared) == 3  # those of the agent without states, which has none of these
    assert {runs[0].parts[key][0]["method"].iloc[0] for key in shared} == {"vito-continuous"}


def test_data_driven_starts_are_the_first_runs_of_vito(linear_problem, linear_patients):
    problems, patients = {"linear": linear_problem}, linear_patients[:4]
    options = {"n_states": {"linear": [30]}, "n_repeats": 2, "seed": 3}
    run, alone = Memory(), Memory()
    validation.leave_one_out(run, problems, patients, n_samples={"linear": [200]}, **options)
    sizes = {"linear": [1, 200]}
    validation.initial_errors(alone, problems, patients, n_samples=sizes, **options)
    table = alone.tables()[0]
    assert len(table) == 4 * 2 * 2
    assert set(table.method) == {"vito-initial"}
    assert (table.n_runs == 1).all()
    traces = run.tables()[1]
    first = traces[(traces.method == "vito") & (traces.iteration == 0)].set_index("patient")
    known = table[(table.n_samples == 200) & (table.repeat == 1)].set_index("patient")
    for a, b in (("x:a", "x:a"), ("x:b", "x:b"), ("misfit:u", "c:u"), ("misfit:w", "c:w")):
        np.testing.assert_allclose(known[a], first.loc[known.index, b], atol=1e-9)


def test_fixed_points_are_first_runs_of_the_references(linear_problem, linear_patients):
    problems, patients = {"linear": linear_problem}, linear_patients[:3]
    starts = validation.reference_starts(linear_problem, 2, seed=5)
    fixed, references = Memory(), Memory()
    named = {"fixed": starts[1], "fixed-default": starts[0]}
    validation.fixed_errors(fixed, problems, patients, named, seed=5)
    validation.reference_runs(
        references, problems, patients, methods=["least-squares"], n_starts=2, max_runs=1, seed=5
    )
    table, expected = fixed.tables()[0], references.tables()[0]
    assert table.start.isna().all()
    expected["method"] = expected.start.map({1: "fixed", 0: "fixed-default"})
    table, expected = (
        rows.drop(columns="start").sort_values(["patient", "method"], ignore_index=True)
        for rows in (table, expected)
    )
    pd.testing.assert_frame_equal(table, expected)
    np.testing.assert_allclose(table[["x:a", "x:b"]][:2], starts[::-1])


def test_a_fixed_point_of_another_problem_is_refused(linear_problem, linear_patients):
    with pytest.raises(ValueError, match=r"start 'fixed' has shape \(3,\), expected \(2,\)"):
        validation.fixed_errors(
            Memory(), {"linear": linear_problem}, linear_patients, {"fixed": np.zeros(3)}
        )


def test_who_lacks_a_measurement_has_first_runs_too(linear_problem, linear_patients):
    """Personalised on the others, as in the studies beside which these runs are shown."""
    lacking = replace(linear_patients[0], measurements={"u": linear_patients[0].measurements["u"]})
    problems, patients = {"linear": linear_problem}, [lacking, *linear_patients[1:4]]
    runs = {kind: Memory() for kind in ("initial", "fixed", "grid")}
    sizes = {"n_states": {"linear": [10]}, "n_samples": {"linear": [100]}}
    validation.initial_errors(runs["initial"], problems, patients, **sizes)
    validation.fixed_errors(runs["fixed"], problems, patients, {"fixed": np.zeros(2)})
    validation.grid(
        runs["grid"],
        problems,
        patients,
        np.zeros((1, 2)),
        restarts={"linear": [False]},
        n_states=10,
        n_samples=100,
        max_runs=3,
        agents=["vito", "vito-continuous"],
        methods=["least-squares"],
    )
    for kind, run in runs.items():
        rows = run.tables()[0]
        own = rows[rows["patient"] == lacking.name]
        assert len(own) == len(rows) / 4, kind
        assert own["misfit:w"].isna().all(), kind
        assert own["misfit:u"].notna().all(), kind
        assert rows.loc[rows["patient"] != lacking.name, "misfit:w"].notna().all(), kind
    sizes = {"n_states": {"linear": [10]}, "n_samples": {"linear": [100]}}
    whole = Memory()
    validation.leave_one_out(whole, problems, patients, **sizes, methods=["vito"], max_runs=1)
    first = whole.tables()[0].set_index("patient")["misfit:u"]
    initial = runs["initial"].tables()[0].set_index("patient")["misfit:u"]
    pd.testing.assert_series_equal(initial, first)
