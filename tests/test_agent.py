import json
from dataclasses import replace

import naive
import numpy as np
import pytest

from vitolab.agent import Vito, n_states_at_most
from vitolab.agent.hindsight import replayed
from vitolab.exploration import explore
from vitolab.fit import Event, StopReason
from vitolab.mdp import Policy
from vitolab.problem import Patient


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients):
    return explore(linear_problem, linear_patients, n_episodes=4, seed=0)


@pytest.fixture(scope="module")
def vito(linear_problem, walks):
    return Vito.learn(linear_problem, walks.without("P0"), n_states=60, seed=0)


def fields(fit):
    trace = fit.trace
    return [trace.x, trace.y, trace.misfits, trace.event, trace.action, trace.state]


def test_unseen_patients_are_personalised_in_few_runs(linear_problem, linear_patients, walks):
    runs = []
    for patient in linear_patients:
        vito = Vito.learn(linear_problem, walks.without(patient.name), n_states=60, seed=0)
        fit = vito.personalize(patient, max_runs=100, seed=0)
        assert fit.solved
        assert linear_problem.is_solved(fit.misfits)
        runs.append(fit.n_runs)
    assert np.mean(runs) < 12


def test_a_learned_policy_beats_a_random_one(linear_problem, linear_patients, vito):
    """Same starts, no restarts: what was learned is what makes the difference."""
    starts = linear_problem.draw(np.random.default_rng(0), 60)
    learned = replace(vito, initializer=None).acting(deterministic=False, restart=False)
    uniform = Policy(np.zeros_like(vito.policy.q), np.zeros_like(vito.policy.v))
    share = [
        np.mean([f.solved for f in a.personalize_from(linear_patients[0], starts, max_runs=40)])
        for a in (learned, replace(learned, policy=uniform))
    ]
    assert share[0] > share[1] + 0.4


def test_the_trace_is_what_happened(linear_problem, linear_patients, vito):
    starts = linear_problem.draw(np.random.default_rng(1), 20)
    for start, fit in zip(
        starts, vito.personalize_from(linear_patients[0], starts, max_runs=60), strict=True
    ):
        trace = fit.trace
        assert np.array_equal(trace.x[0], start)
        assert trace.event[0] == Event.START
        y = linear_problem.simulate(trace.x, linear_patients[0])
        np.testing.assert_allclose(trace.y, y, atol=1e-12)
        assert np.array_equal(trace.state, vito.states.quantize(trace.misfits))
        step = trace.event == Event.STEP
        moved = (trace.x[1:] - trace.x[:-1])[step[1:]]
        expected = linear_problem.actions[trace.action[step]] * linear_problem.step
        inside = (np.abs(trace.x[1:]) < 5).all(axis=1) & (np.abs(trace.x[:-1]) < 5).all(axis=1)
        np.testing.assert_allclose((moved - expected)[inside[step[1:]]], 0, atol=1e-9)
        candidates = vito.policy.probabilities[trace.state[:-1], trace.action[1:]] > 0
        assert candidates[step[1:]].all()
        assert (trace.action[~step] == -1).all()
        assert fit.n_restarts == (trace.event == Event.RESTART).sum()


def test_a_success_that_the_exact_model_denies_is_none(linear_problem, linear_patients, vito):
    calls = []

    def coarse(x, patient):
        calls.extend(x)
        return linear_problem.simulate(np.round(x), patient)

    table = replace(linear_problem, simulate=coarse, confirm=linear_problem.simulate)
    starts = linear_problem.draw(np.random.default_rng(4), 30)
    fits = replace(vito, problem=table).personalize_from(linear_patients[0], starts, max_runs=60)
    z = linear_problem.measured(linear_patients[0])
    n_denied = 0
    for fit in fits:
        exact = linear_problem.misfit(linear_problem.simulate(fit.trace.x, linear_patients[0]), z)
        approximate = table.misfit(coarse(fit.trace.x, linear_patients[0]), z)
        claimed = table.is_solved(approximate)
        assert fit.solved == (claimed & linear_problem.is_solved(exact)).any()
        np.testing.assert_allclose(fit.trace.misfits[claimed], exact[claimed])
        np.testing.assert_allclose(fit.trace.misfits[~claimed], approximate[~claimed])
        n_denied += np.count_nonzero(claimed & ~linear_problem.is_solved(exact))
    assert n_denied > 5
    assert len(calls) == 2 * sum(fit.n_runs for fit in fits), "a confirmation is no run of its own"


def test_success_ends_the_walk_and_is_never_missed(linear_problem, linear_patients, vito):
    starts = linear_problem.draw(np.random.default_rng(2), 30)
    for fit in vito.personalize_from(linear_patients[0], starts, max_runs=30):
        solved = linear_problem.is_solved(fit.trace.misfits)
        assert not solved[:-1].any()
        assert fit.solved == solved[-1]
        assert fit.solved == (fit.stop_reason is StopReason.SOLVED)
        if not fit.solved:
            assert fit.n_runs == 30


def test_no_parameters_recur_between_restarts(linear_problem, linear_patients, vito):
    far = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})
    fit = vito.personalize(far, max_runs=200, seed=0)
    assert fit.stop_reason is StopReason.BUDGET
    assert fit.n_restarts > 3
    for part in np.split(fit.trace.x, np.flatnonzero(fit.trace.event == Event.RESTART)):
        assert naive.first_recurrence(part) is None


def test_restarts_go_through_the_candidates_and_then_through_the_domain(
    linear_problem, linear_patients, vito
):
    far = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})
    candidates = vito.initializer.candidates(linear_problem.measured(far))
    fit = vito.personalize(far, max_runs=300, seed=0)
    begins = fit.trace.x[fit.trace.event != Event.STEP]
    n = len(candidates)
    assert len(begins) > n
    assert np.array_equal(begins[:n], candidates)
    assert len(np.unique(begins[n:], axis=0)) == len(begins) - n


def test_without_restarts_a_deterministic_walk_may_go_round_for_ever(
    linear_problem, linear_patients, vito
):
    far = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})
    agent = vito.acting(deterministic=True, restart=False)
    fit = agent.personalize(far, max_runs=100, seed=0)
    assert fit.n_restarts == 0
    assert naive.first_recurrence(fit.trace.x) is not None


def test_a_start_does_not_feel_the_others(linear_problem, linear_patients, vito):
    starts = linear_problem.draw(np.random.default_rng(3), 8)
    together = vito.personalize_from(linear_patients[0], starts, max_runs=40, seed=5)
    for i, fit in enumerate(together):
        alone = vito.personalize_from(linear_patients[0], starts[i : i + 1], max_runs=40, seed=5)[0]
        for one, other in zip(fields(fit), fields(alone), strict=True):
            assert np.array_equal(one, other)


def test_same_seed_same_bits_other_seed_other_walk(linear_patients, vito):
    far = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})
    one, two, other = (vito.personalize(far, max_runs=80, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.trace.x, two.trace.x)
    assert not np.array_equal(one.trace.x, other.trace.x)


def test_the_deterministic_agent_takes_the_best_action(linear_problem, linear_patients, vito):
    far = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})
    trace = vito.acting(deterministic=True).personalize(far, max_runs=60).trace
    step = np.flatnonzero(trace.event == Event.STEP)
    assert np.array_equal(trace.action[step], vito.policy.greedy[trace.state[step - 1]])


def test_learning_does_not_see_the_patient_left_out(linear_problem, linear_patients, walks):
    """Other measurements of the held-out patient change nothing that is learned."""
    changed = replace(walks, z=walks.z + np.eye(len(walks.z))[:, :1] * 100)
    one = Vito.learn(linear_problem, walks.without("P0"), 40, seed=1)
    other = Vito.learn(linear_problem, changed.without("P0"), 40, seed=1)
    assert np.array_equal(one.policy.q, other.policy.q)
    assert np.array_equal(one.states.centroids, other.states.centroids)


def test_failed_runs_are_restarted_from_and_counted(linear_problem, linear_patients, vito):
    def failing(x, patient):
        y = linear_problem.simulate(x, patient)
        y[x[:, 0] > 0.0] = np.nan
        return y

    agent = replace(vito, problem=replace(linear_problem, simulate=failing), initializer=None)
    far = Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})
    fit = agent.personalize(far, max_runs=60, seed=0)
    failed = np.isnan(fit.trace.y).any(axis=1)
    assert failed.any()
    assert fit.n_runs == 60
    assert (fit.trace.state[failed] == -1).all()
    after = np.flatnonzero(failed[:-1]) + 1
    assert (fit.trace.event[after] == Event.RESTART).all()
    assert np.isfinite(fit.misfits).all()

    stubborn = agent.acting(deterministic=False, restart=False)
    start = np.array([[2.0, 0.0]])
    ended = stubborn.personalize_from(far, start, max_runs=60)[0]
    assert ended.stop_reason is StopReason.FAILED
    assert ended.n_runs == 1


def test_an_agent_can_be_saved_and_loaded(linear_problem, linear_patients, vito, tmp_path):
    vito.save(tmp_path / "agent")
    assert sorted(p.name for p in (tmp_path / "agent").iterdir()) == ["arrays.npz", "vito.json"]
    loaded = Vito.load(tmp_path / "agent", linear_problem)
    for patient in [*linear_patients, Patient("far", {"u": 50.0, "w": -50.0}, {"offset": 0.0})]:
        one = vito.personalize(patient, max_runs=60, seed=3)
        other = loaded.personalize(patient, max_runs=60, seed=3)
        for a, b in zip(fields(one), fields(other), strict=True):
            assert np.array_equal(a, b)
    with pytest.raises(FileExistsError, match="choose another place"):
        vito.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="another problem: border"):
        Vito.load(tmp_path / "agent", replace(linear_problem, border="free"))
    description = json.loads((tmp_path / "agent" / "vito.json").read_text())
    (tmp_path / "agent" / "vito.json").write_text(json.dumps(description | {"format": 99}))
    with pytest.raises(ValueError, match="format is 99, expected 1"):
        Vito.load(tmp_path / "agent", linear_problem)


def test_the_largest_number_of_states_can_be_learned(linear_problem, walks):
    few = walks.first(3)
    most = n_states_at_most(linear_problem, few)
    assert Vito.learn(linear_problem, few, most).states.n_states <= most
    with pytest.raises(ValueError, match="n_states is"):
        Vito.learn(linear_problem, few, most + 1)


def test_an_agent_without_initialisation_starts_anywhere(linear_problem, linear_patients, walks):
    agent = Vito.learn(linear_problem, walks, 40, initialize=False)
    fit = agent.personalize(linear_patients[0], max_runs=1, seed=0)
    other = agent.personalize(linear_patients[0], max_runs=1, seed=1)
    assert (np.abs(fit.x) <= 5).all()
    assert agent.initializer is None
    assert not np.isclose(fit.x, other.x).any()


def test_walks_without_a_finite_run_teach_nothing(linear_problem, linear_patients, walks):
    with pytest.raises(ValueError, match=r"none of the 4040 runs .* gave finite outputs"):
        Vito.learn(linear_problem, replace(walks, y=np.full_like(walks.y, np.nan)), 20)


def test_no_budget_is_refused(linear_patients, vito):
    with pytest.raises(ValueError, match="max_runs is 0"):
        vito.personalize(linear_patients[0], max_runs=0)


def oracle_counts(vito, walks, all_misfits):
    """Count (state, action, successor) one transition at a time."""
    counts = {}
    for c in all_misfits:
        for i in range(len(walks.x)):
            for t in range(walks.length[i]):
                pair = c[i, t : t + 2]
                if walks.action[i, t] < 0 or not np.isfinite(pair).all():
                    continue
                s, successor = vito.states.quantize(pair).tolist()
                key = (s, int(walks.action[i, t]), successor)
                counts[key] = counts.get(key, 0) + 1
    return counts


def seen(mdp):
    row = np.repeat(np.arange(len(mdp.start) - 1), np.diff(mdp.start))
    states, actions = np.divmod(row, mdp.n_actions)
    keys = zip(states.tolist(), actions.tolist(), mdp.successor.tolist(), strict=True)
    return dict(zip(keys, mdp.counts.tolist(), strict=True))


@pytest.fixture(scope="module")
def failing_walks(walks):
    """Few walks with failed runs: one in the middle, and one walk of nothing else."""
    few = walks.first(150)
    y = few.y.copy()
    y[0, 7] = np.nan
    y[3] = np.nan
    return replace(few, y=y)


@pytest.mark.parametrize("n_replays", [0, 3])
def test_every_transition_counts_once_and_once_per_replay(linear_problem, failing_walks, n_replays):
    vito = Vito.learn(
        linear_problem, failing_walks, 30, seed=2, n_replays=n_replays, heed_failures=False
    )
    misfits = [failing_walks.misfits(linear_problem)]
    misfits += replayed(linear_problem, failing_walks, n_replays, seed=2)
    assert len(misfits) == 1 + n_replays
    assert seen(vito.mdp) == oracle_counts(vito, failing_walks, misfits)


def test_a_replay_succeeds_at_a_point_of_its_own_walk(linear_problem, failing_walks):
    """Its target is a point that the walk visited, moved by at most half a tolerance."""
    psi, chosen = linear_problem.tolerance, []
    for c in replayed(linear_problem, failing_walks, 20, seed=1):
        near = (np.abs(c) <= psi / 2 + 1e-12).all(axis=2) & failing_walks.counted
        alive = failing_walks.counted.any(axis=1)
        assert near[alive].any(axis=1).all()
        assert np.isnan(c[~alive]).all()
        target = failing_walks.y - c
        z = target[:, :1]
        np.testing.assert_allclose(target, np.where(np.isfinite(target), z, np.nan), atol=1e-9)
        chosen.append(z[0, 0])
    assert len(np.unique(chosen, axis=0)) == 20


def test_hindsight_sees_success_where_no_walk_had_any(linear_problem, walks):
    """Measured far from anything that was reached, yet success is known after replays."""
    far = replace(walks, z=np.full_like(walks.z, 40.0))
    plain, hindsight = (Vito.learn(linear_problem, far, 40, seed=0, n_replays=n) for n in (0, 5))
    assert np.array_equal(plain.states.centroids, hindsight.states.centroids)
    into_success = [
        sum(n for key, n in seen(v.mdp).items() if key[2] == 0) for v in (plain, hindsight)
    ]
    assert into_success[0] == 0
    assert into_success[1] > len(walks.x)


def test_hindsight_solves_with_fewer_runs(linear_problem, linear_patients, walks):
    few = walks.first(60)
    runs = []
    for n_replays in (0, 10):
        agents = (
            (p, Vito.learn(linear_problem, few.without(p.name), 40, 0, n_replays=n_replays))
            for p in linear_patients
        )
        runs.append(np.mean([v.personalize(p, max_runs=100, seed=0).n_runs for p, v in agents]))
    assert runs[1] < runs[0]


def test_replays_of_a_patient_do_not_feel_the_others(linear_problem, walks):
    """Nor how many walks there are, nor where in the set the patient stands."""
    fewer = walks.first(100).without("P0")
    for all_c, c in zip(
        replayed(linear_problem, walks, 2, 4), replayed(linear_problem, fewer, 2, 4), strict=True
    ):
        for i, name in enumerate(fewer.patients):
            own = c[fewer.patient == i]
            assert len(own) == 1
            same = all_c[walks.patient == walks.patients.index(name)][:1]
            assert np.array_equal(own, same)


def test_replays_extend_one_sequence(linear_problem, walks):
    few, more = (list(replayed(linear_problem, walks, n, seed=4)) for n in (2, 3))
    assert all(np.array_equal(a, b) for a, b in zip(few, more, strict=False))
    other = next(replayed(linear_problem, walks, 1, seed=5))
    assert not np.array_equal(few[0], other)
    with pytest.raises(ValueError, match="n_replays is -1"):
        Vito.learn(linear_problem, walks, 40, n_replays=-1)
