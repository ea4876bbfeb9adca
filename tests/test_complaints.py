"""What users of software for fitting models complain of in public, as claims about this one.

Each kind of complaint is one claim. Others of their kinds are claims elsewhere: a failed run that
ends a fit or passes for a success (`test_failures`), a call that nothing ends (`test_adapters`),
going on with other results than going through (`test_runs`, `test_resume`, `test_survival`), units
that are refused too late (`test_patients`, `test_problemfile`), a killed kernel that is waited for
(`test_studies`).
"""

import random
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from analytic import linear
from part_store import Parts

from vitolab import validation
from vitolab.adapters import FunctionModel, ProgramModel
from vitolab.agent import ContinuousVito, Vito
from vitolab.exploration import explore
from vitolab.failures import Kind
from vitolab.identifiability import sensitivity
from vitolab.problem import Patient
from vitolab.reference import BobyqaSimple, LeastSquares, NelderMead
from vitolab.store import Run, latest, open_run

METHODS = {
    "vito": lambda problem, walks: Vito.learn(problem, walks, 30),
    "hindsight": lambda problem, walks: Vito.learn(problem, walks, 30, n_replays=2),
    "continuous": lambda problem, walks: ContinuousVito.learn(problem, walks),
    "simplex": lambda problem, walks: NelderMead(problem),
    "squares": lambda problem, walks: LeastSquares(problem, multistart=True),
    "bobyqa": lambda problem, walks: BobyqaSimple(problem),
}
STARTS = np.array([[2.2, 0.0], [4.5, 4.0], [1.9, -4.0]])


def answering(*values):
    """Answer as `linear` does, but with these values where a > 2."""

    def simulate(x, patient):
        return np.where(x[:, :1] > 2, values, linear(x, patient))

    return simulate


def same(one, other):
    """Whether two fits went through the same runs to the same end."""
    return (one.solved, one.stop_reason, one.n_failed) == (
        other.solved,
        other.stop_reason,
        other.n_failed,
    ) and np.array_equal(one.trace.x, other.trace.x)


def test_walks_explored_before_a_stop_are_not_explored_again(
    linear_problem, linear_patients, tmp_path
):
    ran = []

    def simulate(x, patient):
        ran.append(patient.name)
        if patient.name == "P3" and len(set(ran)) == 4 and stopping:
            raise KeyboardInterrupt
        return linear(x, patient)

    problem = replace(linear_problem, simulate=simulate)
    sizes = {"n_episodes": 2, "n_steps": 10, "seed": 4}
    stopping = True
    with pytest.raises(KeyboardInterrupt):
        explore(problem, linear_patients, **sizes, cache=tmp_path)
    stopping = False
    ran.clear()
    walks = explore(problem, linear_patients, **sizes, cache=tmp_path)
    assert set(ran) == {p.name for p in linear_patients[3:]}
    assert np.array_equal(walks.y, explore(linear_problem, linear_patients, **sizes).y)


def fitted(problem, patients, values):
    """Walks and fits, by every method, of a model that answers with these values where a > 2."""
    problem = replace(problem, simulate=answering(*values))
    walks = explore(problem, patients[1:], n_episodes=4, n_steps=25, seed=1)
    return walks, [
        fit
        for learn in METHODS.values()
        for fit in learn(problem, walks).personalize_from(patients[0], STARTS, max_runs=30, seed=3)
    ]


@pytest.fixture(scope="module")
def unanswered(linear_problem, linear_patients):
    """Fits of the model that answers with no number at all."""
    _, fits = fitted(linear_problem, linear_patients, (np.nan, np.nan))
    assert sum(fit.n_failed for fit in fits) > 0
    assert sum(fit.solved for fit in fits) > 0
    return fits


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((1.0, np.nan), Kind.NOT_FINITE),
        ((np.inf, 0.0), Kind.NOT_FINITE),
        ((0.0, 1e9), Kind.TOO_LARGE),
        ((-1e200, 0.0), Kind.TOO_LARGE),
        ((0.0, np.finfo(float).max), Kind.TOO_LARGE),
    ],
    ids=str,
)
def test_whatever_a_failed_run_answered_makes_no_difference(
    linear_problem, linear_patients, unanswered, values, kind
):
    """Also where it is a number with which nobody can compute."""
    walks, fits = fitted(linear_problem, linear_patients, values)
    assert {failure.kind for failure in walks.failures} == {kind}
    assert all(map(same, unanswered, fits))


@pytest.mark.parametrize("learn", METHODS.values(), ids=METHODS)
def test_the_best_that_is_told_is_a_run_that_answered(linear_problem, linear_patients, learn):
    """Of a patient out of reach, where a part of Ω without answers looks as if it were near."""
    problem = replace(linear_problem, simulate=answering(0.0, np.nan))
    walks = explore(problem, linear_patients, n_episodes=4, n_steps=25, seed=2)
    patient = Patient("far", {"u": 60.0, "w": 60.0}, {"offset": 0.0})
    for fit in learn(problem, walks).personalize_from(patient, STARTS, max_runs=40, seed=1):
        assert not fit.solved
        answered = np.isfinite(fit.trace.y).all(axis=1)
        assert np.isfinite(fit.misfits).all() == answered.any()
        if answered.any():
            assert np.array_equal(problem.run(fit.x[np.newaxis], patient).y[0], fit.y)
            assert np.abs(fit.misfits).max() == np.nanmin(
                np.abs(fit.trace.misfits[answered]).max(axis=1)
            )


def test_a_hang_costs_its_time_limit_and_nothing_else(linear_problem):
    """The same fit as of a model that says at once that it cannot answer there."""

    def hanging(x, patient):
        if x[0] > 4.5:
            time.sleep(100)
        return [x[0] + x[1], x[0] - x[1]]

    def unable(x, patient):
        return [np.nan, np.nan] if x[0] > 4.5 else hanging(x, patient)

    patient = Patient("P", {"u": 1.0, "w": 2.0})
    models = [
        FunctionModel(hanging, ("u", "w"), time_limit=2.0, n_workers=1),
        FunctionModel(unable, ("u", "w"), n_workers=0),
    ]
    fits, began = [], time.monotonic()
    for model in models:
        agent = NelderMead(replace(linear_problem, simulate=model))
        fits += agent.personalize_from(patient, np.array([[4.4, 0.0]]), max_runs=12)
        assert len(fits[-1].failures) == fits[-1].n_failed
        model.close()
    assert same(*fits)
    assert 0 < fits[0].n_failed < 5
    assert time.monotonic() - began < 60


def test_what_an_unfinished_run_has_is_kept_and_what_it_lacks_is_said(tmp_path):
    run = open_run("s", {"n": 1}, results=tmp_path, seed=0, version="1")
    run.write_part("a", pd.DataFrame({"setup": ["2p"]}))
    run.release()
    for look, says in (
        (lambda: Run.load(run.path), "problems.json"),
        (lambda: latest(tmp_path, "s"), "no complete run, expected one"),
    ):
        with pytest.raises(ValueError, match=says) as caught:
            look()
        assert str(run.path.parent) in str(caught.value)
    again = open_run("s", {"n": 1}, results=tmp_path, seed=0, version="1")
    assert again.path == run.path
    assert again.has_part("a")
    again.release()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_random_numbers_of_a_model_are_its_own_affair(linear_problem, linear_patients, n_jobs):
    """It may draw from the generators that all share, and seed them: nobody else uses them."""

    def careless(x, patient):
        np.random.seed(len(x))  # noqa: NPY002
        random.seed(int(np.random.randint(9)))  # noqa: NPY002
        return linear(x, patient)

    fits = []
    for simulate, jobs in ((linear, 1), (careless, n_jobs)):
        np.random.seed(jobs)  # noqa: NPY002
        problem = replace(linear_problem, simulate=simulate)
        walks = explore(problem, linear_patients[1:], 4, 25, seed=1, n_jobs=jobs)
        agents = [learn(problem, walks) for learn in METHODS.values()]
        fits.append([a.personalize(linear_patients[0], max_runs=30, seed=5) for a in agents])
    assert all(map(same, *fits))


def test_noise_of_a_model_is_not_the_same_in_all_its_processes():
    def noisy(x, patient):
        time.sleep(0.02)
        return [np.random.random(), random.random()]  # noqa: NPY002

    model = FunctionModel(noisy, ("u", "w"), n_workers=2)
    y = model(np.zeros((12, 2)), Patient("P", {}))
    model.close()
    assert len(np.unique(y)) == y.size


def test_more_patients_at_once_than_processes_come_to_the_same_end(linear_problem):
    def failing(x, patient):
        if x[0] > 4:
            raise ArithmeticError("diverged")
        return [x[0] + x[1], x[0] - x[1]]

    rng = np.random.default_rng(3)
    patients = [
        Patient(f"P{i}", dict(zip("uw", rng.uniform(-2, 2, 2).tolist(), strict=True)))
        for i in range(4)
    ]
    tables = []
    for n_workers, n_jobs in ((0, 1), (2, 4)):
        model = FunctionModel(failing, ("u", "w"), n_workers=n_workers)
        problems, run = {"s": replace(linear_problem, simulate=model)}, Parts()
        validation.leave_one_out(
            run,
            problems,
            patients,
            n_samples={"s": [40]},
            n_states={"s": [12]},
            methods=("vito",),
            episode=20,
            max_runs=15,
            n_jobs=n_jobs,
        )
        validation.reference_runs(
            run, problems, patients, methods=["nelder-mead"], n_starts=1, max_runs=15, n_jobs=n_jobs
        )
        model.close()
        tables.append(run.personalizations)
    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["n_failed"].sum() > 0


def test_runs_of_a_program_at_the_same_time_do_not_meet_in_their_files(tmp_path):
    """It keeps what it is asked in a file of one name, and answers from there a moment later."""
    model = ProgramModel(
        ("sh", "-c", 'echo "{a}" > scratch; sleep 0.1; (echo u; cat scratch) > "{output}"'),
        ("a",),
        ("u",),
        output="out.csv",
        n_workers=6,
        folder=tmp_path,
    )
    x = np.linspace(-1, 1, 18)[:, np.newaxis]
    assert np.array_equal(model(x, Patient("P", {})), x)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("learn", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("values", [(np.nan, np.nan), (0.0, np.inf), (1e300, 1e300)], ids=str)
def test_where_nothing_answers_a_search_ends_within_its_budget_and_says_so(
    linear_problem, linear_patients, learn, values
):
    walks = explore(linear_problem, linear_patients[1:], n_episodes=4, n_steps=25, seed=1)
    agent = replace(
        learn(linear_problem, walks),
        problem=replace(linear_problem, simulate=lambda x, patient: np.full(x.shape, values)),
    )
    fit = agent.personalize(linear_patients[0], max_runs=40, seed=2)
    assert not fit.solved
    assert 0 < fit.n_runs == fit.n_failed <= 40
    assert len(fit.failures) == fit.n_runs
    assert not np.isfinite(fit.y).all()
    assert fit.stop_reason.sentence


def test_a_picture_of_many_runs_bears_one_that_raises(linear_problem, linear_patients):
    def raising(x, patient):
        if (x[:, 1] > 0).any():
            raise ArithmeticError("diverged")
        return linear(x, patient)

    problem = replace(linear_problem, simulate=raising)
    found = sensitivity(problem, np.zeros(2), linear_patients[0])
    assert found.failed == ("b",)
    whole = sensitivity(linear_problem, np.zeros(2), linear_patients[0])
    assert np.array_equal(found.jacobian[:, 0], whole.jacobian[:, 0])
