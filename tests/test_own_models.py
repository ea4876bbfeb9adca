"""Models of one's own that live on: edited, printing, threaded, and none of it spoils a result."""

import os
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vitolab.adapters import FileFunction, FunctionModel, ProgramModel
from vitolab.failures import CannotRun, Kind
from vitolab.problem import Patient
from vitolab.problemfile import read_problem

PATIENT = Patient("P", {"u": 1.0}, {"load": 1.0, "curve": [1.0, 2.0]})
OUTPUTS = ("u", "w")
X = np.array([[2.0, 3.0]])
MODEL = """
def simulate(x, patient):
    a, b = x
    return {"u": a + b, "w": a * patient.data["load"]}
"""
PATIENTS = "patient,load,u,w\nP00,1.0,7,2\nP01,1.1,7.2,2.97\n"


def described(folder: Path, *, model: str = MODEL, table: str = "") -> Path:
    """Problem file with a model, in a folder that may be new."""
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text(model)
    (folder / "patients.csv").write_text(PATIENTS)
    table = table or 'adapter = "function"\nfile = "model.py"\n'
    entries = "".join(
        f'[[{what}]]\nname = "{name}"\n{more}\n'
        for what, name, more in (
            ("parameters", "a", "lower = 0.0\nupper = 10.0"),
            ("parameters", "b", "lower = 0.0\nupper = 10.0"),
            ("objectives", "u", "tolerance = 0.3"),
            ("objectives", "w", "tolerance = 0.3"),
            ("columns", "load", "feature = true"),
        )
    )
    (folder / "problem.toml").write_text(f'name = "own"\n{entries}[model]\n{table}')
    return folder / "problem.toml"


IN_PROCESS = 'adapter = "function"\nfile = "model.py"\nworkers = 0\n'
IN_WORKER = 'adapter = "function"\nfile = "model.py"\nworkers = 1\n'
EITHER = pytest.mark.parametrize("table", [IN_PROCESS, IN_WORKER], ids=["here", "worker"])


def answer(own) -> list[float]:
    """Outputs of a problem, the processes of which end."""
    y = own.problem.simulate(X, PATIENT)
    if hasattr(own.problem.simulate, "close"):
        own.problem.simulate.close()
    return y[0].tolist()


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


# --- what is run is what was read ----------------------------------------------------------


@EITHER
def test_a_model_saved_again_goes_on_as_it_was_read(tmp_path, table):
    helper = tmp_path / "gains.py"
    helper.write_text("K = 1.0\n")
    model = "def simulate(x, patient):\n    import gains\n    return {'u': gains.K, 'w': 2.0}\n"
    path = described(tmp_path, model=model, table=table)
    before = read_problem(path)
    helper.write_text("K = 5.0\n")
    path.with_name("model.py").write_text(model.replace("2.0", "6.0"))
    assert answer(before) == [1.0, 2.0]  # though it is loaded only now
    after = read_problem(path)
    assert after.problem.version != before.problem.version
    assert answer(after) == [5.0, 6.0]
    assert answer(before) == [1.0, 2.0]


def test_a_worker_that_is_started_again_has_the_same_code(tmp_path):
    model = (
        "import time\nimport gains\n"
        "def simulate(x, patient):\n"
        "    time.sleep(100 if x[0] < 0 else 0)\n"
        "    return {'u': gains.K, 'w': 2.0}\n"
    )
    (tmp_path / "gains.py").write_text("K = 1.0\n")
    path = described(tmp_path, model=model, table=f"{IN_WORKER}time_limit = 1.0\n")
    simulate = read_problem(path).problem.simulate
    assert simulate(X, PATIENT)[0].tolist() == [1.0, 2.0]
    (tmp_path / "gains.py").write_text("K = 5.0\n")
    assert simulate.answers(-X, PATIENT).reasons[0].kind == Kind.TIME_OUT
    assert simulate(X, PATIENT)[0].tolist() == [1.0, 2.0]
    simulate.close()


@EITHER
def test_a_changed_data_file_is_refused_by_name(tmp_path, table):
    (tmp_path / "k.txt").write_text("4.0")
    model = "def simulate(x, patient):\n    return {'u': float(open('k.txt').read()), 'w': 2.0}\n"
    path = described(tmp_path, model=model, table=f'{table}sources = ["k.txt"]\n')
    own = read_problem(path)
    assert answer(own) == [4.0, 2.0]
    (tmp_path / "k.txt").write_text("5.0")
    with pytest.raises(CannotRun, match=r"k\.txt was changed while the model was in use"):
        answer(own)
    (tmp_path / "k.txt").write_text("4.0")
    assert answer(own) == [4.0, 2.0]  # restored


def test_answers_given_while_a_file_changed_are_refused(tmp_path):
    (tmp_path / "k.txt").write_text("4.0")
    model = (
        "from pathlib import Path\n"
        "def simulate(x, patient):\n"
        "    Path('k.txt').write_text('5.0')\n"
        "    return {'u': 1.0, 'w': 2.0}\n"
    )
    path = described(tmp_path, model=model, table=f'{IN_PROCESS}sources = ["k.txt"]\n')
    with pytest.raises(CannotRun, match=r"k\.txt was changed"):
        answer(read_problem(path))


def test_a_changed_program_is_refused_by_name(tmp_path):
    program = tmp_path / "solver.py"
    program.write_text("import json\njson.dump({'u': 1.0, 'w': 2.0}, open('output.json', 'w'))\n")
    table = f'adapter = "program"\ncommand = ["{sys.executable}", "solver.py"]\n'
    own = read_problem(described(tmp_path, table=table))
    assert answer(own) == [1.0, 2.0]
    program.write_text(program.read_text().replace("1.0", "7.0"))
    with pytest.raises(CannotRun, match=r"solver\.py was changed"):
        answer(own)


# --- helpers of one name -------------------------------------------------------------------

USES = {
    "import": "import gains\ndef simulate(x, patient):\n    return [gains.K, 0.0]\n",
    "from": "from gains import K\ndef simulate(x, patient):\n    return [K, 0.0]\n",
    "late": "def simulate(x, patient):\n    import gains as g\n    return [g.K, 0.0]\n",
    "through": "import more.inner\ndef simulate(x, patient):\n    return [more.inner.K, 0.0]\n",
    "relative": "from more import near\ndef simulate(x, patient):\n    return [near.K, 0.0]\n",
}


@pytest.mark.parametrize("use", USES)
def test_each_model_has_its_own_helpers(tmp_path, use):
    owns = []
    for k in (1.0, 100.0):
        folder = tmp_path / f"{k:g}"
        (folder / "more").mkdir(parents=True)
        (folder / "gains.py").write_text(f"K = {k}\n")
        (folder / "more" / "__init__.py").write_text("")
        (folder / "more" / "inner.py").write_text("from gains import K\n")
        (folder / "more" / "near.py").write_text("from .inner import K\n")
        owns.append(read_problem(described(folder, model=USES[use], table=IN_PROCESS)))
    assert [answer(own)[0] for own in (*owns, *owns)] == [1.0, 100.0, 1.0, 100.0]


def test_an_edited_helper_is_read_again_with_the_problem(tmp_path):
    (tmp_path / "gains.py").write_text("K = 1.0\n")
    path = described(tmp_path, model=USES["import"], table=IN_PROCESS)
    assert answer(read_problem(path))[0] == 1.0
    (tmp_path / "gains.py").write_text("K = 2.0\n")
    assert answer(read_problem(path))[0] == 2.0


def test_a_helper_may_have_the_name_of_a_library(tmp_path):
    (tmp_path / "signal.py").write_text("K = 3.0\n")
    model = "import signal\ndef simulate(x, patient):\n    return [signal.K, 0.0]\n"
    assert answer(read_problem(described(tmp_path, model=model, table=IN_PROCESS)))[0] == 3.0
    import signal

    assert signal.SIGINT  # Python's own, for all others


# --- labels --------------------------------------------------------------------------------

Named = namedtuple("Named", "w u")


@pytest.mark.parametrize(
    "given",
    [
        {"w": 2.0, "u": 1.0},
        pd.Series({"w": 2.0, "u": 1.0}),
        pd.DataFrame({"w": [2.0], "u": [1.0]}),
        Named(2.0, 1.0),
        np.array([(2.0, 1.0)], dtype=[("w", float), ("u", float)]),
        np.array([(2.0, 1.0)], dtype=[("w", float), ("u", float)])[0],
        np.rec.array([(2.0, 1.0)], dtype=[("w", float), ("u", float)])[0],
        pd.Series([1.0, 2.0]),  # no labels of its own
        (1.0, 2.0),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_label_decides_where_an_answer_goes(given):
    model = FunctionModel(lambda x, patient: given, OUTPUTS, n_workers=0)
    assert model(X, PATIENT).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (pd.Series({"v": 2.0, "u": 1.0}), "output 'w' is missing, found v, u"),
        (pd.Series([1.0, 2.0], index=[1, 0]), "output 'u' is missing, found 1, 0"),
        (
            pd.Series([1.0, 2.0, 3.0], index=["u", "w", "u"]),
            "output 'u' occurs twice, found u, w, u",
        ),
        (pd.DataFrame({"w": [2.0, 3.0], "u": [1.0, 1.0]}), "shape (2, 2), expected (2,)"),
        (namedtuple("Other", "a b")(1.0, 2.0), "output 'u' is missing, found a, b"),
        (np.zeros((), dtype=[("u", float)])[()], "output 'w' is missing, found u"),
        (pd.Series({"w": True, "u": 1.0}), "an output is True, expected a number"),
    ],
    ids=["other", "numbers", "twice", "rows", "tuple", "record", "truth"],
)
def test_labels_that_do_not_fit_are_a_failed_run(given, says):
    model = FunctionModel(lambda x, patient: given, OUTPUTS, n_workers=0)
    found = model.answers(X, PATIENT)
    assert np.isnan(found.y).all()
    assert found.reasons == {0: (Kind.SHAPE, says, 0)}


# --- output, threads, folders, data --------------------------------------------------------

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
