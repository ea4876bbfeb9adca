import numpy as np
import pandas as pd
import pytest
from extras import AGENTS_HERE
from joblib import parallel_config
from part_store import Memory

from vitolab import validation
from vitolab.agent import ContinuousVito, Vito
from vitolab.exploration import explore
from vitolab.problem import Patient
from vitolab.store import tables


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
    """By any agent: ``vito`` from either start, its hindsight, and the continuous one."""
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
            agents=["vito", "vito-nearest", "vito-hindsight", "vito-continuous"],
        )
    else:
        validation.leave_one_out(
            run,
            {"p": linear_problem},
            patients,
            n_states={"p": [20]},
            n_samples={"p": [100]},
            methods=AGENTS_HERE,
        )
    names = {p.name for p in patients}
    expected = [names - {p.name} for p in patients]
    assert sorted(map(sorted, learned)) == sorted(map(sorted, 4 * expected))


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
        ("linear", "bobyqa-simple-ratio"): 10,
        ("linear", "nelder-mead-default"): 5,  # nothing is random about these two
        ("linear", "bobyqa-simple-default"): 5,
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
