"""Files and packages load once, whatever the order in which threads ask for them."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from vitolab.adapters import FileFunction, files


@pytest.mark.parametrize(
    "package", ["circulation", "rosenbrock", "bolus", "electrophysiology", "glucose"]
)
def test_a_public_name_of_a_model_is_looked_up_once(package):
    code = (
        f"from vitolab.models import {package} as model, lazy\n"
        f"assert 'problem' not in vars(model)\n"
        "first = model.problem\n"
        "assert vars(model)['problem'] is first is model.problem\n"
        "assert 'MODEL' in dir(model)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_files_that_load_each_other_do_not_wait_for_each_other(tmp_path):
    """One that works in a folder loads, while one that is loaded works in a folder."""
    (tmp_path / "inner.py").write_text("def f():\n    return 1\n")
    (tmp_path / "late.py").write_text("def f():\n    return 2\n")
    began, entered = threading.Event(), threading.Event()
    files_in_tests = {"began": began, "entered": entered, "folder": tmp_path}
    vars(files)["_of_this_test"] = files_in_tests
    (tmp_path / "outer.py").write_text(
        "from vitolab.adapters import FileFunction, files\n"
        "own = vars(files)['_of_this_test']\n"
        "own['began'].set()\n"
        "own['entered'].wait(2)\n"
        "inner = FileFunction(own['folder'] / 'inner.py', 'f', own['folder'])\n"
        "value = inner()\n"
        "def f():\n    return value\n"
    )
    (tmp_path / "calling.py").write_text(
        "from vitolab.adapters import FileFunction, files\n"
        "own = vars(files)['_of_this_test']\n"
        "def f():\n"
        "    own['entered'].set()\n"
        "    return FileFunction(own['folder'] / 'late.py', 'f')()\n"
    )
    found = []

    def loading():
        found.append(FileFunction(tmp_path / "outer.py", "f")())

    def working():
        began.wait(10)
        found.append(calling())

    calling = FileFunction(tmp_path / "calling.py", "f", tmp_path)
    calling.prepare()
    threads = [threading.Thread(target=t, daemon=True) for t in (loading, working)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    del vars(files)["_of_this_test"]
    assert sorted(found) == [1, 2]
