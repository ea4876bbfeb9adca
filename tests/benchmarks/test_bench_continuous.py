"""What the agent with continuous actions costs beside the model, and an emulator of a library."""

import time
import warnings

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import vitolab.agent.knowledge
from vitolab.agent import ContinuousVito
from vitolab.exploration import explore
from vitolab.models import circulation
from vitolab.parallel.threads import one_thread
from vitolab.problem import Problem

N_STORED = 10_000
N_PEER = 500  # runs that the emulator of the library keeps


def test_planning_a_run_beside_an_emulator_of_the_library(monkeypatch):
    """Processor time per run beside the model, and of learning per patient, 12p.

    Of ten thousand stored runs, to which every patient adds its own.
    """
    problem = circulation.problem("12p")
    patients = list(circulation.cohort().evaluation)
    walks = explore(problem, patients[:40], n_episodes=N_STORED // 80, n_steps=1, seed=0)
    agent = ContinuousVito.learn(problem, walks)
    agent.personalize(patients[40])  # kernels are compiled
    running = timed(monkeypatch, Problem, "run")
    learning = timed(monkeypatch, vitolab.agent.knowledge, "learned")
    monkeypatch.setattr(vitolab.agent.knowledge, "_LEARNED", {})
    n_runs, began = 0, time.process_time()
    for patient in patients[41:]:
        fit = agent.personalize(patient)
        agent = agent.update([(patient, fit)])
        n_runs += fit.n_runs
    own = (time.process_time() - began - sum(running) - sum(learning)) / n_runs
    per_patient = sum(learning) / len(patients[41:])

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
        f"model, {1e3 * per_patient:.0f} ms of learning per patient; the first learning took "
        f"{learning[0]:.1f} s, {peer / learning[0]:.0f} times faster than scikit-learn on {N_PEER} "
        f"runs ({peer:.1f} s)"
    )
    assert peer / learning[0] >= 2.0
    assert sum(learning[1:]) < 0.5 * learning[0]  # the next patients learn hardly anything again


def timed(monkeypatch, owner, name):
    """Processor time of every call of a function, in seconds, as a list that grows."""
    spent, function = [], getattr(owner, name)

    def call(*args, **kwargs):
        began = time.process_time()
        found = function(*args, **kwargs)
        spent.append(time.process_time() - began)
        return found

    monkeypatch.setattr(owner, name, call)
    return spent
