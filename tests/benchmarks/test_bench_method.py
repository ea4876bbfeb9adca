"""Speed of the method beside its named peers, in the same run: ratios, printed with ``-s``.

Run with ``pytest tests/benchmarks -s``; quantecon comes with the extra ``bench``.
"""

import resource
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from vitolab.kernels import mdp as kernels
from vitolab.mdp import MDP


def seconds(action, repeats=5):
    """Smallest time of several calls after one to warm up; CPU time of the process."""
    action()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return min(times)


def test_labelling_against_scikit_learn():
    from sklearn.metrics import pairwise_distances_argmin

    rng = np.random.default_rng(0)
    for n_objectives, n_states in ((2, 70), (6, 600)):
        points = rng.normal(size=(100_000, n_objectives))
        centroids = rng.normal(size=(n_states, n_objectives))
        with threadpool_limits(1):
            ours = seconds(lambda p=points, c=centroids: kernels.nearest(p, c))
            peer = seconds(lambda p=points, c=centroids: pairwise_distances_argmin(p, c))
        print(
            f"\nlabelling, {n_states} states in {n_objectives}-D: {ours * 1e3:.0f} ms, "
            f"scikit-learn {peer * 1e3:.0f} ms, ratio {peer / ours:.1f}"
        )
        assert np.array_equal(
            kernels.nearest(points, centroids), pairwise_distances_argmin(points, centroids)
        )
        assert peer / ours >= 1.5


def test_solving_against_quantecon():
    quantecon = pytest.importorskip("quantecon")
    from scipy.sparse import csr_matrix

    n_states, n_actions, n = 600, 36, 420_000
    rng = np.random.default_rng(0)
    state = rng.integers(1, n_states, n)
    action = rng.integers(n_actions, size=n)
    near = np.clip(state + rng.integers(-30, 31, n), 0, n_states - 1)
    mdp = MDP.count(state, action, near, n_states, n_actions)

    # the peer wants every row spelled out: uniform where nothing was seen, success absorbing
    visits = mdp.visits.ravel()
    dense = np.zeros((n_states * n_actions, n_states))
    row = np.repeat(np.arange(len(visits)), np.diff(mdp.start))
    dense[row, mdp.successor] = mdp.probability
    dense[visits == 0] = 1.0 / n_states
    dense[:n_actions] = 0.0
    dense[:n_actions, 0] = 1.0
    reward = -(1.0 - dense[:, 0])
    s, a = np.divmod(np.arange(n_states * n_actions), n_actions)
    peer_problem = quantecon.markov.DiscreteDP(reward, csr_matrix(dense), 0.99, s, a)

    def peer():
        return peer_problem.solve(method="modified_policy_iteration", epsilon=1e-6)

    with threadpool_limits(1):
        ours_s, peer_s = seconds(mdp.solve), seconds(peer)
    np.testing.assert_allclose(mdp.solve().v, peer().v, atol=1e-5)
    policy = mdp.solve()
    slow = mdp.solve("value-iteration")
    print(
        f"\nsolving {n_states} states x {n_actions} actions: {ours_s * 1e3:.0f} ms in "
        f"{len(policy.residuals)} rounds (value iteration: {len(slow.residuals)} sweeps), "
        f"quantecon {peer_s * 1e3:.0f} ms, ratio {peer_s / ours_s:.2f}"
    )
    assert peer_s / ours_s >= 1.0


def test_exploration_is_mostly_forward_model():
    from vitolab.exploration import explore
    from vitolab.models import circulation

    problem = circulation.problem("6p")
    patients = circulation.cohort().evaluation
    explore(problem, patients[:1], 1, 2)
    begin = time.process_time()
    walks = explore(problem, patients, n_episodes=10, n_steps=100, seed=0)
    total = time.process_time() - begin
    begin = time.process_time()
    for i, patient in enumerate(patients):
        own = walks.x[walks.patient == i]
        for step in range(own.shape[1]):
            problem.simulate(own[:, step], patient)
    model = time.process_time() - begin
    n = walks.x.shape[0] * walks.x.shape[1]
    print(
        f"\nexploring 48 patients x 1,000 samples in 6p: {total:.1f} s CPU, "
        f"{model / n * 1e6:.0f} us per forward run, {1 - model / total:.1%} outside the model"
    )
    assert 1 - model / total <= 0.15


@pytest.mark.timeout(3600)
def test_leave_one_out_of_a_large_study_in_bounded_memory():
    from vitolab import validation
    from vitolab.models import circulation

    class Nowhere:
        def has_part(self, key):
            return False

        def write_failures(self, key, failures):
            pass

        def write_part(self, key, personalizations, traces=None, failures=None):
            rows.append(personalizations)

        def progress(self, stage, done, total):
            pass

    rows = []
    begin = time.perf_counter()
    validation.leave_one_out(
        Nowhere(),
        {"6p": circulation.problem("6p")},
        circulation.cohort().evaluation,
        n_states={"6p": [600]},
        n_samples={"6p": [20_000]},
        n_jobs=2,
    )
    minutes = (time.perf_counter() - begin) / 60
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"\nleave-one-out, 6p, 48 folds, 20,000 samples per patient: {minutes:.1f} min on two "
        f"workers, {peak:.1f} GiB"
    )
    assert len(rows) == 48
    assert peak <= 4
