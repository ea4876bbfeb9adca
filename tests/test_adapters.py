"""Simulators of one parameter vector: what goes wrong ends, is told apart, and leaves nothing."""

import threading
import time
from copy import deepcopy
from pathlib import Path

import numpy as np
import psutil
import pytest
import simulators
from adapted import causes, problem_of

from vitolab.adapters import FileFunction, FunctionModel
from vitolab.failures import CannotRun, Kind
from vitolab.problem import Patient

PATIENT = Patient("P", {"u": 1.0}, {"heart_rate": 60.0})
OUTPUTS = ("u", "w")


@pytest.fixture(scope="module")
def moody():
    model = FunctionModel(simulators.moody, OUTPUTS, time_limit=1.0, n_workers=2)
    yield model
    model.close()


def test_each_way_to_fail_is_told_apart_and_the_others_answer(moody):
    began = time.monotonic()
    x = [[float(way), 0.5] for way in range(10)]
    y, reasons = causes(moody, x)
    assert time.monotonic() - began < 30
    assert np.array_equal(np.flatnonzero(np.isfinite(y).all(axis=1)), [0, 9])
    assert np.array_equal(y[9], [9.5, 8.5])
    assert reasons == {
        1: (Kind.RAISED, "ValueError: x is one", 0),
        2: (Kind.TIME_OUT, "no answer within 1 s", 0),
        3: (Kind.CRASHED, "SIGSEGV(-11)", 0),
        4: (Kind.RAISED, "SystemExit: 3", 0),
        5: (Kind.SHAPE, "output 'w' is missing, found u", 0),
        6: (Kind.NOT_FINITE, "w", 0),
        7: (Kind.SHAPE, "shape (), expected (2,)", 0),
        8: (Kind.RAISED, "TimeoutError: from within", 0),
    }


def test_a_call_that_hangs_is_really_ended():
    model = FunctionModel(simulators.moody, OUTPUTS, time_limit=0.5, n_workers=1)
    before = set(psutil.Process().children(recursive=True))
    model(np.array([[0.0, 0.0]]), PATIENT)
    (worker,) = [
        child
        for child in set(psutil.Process().children(recursive=True)) - before
        if "popen_loky" in " ".join(child.cmdline())
    ]
    y, _ = causes(model, [[2.0, 0.0], [0.0, 0.0]])
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
    assert np.isfinite(y[1]).all()
    model.close()


def test_functions_of_a_notebook_and_closures_travel():
    shift = 3.0
    before = set(psutil.Process().children())
    with FunctionModel(
        lambda x, patient: [x[0] + shift, patient.data["heart_rate"]], OUTPUTS
    ) as model:
        assert np.array_equal(model(np.array([[1.0, 0.0]]), PATIENT), [[4.0, 60.0]])
        workers = set(psutil.Process().children()) - before
        assert any("popen_loky" in " ".join(child.cmdline()) for child in workers)
    left = {child for child in set(psutil.Process().children()) - before if child.is_running()}
    assert not any("popen_loky" in " ".join(child.cmdline()) for child in left)


def test_retries_are_made_and_counted(tmp_path):
    def lucky(x, patient):
        path = Path(patient.data["folder"]) / str(x[0])
        tries = len(path.read_text()) if path.exists() else 0
        path.write_text("x" * (tries + 1))
        if tries < x[1]:
            raise OSError("license server")
        return [1.0, 2.0]

    patient = Patient("P", {}, {"folder": str(tmp_path)})
    for n_workers in (0, 1):
        model = FunctionModel(lucky, OUTPUTS, retries=2, n_workers=n_workers)
        x = np.array([[n_workers + 0.1, 2.0], [n_workers + 0.2, 9.0]])
        found = model.answers(x, patient)
        assert np.array_equal(np.isfinite(found.y).all(axis=1), [True, False])
        assert found.reasons == {1: (Kind.RAISED, "OSError: license server", 2)}
        model.close()


def test_a_file_of_functions_imports_what_is_beside_it(tmp_path):
    (tmp_path / "constants_beside.py").write_text("K = 7.0\n")
    (tmp_path / "own.py").write_text(
        "from constants_beside import K\ndef simulate(x, patient):\n    return [K * x[0], x[1]]\n"
    )
    model = FunctionModel(FileFunction(tmp_path / "own.py", "simulate"), OUTPUTS, n_workers=1)
    assert np.array_equal(model(np.array([[2.0, 1.0]]), PATIENT), [[14.0, 1.0]])
    model.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"outputs": ()}, "outputs are"),
        ({"outputs": ("u", "u")}, "each once"),
        ({"time_limit": 0.0}, "time_limit is 0 s"),
        ({"time_limit": 1.0, "n_workers": 0}, "time_limit needs worker processes"),
        ({"retries": -1}, "retries is -1"),
        ({"n_workers": -1}, "n_workers is -1"),
    ],
)
def test_settings_without_sense_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        FunctionModel(**{"function": simulators.decent, "outputs": OUTPUTS, **settings})


def holding_a_lock():
    lock = threading.Lock()
    return lambda x, patient: [float(lock.locked()), 0.0]


@pytest.mark.parametrize(
    ("function", "n_workers", "says"),
    [
        (
            simulators.Unready(ImportError("no module of that name")),
            1,
            "ImportError: no module of that name",
        ),
        (
            simulators.Unready(ImportError("no module of that name")),
            0,
            "ImportError: no module of that name",
        ),
        (simulators.Unready(SystemExit(2)), 2, "the model cannot be prepared: SystemExit: 2"),
        (holding_a_lock(), 2, "cannot go to a process of its own"),
        (simulators.Untravelled(), 1, "its process ended before the model could be called"),
    ],
)
def test_a_model_that_cannot_be_run_at_all_ends_the_work(function, n_workers, says):
    model = FunctionModel(function, OUTPUTS, n_workers=n_workers)
    for problem in (problem_of(model), problem_of(model).observing(["u"])):
        with pytest.raises(CannotRun, match=says) as caught:
            problem.run(np.zeros((3, 2)), PATIENT)
    assert str(deepcopy(caught.value)) == str(caught.value)
    model.close()


def test_an_output_that_is_not_measured_may_be_missing():
    """The same part of an adapter's answer is taken as of a batched model."""

    def half(x, patient):
        return [x[0], np.nan]

    def batched(x, patient):
        return np.stack([x[:, 0], np.full(len(x), np.nan)], axis=1)

    x = np.array([[1.0, 0.0], [2.0, 0.0]])
    for n_workers in (0, 1):
        with FunctionModel(half, OUTPUTS, n_workers=n_workers) as model:
            for simulate in (model, batched):
                problem = problem_of(simulate)
                part, whole = problem.observing(["u"]).run(x, PATIENT), problem.run(x, PATIENT)
                assert np.array_equal(part.y, x[:, :1])
                assert part.failures == ()
                assert np.isnan(whole.y[:, 1]).all()
                assert [(f.kind, f.text) for f in whole.failures] == [(Kind.NOT_FINITE, "w")] * 2


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_part_of_a_wrong_shape_is_a_wrong_shape(n_outputs):
    problem = problem_of(lambda x, patient: np.ones((len(x), n_outputs))).observing(["w"])
    runs = problem.run(np.zeros((2, 2)), PATIENT)
    assert np.isnan(runs.y).all()
    assert [(f.kind, f.text) for f in runs.failures] == [
        (Kind.SHAPE, f"shape (1, {n_outputs}), expected (1, 2)")
    ] * 2


@pytest.mark.parametrize("value", [True, "1.5", np.bool_(0), 10**400])
def test_what_is_no_number_is_not_taken_for_one(value):
    model = FunctionModel(lambda x, patient: {"u": value, "w": 1}, OUTPUTS, n_workers=0)
    _, reasons = causes(model, [[0.0, 0.0]])
    assert reasons[0][0] is Kind.SHAPE


@pytest.mark.parametrize("error", ["asyncio.CancelledError", "KeyboardInterrupt", "GeneratorExit"])
def test_what_is_no_exception_fails_a_run_too(tmp_path, error):
    (tmp_path / "own.py").write_text(
        f"import asyncio\ndef simulate(x, patient):\n    raise {error}('so')\n"
    )
    with FunctionModel(FileFunction(tmp_path / "own.py", "simulate"), OUTPUTS) as model:
        _, reasons = causes(model, [[1.0, 1.0]])
    assert reasons[0] == (Kind.RAISED, f"{error.rpartition('.')[2]}: so", 0)
