"""The command line: exit status, one sentence where input is refused, and a quick start."""

from __future__ import annotations

import csv
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vitolab import cli
from vitolab.store import OpenRun, RunInfo
from vitolab.store.claims import RunInUse
from vitolab.studies import STUDIES
from vitolab.studies import running as studies

HEAVY = ("panel", "numba", "sklearn", "pandas", "holoviews", "papermill", "scipy.optimize")


def call(*arguments: object) -> int:
    """Exit status of the command line in this process."""
    before = sys.argv
    sys.argv = ["vitolab", *map(str, arguments)]
    try:
        cli.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = before
    raise AssertionError("main returned")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = Path(cli.__file__).parents[2]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, check=True
    )


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    program = f"import sys, vitolab, vitolab.cli; print([m for m in {HEAVY} if m in sys.modules])"
    assert python("-c", program).stdout.strip() == "[]"


def test_studies_and_help_are_shown_without_loading_a_model(tmp_path: Path) -> None:
    for arguments in (["list", "--results", str(tmp_path)], ["personalize", "--help"]):
        program = (
            f"import sys; sys.argv = ['vitolab', *{arguments}]\n"
            "from vitolab import cli\n"
            "try:\n    cli.main()\n"
            f"finally:\n    print([m for m in {HEAVY} if m in sys.modules])"
        )
        assert python("-c", program).stdout.splitlines()[-1] == "[]"


def test_the_module_is_the_command() -> None:
    assert "personalize" in python("-m", "vitolab").stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["run", "no"], "there is no study 'no', expected one of tour, rosenbrock-grid,"),
        (["run"], "Missing argument"),
        (["run", "tour", "--bad"], "No such option: --bad"),
        (["run", "tour", "--seed", "x"], "Invalid value for '--seed'"),
        (["run", "tour", "-p", "n"], "parameter 'n': expected name=value"),
        (["no"], "No such command 'no'"),
        (["personalize", "heart"], "model is 'heart', expected one of circulation"),
    ],
)
def test_refused_input_is_one_sentence_and_exit_status_2(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("vitolab: ")
    assert error in line


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What `studies.run` was asked; it answers with ``outcome``."""
    seen: dict[str, Any] = {"outcome": RunInfo(tmp_path / "run", "tour", "complete")}

    def run(study: studies.Study, profile: str, **arguments: Any) -> RunInfo:
        seen.update(arguments, study=study.name, profile=profile)
        if isinstance(seen["outcome"], Exception):
            raise seen["outcome"]
        outcome: RunInfo = seen["outcome"]
        return outcome

    monkeypatch.setattr(studies, "run", run)
    return seen


def test_arguments_reach_the_study(
    asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = ["n=3", 'sizes={"2p": [1, 2]}', "name=P01", "text=a=b", "flag=true", "x=null"]
    options = [option for value in values for option in ("-p", value)]
    options += ["--profile", "standard", "--seed", "5", "--jobs", "3", "--again"]
    assert call("run", "wbc-fit", *options, "--results", tmp_path) == 0
    assert asked["study"] == "wbc-fit"
    assert asked["profile"] == "standard"
    assert asked["overrides"] == {
        "n": 3,
        "sizes": {"2p": [1, 2]},
        "name": "P01",
        "text": "a=b",
        "flag": True,
        "x": None,
    }
    assert (asked["seed"], asked["n_jobs"], asked["again"]) == (5, 3, True)
    assert asked["results"] == tmp_path
    assert capsys.readouterr().out.strip() == str(tmp_path / "run")


def test_a_failed_run_is_exit_status_1(
    asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked["outcome"] = RunInfo(tmp_path, "tour", "failed", "ValueError: no")
    assert call("run", "tour") == 1
    assert capsys.readouterr().err == (f"vitolab: the run failed: ValueError: no; see {tmp_path}\n")


def test_a_run_in_use_is_refused_and_a_fault_of_the_program_is_not_hidden(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    asked["outcome"] = RunInUse("x: process 1 is computing this run")
    assert call("run", "tour") == 2
    assert capsys.readouterr().err == "vitolab: x: process 1 is computing this run\n"
    asked["outcome"] = ZeroDivisionError("fault")
    with pytest.raises(ZeroDivisionError):
        call("run", "tour")


def test_studies_are_listed_with_their_last_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = OpenRun.start(tmp_path, "wbc-fit", {}, 0, "1")
    run.close("failed", "the notebook kernel died")
    assert call("list", "--results", tmp_path) == 0
    said = capsys.readouterr().out
    for study in STUDIES:
        assert f"{study.name}: {study.title}" in said
    assert f"last run: failed (the notebook kernel died), {run.path}" in said
    assert said.count("last run") == 1
    assert "setups=" in said


def test_the_doctor_names_versions_and_the_kernel_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert call("doctor") == 0
    said = capsys.readouterr().out
    assert f"kernel cache (NUMBA_CACHE_DIR): {tmp_path}, writable" in said
    assert "numpy 2" in said
    assert "processors: " in said
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert call("doctor") == 0
    assert "NOT writable" in capsys.readouterr().out


def test_a_template_can_be_personalised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import pandas as pd

    from vitolab import personalization

    assert call("personalize", "circulation", "--setup", "3p", "--template") == 0
    text = capsys.readouterr().out
    assert text.startswith("patient,heart_rate [1/min],lv_edv [mL]")
    (tmp_path / "patients.csv").write_text(text)
    seen: dict[str, Any] = {}

    def personalize_file(problem: Any, table: Any, **arguments: Any) -> pd.DataFrame:
        seen.update(arguments, problem=problem.name, patients=[p.name for p in table.patients])
        return pd.DataFrame({"patient": ["a"], "solved": [True]})

    monkeypatch.setattr(personalization, "personalize_file", personalize_file)
    options = ["--setup", "3p", "--patients", tmp_path / "patients.csv", "--results", tmp_path]
    assert call("personalize", "circulation", *options, "--n-samples", "9", "--seed", "2") == 0
    assert capsys.readouterr().out == "patient,solved\na,True\n"
    assert (seen["problem"], seen["setup"]) == ("circulation-3p", "3p")
    assert seen["patients"] == ["example 1", "example 2"]
    assert (seen["n_states"], seen["n_samples"], seen["seed"]) == (150, 9, 2)
    assert len(seen["train_on"]) == 48
    assert seen["methods"] is None  # the default is that of the package
    assert call("personalize", "circulation", *options, "--method", "vito-continuous") == 0
    assert (seen["methods"], seen["n_samples"]) == (("vito-continuous",), None)
    reference = ["--method", "least-squares"]
    assert call("personalize", "circulation", *options, *reference) == 0
    assert call("personalize", "circulation", *options, *reference, "--n-samples", "9") == 2
    capsys.readouterr()
    out = tmp_path / "out.csv"
    more = ["--train-on", tmp_path / "patients.csv", "--out", out]
    assert call("personalize", "circulation", *options, *more) == 0
    assert [patient.name for patient in seen["train_on"]] == ["example 1", "example 2"]
    assert (seen["out"], capsys.readouterr().out) == (out, f"{out}\n")


def test_an_ecg_and_a_mesh_can_be_personalised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole way with few samples: the file trains on itself; a mesh lies beside the file."""
    from vitolab.models.electrophysiology import PRESETS, generate_anatomy, save_anatomy
    from vitolab.store import list_runs

    monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path / "cache"))
    save_anatomy(generate_anatomy(PRESETS["hypertrophic"], 6.0), tmp_path / "heart.vtu")
    assert call("personalize", "electrophysiology", "--template") == 0
    head = capsys.readouterr().out.splitlines()[0]
    assert head == "patient,qrs_duration [ms],electrical_axis [°],anatomy"
    rows = ["A,90,30,", "B,100,20,heart.vtu", "C,110,10,normal"]
    (tmp_path / "ecg.csv").write_text("\n".join([head, *rows]), encoding="utf-8")
    options = ["--patients", tmp_path / "ecg.csv", "--train-on", tmp_path / "ecg.csv"]
    options += ["--results", tmp_path, "--n-samples", "100", "--jobs", "1"]
    assert call("personalize", "electrophysiology", *options) == 0
    fitted = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["anatomy"] for row in fitted] == ["normal", "heart.vtu", "normal"]
    assert all(200 <= float(row["v_myo [mm/s]"]) <= 1000 for row in fitted)
    assert all(int(row["n_runs"]) <= 100 for row in fitted)

    save_anatomy(generate_anatomy(PRESETS["normal"], 6.0), tmp_path / "heart.vtu")
    assert call("personalize", "electrophysiology", *options) == 0
    again = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    runs = [run for run in list_runs(tmp_path) if run.study == "personalize"]
    assert len(runs) == 2  # another mesh in the same place is another run
    assert again[1] != fitted[1]

    monkeypatch.setenv("VITOLAB_CACHE", str(tmp_path / "other"))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "meshio", None)
        assert call("personalize", "electrophysiology", *options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "ecg.csv, row 3, column 'anatomy': patient 'B': reading and writing meshes " in line
    assert "needs meshio: pip install" in line

    (tmp_path / "ecg.csv").write_text(f"{head}\nA,90,30,none.vtu", encoding="utf-8")
    assert call("personalize", "electrophysiology", *options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "ecg.csv, row 2, column 'anatomy': patient 'A': anatomy is " in line


def test_only_the_hearts_of_the_setup_asked_for_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vitolab.catalogue import find_model, read_table
    from vitolab.models import electrophysiology

    asked: list[Any] = []
    monkeypatch.setattr(electrophysiology, "prepare", lambda *arguments: asked.extend(arguments))
    head = "patient,qrs_duration [ms],electrical_axis [°],anatomy"
    (tmp_path / "ecg.csv").write_text(f"{head}\nA,90,30,dilated", encoding="utf-8")
    table = read_table(find_model("electrophysiology"), tmp_path / "ecg.csv", "infinite", n_jobs=3)
    assert asked == [table.patients, ["infinite"], 3]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], "--patients FILE.csv is missing"),
        (["--setup", "4p"], "setup is '4p', expected one of"),
        (["--patients", "none.csv"], "none.csv: there is no such file"),
    ],
)
def test_patients_that_cannot_be_read_are_refused(
    options: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("personalize", "circulation", *options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert error in line


@pytest.mark.parametrize("raised", [True, False])
def test_a_command_that_is_stopped_says_how_to_go_on(
    raised: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typer raises, or answers with the exit status, from version to version."""

    def stopped(*_: Any, **__: Any) -> int:
        if raised:
            raise KeyboardInterrupt
        return cli.STOPPED

    monkeypatch.setattr(cli, "app", stopped)
    assert call("run", "tour") == cli.STOPPED
    assert "the same command goes on from here" in capsys.readouterr().err


def test_a_parameter_that_is_given_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("run", "from-nothing", "-p", "n_orders=1", "-p", "n_orders=2") == 2
    said = "vitolab: parameter 'n_orders' is given twice, expected once\n"
    assert capsys.readouterr().err == said


def test_a_full_disk_is_no_file_that_cannot_be_read() -> None:
    full = cli._refusal(OSError(errno.ENOSPC, "No space left on device", "run.json"))
    assert full == "run.json: No space left on device, expected room to write"
    other = cli._refusal(OSError(errno.EACCES, "Permission denied", "run.json"))
    assert other == (
        "run.json: Permission denied, expected a folder or file that can be read and written"
    )


def test_the_runs_of_a_patient_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("personalize", "--help") == 0
    assert "50 forward runs per parameter" in " ".join(capsys.readouterr().out.split())
