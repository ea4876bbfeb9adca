"""Programs of one's own: what they answer, why they fail, and what is left of them."""

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import adapted
import numpy as np
import psutil
import pytest
from adapted import causes, problem_of

from vitolab.adapters import FileFunction, ProgramModel
from vitolab.failures import CannotRun, Kind
from vitolab.problem import Patient

program = adapted.program

PATIENT = Patient("P", {"u": 1.0}, {"heart_rate": 60.0})
OUTPUTS = ("u", "w")


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


def is_over(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_what_a_program_started_ends_with_it(tmp_path):
    note = tmp_path / "pid"
    model = ProgramModel(
        ("sh", "-c", f"sleep 100 & echo $! > {note}; wait"), ("a",), ("u",), time_limit=1.0
    )
    _, reasons = causes(model, [[0.0]])
    assert reasons[0][0] is Kind.TIME_OUT
    pid, until = int(note.read_text()), time.monotonic() + 10.0
    while not is_over(pid) and time.monotonic() < until:
        time.sleep(0.05)  # it was told to end; a busy machine takes a moment
    assert is_over(pid)


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
