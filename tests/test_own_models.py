"""Models of one's own that live on: edited, with helpers and labels."""

import sys
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest
from own_models import answer, described

from vitolab.adapters import FunctionModel
from vitolab.failures import CannotRun, Kind
from vitolab.problem import Patient
from vitolab.problemfile import read_problem

PATIENT = Patient("P", {"u": 1.0}, {"load": 1.0, "curve": [1.0, 2.0]})
OUTPUTS = ("u", "w")
X = np.array([[2.0, 3.0]])
IN_PROCESS = 'adapter = "function"\nfile = "model.py"\nworkers = 0\n'
IN_WORKER = 'adapter = "function"\nfile = "model.py"\nworkers = 1\n'
EITHER = pytest.mark.parametrize("table", [IN_PROCESS, IN_WORKER], ids=["here", "worker"])


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


USES = {
    "import": "import gains\ndef simulate(x, patient):\n    return [gains.K, 0.0]\n",
    "from": "from gains import K\ndef simulate(x, patient):\n    return [K, 0.0]\n",
    "late": "def simulate(x, patient):\n    import gains as g\n    return [g.K, 0.0]\n",
    "through": "import more.inner\ndef simulate(x, patient):\n    return [more.inner.K, 0.0]\n",
    "relative": "from more import near\ndef simulate(x, patient):\n    return [near.K, 0.0]\n",
}


# --- helpers of one name -------------------------------------------------------------------


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


Named = namedtuple("Named", "w u")


# --- labels --------------------------------------------------------------------------------


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
