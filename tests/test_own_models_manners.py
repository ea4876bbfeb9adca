"""Models of one's own that print, leave threads and folders, and write where they should not."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from own_models import MODEL, answer, described

from vitolab.adapters import FileFunction, FunctionModel, ProgramModel
from vitolab.problem import Patient
from vitolab.problemfile import read_problem

PATIENT = Patient("P", {"u": 1.0}, {"load": 1.0, "curve": [1.0, 2.0]})
OUTPUTS = ("u", "w")
X = np.array([[2.0, 3.0]])
IN_PROCESS = 'adapter = "function"\nfile = "model.py"\nworkers = 0\n'
IN_WORKER = 'adapter = "function"\nfile = "model.py"\nworkers = 1\n'
EITHER = pytest.mark.parametrize("table", [IN_PROCESS, IN_WORKER], ids=["here", "worker"])


def personalize(folder: Path, *more: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Personalise by the command line, with the table printed."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "vitolab", "personalize", str(folder / "problem.toml")),
            *("--patients", str(folder / "patients.csv"), "--jobs", "1"),
            *("--method", "least-squares-multistart", *more),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


PRINTS = """
import ctypes, os, subprocess, atexit
print("loading")
atexit.register(print, "leaving")
def simulate(x, patient):
    print("said")
    os.write(1, b"written\\n")
    ctypes.CDLL(None).puts(b"from C")
    subprocess.run(["echo", "of a program"], check=True)
    a, b = x
    return {"u": a + b, "w": a * patient.data["load"]}
"""


@EITHER
def test_what_a_model_prints_is_not_in_the_table(tmp_path, table):
    done = personalize(described(tmp_path, model=PRINTS, table=table).parent)
    assert done.returncode == 0, done.stderr
    assert [line.partition(",")[0] for line in done.stdout.splitlines()] == [
        "patient",
        "P00",
        "P01",
    ]
    for said in ("loading", "said", "written", "from C", "of a program", "leaving"):
        assert f"{said}\n" in done.stderr


@EITHER
def test_a_thread_of_the_model_does_not_keep_the_command(tmp_path, table):
    waits = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    began = time.monotonic()
    done = personalize(described(tmp_path, model=waits + MODEL, table=table).parent)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert "leaked" not in done.stderr
    assert time.monotonic() - began < 45


LEAVES = MODEL.replace("    a, b = x", '    import os\n    os.chdir("/")\n    a, b = x')


@EITHER
def test_a_model_that_leaves_the_folder_takes_nothing_with_it(tmp_path, table):
    folder = described(tmp_path / "own", model=LEAVES, table=table).parent
    done = personalize(folder, "--out", "fit.csv", "--results", "r")
    assert done.returncode == 0, done.stderr
    assert len((folder / "fit.csv").read_text().splitlines()) == 3
    assert (folder / "r" / "personalize").is_dir()
    here = Path.cwd()
    assert answer(read_problem(folder / "problem.toml")) == [5.0, 2.0]
    assert Path.cwd() == here


READS = (
    'K = float(open("k.txt").read())\n'
    "def simulate(x, patient):\n"
    '    return {"u": K, "w": float(open("k.txt").read())}\n'
)


@EITHER
def test_relative_files_are_found_beside_the_problem_from_any_folder(tmp_path, table, monkeypatch):
    path = described(tmp_path / "own", model=READS, table=table)
    (path.parent / "k.txt").write_text("4.0")
    (tmp_path / "k.txt").write_text("9.0")
    monkeypatch.chdir(tmp_path)
    own = read_problem("own/problem.toml")
    monkeypatch.chdir("/")
    assert answer(own) == [4.0, 4.0]


def test_a_call_starts_in_the_folder_of_the_first_whatever_the_one_before_did():
    def wander(x, patient):
        there = float(os.getcwd() == "/")
        os.chdir("/")
        return [there, 0.0]

    with FunctionModel(wander, OUTPUTS, n_workers=1) as model:
        assert model(np.repeat(X, 3, axis=0), PATIENT).tolist() == [[0.0, 0.0]] * 3


def test_functions_beside_a_program_work_in_the_folder_of_the_problem(tmp_path):
    (tmp_path / "k.txt").write_text("4.0")
    (tmp_path / "io.py").write_text(
        "def read(folder):\n    return {'u': float(open('k.txt').read()), 'w': 2.0}\n"
    )
    table = 'adapter = "program"\ncommand = ["true"]\nfile = "io.py"\nread = "read"\n'
    assert answer(read_problem(described(tmp_path, table=table))) == [4.0, 2.0]


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_model_that_writes_into_the_data_leaves_no_trace(n_workers):
    def remember(x, patient):
        patient.data["curve"].append(x[0])
        return [float(len(patient.data["curve"])), 0.0]

    with FunctionModel(remember, OUTPUTS, n_workers=n_workers) as model:
        assert model(np.repeat(X, 3, axis=0), PATIENT).tolist() == [[3.0, 0.0]] * 3
    assert PATIENT.data["curve"] == [1.0, 2.0]


def test_a_function_that_writes_the_input_leaves_no_trace_in_the_data():
    def write(folder, values, patient):
        patient.data["curve"].clear()

    model = ProgramModel(("true",), ("a", "b"), OUTPUTS, write=write, read=lambda folder: [1, 2])
    assert model(X, PATIENT).tolist() == [[1.0, 2.0]]
    assert PATIENT.data["curve"] == [1.0, 2.0]


def test_a_function_of_a_file_needs_the_file_no_more(tmp_path):
    (tmp_path / "m.py").write_text("def f(x, patient):\n    return [1.0, 2.0]\n")
    function = FileFunction(tmp_path / "m.py", "f")
    (tmp_path / "m.py").unlink()
    with FunctionModel(function, OUTPUTS, n_workers=1) as model:
        assert model(X, PATIENT).tolist() == [[1.0, 2.0]]
