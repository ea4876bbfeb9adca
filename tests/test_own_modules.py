"""Modules of a model, by whichever door it imports them: read with it, or refused by name."""

import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from vitolab.adapters import FileFunction, FunctionModel, KnownFiles, ProgramModel
from vitolab.failures import CannotRun
from vitolab.problem import Patient
from vitolab.problemfile import read_problem

PATIENT = Patient("P", {"u": 1.0}, {})
X = np.array([[2.0]])
PROBLEM = """
name = "own"
[[parameters]]
name = "a"
lower = 0.0
upper = 10.0
[[objectives]]
name = "u"
tolerance = 0.3
[model]
adapter = "function"
file = "model.py"
"""
IN_PROCESS, IN_WORKER = "workers = 0\n", "workers = 1\n"
EITHER = pytest.mark.parametrize("table", [IN_PROCESS, IN_WORKER], ids=["here", "worker"])
CALL = "def simulate(x, patient):\n"
DOORS = {
    "import_module": f"import importlib\ngains = importlib.import_module('gains')\n{CALL}",
    "late": f"import importlib\n{CALL}    gains = importlib.import_module('gains')\n",
    "__import__": f"gains = __import__('gains')\n{CALL}",
    "path": f"import runpy\nrunpy.run_path('door.py')\n{CALL}    import sys as gains\n",
}


def described(folder: Path, model: str, table: str) -> Path:
    """Problem file with a model and a helper."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "model.py").write_text(f"{model}    return [gains.K]\n")
    (folder / "door.py").write_text("import gains\n")
    (folder / "gains.py").write_text("K = 1.0\n")
    (folder / "problem.toml").write_text(PROBLEM + table)
    return folder / "problem.toml"


def answer(path: Path) -> float:
    """Output of a problem that is read now."""
    with read_problem(path).problem.simulate as simulate:
        return float(simulate(X, PATIENT)[0, 0])


@EITHER
@pytest.mark.parametrize("door", DOORS)
def test_a_helper_that_no_statement_imports_is_refused(tmp_path, door, table):
    before = set(sys.modules), list(sys.path)
    path = described(tmp_path, DOORS[door], table)
    says = r"gains\.py is imported by its name while model runs, expected the statement `import g"
    with pytest.raises(CannotRun, match=says):
        answer(path)
    assert "gains" not in set(sys.modules) - before[0]
    assert sys.path == before[1]


def test_the_process_may_have_the_folder_of_a_model_on_its_path(tmp_path, monkeypatch):
    path = described(tmp_path, DOORS["import_module"], IN_PROCESS)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(CannotRun, match=r"gains\.py is imported by its name"):
        answer(path)
    assert "gains" not in sys.modules


def test_a_thread_of_the_model_is_refused_too(tmp_path):
    model = (
        "import importlib, threading\n"
        "def look():\n"
        "    try:\n"
        "        found.append(importlib.import_module('gains'))\n"
        "    except ImportError as error:\n"
        "        found.append(error)\n"
        "found = []\n"
        "thread = threading.Thread(target=look)\n"
        "thread.start()\n"
        "thread.join()\n"
        f"{CALL}    if isinstance(found[0], ImportError):\n        raise found[0]\n"
        "    gains = found[0]\n"
    )
    with pytest.raises(CannotRun, match=r"gains\.py is imported by its name"):
        answer(described(tmp_path, model, IN_PROCESS))


def test_a_program_whose_functions_import_so_cannot_be_run(tmp_path):
    described(tmp_path, DOORS["late"].replace("x, patient", "folder"), IN_PROCESS)
    read = FileFunction(tmp_path / "model.py", "simulate", tmp_path)
    with pytest.raises(CannotRun, match=r"gains\.py is imported by its name"):
        ProgramModel(("true",), ("a",), ("u",), read=read, n_workers=1)(X, PATIENT)


def test_a_library_that_looks_for_a_file_of_the_model_goes_on_without_it(tmp_path, monkeypatch):
    library = tmp_path / "library"
    library.mkdir()
    (library / "wants.py").write_text(
        "try:\n    import gains\n    K = gains.K\nexcept ImportError:\n    K = 7.0\n"
    )
    monkeypatch.syspath_prepend(str(library))
    path = described(tmp_path / "own", f"import wants as gains\n{CALL}", IN_PROCESS)
    assert answer(path) == 7.0
    sys.modules.pop("wants")


# --- folders on sys.path -------------------------------------------------------------------

EXTENDS = (
    "import sys\nfrom pathlib import Path\n"
    "sys.path.insert(0, str(Path(__file__).parents[1] / 'lib'))\n"
)
USES = {
    "top": f"{EXTENDS}import tools as gains\n{CALL}",
    "late": f"{EXTENDS}{CALL}    import tools as gains\n",
    "by name": f"{EXTENDS}import importlib\n{CALL}    gains = importlib.import_module('tools')\n",
}


def library(folder: Path, k: float = 1.0) -> Path:
    """Module in a folder beside that of the model, with one that it imports."""
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    (folder / "lib" / "tools.py").write_text("from inner import K\n")
    (folder / "lib" / "inner.py").write_text(f"K = {k}\n")
    return folder / "lib" / "tools.py"


@EITHER
@pytest.mark.parametrize("use", USES)
def test_a_module_in_a_folder_of_the_models_own_is_refused_unless_listed(tmp_path, use, table):
    before = list(sys.path)
    library(tmp_path)
    says = r"tools\.py is imported from a folder that the model puts on sys\.path, expected the "
    with pytest.raises(
        CannotRun, match=says + "statement `import tools` and the file in `sources`"
    ):
        answer(described(tmp_path / "own", USES[use], table))
    assert sys.path == before
    assert "tools" not in sys.modules


@EITHER
@pytest.mark.parametrize(
    "model",
    [
        *(USES["top"], USES["late"]),
        f"import tools as gains\n{CALL}",
        f"from lib import inner as gains\n{CALL}",
        f"{CALL}    import sys\n    sys.path.append('../lib')\n    import tools as gains\n",
    ],
    ids=["top", "late", "bare", "member", "call"],
)
def test_a_listed_module_is_kept_with_the_model_and_edited_with_it(tmp_path, model, table):
    before = set(sys.modules), list(sys.path)
    path = described(tmp_path / "own", model, f'{table}sources = ["../lib/tools.py"]\n')
    library(tmp_path)
    version = read_problem(path).problem.version
    assert answer(path) == 1.0
    library(tmp_path, 2.0)  # only what the listed file imports
    assert read_problem(path).problem.version != version
    assert answer(path) == 2.0
    assert not {"tools", "lib", "inner"} & (set(sys.modules) - before[0])
    assert sys.path == before[1]


def test_each_model_has_its_own_listed_modules(tmp_path):
    paths = []
    for k in (1.0, 100.0):
        library(tmp_path / f"{k:g}", k)
        table = f'{IN_PROCESS}sources = ["../lib/tools.py"]\n'
        paths.append(described(tmp_path / f"{k:g}" / "own", USES["top"], table))
    assert [answer(path) for path in (*paths, *paths)] == [1.0, 100.0, 1.0, 100.0]


def test_a_module_that_a_model_registers_itself_goes_to_no_other(tmp_path):
    model = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('gains', 'gains.py')\n"
        "gains = importlib.util.module_from_spec(spec)\n"
        "sys.modules['gains'] = gains\n"
        f"spec.loader.exec_module(gains)\n{CALL}"
    )
    assert answer(described(tmp_path, model, IN_PROCESS)) == 1.0
    assert "gains" not in sys.modules


# --- a process that lives long -------------------------------------------------------------


def test_a_process_keeps_few_of_many_models(tmp_path):
    described(tmp_path, f"import gains\n{CALL}", IN_PROCESS)
    first = FileFunction(tmp_path / "model.py", "simulate")
    assert first(X[0], PATIENT) == [1.0]
    for k in range(200):
        (tmp_path / "gains.py").write_text(f"K = {k}.5\n")
        assert FileFunction(tmp_path / "model.py", "simulate")(X[0], PATIENT) == [k + 0.5]
    assert sum(name.startswith("_vitolab_") for name in sys.modules) <= 64 * 3
    assert first(X[0], PATIENT) == [1.0]  # loaded again, as it was read


def test_files_that_load_others_do_not_wait_for_each_other(tmp_path, monkeypatch):
    (tmp_path / "inner.py").write_text("def f():\n    return 1.0\n")
    (tmp_path / "outer.py").write_text(
        "import time\nfrom pathlib import Path\nfrom vitolab.adapters import FileFunction\n"
        "time.sleep(0.5)\n"
        "K = FileFunction(Path('inner.py'), 'f', Path.cwd())()\n"
        "def f():\n    return K\n"
    )
    monkeypatch.chdir(tmp_path)
    found: list[float] = []
    for name, folder in (("outer.py", None), ("inner.py", tmp_path)):
        # one loads and then wants the folder, the other has the folder and then loads
        call = FileFunction(tmp_path / name, "f", folder)
        threading.Thread(target=lambda c=call: found.append(c()), daemon=True).start()
        time.sleep(0.1)
    ends = time.monotonic() + 20
    while len(found) < 2 and time.monotonic() < ends:
        time.sleep(0.01)
    assert found == [1.0, 1.0]


def test_a_file_executed_by_its_path_is_a_source_like_any_other(tmp_path):
    (tmp_path / "gains.py").write_text("K = 1.0\n")
    (tmp_path / "model.py").write_text(
        f"import runpy\n{CALL}    return [runpy.run_path('gains.py')['K']]\n"
    )
    function = FileFunction(tmp_path / "model.py", "simulate", tmp_path)
    files = KnownFiles.of([tmp_path / "gains.py"])
    model = FunctionModel(function, ("u",), n_workers=0, files=files)
    assert model(X, PATIENT)[0, 0] == 1.0
    (tmp_path / "gains.py").write_text("K = 2.0\n")
    with pytest.raises(CannotRun, match=r"gains\.py was changed"):
        model(X, PATIENT)
