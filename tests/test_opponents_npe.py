"""Neural posterior estimation: what it learns, how it acts, and what is said without it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analytic import linear
from extras import needs_sbi
from part_store import Parts
from test_cli import call

from vitolab import methods
from vitolab.experience import Experience
from vitolab.exploration import explore
from vitolab.failures import CannotRun
from vitolab.files import stream
from vitolab.fit import Event, StopReason
from vitolab.problem import Patient, Problem
from vitolab.reference.opponents import NearestLeastSquares, NeuralPosterior, flow
from vitolab.trajectories import Trajectories
from vitolab.validation import leave_one_out

SENTENCE = 'method npe needs sbi and torch, expected `pip install "vitolab[npe]"`'
#: Of the linear-Gaussian problem: outputs are SLOPES @ x + SHIFT · feature + noise.
SLOPES, SHIFT, NOISE = np.array([[1.0, 0.5], [-0.4, 1.2]]), np.array([0.8, -0.6]), 0.7


@pytest.fixture(scope="module")
def walks(linear_problem, linear_patients) -> Trajectories:
    return explore(linear_problem, linear_patients[1:], n_episodes=6, n_steps=1, seed=1)


@pytest.fixture(scope="module")
def learned(linear_problem, walks) -> NeuralPosterior:
    return NeuralPosterior.learn(linear_problem, walks, seed=3)


# --- without the extra ---------------------------------------------------------------------


@pytest.fixture
def without_sbi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "find_spec", lambda name: None)


@pytest.mark.parametrize("command", ["study", "another study", "personalize"])
def test_a_command_without_the_extra_says_what_to_install_and_leaves_nothing(
    command, without_sbi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file, results = tmp_path / "patients.csv", tmp_path / "results"
    file.write_text("patient,alpha,t1,t2\nA,1,1,1\nB,2,2,2\n", encoding="utf-8")
    arguments = {
        "study": ["run", "npe"],
        "another study": ["run", "from-nothing", "-p", 'methods=["npe"]'],
        "personalize": ["personalize", "rosenbrock", "--patients", file, "--method", "npe"],
    }[command]
    assert call(*arguments, "--results", results) == 2
    assert capsys.readouterr().err == f"vitolab: {SENTENCE}\n"
    assert not results.exists()


def test_learning_without_the_extra_says_what_to_install(
    without_sbi, linear_problem, linear_patients, walks
):
    run = Parts()
    for learn in (
        lambda: NeuralPosterior.learn(linear_problem, walks),
        lambda: methods.learn(["npe"], linear_problem, walks, 0),
        lambda: leave_one_out(
            run, {"s": linear_problem}, linear_patients, n_samples={"s": [2]}, methods=["npe"]
        ),
    ):
        with pytest.raises(CannotRun) as refused:
            learn()
        assert str(refused.value) == SENTENCE
    assert not run.parts


def test_other_methods_do_not_need_the_extra(without_sbi, linear_problem, walks):
    others = [name for name in methods.AGENTS if name != "npe" and not methods.learns_states(name)]
    assert list(methods.learn(others, linear_problem, walks, 0)) == others


# --- what is learned -----------------------------------------------------------------------


def gaussian(problem: Problem, seed: int) -> Experience:
    """Runs whose parameters are standard normal, of patients who differ in a feature."""
    rng = np.random.default_rng(seed)
    n_patients, each = 50, 20
    whose = np.repeat(np.arange(n_patients), each)
    feature = rng.normal(size=n_patients)
    x = rng.normal(size=(len(whose), 2))
    y = x @ SLOPES.T + SHIFT * feature[whose, np.newaxis] + NOISE * rng.normal(size=x.shape)
    u, y, known = x / 10.0 + 0.5, y / problem.tolerance, feature[:, np.newaxis]
    made, unknown = np.full(n_patients, each), ("",) * n_patients
    return Experience(problem, u, y, whose, known, made, unknown, unknown)


@needs_sbi
def test_the_posterior_mean_of_a_linear_gaussian_problem_is_its_closed_form(linear_problem):
    problem = replace(linear_problem, name="gaussian", features=("offset",))
    agent = NeuralPosterior.learn(problem, gaussian(problem, 1))
    precision = np.eye(2) + SLOPES.T @ SLOPES / NOISE**2
    off, unshrunk = [], []
    for u, w, feature in ((0.5, -1.0, 0.0), (1.5, 0.5, 1.0), (2.0, 1.0, 0.0), (-1.5, 1.5, 0.5)):
        patient = Patient("P", {"u": u, "w": w}, {"offset": feature})
        mean = agent.mean(patient, np.random.default_rng(0))
        assert mean is not None
        left = np.array([u, w]) - SHIFT * feature
        expected = np.linalg.solve(precision, SLOPES.T @ left) / NOISE**2
        off.append(10.0 * (mean - 0.5) - expected)
        unshrunk.append(np.linalg.solve(SLOPES, left) - expected)
    assert np.abs(off).max() < 0.25  # the posterior has standard deviations of 0.5
    assert np.abs(unshrunk).max() > 0.4  # and is not where the model alone would have it


@needs_sbi
def test_the_first_run_is_the_posterior_mean_and_least_squares_go_on(
    learned, linear_problem, linear_patients
):
    calls: list[np.ndarray] = []

    def simulate(x, patient):
        calls.extend(x)
        return linear(x, patient)

    counting = replace(learned, problem=replace(linear_problem, simulate=simulate))
    fit = counting.personalize(linear_patients[0], max_runs=40)
    assert fit.solved
    np.testing.assert_array_equal(calls, fit.trace.x)
    far = Patient("far", {"u": 8.0, "w": -8.0}, {"offset": 0.0})
    fit = learned.personalize(far, max_runs=3)
    moved = np.abs(fit.trace.x[1:] - fit.trace.x[0]) / 10.0
    assert (np.sort(moved, axis=1)[:, 0] == 0.0).all()  # one difference for each parameter
    assert ((moved.max(axis=1) > 5e-4) & (moved.max(axis=1) < 2.01e-3)).all()


@needs_sbi
def test_the_posterior_mean_is_a_better_start_than_the_nearest_run(
    learned, linear_problem, linear_patients, walks
):
    nearest = NearestLeastSquares.learn(linear_problem, walks)
    misfit = [
        np.median([np.abs(m.personalize(p, max_runs=1).trace.misfits).max() for p in all_ten])
        for all_ten in [linear_patients]
        for m in (learned, nearest)
    ]
    assert misfit[0] < misfit[1]


@needs_sbi
def test_measurements_beyond_all_runs_start_within_the_domain(learned, linear_problem):
    far = Patient("far", {"u": 1e6, "w": -1e6}, {"offset": 0.0})
    fit = learned.personalize(far, max_runs=20)
    assert (fit.n_runs, fit.stop_reason) == (20, StopReason.BUDGET)
    assert (np.abs(fit.trace.x) <= 5.0).all()


@needs_sbi
def test_of_fewer_than_ten_runs_nothing_is_trained(linear_problem, linear_patients, walks):
    few = walks.first(1).select([p.name for p in linear_patients[1:5]])
    agent = NeuralPosterior.learn(linear_problem, few)
    assert len(agent.stored.u) == 8
    assert not agent.network
    fits = [
        kind.learn(linear_problem, few).personalize(linear_patients[0])
        for kind in (NeuralPosterior, NearestLeastSquares)
    ]
    np.testing.assert_array_equal(fits[0].trace.x, fits[1].trace.x)


@needs_sbi
def test_failed_runs_are_left_out_of_the_training(linear_problem, walks, learned):
    """Walks with failures teach what the same walks teach without these runs."""
    y = walks.y.copy()
    y[::3] = np.nan
    failing = NeuralPosterior.learn(linear_problem, replace(walks, y=y), seed=3)
    stored = learned.stored
    answered = np.isfinite(y).all(axis=2)[walks.counted]
    kept = replace(stored, **{n: getattr(stored, n)[answered] for n in ("u", "y", "patient")})
    assert failing == NeuralPosterior.learn(linear_problem, kept, seed=3)
    assert failing != learned


# --- the same bits -------------------------------------------------------------------------


@needs_sbi
def test_the_same_seed_gives_the_same_bits_in_threads_too(
    learned, linear_problem, linear_patients, walks
):
    def whole(seed):
        agent = NeuralPosterior.learn(linear_problem, walks, seed=seed)
        return agent, agent.personalize(linear_patients[0], max_runs=5, seed=1).trace.x

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(whole, (3, 4, 3)))
    assert found[0][0] == found[2][0] == learned
    np.testing.assert_array_equal(found[0][1], found[2][1])
    assert found[0][0] != found[1][0]


@needs_sbi
def test_the_users_own_state_of_torch_is_left_as_it_was(learned, linear_problem, linear_patients):
    torch = pytest.importorskip("torch")
    torch.manual_seed(11)
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    try:
        before = torch.get_rng_state()
        again = NeuralPosterior.learn(linear_problem, learned.stored, seed=3)
        again.personalize(linear_patients[0], max_runs=1)
        assert torch.equal(before, torch.get_rng_state())
        assert torch.get_num_threads() == 2
        assert torch.get_default_dtype() == torch.float64
        assert not torch.are_deterministic_algorithms_enabled()
        assert again == learned
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(1)


@needs_sbi
def test_nothing_of_the_held_out_patient_is_learned(linear_problem, linear_patients):
    """Who is measured alike but answers otherwise when explored gets the same start."""
    patients = linear_patients[:4]
    changed = replace(patients[0], data={"offset": 3.0})

    def first(others, n_jobs=1):
        run = Parts()
        leave_one_out(
            run,
            {"s": linear_problem},
            others,
            n_samples={"s": [10]},
            methods=["npe"],
            episode=1,
            max_runs=1,
            n_jobs=n_jobs,
        )
        return run.personalizations.set_index("patient")[["x:a", "x:b"]]

    found = first(patients)
    who = patients[0].name
    assert found.loc[who].equals(first([changed, *patients[1:]]).loc[who])
    assert found.equals(first(patients[::-1], n_jobs=2))  # nor do order and workers matter


@needs_sbi
def test_training_says_nothing(linear_problem, walks, capfd: pytest.CaptureFixture[str], tmp_path,
                               monkeypatch):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    NeuralPosterior.learn(linear_problem, walks)
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


@needs_sbi
def test_a_start_that_is_given_is_run_before_the_posterior_mean(learned, linear_patients):
    start = np.array([[-4.0, 4.0]])
    far = Patient("far", {"u": 90.0, "w": -90.0}, {"offset": 0.0})
    fit = learned.personalize_from(far, start, max_runs=200)[0]
    starts = fit.trace.x[fit.trace.event != Event.STEP]
    np.testing.assert_allclose(starts[0], start[0], atol=1e-12)
    mean = learned.mean(far, stream("optimiser", "linear", 0, "far", 0))
    np.testing.assert_allclose(starts[1], 10.0 * mean - 5.0, atol=1e-12)
    assert len(starts) > 2
