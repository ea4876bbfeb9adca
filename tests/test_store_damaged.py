"""Whatever becomes of the files of a run, a damaged one is computed again or refused."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from vitolab.cli import app
from vitolab.problem import Problem
from vitolab.store import OpenRun, Run, assemble, inspect_run, list_runs, open_run
from vitolab.store.parquet import read_table, write_table

KEYS = {"setup": "3p", "method": "vito", "n_states": 5, "n_samples": 3, "repeat": 0, "start": None}


def part(patient: str) -> pd.DataFrame:
    return pd.DataFrame([{**KEYS, "patient": patient, "solved": True, "n_runs": 3, "x:a": 0.25}])


def traces(patient: str) -> pd.DataFrame:
    return pd.DataFrame(
        [{**KEYS, "patient": patient, "iteration": i, "x:a": 0.1 * i} for i in range(20)]
    )


def failures(patient: str) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "setup": "3p",
                "stage": "personalization",
                "patient": patient,
                "kind": "raised",
                "text": "ValueError: no",
                "n_runs": 2,
                "n_retries": 0,
                "x:a": 0.5,
            }
        ]
    )


def refusal(read: Callable[[], object]) -> str:
    """Sentence with which something is refused; empty if it is read."""
    try:
        read()
    except ValueError as error:
        return str(error)
    return ""


def read_all(path: Path) -> None:
    found = Run.load(path)
    for table in ("patients", "personalizations", "traces"):
        getattr(found, table)


def interrupted(results: Path) -> OpenRun:
    """Run of two parts that was stopped before it was finished."""
    run = OpenRun.start(results, "s", {"n": 1}, 0, "1")
    for patient in "AB":
        run.write_part(f"p{patient}", part(patient), traces(patient), failures(patient))
    run.release()
    return OpenRun.start(results, "s", {"n": 1}, 0, "1")


def test_a_table_with_a_changed_byte_is_refused_or_the_same(tmp_path: Path) -> None:
    table = traces("A")
    path = tmp_path / "table.parquet"
    write_table(path, table)
    pd.testing.assert_frame_equal(pd.read_parquet(path), read_table(path))
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    n_refused = 0
    for i in range(len(whole)):
        hurt = bytearray(whole)
        hurt[i] ^= 1 << int(rng.integers(8))
        path.write_bytes(hurt)
        said = refusal(lambda: pd.testing.assert_frame_equal(read_table(path), table))
        if said:
            assert said.startswith(f"{path}: damaged")
            assert "\n" not in said
            n_refused += 1
    assert n_refused > len(whole) / 4


@pytest.mark.parametrize("suffix", [".parquet", ".traces.parquet", ".failures.parquet"])
def test_a_damaged_part_is_computed_again(suffix: str, tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    assert run.has_part("pA")
    path = run.part("pA").with_suffix(suffix)
    content = bytearray(path.read_bytes())
    for i in range(8, 40):  # values; the first and last bytes are as they were
        content[i] ^= 0xFF
    path.write_bytes(content)
    assert not run.has_part("pA")
    assert run.has_part("pB")
    run.write_part("pA", part("A"), traces("A"), failures("A"))
    assert run.has_part("pA")


def test_a_part_stored_without_checksums_is_read(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    part("A").to_parquet(run.part("pA"), index=False)
    assert run.has_part("pA")
    assert len(run.personalizations) == 2


def test_a_run_that_failed_leaves_its_damaged_parts_behind(tmp_path: Path) -> None:
    run = interrupted(tmp_path)
    content = bytearray(run.part("pA").read_bytes())
    content[8:40] = bytes(32)
    run.part("pA").write_bytes(content)
    run.close("failed", "stopped")
    after = OpenRun.start(tmp_path, "s", {"n": 1}, 0, "1")
    assert (after.has_part("pA"), after.has_part("pB")) == (False, True)


def hurt_json(rng: np.random.Generator, content: bytes) -> bytes:
    """Another record: cut, nested deep, or with a key missing or of another type."""
    how = rng.integers(5)
    if how == 0:
        return content[: rng.integers(len(content) - 2)]
    if how == 1:
        deep = int(rng.integers(100, 100_000))
        return b'{"schema_version": ' + b"[" * deep + b"]" * deep + b"}"
    if how == 2:
        hurt = bytearray(content)
        hurt[rng.integers(len(hurt))] = rng.integers(256)
        return bytes(hurt)
    record = json.loads(content)
    key = rng.choice(sorted(record))
    if how == 3:
        del record[key]
    else:
        wrong = [None, "x", [[]], {"a": 1}, -(10**30), 1e308, True, "\ud800"]
        record[key] = wrong[rng.integers(len(wrong))]
    return json.dumps(record).encode()


@pytest.mark.parametrize("name", ["run.json", "start.json", "problems.json", "progress.json"])
def test_a_damaged_record_is_one_sentence(
    name: str, tmp_path: Path, linear_problem: Problem
) -> None:
    run = interrupted(tmp_path)
    patients = pd.DataFrame([{"setup": "3p", "patient": p, "z:u": 1.0, "z:w": 1.0} for p in "AB"])
    if name == "run.json":
        run.finish(problems={"3p": linear_problem}, patients=patients)
    else:
        assemble(run.path, problems={"3p": linear_problem}, patients=patients)
        run.release()
    whole = (run.path / name).read_bytes()
    rng = np.random.default_rng(2)
    n_refused = 0
    for i in range(120):
        (run.path / name).write_bytes(hurt_json(rng, whole))
        info = inspect_run(run.path)
        assert "\n" not in info.reason
        assert [found.path for found in list_runs(tmp_path)] == [run.path]
        said = refusal(lambda: read_all(run.path))
        if said:
            assert str(run.path) in said
            assert "\n" not in said
            assert len(said) < 1000
            n_refused += 1
        if i % 20 == 0:
            listed = CliRunner().invoke(app, ["list", "--results", str(tmp_path)])
            assert listed.exit_code == 0, listed.exception
    assert name == "progress.json" or n_refused > 40


def stored(results: Path, problem: Problem) -> Path:
    """Folder of a complete run of two parts."""
    run = interrupted(results)
    patients = pd.DataFrame([{"setup": "3p", "patient": p, "z:u": 1.0, "z:w": 1.0} for p in "AB"])
    run.finish(problems={"3p": problem}, patients=patients)
    return run.path


def opened(results: Path) -> OpenRun:
    return open_run("s", {"n": 1}, results=results, seed=0, version="1")


@pytest.mark.parametrize("name", ["run.json", "start.json"])
def test_parts_of_a_run_whose_record_is_damaged_are_used_which_is_said(
    name: str, tmp_path: Path, linear_problem: Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path, linear_problem)
    (path / name).write_bytes((path / name).read_bytes()[:100])
    run = opened(tmp_path)
    said = capsys.readouterr().err
    if name == "start.json":  # of a complete run the manifest says the same
        assert (run.state, run.path) == ("complete", path)
        return
    assert run.state == "new"
    assert run.has_part("pA")
    assert run.has_part("pB")
    assert said == (f"{path}: run.json is damaged, expected JSON; its finished parts are used\n")


def test_damaged_parts_of_a_run_that_is_gone_on_with_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = interrupted(tmp_path)
    run.release()
    part = run.part("pA")
    part.write_bytes(part.read_bytes()[:90])
    assert opened(tmp_path).state == "resumed"
    assert capsys.readouterr().err == (
        f"{run.path}: 1 of 2 finished parts are damaged and computed again, such as pA.parquet\n"
    )


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("name", ["traces.parquet", "personalizations.parquet"])
def test_a_complete_run_without_its_tables_is_refused_with_what_to_do(
    name: str, gone: bool, tmp_path: Path, linear_problem: Problem
) -> None:
    file = stored(tmp_path, linear_problem) / name
    content = file.read_bytes()
    file.unlink() if gone else file.write_bytes(content[:500])
    with pytest.raises(ValueError, match="; again=True computes the run again") as refused:
        opened(tmp_path)
    assert str(refused.value).startswith(f"{file}: ")
    assert open_run("s", {"n": 1}, results=tmp_path, seed=0, version="1", again=True).state == "new"
