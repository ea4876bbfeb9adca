import json
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from vitolab.agent import ContinuousVito
from vitolab.exploration import explore
from vitolab.fit import Event, StopReason
from vitolab.models import circulation
from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.store.tables import joined_traces, trace_columns
from vitolab.validation import walks_for

FAR = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients):
    return explore(linear_problem, linear_patients, n_episodes=10, n_steps=1, seed=0)


def banana(x, patient):
    """Model that is far from linear, and fails in a corner of its domain."""
    a, b = x.T
    y = np.column_stack([a, b - a**2 + patient.data["bend"] * a])
    y[(a > 1.0) & (b > 2.6)] = np.nan
    return y


@pytest.fixture(scope="module")
def agent(linear_problem, walks):
    return ContinuousVito.learn(linear_problem, walks.without("P0"))


def fields(fit):
    trace = fit.trace
    return [trace.x, trace.y, trace.misfits, trace.event, trace.expected]


def assert_same(one, other):
    for a, b in zip(fields(one), fields(other), strict=True):
        assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize(("n_samples", "at_most"), [(10, 2), (2, 3)])
def test_a_linear_model_is_solved_in_two_runs(
    linear_problem, linear_patients, walks, n_samples, at_most
):
    """One run tells the patient's own offset; the second is right."""
    for patient in linear_patients:
        train = walks.first(n_samples).without(patient.name)
        fit = ContinuousVito.learn(linear_problem, train).personalize(patient, max_runs=20)
        assert fit.solved
        assert fit.n_runs <= at_most
        assert linear_problem.is_solved(fit.misfits)


def test_a_model_that_is_not_linear_and_fails_in_places():
    problem = Problem(
        "banana",
        "1",
        (
            Parameter("a", "a", "", -2.0, 2.0, 0.0, 0.01),
            Parameter("b", "b", "", -1.0, 4.0, 0.0, 0.01),
        ),
        (Objective("u", "u", "", 0.02), Objective("w", "w", "", 0.02)),
        banana,
    )
    rng = np.random.default_rng(1)
    patients = []
    for i in range(12):
        blank = Patient(f"B{i}", {}, {"bend": float(rng.uniform(-1, 1))})
        u, w = banana(rng.uniform([-1.4, -0.5], [1.4, 2.5], (1, 2)), blank)[0]
        patients.append(replace(blank, measurements={"u": float(u), "w": float(w)}))
    walks = explore(problem, patients, n_episodes=2, n_steps=1, seed=3)
    assert np.isnan(walks.y).any()
    n_runs = []
    for patient in patients:
        fit = ContinuousVito.learn(problem, walks.without(patient.name)).personalize(patient)
        assert fit.solved
        assert problem.is_solved(fit.misfits)
        n_runs.append(fit.n_runs)
    assert np.mean(n_runs) < 12


def test_walks_of_a_hundred_steps_teach_too(linear_problem, linear_patients):
    long = explore(linear_problem, linear_patients, n_episodes=1, seed=0)
    agent = ContinuousVito.learn(linear_problem, long.without("P0"))
    assert agent.personalize(linear_patients[0]).n_runs <= 2


def test_the_trace_is_what_happened(linear_problem, linear_patients, agent):
    starts = linear_problem.draw(np.random.default_rng(1), 10)
    fits = agent.personalize_from(linear_patients[0], starts, max_runs=30)
    z = linear_problem.measured(linear_patients[0])
    for start, fit in zip(starts, fits, strict=True):
        trace = fit.trace
        assert np.array_equal(trace.x[0], start)
        y = linear_problem.simulate(trace.x, linear_patients[0])
        assert np.array_equal(trace.y, y)
        assert np.array_equal(trace.misfits, linear_problem.misfit(y, z))
        assert trace.expected.shape == trace.misfits.shape
        assert trace.event[0] == Event.START
        assert (trace.action == -1).all()
        assert (trace.state == -1).all()
        assert fit.n_restarts == (trace.event == Event.RESTART).sum()
        solved = linear_problem.is_solved(trace.misfits)
        assert not solved[:-1].any()
        assert fit.solved == solved[-1]


def test_a_step_is_expected_and_a_given_start_is_not(linear_problem, linear_patients, agent):
    """On a linear model, the prediction after one run is what is found, to a tenth of ψ."""
    start = np.array([[4.0, 4.0]])
    trace = agent.personalize_from(linear_patients[0], start)[0].trace
    assert np.isnan(trace.expected[0]).all()
    np.testing.assert_allclose(trace.expected[1], trace.misfits[1], atol=0.05)
    first = agent.personalize(linear_patients[0], max_runs=1).trace
    assert np.isfinite(first.expected).all()


@pytest.mark.parametrize("border", ["clip", "free"])
def test_the_domain_is_never_left(linear_problem, agent, border):
    bounded = replace(agent, problem=replace(linear_problem, border=border))
    fit = bounded.personalize(FAR, max_runs=60)
    fits = [fit, *bounded.personalize_from(FAR, np.array([[9.0, 0.0]]), max_runs=20)]
    for fit in fits:
        assert (np.abs(fit.trace.x) <= 5).all()
        assert fit.stop_reason is StopReason.BUDGET
    assert np.array_equal(fits[1].trace.x[0], [5.0, 0.0])
    assert fits[0].n_restarts > 3
    # the least sum of squares is in the corner
    assert np.abs(fits[0].trace.x - [5.0, -5.0]).max(axis=1).min() < 0.5


def test_no_point_is_run_twice(agent):
    x = agent.personalize(FAR, max_runs=80).trace.x
    assert len(np.unique(np.round(x, 9), axis=0)) == len(x)


def test_same_seed_same_bits_other_seed_other_restarts(agent):
    one, two, other = (agent.personalize(FAR, max_runs=80, seed=s) for s in (1, 1, 2))
    assert_same(one, two)
    assert not np.array_equal(one.trace.x, other.trace.x)


def test_a_start_does_not_feel_the_others(linear_problem, linear_patients, agent):
    starts = linear_problem.draw(np.random.default_rng(3), 3)
    together = agent.personalize_from(FAR, starts, max_runs=40, seed=5)
    for i, fit in enumerate(together):
        assert_same(fit, agent.personalize_from(FAR, starts[i : i + 1], max_runs=40, seed=5)[0])


def test_no_measurement_is_learned_from(linear_problem, linear_patients, walks):
    changed = replace(walks, z=walks.z + 100.0)
    one, other = (ContinuousVito.learn(linear_problem, w) for w in (walks, changed))
    assert_same(one.personalize(linear_patients[0]), other.personalize(linear_patients[0]))


def test_the_number_of_threads_of_linear_algebra_changes_no_bit():
    """Its sums depend on it from some size on, which the walks of 48 patients reach."""
    problem = circulation.problem("12p")
    walks = walks_for(problem, circulation.cohort().first(48), 5, seed=0, episode=1)
    agents, fits = [], []
    patient = circulation.cohort().first(48)[0]
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            agents.append(ContinuousVito.learn(problem, walks))
            fits.append(agents[-1].personalize(patient, max_runs=20))
    assert_same(*fits)
    one, other = (agent.experience.to_arrays() for agent in agents)
    for name, array in one.items():
        assert np.array_equal(array, other[name]), name


def test_a_success_that_the_exact_model_denies_is_none(linear_problem, linear_patients, agent):
    def coarse(x, patient):
        return linear_problem.simulate(x + np.array([0.6, 0.0]), patient)

    table = replace(linear_problem, simulate=coarse, confirm=linear_problem.simulate)
    starts = linear_problem.draw(np.random.default_rng(4), 20)
    z, n_denied = linear_problem.measured(linear_patients[0]), 0
    fits = replace(agent, problem=table).personalize_from(linear_patients[0], starts, max_runs=30)
    for fit in fits:
        exact = linear_problem.misfit(linear_problem.simulate(fit.trace.x, linear_patients[0]), z)
        approximate = table.misfit(coarse(fit.trace.x, linear_patients[0]), z)
        claimed = table.is_solved(approximate)
        assert fit.solved == (claimed & linear_problem.is_solved(exact)).any()
        n_denied += np.count_nonzero(claimed & ~linear_problem.is_solved(exact))
    assert n_denied > 10


def test_failed_runs_are_counted_and_gone_round(linear_problem, linear_patients, agent):
    """A step into the failing half is shortened; a start there is given up."""

    def failing(x, patient):
        y = linear_problem.simulate(x, patient)
        y[(x[:, 0] > 0.5) & (x[:, 1] < 2.0)] = np.nan
        return y

    problem = replace(linear_problem, simulate=failing)
    clever = replace(agent, problem=problem)
    truth = np.array([[2.0, 2.5]])
    u, w = linear_problem.simulate(truth, linear_patients[0])[0]
    patient = replace(linear_patients[0], measurements={"u": u, "w": w})
    starts = np.array([[4.0, -4.0], [-4.0, -4.0], [0.4, 0.0]])
    for start, fit in zip(starts, clever.personalize_from(patient, starts), strict=True):
        failed = np.isnan(fit.trace.y).any(axis=1)
        assert fit.solved
        assert fit.n_runs == len(fit.trace.x)
        assert failed[0] == bool(start[0] > 0.5)
        assert np.isfinite(fit.misfits).all()
        if failed[0]:
            assert fit.trace.event[1] == Event.RESTART


def test_a_model_that_always_fails_uses_up_its_runs(linear_problem, linear_patients, agent):
    def broken(x, patient):
        return np.full((len(x), 2), np.nan)

    fit = replace(agent, problem=replace(linear_problem, simulate=broken)).personalize(
        linear_patients[0], max_runs=30
    )
    assert fit.stop_reason is StopReason.BUDGET
    assert fit.n_runs == 30
    assert fit.n_restarts == 29
    assert np.isnan(fit.misfits).all()


def test_walks_without_a_finite_run_teach_nothing(linear_problem, walks):
    with pytest.raises(ValueError, match=r"none of the 200 runs .* gave finite outputs"):
        ContinuousVito.learn(linear_problem, replace(walks, y=np.full_like(walks.y, np.nan)))


@pytest.mark.parametrize("n_patients", [1, 2])
def test_a_few_runs_of_a_few_patients_are_enough_to_act(
    linear_problem, linear_patients, walks, n_patients
):
    """Two to four runs span no plane; what is missing is found on the way."""
    few = walks.first(1).select([p.name for p in linear_patients[1 : 1 + n_patients]])
    agent = ContinuousVito.learn(linear_problem, few)
    assert agent.experience.u.shape == (2 * n_patients, 2)
    fit = agent.personalize(linear_patients[0], max_runs=60)
    assert fit.solved
    assert agent.personalize(linear_patients[0], max_runs=1).n_runs == 1
    with pytest.raises(ValueError, match="max_runs is 0"):
        agent.personalize(linear_patients[0], max_runs=0)


def test_a_single_stored_run_is_enough_to_act(linear_problem, linear_patients, walks):
    one = walks.first(1).select(["P1"])
    y = one.y.copy()
    y[0, 1] = np.nan
    agent = ContinuousVito.learn(linear_problem, replace(one, y=y))
    fit = agent.personalize(linear_patients[0], max_runs=60)
    assert fit.solved


def test_equal_stored_runs_are_enough_to_act(linear_problem, linear_patients, walks):
    """Rank-deficient in every way: all runs at one point."""
    x = np.broadcast_to(walks.x[:1, :1], walks.x.shape).copy()
    y = np.broadcast_to(walks.y[:1, :1], walks.y.shape).copy()
    agent = ContinuousVito.learn(linear_problem, replace(walks, x=x, y=y))
    assert agent.personalize(linear_patients[0], max_runs=60).solved


def test_an_agent_can_be_saved_and_loaded(linear_problem, linear_patients, agent, tmp_path):
    folder = tmp_path / "agent"
    agent.save(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["arrays.npz", "continuous.json"]
    loaded = ContinuousVito.load(folder, linear_problem)
    for patient in [*linear_patients, FAR]:
        one, other = (a.personalize(patient, max_runs=40, seed=3) for a in (agent, loaded))
        assert_same(one, other)
    with pytest.raises(FileExistsError, match="choose another place"):
        agent.save(folder)
    with pytest.raises(ValueError, match="another problem: border"):
        ContinuousVito.load(folder, replace(linear_problem, border="free"))
    with pytest.raises(ValueError, match=r"learned features \[\], expected \['offset'\] as"):
        ContinuousVito.load(folder, replace(linear_problem, features=("offset",)))
    description = json.loads((folder / "continuous.json").read_text())
    (folder / "continuous.json").write_text(json.dumps(description | {"format": 99}))
    with pytest.raises(ValueError, match="format is 99, expected 1"):
        ContinuousVito.load(folder, linear_problem)


def test_walks_of_one_step_extend_one_sequence(linear_problem, linear_patients):
    few, more = (walks_for(linear_problem, linear_patients, n, 0, episode=1) for n in (2, 10))
    first = more.first(2)
    assert np.array_equal(few.x, first.x)
    assert np.array_equal(few.y, first.y)
    assert few.x.shape == (20, 2, 2)
    # fresh starts, all over Ω
    assert len(np.unique(more.x[:, 0], axis=0)) == 100


def test_predictions_are_stored_beside_what_was_found(linear_problem, linear_patients, agent):
    label = {
        "setup": "s",
        "patient": "P0",
        "method": "vito-continuous",
        "n_states": None,
        "n_samples": 10,
        "repeat": 0,
        "start": None,
    }
    fit = agent.personalize_from(linear_patients[0], np.array([[4.0, 4.0]]))[0]
    columns = trace_columns(linear_problem, fit, label)
    bare = replace(fit, trace=replace(fit.trace, expected=None))
    others = trace_columns(linear_problem, bare, label | {"method": "least-squares"})
    assert set(columns) - set(others) == {"e:u", "e:w"}
    for order in ([others, columns], [columns, others]):
        frame = joined_traces(order)
        own = frame[frame.method == "vito-continuous"]
        expected = own[["e:u", "e:w"]].to_numpy()
        assert np.array_equal(expected, fit.trace.expected, equal_nan=True)
        assert frame[frame.method == "least-squares"]["e:u"].isna().all()
    assert "e:u" not in joined_traces([others])
