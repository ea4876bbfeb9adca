"""What was stored is what is read; what is damaged is said, and harms nothing else."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vitolab import version
from vitolab.files import digest
from vitolab.problem import Objective, Parameter, Problem
from vitolab.store import OpenRun, Run, latest, list_runs, open_run
from vitolab.studies.notebooks import find_notebook
from vitolab.version import code_version

KEYS = ["setup", "patient", "method", "n_states", "n_samples", "repeat", "start"]

PROBLEM = Problem(
    name="square",
    version="7",
    parameters=(Parameter("k", "stiffness", "N/m", -2.0, 2.0, 0.0, 0.01),),
    objectives=(Objective("f", "force", "N", 0.1),),
    simulate=lambda x, patient: x**2,
    border="reject",
)


def part(patient: str, **values: object) -> pd.DataFrame:
    keys = dict.fromkeys(KEYS) | {"setup": "2p", "patient": patient, "method": "vito"}
    return pd.DataFrame([keys | {"solved": True, "n_runs": 3} | values])


def fill(results: Path, study: str = "s", seed: int = 0, patients: str = "AB") -> Run:
    run = open_run(study, {"n": 1}, results=results, seed=seed, version="1")
    for name in patients:
        trace = part(name).assign(iteration=0)
        run.write_part(digest(name), part(name), trace)
    table = pd.DataFrame({"setup": "2p", "patient": list(patients), "z:f": 1.0})
    return run.finish(problems={"2p": PROBLEM}, patients=table, arrays={"2p/v": np.arange(3.0)})


def test_a_stored_run_says_what_was_asked_and_what_came_out(tmp_path: Path) -> None:
    fill(tmp_path)
    run = latest(tmp_path, "s")
    manifest = run.manifest
    assert (manifest.study, manifest.parameters, manifest.seed) == ("s", {"n": 1}, 0)
    assert manifest.status == "complete"
    assert manifest.process == os.getpid()
    assert manifest.versions["numpy"] == np.__version__
    stored = manifest.problems["2p"]
    assert (stored.name, stored.version, stored.border) == ("square", "7", "reject")
    assert stored.multipliers == (1, 10, 100)
    assert stored.parameters[0].model_dump() == {
        "name": "k",
        "label": "stiffness",
        "unit": "N/m",
        "lower": -2.0,
        "upper": 2.0,
        "default": 0.0,
        "step": 0.01,
        "scale": "linear",
    }
    assert (stored.objectives[0].unit, stored.objectives[0].tolerance) == ("N", 0.1)
    assert list(run.personalizations["patient"]) == ["A", "B"]
    assert list(run.traces["iteration"]) == [0, 0]
    assert list(run.patients["z:f"]) == [1.0, 1.0]
    assert np.array_equal(run.arrays["2p/v"], np.arange(3.0))
    assert set(manifest.files) == {
        *("start.json", "arrays.npz"),
        *("patients.parquet", "personalizations.parquet", "traces.parquet"),
    }


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-1], lambda content: content[:-1] + b"?"]
)
def test_a_file_that_is_not_the_stored_one_is_not_read(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    run = fill(tmp_path)
    for name in ("personalizations.parquet", "traces.parquet", "arrays.npz"):
        path = run.path / name
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(ValueError, match=f"{name}: .* stored"):
            getattr(Run.load(run.path), name.partition(".")[0])
    (run.path / "patients.parquet").unlink()
    with pytest.raises(ValueError, match=r"patients\.parquet: the file is missing"):
        _ = Run.load(run.path).patients


def test_absent_keys_are_null_and_columns_have_one_order(tmp_path: Path) -> None:
    run = open_run("s", {}, results=tmp_path, seed=0, version="1")
    more = {"last:k": 1.0, "x:k": 2.0, "misfit:f": 3.0, "extra": 4}
    run.write_part("p1", part("B", n_states=10, n_samples=5, **more))
    run.write_part("p2", part("A", method="nelder-mead", start=1, **{"x:j": 5.0}))
    run.write_part("p3", part("A", method="nelder-mead", start=0))
    run.write_part("p4", part("C").iloc[:0])
    patients = pd.DataFrame({"setup": [], "patient": []})
    table = run.finish(problems={}, patients=patients).personalizations
    assert list(table.columns)[: len(KEYS)] == KEYS
    # group by group, and within a group as they come with the sorted rows
    assert list(table.columns)[-5:] == ["extra", "misfit:f", "x:j", "x:k", "last:k"]
    assert list(table["patient"]) == ["A", "A", "B"]
    assert list(table["start"].fillna(-1)) == [0, 1, -1]
    for name in ("n_states", "n_samples", "repeat", "start"):
        assert table[name].dtype == "Int64"
    assert table["n_states"].isna().tolist() == [True, True, False]


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    run = open_run("s", {}, results=tmp_path, seed=0, version="1")
    run.write_part("p1", part("A"))
    run.part("p1").write_bytes(b"PAR1PAR1")
    with pytest.raises(ValueError, match=r"p1\.parquet: damaged, expected a table: delete it"):
        run.finish(problems={}, patients=pd.DataFrame({"setup": [], "patient": []}))
    run.write_part("p1", part("A").drop(columns="method"))
    with pytest.raises(ValueError, match="column 'method' is missing"):
        run.finish(problems={}, patients=pd.DataFrame({"setup": [], "patient": []}))


def test_a_notebook_in_a_started_run_assembles_and_leaves_the_manifest(tmp_path: Path) -> None:
    folder = OpenRun.start(tmp_path, "s", {"n": 1, "m": [1]}, 3, "1")
    asked = {"m": [1], "n": 1}
    run = open_run("s", asked, results="elsewhere", seed=3, folder=str(folder.path))
    run.write_part("p1", part("A"))
    assert folder.has_part("p1")
    patients = pd.DataFrame({"setup": ["2p"], "patient": ["A"]})
    stored = run.finish(problems={"2p": PROBLEM}, patients=patients)
    assert len(stored.personalizations) == 1
    assert stored.manifest.problems["2p"].name == "square"
    assert not (folder.path / "run.json").exists()
    assert [info.status for info in list_runs(tmp_path)] == ["running"]
    folder.close("complete")
    manifest = Run.load(folder.path).manifest
    assert manifest.problems["2p"].name == "square"
    assert "personalizations.parquet" in manifest.files
    assert not (folder.path / "problems.json").exists()


@pytest.mark.parametrize(
    ("study", "parameters", "seed", "error"),
    [
        ("s", {"n": 2}, 3, "n is 2 in the notebook, expected 1"),
        ("s", {}, 3, "n is 'absent' in the notebook, expected 1"),
        ("s", {"n": 1, "m": 0}, 3, "m is 0 in the notebook, expected 'absent'"),
        ("s", {"n": 1}, 4, "seed is 4 in the notebook, expected 3"),
        ("t", {"n": 1}, 3, "study is 't' in the notebook, expected 's'"),
    ],
)
def test_a_notebook_that_computes_something_else_is_refused(
    tmp_path: Path, study: str, parameters: dict[str, int], seed: int, error: str
) -> None:
    folder = OpenRun.start(tmp_path, "s", {"n": 1}, 3, "1")
    with pytest.raises(ValueError, match=error):
        open_run(study, parameters, results=tmp_path, seed=seed, folder=folder.path)


def test_a_complete_run_opened_by_hand_is_looked_at_and_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = fill(tmp_path)
    before = (first.path / "run.json").read_bytes()
    again = fill(tmp_path)
    assert again.path == first.path
    assert (first.path / "run.json").read_bytes() == before
    assert f"already complete: {first.path}" in capsys.readouterr().err


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "none") == []
    paths = [fill(tmp_path, study=f"s{i}", seed=i).path for i in range(2)]
    renamed = paths[0].rename(paths[0].with_name("20200101T000000Z-00000000"))
    assert [info.path for info in list_runs(tmp_path)] == [paths[1], renamed]
    assert [info.seed for info in list_runs(tmp_path)] == [1, 0]
    with pytest.raises(ValueError, match="no complete run"):
        latest(tmp_path, "s2")


def test_damaged_and_foreign_folders_are_listed_as_such_and_harm_nothing(tmp_path: Path) -> None:
    good = fill(tmp_path)
    manifest = (good.path / "run.json").read_text()
    later = manifest.replace('"schema_version": 1', '"schema_version": 2')
    damaged = {
        "empty": (None, "", "start.json is missing"),
        "cut": ("run.json", manifest[:100], "run.json is damaged"),
        "blank": ("run.json", "", "run.json is damaged"),
        "later": ("run.json", later, r"another version of vitolab \(schema 2, expected 1\)"),
        "list": ("run.json", "[1, 2]", "run.json: content"),
        "other": ("run.json", '{"a": 1}', "run.json: schema_version: Field required"),
        "status": ("run.json", manifest.replace('"complete"', '"odd"'), "run.json: status"),
        "deep": ("start.json", "[" * 100_000, "start.json is damaged"),
        "binary": ("start.json", "\x00\x01", "start.json is damaged"),
        "photos": ("picture.png", "", "start.json is missing"),
    }
    for name, (file, content, _) in damaged.items():
        (tmp_path / "s" / name).mkdir()
        if file is not None:
            (tmp_path / "s" / name / file).write_text(content)
    (tmp_path / "s" / "folder").mkdir()
    (tmp_path / "s" / "folder" / "run.json").mkdir()
    (tmp_path / "s" / "loose file").touch()
    (tmp_path / "loose file").touch()
    (tmp_path / "walks" / "key").mkdir(parents=True)
    infos = {info.path.name: info for info in list_runs(tmp_path)}
    assert infos.pop(good.path.name).status == "complete"
    assert infos.pop("folder").reason.startswith("run.json cannot be read")
    assert infos.keys() == damaged.keys()
    for name, (_, _, reason) in damaged.items():
        assert infos[name].status == "unreadable", name
        assert pd.Series([infos[name].reason]).str.contains(reason).all(), infos[name].reason
        with pytest.raises(ValueError, match=name):
            Run.load(tmp_path / "s" / name)
    assert latest(tmp_path, "s").path == good.path
    assert open_run("s", {"n": 2}, results=tmp_path, seed=0, version="1").state == "new"


def test_a_damaged_claim_is_nobodys_once_it_is_old(tmp_path: Path) -> None:
    first = OpenRun.start(tmp_path, "s", {}, 0, "1")
    first.release()
    (claim,) = (tmp_path / "s" / ".claims").iterdir()
    claim.write_text("{")
    with pytest.raises(RuntimeError, match="starting this run just now"):
        OpenRun.start(tmp_path, "s", {}, 0, "1")
    os.utime(claim, (time.time() - 61,) * 2)
    assert OpenRun.start(tmp_path, "s", {}, 0, "1").state == "resumed"


def test_the_version_of_the_code_changes_with_what_computes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ("mdp.py", "kernels/mdp.py", "models/cohort.csv", "plots/a.py", "cli.py", "store.py")
    for name in (*files, "_notebooks/a.py", "models/__init__.py", "store/claims.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"name = {name!r}")
    monkeypatch.setattr(version, "package_folder", lambda: tmp_path)
    first = code_version()
    for name in ("plots/a.py", "cli.py", "store.py", "_notebooks/a.py", "store/claims.py"):
        (tmp_path / name).write_text("changed = 1")
        assert code_version() == first, name
    seen = {first}
    for name in ("mdp.py", "kernels/mdp.py", "models/cohort.csv"):
        (tmp_path / name).write_text("changed = 1")
        seen.add(code_version())
    assert len(seen) == 4


def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package and its notebooks, to be edited."""
    source = version.package_folder()
    kept = shutil.ignore_patterns(
        "__pycache__", "*.nbi", "*.nbc", "plots", "_notebooks", "_dashboards"
    )
    shutil.copytree(source, tmp_path / "vitolab", ignore=kept)
    shutil.copytree(find_notebook("tour.ipynb").parent, tmp_path / "notebooks")
    monkeypatch.setattr(version, "package_folder", lambda: tmp_path / "vitolab")
    return tmp_path / "vitolab"


def test_a_study_depends_on_what_its_notebook_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the folders are in which its modules lie."""
    package = copied(tmp_path, monkeypatch)
    studies = ("wbc-fit", "uncertainty", "problem", "ep-convergence")

    def versions() -> dict[str, str]:
        return {study: code_version(study) for study in studies}

    changed = {
        "dashboard.py": set(),
        "cli.py": set(),
        "uncertainty/posterior.py": {"uncertainty"},
        "kernels/circulation.py": {"wbc-fit", "uncertainty"},
        "models/electrophysiology/leadfield.py": {"ep-convergence"},
        "identifiability.py": {"problem"},
        "mdp.py": set(studies),
    }
    for name, expected in changed.items():
        before = versions()
        with (package / name).open("a") as file:
            file.write("\n_ANOTHER = 1\n")
        after = versions()
        assert {s for s in studies if before[s] != after[s]} == expected, name


def test_bystanders_are_modules_that_there_are() -> None:
    modules = version._sources(version.package_folder())
    for name in (*version._BYSTANDERS, *version._COMPUTING):
        assert f"vitolab.{name}" in modules or name in ("_dashboards", "_notebooks"), name


def test_the_cohort_and_the_units_of_a_file_are_part_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a package loads them when they are first used."""
    package = copied(tmp_path, monkeypatch)
    for study, name in (
        ("ep-convergence", "models/electrophysiology/frozen.py"),
        ("wbc-convergence", "models/circulation/frozen.py"),
        ("problem", "patients/units.py"),
    ):
        before = code_version(study)
        with (package / name).open("a") as file:
            file.write("\n_ANOTHER = 1\n")
        assert code_version(study) != before, name


def test_remarks_do_not_change_the_version_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = copied(tmp_path, monkeypatch)

    def versions() -> list[str]:
        walks = version.reached_version(["vitolab.exploration"])
        return [code_version(), code_version("wbc-fit"), walks]

    before = versions()
    for path in (
        package / "exploration.py",
        package / "dashboard.py",
        package / "agent" / "vito.py",
    ):
        text = path.read_text()
        head, _, rest = text.partition('"""\n')
        path.write_text('"""Another title."""\n' + rest + "\n\n\n# a remark\n")
        assert head.startswith('"""')
    assert versions() == before
    path = package / "exploration.py"
    path.write_text(path.read_text().replace("n_steps: int = 100", "n_steps: int = 101"))
    assert all(now != then for now, then in zip(versions(), before, strict=True))


@pytest.mark.parametrize("library", ["numpy", "scipy", "numba", "scikit-learn", "nlopt", "emcee"])
def test_version_changes_with_the_libraries(library: str, monkeypatch: pytest.MonkeyPatch):
    before, versions = code_version(), version.metadata.version
    monkeypatch.setattr(
        version.metadata, "version", lambda name: "0" if name == library else versions(name)
    )
    assert code_version() != before
