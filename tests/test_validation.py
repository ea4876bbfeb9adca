import math

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from vitolab import validation
from vitolab.agent import ContinuousVito, Vito
from vitolab.exploration import explore
from vitolab.methods import AGENTS, learns_states
from vitolab.problem import Patient
from vitolab.store import tables


class Memory:
    """Keeps parts in a dictionary; may refuse to go on after some of them."""

    until = math.inf

    def __init__(self, at_most=None):
        self.parts, self.computed, self.at_most = {}, [], at_most

    def has_part(self, key):
        return key in self.parts

    def write_failures(self, key, failures):
        assert failures is None

    def write_part(self, key, personalizations, traces=None, failures=None):
        if self.at_most is not None and len(self.computed) >= self.at_most:
            raise KeyboardInterrupt
        self.computed.append(key)
        self.parts[key] = personalizations, traces

    def progress(self, stage, done, total):
        assert 0 <= done <= total

    def tables(self):
        order = sorted(self.parts)
        traces = [self.parts[k][1] for k in order if self.parts[k][1] is not None]
        table = pd.concat([self.parts[k][0] for k in order])
        return table, pd.concat(traces) if traces else None


def study(run, problem, patients, n_jobs=1, seed=0):
    problems = {"linear": problem}
    validation.leave_one_out(
        run,
        problems,
        patients,
        n_states={"linear": [30]},
        n_samples={"linear": [20, 200]},
        n_repeats=2,
        seed=seed,
        n_jobs=n_jobs,
    )
    validation.reference_runs(run, problems, patients, n_starts=2, seed=seed, n_jobs=n_jobs)
    validation.grid(
        run,
        {"grid": problem},
        patients,
        np.array([[0.0, 0.0], [4.0, -4.0]]),
        restarts={"grid": [False, True]},
        n_states=30,
        n_samples=100,
        max_runs=50,
        methods=["least-squares"],
        seed=seed,
        n_jobs=n_jobs,
    )


@pytest.fixture(scope="module")
def finished(linear_problem, linear_patients):
    run = Memory()
    study(run, linear_problem, linear_patients[:5])
    return run


def assert_equal(one, other):
    for a, b in zip(one.tables(), other.tables(), strict=True):
        pd.testing.assert_frame_equal(a, b, check_exact=True)


def test_same_bits_for_two_workers(finished, linear_problem, linear_patients):
    # in threads: worker processes could not import the model from this folder
    run = Memory()
    with parallel_config(backend="threading"):
        study(run, linear_problem, linear_patients[:5], n_jobs=2)
    assert_equal(finished, run)


def test_order_of_patients_does_not_matter(finished, linear_problem, linear_patients):
    run = Memory()
    study(run, linear_problem, linear_patients[4::-1])
    assert_equal(finished, run)


@pytest.mark.parametrize("study", ["leave_one_out", "grid"])
def test_nothing_of_the_held_out_patient_is_learned_from(
    study, linear_problem, linear_patients, monkeypatch
):
    """By any agent: ``vito``, its hindsight, and the continuous one."""
    learned = []

    def watched(kind):
        learn = kind.learn.__func__

        def spy(cls, problem, walks, *rest, **options):
            assert len(walks.x)
            learned.append(set(walks.patients))
            return learn(cls, problem, walks, *rest, **options)

        return classmethod(spy)

    for kind in (Vito, ContinuousVito):
        monkeypatch.setattr(kind, "learn", watched(kind))
    run, patients = Memory(), linear_patients[:4]
    if study == "grid":
        validation.grid(
            run,
            {"p": linear_problem},
            patients,
            np.zeros((1, 2)),
            restarts={"p": [True]},
            n_states=20,
            n_samples=100,
            max_runs=5,
            agents=["vito", "vito-hindsight", "vito-continuous"],
        )
    else:
        validation.leave_one_out(
            run,
            {"p": linear_problem},
            patients,
            n_states={"p": [20]},
            n_samples={"p": [100]},
            methods=AGENTS,
        )
    names = {p.name for p in patients}
    expected = [names - {p.name} for p in patients]
    assert sorted(map(sorted, learned)) == sorted(map(sorted, 3 * expected))


def test_the_start_of_a_patient_does_not_depend_on_its_own_walks(linear_problem, linear_patients):
    def starts(patients):
        run = Memory()
        validation.initial_errors(
            run, {"p": linear_problem}, patients, n_states={"p": [10]}, n_samples={"p": [100]}
        )
        return run.tables()[0].set_index("patient")[["x:a", "x:b"]].sort_index()

    patients = linear_patients[:4]
    before, others_differ = starts(patients), 0
    for i, held_out in enumerate(patients):
        # measured alike, but its model answers otherwise wherever it is explored
        changed = Patient(held_out.name, held_out.measurements, {"offset": 3.0})
        differs = (before != starts([*patients[:i], changed, *patients[i + 1 :]])).any(axis=1)
        assert not differs[held_out.name]
        others_differ += differs.sum()
    assert others_differ > len(patients)


def test_one_patient_cannot_be_left_out(linear_problem, linear_patients):
    with pytest.raises(ValueError, match="1 patients, expected at least 2"):
        validation.leave_one_out(
            Memory(),
            {"p": linear_problem},
            linear_patients[:1],
            n_states={"p": [20]},
            n_samples={"p": [100]},
        )


def test_an_interrupted_study_goes_on_where_it_was(finished, linear_problem, linear_patients):
    run = Memory(at_most=13)
    with pytest.raises(KeyboardInterrupt):
        study(run, linear_problem, linear_patients[:5])
    before = list(run.computed)
    run.at_most = None
    study(run, linear_problem, linear_patients[:5])
    assert run.computed[: len(before)] == before
    assert len(run.computed) == len(set(run.computed)) == len(finished.computed)
    assert_equal(finished, run)


def test_every_method_and_setting_has_a_row_for_every_patient(finished):
    table, traces = finished.tables()
    counts = table.groupby(["setup", "method"]).size().to_dict()
    assert counts == {
        ("linear", "vito"): 5 * 2 * 2,
        ("linear", "vito-deterministic"): 5 * 2 * 2,
        ("linear", "nelder-mead"): 10,
        ("linear", "nelder-mead-unweighted"): 10,
        ("linear", "nelder-mead-wide"): 10,
        ("linear", "least-squares"): 10,
        ("linear", "least-squares-multistart"): 10,
        ("linear", "least-squares-default"): 10,
        ("linear", "bobyqa-simple"): 10,
        ("grid", "vito"): 10,
        ("grid", "least-squares"): 10,
        ("grid, restart", "vito"): 10,
    }
    assert set(table.stop_reason) <= {"solved", "budget", "stalled", "failed"}
    assert table.n_samples.isna().equals(table.repeat.isna())
    # traces of the largest size in the last repeat only
    learned = traces[(traces.method == "vito-deterministic")]
    assert set(learned.n_samples) == {200}
    assert set(learned.repeat) == {1}


def test_traces_have_one_row_per_forward_run(finished):
    table, traces = finished.tables()
    keys = list(tables.KEYS)
    length = traces.groupby(keys, dropna=False).size().rename("rows").reset_index()
    joined = length.merge(table, on=keys)
    assert len(joined) == len(length)
    assert (joined.rows == joined.n_runs).all()


def test_more_samples_do_not_hurt(finished):
    table = finished.tables()[0]
    vito = table[(table.method == "vito") & table.start.isna()]
    runs = vito.groupby("n_samples").n_runs.mean()
    assert runs[200] < runs[20]


def test_the_states_used_are_recorded(linear_problem, linear_patients):
    run = Memory()
    validation.leave_one_out(
        run,
        {"linear": linear_problem},
        linear_patients[:3],
        n_states={"linear": [500]},
        n_samples={"linear": [2]},
    )
    table = run.tables()[0]
    assert (table.n_states == 500).all()
    assert (table.n_states_used < 12).all()


@pytest.fixture(scope="module")
def all_agents(linear_problem, linear_patients):
    run = Memory()
    validation.leave_one_out(
        run,
        {"linear": linear_problem},
        linear_patients[:4],
        n_states={"linear": [30]},
        n_samples={"linear": [2, 200]},
        methods=AGENTS,
        n_replays=2,
    )
    return run


def test_agents_act_by_name_and_do_not_feel_each_other(all_agents, linear_problem, linear_patients):
    table, traces = all_agents.tables()
    assert table.groupby("method").size().to_dict() == dict.fromkeys(AGENTS, 4 * 2)
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


def test_runs_allowed_are_kept_and_are_part_of_the_key(linear_problem, linear_patients):
    problems, run = {"linear": linear_problem}, Memory()
    for max_runs in (None, 2, 3):
        validation.leave_one_out(
            run,
            problems,
            linear_patients[:3],
            n_states={"linear": [20]},
            n_samples={"linear": [20]},
            max_runs=max_runs,
        )
        validation.reference_runs(
            run, problems, linear_patients[:3], methods=["nelder-mead"], max_runs=max_runs
        )
    parts = [run.parts[key][0] for key in run.computed]
    assert [part.n_runs.max() for part in parts[6:12]] == [2] * 6
    assert [part.n_runs.max() for part in parts[12:]] == [3] * 6


def test_the_policy_of_all_patients_is_kept_as_arrays(linear_problem, linear_patients):
    arrays = validation.policy_arrays(
        {"linear": linear_problem},
        linear_patients,
        n_states={"linear": 40},
        n_samples={"linear": 250},
    )
    walks = explore(linear_problem, linear_patients, 3, seed=validation.child_seed(0, "repeat", 0))
    assert arrays["linear/visits"].sum() == walks.first(250).transitions.sum() == 2500
    assert arrays["linear/q"].shape == (len(arrays["linear/centroids"]), 12)


def test_the_patients_table_holds_what_was_measured(linear_problem, linear_patients):
    truth = {p.name: {"a": 1.0, "b": 2.0} for p in linear_patients}
    table = tables.patient_table({"linear": linear_problem}, linear_patients, truth)
    assert list(table.columns) == [
        "setup",
        "patient",
        "z:u",
        "z:w",
        "data:offset",
        "truth:a",
        "truth:b",
    ]
    assert len(table) == 10


@pytest.mark.parametrize(
    ("asked", "why"),
    [({"methods": ["foo"]}, "method is 'foo', expected one of bobyqa"), ({"n_starts": 0}, "is 0")],
)
def test_reference_runs_that_cannot_be_are_refused(linear_problem, linear_patients, asked, why):
    run = Memory()
    with pytest.raises(ValueError, match=why):
        validation.reference_runs(run, {"linear": linear_problem}, linear_patients, **asked)
    assert run.parts == {}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_who_lacks_a_measurement_is_personalised_on_the_others(
    linear_problem, linear_patients, n_jobs
):
    """By agents of the same walks, from which nobody learned who lacks one."""
    last = linear_patients[-1]
    partial = Patient(last.name, {"w": last.measurements["w"]}, last.data)
    run, without = Memory(), Memory()
    sizes = {"n_samples": {"s": [60]}, "n_states": {"s": [20]}}
    methods = ["vito", "vito-continuous"]
    for store, patients in (
        (run, [*linear_patients[:-1], partial]),
        (without, linear_patients[:-1]),
    ):
        validation.leave_one_out(
            store, {"s": linear_problem}, patients, **sizes, methods=methods, n_jobs=n_jobs
        )
        validation.reference_runs(
            store, {"s": linear_problem}, patients, methods=["least-squares"], n_starts=1
        )
    rows, traces = run.tables()
    own = rows[rows["patient"] == last.name]
    assert set(own["not_measured"]) == {"u"}
    assert own["misfit:u"].isna().all()
    assert (own["misfit:w"].abs() < 0.5)[own["solved"]].all()
    assert own["solved"].sum() >= 2
    assert traces.loc[traces["patient"] == last.name, "y:u"].isna().all()
    others = rows[rows["patient"] != last.name].drop(columns="not_measured")
    alone, _ = without.tables()
    keys = ["patient", "method"]
    pd.testing.assert_frame_equal(
        others.sort_values(keys, ignore_index=True), alone.sort_values(keys, ignore_index=True)
    )
    with pytest.raises(ValueError, match="1 patients with all measurements"):
        validation.leave_one_out(
            Memory(), {"s": linear_problem}, [linear_patients[0], partial], **sizes
        )
