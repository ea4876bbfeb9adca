"""Simulators in processes of their own: how these begin, end, and go when they are stopped."""

import signal
import subprocess
import sys
import threading
import time
from copy import deepcopy
from pathlib import Path

import adapted
import numpy as np
import psutil
import pytest
import simulators
from adapted import causes
from hypothesis import given, settings
from hypothesis import strategies as st

from vitolab.adapters import FileFunction, FunctionModel, calls
from vitolab.failures import CannotRun
from vitolab.parallel import processes
from vitolab.problem import Patient

program = adapted.program

PATIENT = Patient("P", {"u": 1.0}, {"heart_rate": 60.0})
OUTPUTS = ("u", "w")


@settings(max_examples=5, deadline=None)
@given(n=st.integers(1, 7), n_workers=st.integers(0, 2))
def test_any_number_of_workers_answers_the_same(n, n_workers):
    x = np.random.default_rng(n).normal(size=(n, 2))
    model = FunctionModel(simulators.decent, OUTPUTS, n_workers=n_workers)
    expected = np.stack([x[:, 0] + x[:, 1], x[:, 0] - x[:, 1]], axis=1)
    assert np.array_equal(model(x, PATIENT), expected)
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


# What cannot be run at all is no failed run.

LOCK = threading.Lock()


def test_a_patient_that_cannot_travel_is_no_failed_run():
    with FunctionModel(simulators.decent, OUTPUTS, n_workers=1) as model:
        patient = Patient("Q", {}, {"lock": LOCK})
        with pytest.raises(CannotRun, match="patient 'Q' cannot go to another process"):
            model(np.zeros((2, 2)), patient)
        assert np.isfinite(model(np.zeros((2, 2)), PATIENT)).all()


def test_an_import_that_hangs_has_a_limit(tmp_path, monkeypatch):
    (tmp_path / "hang.py").write_text("import time\ntime.sleep(100)\n")
    monkeypatch.setattr(calls, "PREPARE", 1.0)
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
