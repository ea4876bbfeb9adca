"""Simulators of one parameter vector: what goes wrong ends, is told apart, and leaves nothing."""

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import numpy as np
import psutil
import pytest
import simulators
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab.adapters import FileFunction, FunctionModel, OdeFunction, ProgramModel, fmu
from vitolab.adapters import function as function_module
from vitolab.failures import CannotRun, Kind
from vitolab.parallel import processes
from vitolab.problem import Objective, Parameter, Patient, Problem

PATIENT = Patient("P", {"u": 1.0}, {"heart_rate": 60.0})
OUTPUTS = ("u", "w")


def causes(model, x):
    """Answers of a model, and its causes by row."""
    found = model.answers(np.array(x, dtype=float), PATIENT)
    return found.y, found.reasons


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


@settings(max_examples=5, deadline=None)
@given(n=st.integers(1, 7), n_workers=st.integers(0, 2))
def test_any_number_of_workers_answers_the_same(n, n_workers):
    x = np.random.default_rng(n).normal(size=(n, 2))
    model = FunctionModel(simulators.decent, OUTPUTS, n_workers=n_workers)
    expected = np.stack([x[:, 0] + x[:, 1], x[:, 0] - x[:, 1]], axis=1)
    assert np.array_equal(model(x, PATIENT), expected)
    model.close()


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


def test_what_is_done_once_per_process_takes_no_time_of_a_call(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time\ntime.sleep(1.5)\ndef simulate(x, patient):\n    return [x[0], x[1]]\n"
    )
    model = FunctionModel(
        FileFunction(tmp_path / "slow.py", "simulate"), OUTPUTS, time_limit=0.7, n_workers=1
    )
    y, reasons = causes(model, [[2.0, 1.0]])
    model.close()
    assert reasons == {}
    assert np.array_equal(y, [[2.0, 1.0]])


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


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys, time, numpy as np\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import psutil, simulators\n"
        "from vitolab.adapters import FunctionModel\n"
        "from vitolab.problem import Patient\n"
        "if __name__ == '__main__':\n"
        "    model = FunctionModel(simulators.decent, ('u', 'w'), n_workers=2)\n"
        "    model(np.zeros((4, 2)), Patient('P', {}))\n"
        "    print(*[c.pid for c in psutil.Process().children(recursive=True)], flush=True)\n"
        "    time.sleep(100)\n"
    )
    parent = psutil.Popen([sys.executable, str(script)], stdout=-1, text=True)
    children = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert len(children) >= 2
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def problem_of(model, names=OUTPUTS):
    """Problem of two parameters whose objectives are the outputs of a model."""
    return Problem(
        "p",
        "1",
        (Parameter("a", "a", "", -9, 9, 0.5, 0.1), Parameter("b", "b", "", -9, 9, 0.5, 0.1)),
        tuple(Objective(name, name, "", 1.0) for name in names),
        model,
    )


# What cannot be run at all is no failed run.


LOCK = threading.Lock()


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


def test_a_patient_that_cannot_travel_is_no_failed_run():
    with FunctionModel(simulators.decent, OUTPUTS, n_workers=1) as model:
        patient = Patient("Q", {}, {"lock": LOCK})
        with pytest.raises(CannotRun, match="patient 'Q' cannot go to another process"):
            model(np.zeros((2, 2)), patient)
        assert np.isfinite(model(np.zeros((2, 2)), PATIENT)).all()


def test_an_import_that_hangs_has_a_limit(tmp_path, monkeypatch):
    (tmp_path / "hang.py").write_text("import time\ntime.sleep(100)\n")
    monkeypatch.setattr(function_module, "PREPARE", 1.0)
    began = time.monotonic()
    with (
        FunctionModel(FileFunction(tmp_path / "hang.py", "f"), OUTPUTS, n_workers=1) as model,
        pytest.raises(CannotRun, match="not ready to be called within 1 s"),
    ):
        model(np.zeros((1, 2)), PATIENT)
    assert time.monotonic() - began < 20


def test_files_of_one_name_do_not_meet_and_hold_dataclasses(tmp_path):
    path = list(sys.path)
    models = []
    for i in (1.0, 2.0):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "model.py").write_text(
            "from __future__ import annotations\n"
            "from dataclasses import dataclass, field, fields\n"
            "from typing import ClassVar\n"
            "@dataclass\n"
            "class Heart:\n"
            f"    k: float = {i}\n"
            "    n: ClassVar[int] = 1\n"
            "def simulate(x, patient):\n"
            "    return [Heart().k, float(len(fields(Heart)))]\n"
        )
        models.append(FileFunction(folder / "model.py", "simulate"))
    for model, k in zip(models, (1.0, 2.0), strict=True):
        with FunctionModel(model, OUTPUTS, n_workers=1) as made:
            assert np.array_equal(made(np.zeros((1, 2)), PATIENT), [[k, 1.0]])
        assert model(np.zeros(2), PATIENT) == [k, 1.0]  # in this process, both
    # what was there is found as before
    assert sys.path == path
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        FileFunction(tmp_path / "broken.py", "f").prepare()
    assert not [name for name in sys.modules if "broken" in name]


def test_each_process_uses_one_thread_of_linear_algebra():
    def threads(x, patient):
        import scipy.linalg  # noqa: F401
        from threadpoolctl import threadpool_info

        numbers = [library["num_threads"] for library in threadpool_info()]
        return [float(max(numbers)), float(len(numbers))]

    with FunctionModel(threads, OUTPUTS, n_workers=1) as model:
        model(np.zeros((1, 2)), PATIENT)  # a library that is loaded by then is held too
        most, n = model(np.zeros((1, 2)), PATIENT)[0]
    assert n > 0
    assert most == 1


def test_a_process_ends_at_once_whose_parent_is_gone_already():
    code = (
        "import time; from vitolab.parallel.processes import end_with; "
        "end_with(1, None); time.sleep(60)"
    )
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=50)
    assert ended.returncode == 1
    assert time.monotonic() - began < 30


def test_a_model_without_processes_says_so_and_its_copies_have_their_own():
    assert not FunctionModel(simulators.decent, OUTPUTS, n_workers=0).own_processes
    with FunctionModel(simulators.decent, OUTPUTS, n_workers=1) as model:
        assert model.own_processes
        model(np.zeros((1, 2)), PATIENT)
        with deepcopy(model) as copy:  # as it travels
            assert copy == model
            assert np.array_equal(copy(np.ones((1, 2)), PATIENT), [[2.0, 0.0]])


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


def test_folders_of_processes_that_were_killed_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        f"import os, tempfile; tempfile.tempdir = {str(tmp_path)!r}; "
        "from vitolab.adapters import fmu; fmu._own_folder(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    (left,) = tmp_path.iterdir()
    (tmp_path / f"{left.name.rpartition('-')[0][:20]}-of-others").mkdir()
    mine, again = fmu._own_folder(), fmu._own_folder()
    assert not left.exists()
    assert Path(mine.name).is_dir()
    assert len(list(tmp_path.iterdir())) == 3
    mine.cleanup()
    again.cleanup()


# Who is stopped stops what it started.

STOPPED = """
import pathlib, sys, numpy as np
from vitolab.adapters import FunctionModel, ProgramModel
from vitolab.problem import Patient
note = {note!r}

def hang(x, patient):
    import pathlib, os, time
    pathlib.Path(note + str(x[0])).write_text(str(os.getpid()))
    time.sleep(100)

shell = 'echo $$ > ' + note + '$1; sleep 100 & wait'
if __name__ == "__main__":
    if {program}:
        model = ProgramModel(("sh", "-c", shell, "sh", "{{a}}"), ("a",), ("u",), n_workers=2)
    else:
        model = FunctionModel(hang, ("u",), n_workers=2)
    model(np.array([[1.0], [2.0], [3.0], [4.0]]), Patient("P", {{}}))
"""


@pytest.mark.parametrize("program", [True, False])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_goes_on_when_this_process_is_stopped(tmp_path, program, how):
    note = tmp_path / "pid"
    script = tmp_path / "script.py"
    script.write_text(STOPPED.format(note=str(note), program=program))
    parent = subprocess.Popen(
        [sys.executable, str(script)], stderr=subprocess.PIPE, preexec_fn=simulators.interruptible
    )
    expected = [tmp_path / "pid1.0", tmp_path / "pid2.0"]
    deadline = time.monotonic() + 40
    while not all(path.exists() and path.read_text().strip() for path in expected):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    first = [psutil.Process(int(path.read_text())) for path in expected]
    started = {process for one in first for process in (one, *one.children(recursive=True))}
    assert len(started) == (4 if program else 2)
    parent.send_signal(how)
    _, said = parent.communicate(timeout=20)
    _, alive = psutil.wait_procs(started, timeout=10)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    assert len(list(tmp_path.glob("pid*"))) == 2  # those that waited were not begun
    if how is signal.SIGINT:
        assert said.decode().strip().endswith("KeyboardInterrupt")


def test_programs_of_several_patients_at_a_time_do_not_hold_up_who_is_stopped(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from vitolab.parallel import workers\n"
        "from vitolab.adapters import ProgramModel\n"
        "from vitolab.problem import Patient\n"
        f"command = ('sh', '-c', 'touch {tmp_path}/$$; sleep 100')\n"
        "model = ProgramModel(command, ('a',), ('u',), n_workers=2)\n"
        "def work(model, i):\n"
        "    return model(np.zeros((2, 1)), Patient('P', {}))\n"
        "list(workers.parallel(work, model, [(1,), (2,)], n_jobs=2))\n"
    )
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stderr=subprocess.DEVNULL,
        preexec_fn=simulators.interruptible,
    )
    deadline = time.monotonic() + 40
    while len(list(tmp_path.iterdir())) < 3:  # the script, and a program for each worker
        assert time.monotonic() < deadline
        time.sleep(0.05)
    programs = [int(path.name) for path in tmp_path.iterdir() if path != script]
    parent.send_signal(signal.SIGINT)
    assert parent.wait(20) != 0
    found = [psutil.Process(pid) for pid in programs if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(found, timeout=10)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def test_a_guard_that_is_killed_is_replaced():
    sleepers = [subprocess.Popen(["sleep", "100"], start_new_session=True) for _ in range(2)]
    guard = processes._Guard()
    guard.tell(sleepers[0].pid, lives=True)
    guard._process.kill()
    guard._process.wait()
    guard.tell(sleepers[1].pid, lives=True)
    guard._leave()
    assert [sleeper.wait(10) for sleeper in sleepers] == [-signal.SIGKILL] * 2


# A program of one's own: here Python, which is there on every machine.

PROGRAM = """
import json, os, sys, time
told = json.load(open(sys.argv[1]))
a, b = told["parameters"]["a"], told["parameters"]["b"]
print("working")
if a == 1: sys.exit("cannot go on\\n")
if a == 2: time.sleep(100)
if a == 3: os.kill(os.getpid(), 9)
if a == 4: sys.exit(0)
if a == 5: bytearray(3_000_000_000)
if a == 6: open(sys.argv[2], "w").write("{"); sys.exit(0)
json.dump({"u": a + b, "w": a - b, "rate": told["patient"]["heart_rate"]}, open(sys.argv[2], "w"))
"""


@pytest.fixture
def program(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def make(**more):
        return ProgramModel(
            (sys.executable, str(script), "{input}", "{output}"),
            ("a", "b"),
            ("u", "w"),
            folder=tmp_path / "calls",
            **{"n_workers": 2, **more},
        )

    return make


def test_a_program_answers_fails_and_leaves_what_explains_it(program, tmp_path):
    model = program(time_limit=3.0, memory_limit=2000.0)
    y, reasons = causes(model, [[float(way), 0.5] for way in range(8)])
    assert np.array_equal(np.flatnonzero(np.isfinite(y).all(axis=1)), [0, 7])
    assert np.array_equal(y[7], [7.5, 6.5])
    assert reasons[1] == (Kind.CRASHED, "exit status 1: cannot go on", 0)
    assert reasons[2] == (Kind.TIME_OUT, "no answer within 3 s", 0)
    assert reasons[3] == (Kind.CRASHED, "ended by SIGKILL: working", 0)
    assert reasons[4] == (Kind.SHAPE, "output.json is missing after the program ended", 0)
    assert reasons[5] == (Kind.CRASHED, "exit status 1: MemoryError", 0)
    assert reasons[6][0] is Kind.RAISED
    assert reasons[6][1].startswith("reading the output: JSONDecodeError")
    kept = list((tmp_path / "calls").iterdir())
    assert len(kept) == 6
    for folder in kept:
        assert (folder / "failed.txt").read_text().strip()
        assert (folder / "stdout.txt").read_text() == "working\n"
        assert json.loads((folder / "input.json").read_text())["parameters"]["b"] == 0.5


def test_what_a_program_started_ends_with_it(tmp_path):
    note = tmp_path / "pid"
    model = ProgramModel(
        ("sh", "-c", f"sleep 100 & echo $! > {note}; wait"), ("a",), ("u",), time_limit=1.0
    )
    _, reasons = causes(model, [[0.0]])
    assert reasons[0][0] is Kind.TIME_OUT
    pid = int(note.read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_few_folders_of_failed_calls_are_kept(program, tmp_path):
    causes(program(), [[4.0, 0.0]] * 25)
    assert len(list((tmp_path / "calls").iterdir())) <= 21  # two at the same time
    causes(program(), [[0.0, 0.0]] * 2)
    assert len(list((tmp_path / "calls").iterdir())) <= 21


def test_values_and_files_stand_in_the_command_and_other_braces_stay(tmp_path):
    model = ProgramModel(
        ("sh", "-c", 'echo "u\n{a}" > "{output}"; test "{c} {}" = "$1 {}"', "sh", "{c}"),
        ("a",),
        ("u",),
        output="out.csv",
    )
    y, reasons = causes(model, [[0.1 + 0.2]])
    assert reasons == {}
    assert y[0, 0] == 0.1 + 0.2  # to the last bit


def test_braces_in_a_folder_are_not_filled(tmp_path):
    folder = tmp_path / "run {a} é"
    folder.mkdir()
    (folder / "own.sh").write_text('echo "u\n$1" > out.csv\n')
    model = ProgramModel(
        ("sh", str(folder / "own.sh"), "{a}"), ("a",), ("u",), output="out.csv", folder=folder
    )
    y, reasons = causes(model, [[2.5]])
    assert reasons == {}
    assert y[0, 0] == 2.5


def test_no_more_programs_run_at_once_than_workers(tmp_path):
    """However many call the model, as folds on threads do."""
    script = (
        f"mkdir {tmp_path}/one 2>/dev/null || exit 9; sleep 0.2; rmdir {tmp_path}/one; "
        'echo "u\n1" > out.csv'
    )
    model = ProgramModel(("sh", "-c", script), ("a",), ("u",), output="out.csv", n_workers=1)
    with ThreadPoolExecutor(4) as threads:
        rows = list(threads.map(lambda i: model(np.array([[float(i)]]), PATIENT), range(6)))
    assert np.array_equal(np.concatenate(rows), np.ones((6, 1)))


@pytest.mark.parametrize("error", ["asyncio.CancelledError", "KeyboardInterrupt", "GeneratorExit"])
def test_what_is_no_exception_fails_a_run_too(tmp_path, error):
    (tmp_path / "own.py").write_text(
        f"import asyncio\ndef simulate(x, patient):\n    raise {error}('so')\n"
    )
    with FunctionModel(FileFunction(tmp_path / "own.py", "simulate"), OUTPUTS) as model:
        _, reasons = causes(model, [[1.0, 1.0]])
    assert reasons[0] == (Kind.RAISED, f"{error.rpartition('.')[2]}: so", 0)


def test_csv_goes_in_and_own_functions_read_and_write(tmp_path):
    model = ProgramModel(("cp", "{input}", "{output}"), ("u", "w"), OUTPUTS, "i.csv", "o.csv")
    assert np.array_equal(model(np.array([[1.5, -2.0]]), PATIENT), [[1.5, -2.0]])

    def write(folder, values, patient):
        (folder / "in.txt").write_text(f"{values['a']} {patient.data['heart_rate']}")

    def read(folder):
        return [float(v) for v in (folder / "in.txt").read_text().split()]

    own = ProgramModel(("true",), ("a",), OUTPUTS, write=write, read=read)
    assert np.array_equal(own(np.array([[2.0]]), PATIENT), [[2.0, 60.0]])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"command": ()}, "expected a program"),
        ({"command": ("no-such-program-anywhere",)}, "there is no program 'no-such"),
        ({"memory_limit": 0.0}, "memory_limit is 0 MB"),
        ({"output": "../out.json"}, "expected a name without a folder"),
        ({"parameters": ("a", "folder")}, "parameter 'folder': the command names"),
    ],
)
def test_programs_that_cannot_be_run_are_refused(settings, says):
    known = {"command": ("true",), "parameters": ("a",), "outputs": ("u",)}
    with pytest.raises(ValueError, match=says):
        ProgramModel(**{**known, **settings})


def test_what_the_system_refuses_is_no_failed_run(tmp_path):
    (tmp_path / "file").write_text("")
    script = tmp_path / "gone.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    known = {"parameters": ("a", "b"), "outputs": OUTPUTS, "n_workers": 2}
    no_folder = ProgramModel(("true",), folder=tmp_path / "file" / "runs", **known)
    no_program = ProgramModel((str(script),), **known)
    script.unlink()
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    broken = ProgramModel(("true",), read=FileFunction(tmp_path / "broken.py", "read"), **known)
    for model, says in (
        (no_folder, "true cannot be run: NotADirectoryError"),
        (no_program, "gone.sh cannot be run: FileNotFoundError"),
        (broken, "the model cannot be prepared: ModuleNotFoundError"),
    ):
        with pytest.raises(CannotRun, match=says):
            problem_of(model).run(np.zeros((3, 2)), PATIENT)


def test_functions_of_a_file_write_and_read(tmp_path):
    (tmp_path / "io.py").write_text(
        "def write(folder, values, patient):\n"
        "    (folder / 'in').write_text(f\"{values['a']} {patient.data['heart_rate']}\")\n"
        "def read(folder):\n"
        "    return [float(v) for v in (folder / 'in').read_text().split()]\n"
    )
    own = [FileFunction(tmp_path / "io.py", name) for name in ("write", "read")]
    model = ProgramModel(("true",), ("a",), OUTPUTS, write=own[0], read=own[1])
    assert np.array_equal(model(np.array([[2.0], [3.0]]), PATIENT), [[2.0, 60.0], [3.0, 60.0]])


def test_a_signal_without_a_name_is_told_by_its_number():
    number = signal.SIGRTMIN + 1
    model = ProgramModel(("sh", "-c", f"kill -{int(number)} $$"), ("a",), ("u",))
    _, reasons = causes(model, [[0.0]])
    assert reasons[0] == (Kind.CRASHED, f"ended by signal {int(number)}", 0)


# Differential equations with known solutions.


def test_decay_is_the_closed_form():
    model = OdeFunction(
        rhs=lambda t, s, x, patient: -x[0] * s,
        initial=lambda x, patient: [x[1]],
        features=lambda solution, x, patient: [solution.state[0, -1], len(solution.t)],
        duration=2.0,
        options={"rtol": 1e-9, "atol": 1e-12},
    )
    last, n = model(np.array([0.7, 3.0]), PATIENT)
    assert last == pytest.approx(3.0 * np.exp(-1.4), rel=1e-7)
    assert n == 201


def test_a_driven_system_is_followed_to_its_period():
    """s' = −k s + cos ωt settles to (k cos ωt + ω sin ωt) / (k² + ω²)."""
    k = 0.3

    def duration(x, patient):
        return 60.0 / patient.data["heart_rate"]

    def rhs(t, s, x, patient):
        return -k * s + np.cos(2 * np.pi * t / duration(x, patient))

    model = OdeFunction(
        rhs=rhs,
        initial=lambda x, patient: [100.0],
        features=lambda solution, x, patient: [solution.state[0, 0], solution.n_cycles],
        duration=duration,
        periodic=True,
        tolerance=1e-7,
        options={"rtol": 1e-9, "atol": 1e-11},
    )
    first, n_cycles = model(np.array([0.0]), PATIENT)
    omega = 2 * np.pi
    assert first == pytest.approx(k / (k**2 + omega**2), rel=1e-4)
    # the rest of the beginning fades by exp(−k) in each cycle
    assert n_cycles == pytest.approx(np.log(100 / 1e-7 / 0.16) / k, rel=0.15)
    with pytest.raises(ArithmeticError, match="not periodic after 3 cycles"):
        OdeFunction(**{**vars(model), "max_cycles": 3})(np.array([0.0]), PATIENT)


def test_events_are_found_and_end_a_cycle():
    """A ball thrown up with v returns after 2 v / g."""

    def ground(t, s, x, patient):
        return s[0]

    ground.terminal, ground.direction = True, -1
    model = OdeFunction(
        rhs=lambda t, s, x, patient: [s[1], -9.81],
        initial=lambda x, patient: [0.0, x[0]],
        features=lambda solution, x, patient: [
            solution.t[-1],
            solution.events[0][-1],
            solution.state[0, -1],
        ],
        duration=100.0,
        events=(ground,),
        options={"rtol": 1e-10, "atol": 1e-12},
    )
    ended, event, height = model(np.array([4.0]), PATIENT)
    assert ended == event == pytest.approx(8.0 / 9.81, rel=1e-9)
    assert height == pytest.approx(0.0, abs=1e-9)


def test_a_solver_that_gives_up_is_a_failed_run():
    model = FunctionModel(
        OdeFunction(
            rhs=lambda t, s, x, patient: s**2,  # infinite at t = 1
            initial=lambda x, patient: [1.0],
            features=lambda solution, x, patient: [solution.state[0, -1]],
            duration=2.0,
        ),
        ("u",),
        n_workers=0,
    )
    problem = Problem(
        "blow-up",
        "1",
        (Parameter("a", "a", "", 0, 1, 0.5, 0.1),),
        (Objective("u", "u", "", 1.0),),
        model,
    )
    runs = problem.run(np.array([[0.5]]), PATIENT)
    assert np.isnan(runs.y).all()
    assert runs.failures[0].kind is Kind.RAISED
    assert runs.failures[0].text.startswith("ArithmeticError: the solver gave up")


def cycle(**more):
    known = {
        "rhs": lambda t, s, x, patient: -s,
        "initial": lambda x, patient: [1.0],
        "features": lambda solution, x, patient: [solution.state[0, -1]],
        "duration": 1.0,
        "periodic": True,
    }
    return OdeFunction(**{**known, **more})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_points": 1}, "n_points is 1, expected a whole number of at least 2"),
        ({"n_points": 2.5}, "n_points is 2.5"),
        ({"max_cycles": 0}, "max_cycles is 0, expected a whole number of at least 1"),
        ({"max_cycles": 1.5}, "max_cycles is 1.5"),
        ({"max_cycles": np.nan}, "max_cycles is nan"),
        ({"max_cycles": np.inf}, "max_cycles is inf"),
        ({"duration": -1.0}, "duration is -1.0, expected above 0"),
        ({"duration": np.inf}, "duration is inf"),
    ],
)
def test_equations_without_sense_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        cycle(**settings)


def test_a_cycle_of_no_length_is_not_settled():
    def at_once(t, s, x, patient):
        return t

    at_once.terminal = True
    with pytest.raises(ArithmeticError, match="cycle 1 ends when it begins"):
        cycle(events=(at_once,))(np.zeros(1), PATIENT)
    for duration in (-1.0, 0.0, np.nan):
        with pytest.raises(ArithmeticError, match=r"duration is .*, expected above 0"):
            cycle(duration=lambda x, patient, d=duration: d)(np.zeros(1), PATIENT)
