import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from threadpoolctl import threadpool_limits

from vitolab.agent import ContinuousVito
from vitolab.agent.bounded import bounded_step
from vitolab.agent.deviation import Deviation
from vitolab.agent.experience import Experience, basis
from vitolab.agent.scale import Scale
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
    # the best it can do is in the corner
    np.testing.assert_allclose(fits[0].x, [5.0, -5.0], atol=0.5)


def test_no_point_is_run_twice(agent):
    x = agent.personalize(FAR, max_runs=80).trace.x
    assert len(np.unique(np.round(x, 9), axis=0)) == len(x)


def test_same_seed_same_bits_other_seed_other_restarts(agent):
    one, two, other = (agent.personalize(FAR, max_runs=80, seed=s) for s in (1, 1, 2))
    assert_same(one, two)
    assert not np.array_equal(one.trace.x, other.trace.x)


def test_a_start_does_not_feel_the_others(linear_problem, linear_patients, agent):
    starts = linear_problem.draw(np.random.default_rng(3), 4)
    together = agent.personalize_from(linear_patients[0], starts, max_runs=20, seed=5)
    alone = agent.personalize_from(linear_patients[0], starts[:1], max_runs=20, seed=5)
    assert_same(together[0], alone[0])


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
    with pytest.raises(ValueError, match=r"learned features \[\], .* has \['offset'\]"):
        ContinuousVito.load(folder, replace(linear_problem, features=("offset",)))
    description = json.loads((folder / "continuous.json").read_text())
    (folder / "continuous.json").write_text(json.dumps(description | {"format": 99}))
    with pytest.raises(ValueError, match="format is 99, expected 1"):
        ContinuousVito.load(folder, linear_problem)


def test_a_feature_that_explains_the_patients_saves_the_run_that_tells_them_apart(
    linear_problem, linear_patients
):
    """The offset is all in which patients differ: who knows it needs one run."""
    told = replace(linear_problem, features=("offset",))
    train = explore(told, linear_patients, n_episodes=10, n_steps=1, seed=0)
    exact = replace(told, objectives=tuple(replace(o, tolerance=0.1) for o in told.objectives))
    blind = replace(exact, features=())
    for patient in linear_patients:
        walks = train.without(patient.name)
        assert ContinuousVito.learn(exact, walks).personalize(patient).n_runs == 1
    walks = replace(train.without("P1"), features=None)
    assert ContinuousVito.learn(blind, walks).personalize(linear_patients[1]).n_runs > 1


def test_a_patient_without_the_feature_counts_as_the_mean(linear_problem, walks):
    told = replace(linear_problem, features=("offset",))
    features = np.array([[1.0], [3.0], *[[2.0]] * 7, [np.nan]])
    experience = Experience.learn(told, replace(walks, features=features))
    assert experience.centre == pytest.approx(2.0)
    assert experience.featured(Patient("X", {}, {})) == pytest.approx(0.0)
    assert experience.featured(Patient("X", {}, {"offset": 2.0})) == pytest.approx(0.0)
    assert experience.featured(Patient("X", {}, {"offset": "much"})) == pytest.approx(0.0)


def ratio_problem(scale):
    return Problem(
        "ratio",
        "1",
        (Parameter("s", "s", "mm/s", 10.0, 10_000.0, 100.0, 1.0, scale),),
        (Objective("t", "t", "ms", 0.05),),
        lambda x, patient: np.log(x),
    )


def test_a_parameter_that_acts_by_ratio_is_thought_of_in_its_logarithm():
    patients = [Patient(f"R{i}", {"t": np.log(20.0 * 3**i)}) for i in range(6)]
    runs = {}
    for scale in ("log", "linear"):
        problem = ratio_problem(scale)
        # the same runs for both
        walks = explore(ratio_problem("linear"), patients, n_episodes=3, n_steps=1, seed=0)
        runs[scale] = [
            ContinuousVito.learn(problem, walks.without(p.name)).personalize(p).n_runs
            for p in patients
        ]
    assert max(runs["log"]) <= 2
    assert sum(runs["linear"]) > 2 * sum(runs["log"])


def test_coordinates_are_the_unit_cube_of_the_domain():
    scale = Scale(ratio_problem("log"))
    x = np.array([[10.0], [np.sqrt(10.0 * 10_000.0)], [10_000.0]])
    np.testing.assert_allclose(scale.unit(x), [[0.0], [0.5], [1.0]], atol=1e-15)
    u = np.random.default_rng(0).random((50, 1))
    np.testing.assert_allclose(scale.unit(scale.parameters(u)), u, atol=1e-12)
    # whole numbers as bounds stay whole in the middle too
    whole = replace(ratio_problem("log").parameters[0], lower=200, upper=1000, default=500)
    scale = Scale(replace(ratio_problem("log"), parameters=(whole,)))
    assert scale.parameters(np.array([[1.0]])) == pytest.approx(1000.0)


def test_angles_are_followed_across_their_seam():
    """The direction turns twice over Ω; the target lies beyond ±180°."""

    def direction(x, patient):
        return np.degrees(np.angle(np.exp(1j * 2.0 * np.pi * x)))

    problem = Problem(
        "turn",
        "1",
        (Parameter("t", "t", "", 0.0, 1.0, 0.5, 0.01),),
        (Objective("a", "a", "°", 2.0, "angle"),),
        direction,
    )
    patients = [Patient(f"A{i}", {"a": a}) for i, a in enumerate((179.5, -178.0, 175.0, 0.0))]
    walks = explore(problem, patients, n_episodes=20, n_steps=1, seed=0)
    for patient in patients:
        fit = ContinuousVito.learn(problem, walks.without(patient.name)).personalize(patient)
        assert fit.solved
        assert fit.n_runs <= 2


def test_the_common_model_of_a_plane_is_the_plane(linear_problem):
    """Patients that do not differ: the linear map, but for the ridge, to a tenth of its slopes."""
    alike = [Patient(f"P{i}", {"u": 0.0, "w": 0.0}, {"offset": 0.0}) for i in range(3)]
    walks = explore(linear_problem, alike, n_episodes=60, n_steps=1, seed=1)
    experience = Experience.learn(linear_problem, walks)
    u = np.random.default_rng(2).random((300, 2))
    y, jacobian = experience.model(u, np.empty((300, 0)))
    x = Scale(linear_problem).parameters(u)
    np.testing.assert_allclose(y, linear_problem.simulate(x, alike[0]) / 0.5, atol=0.3)
    expected = np.array([[1.0, 0.4], [-0.3, 0.8]]) * 10.0 / 0.5
    np.testing.assert_allclose(
        jacobian, np.broadcast_to(expected, jacobian.shape), rtol=0.1, atol=0.2
    )
    alone, _ = experience.model(u[7:8], np.empty((1, 0)))
    assert np.array_equal(alone[0], y[7])


def test_a_deviation_passes_through_the_runs_made_and_has_the_slopes_it_tells():
    rng = np.random.default_rng(0)
    variation = rng.normal(size=(3, 5, 2))
    u = rng.random((6, 2))
    found = np.einsum("nb,dbo,d->no", basis(u), variation, rng.normal(size=3)) + np.sin(2.0 * u)
    deviation = Deviation.expect(variation, u, found)
    for point, value in zip(u, found, strict=True):
        np.testing.assert_allclose(deviation.at(point)[0], value, atol=0.02)
    point, h = np.array([0.3, 0.6]), 1e-6
    _, slopes = deviation.at(point)
    for i, step in enumerate(h * np.eye(2)):
        difference = deviation.at(point + step)[0] - deviation.at(point - step)[0]
        np.testing.assert_allclose(slopes[:, i], difference / (2 * h), rtol=1e-5, atol=1e-7)


def test_nothing_is_expected_before_the_first_run():
    variation = np.ones((1, 5, 2))
    value, slopes = Deviation.expect(variation, np.empty((0, 2)), np.empty((0, 2))).at(np.ones(2))
    assert not value.any()
    assert not slopes.any()


def test_one_run_tells_what_the_training_patients_have_in_common_with_this_one():
    """Patients differ along one direction: a run at one end of Ω tells the other end."""
    direction = np.array([[4.0, 2.0, -1.0, 0.0, 1.0]]).T
    u = np.array([[0.1, 0.2]])
    truth = 3.0 * basis(u) @ direction
    known = Deviation.expect(5.0 * direction[np.newaxis], u, truth)
    unknown = Deviation.expect(np.empty((0, 5, 1)), u, truth)
    far = np.array([0.9, 0.8])
    expected = 3.0 * basis(far[np.newaxis])[0] @ direction
    assert abs(known.at(far)[0] - expected) < 0.05 * abs(expected)
    assert abs(unknown.at(far)[0] - expected) > 0.2 * abs(expected)


def test_how_patients_vary_is_learned_and_taken_out(linear_problem, linear_patients, walks):
    """An offset per patient, in both objectives alike: one direction has nearly all of it."""
    experience = Experience.learn(linear_problem, walks)
    size = np.sqrt((experience.variation**2).sum(axis=(1, 2)))
    assert size[0] > 3 * size[1]
    constant = experience.variation[0, 0] / np.linalg.norm(experience.variation[0])
    np.testing.assert_allclose(np.abs(constant), np.sqrt(0.5), atol=0.05)
    plain = linear_problem.simulate(walks.x[walks.counted], Patient("Z", {}, {"offset": 0.0})) / 0.5
    before = np.std(walks.y[walks.counted] / 0.5 - plain)
    assert np.std(experience.y - plain) < 0.3 * before


def test_the_bounded_step_is_that_of_scipy():
    rng = np.random.default_rng(0)
    n_bound = 0
    for _ in range(300):
        m, n = rng.integers(1, 9, size=2)
        jacobian, c = rng.normal(size=(m, n)) * 10 ** rng.uniform(-1, 2), rng.normal(size=m) * 10
        lower, upper = -rng.random(n), rng.random(n)
        anchor, damping = rng.uniform(lower, upper), 10 ** rng.uniform(-3, 2)
        step = bounded_step(jacobian, c, damping, anchor, lower, upper)
        root = np.sqrt(damping)
        stacked = np.concatenate([jacobian, root * np.eye(n)])
        right = np.concatenate([-c, root * anchor])
        other = lsq_linear(stacked, right, bounds=(lower, upper), method="bvls").x
        assert ((step >= lower) & (step <= upper)).all()
        size = [float(np.sum((stacked @ d - right) ** 2)) for d in (step, other)]
        assert size[0] <= size[1] * (1 + 1e-9) + 1e-12
        n_bound += bool((step == lower).any() or (step == upper).any())
    assert 50 < n_bound < 300


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
