"""What the agent with continuous actions costs beside the model, and an emulator of a library."""

import time
import warnings

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from vitolab.agent import ContinuousVito
from vitolab.exploration import explore
from vitolab.models import circulation
from vitolab.parallel.threads import one_thread
from vitolab.problem import Problem

N_STORED = 10_000
N_PEER = 500  # runs that the emulator of the library keeps


def test_planning_a_run_beside_an_emulator_of_the_library(monkeypatch):
    """Processor time beside the model per run, 12p, ten thousand stored runs."""
    problem = circulation.problem("12p")
    patients = list(circulation.cohort().evaluation)
    walks = explore(problem, patients[:40], n_episodes=N_STORED // 80, n_steps=1, seed=0)
    agent = ContinuousVito.learn(problem, walks)
    began = time.process_time()
    assert agent.knowledge.covariance is not None
    learning = time.process_time() - began
    inside = [0.0]
    run = Problem.run

    def timed(self, *args, **kwargs):
        began = time.process_time()
        found = run(self, *args, **kwargs)
        inside[0] += time.process_time() - began
        return found

    monkeypatch.setattr(Problem, "run", timed)
    agent.personalize(patients[40])  # kernels are compiled
    inside[0], n_runs, began = 0.0, 0, time.process_time()
    for patient in patients[41:]:
        n_runs += agent.personalize(patient).n_runs
    own = (time.process_time() - began - inside[0]) / n_runs

    rows = np.random.default_rng(0).permutation(len(agent.experience.u))[:N_PEER]
    a, y = agent.experience.inputs[rows], agent.experience.y[rows]
    kernel = ConstantKernel(1.0) * RBF(np.ones(a.shape[1])) + WhiteKernel(1e-3)
    with one_thread(), warnings.catch_warnings(action="ignore"):
        began = time.process_time()
        for column in y.T:
            normal = (column - column.mean()) / column.std()
            GaussianProcessRegressor(kernel).fit(a, normal)
        peer = time.process_time() - began
    print(
        f"\n12p, {len(agent.experience.u)} stored runs: {1e3 * own:.0f} ms per run beside the "
        f"model; learning {learning:.1f} s, {peer / learning:.0f} times faster than "
        f"scikit-learn on {N_PEER} runs ({peer:.1f} s)"
    )
    assert peer / learning >= 2.0
