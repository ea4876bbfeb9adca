"""Damaged tables and arrays are refused when they are loaded, in one sentence, and never later."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vitolab.dashboard import load_dashboards
from vitolab.files import write_arrays
from vitolab.store import Run, latest
from vitolab.store.columns import TABLES

STORE = Path(__file__).parent / "fixtures" / "schema-1" / "store"
TEXT = ("setup", "patient", "method")
WHOLE = ("n_runs", "iteration", "action", "state")
NEEDED = {*TEXT, "n_runs", "iteration", "solved", "start", "n_samples"}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A copy whose files have no checksums, as those of a run that is not finished."""
    path = tmp_path_factory.mktemp("store") / "run"
    shutil.copytree(latest(STORE, "wbc-convergence").path, path)
    manifest = latest(STORE, "wbc-convergence").manifest.model_copy(update={"files": {}})
    (path / "run.json").write_text(manifest.model_dump_json())
    failures = {"setup": "2p", "stage": "exploration", "patient": "P0", "kind": "raised"}
    failures |= {"text": "no", "n_runs": 1, "n_retries": 0, "x:a": 0.5, "x:b": 0.1}
    pd.DataFrame([failures]).to_parquet(path / "failures.parquet")
    return Run.load(path)


def spoiled(values: pd.Series[Any], column: str, rng: np.random.Generator) -> Any:
    """A column that no run holds."""
    n = len(values)
    nested = [[1.0, 2.0]] * n
    if column in TEXT or column in ("event", "stage", "kind"):
        others = [pd.Series(range(n)), pd.Series([None] * n), nested, values.astype("category")]
    elif column == "solved":
        others = [["yes"] * n, [None] * n, np.arange(n) + 0.5, nested]
    elif column in WHOLE:
        missing = [None] + [1] * (n - 1)
        others = [["1"] * n, missing, np.full(n, np.nan), nested]
    else:
        others = [["many"] * n, nested, [b"\x00"] * n, values.astype(str).astype("category")]
    return others[rng.integers(len(others))]


def test_a_damaged_table_is_refused_by_file_and_column(stored: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tables = {name: getattr(stored, name) for name in TABLES}
    shutil.copytree(stored.path, tmp_path / "run")
    for _ in range(500):
        name = TABLES[rng.integers(len(TABLES))]
        whole = tables[name]
        file = tmp_path / "run" / f"{name}.parquet"
        optional = ("n_states_used", "seed", "text", "stop_reason", "data:offset")
        columns = [c for c in whole.columns if c not in optional]
        column = str(columns[rng.integers(len(columns))])
        damage = rng.integers(5)
        if damage == 0:
            size = int(rng.integers(file.stat().st_size))
            file.write_bytes((stored.path / file.name).read_bytes()[:size])
            column = "damaged"
        elif damage == 1 and (column in NEEDED or column.startswith(("z:", "misfit:", "x:"))):
            whole.drop(columns=column).to_parquet(file)
        else:
            table = whole.copy()
            table[column] = spoiled(whole[column], column, rng)
            table.to_parquet(file)
        with pytest.raises(ValueError, match=r"parquet: ") as caught:
            getattr(Run.load(tmp_path / "run"), name)
        said = str(caught.value)
        assert str(file) in said, said
        assert column in said, said
        assert "\n" not in said
        shutil.copy(stored.path / file.name, file)
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(Run.load(tmp_path / "run"), name), tables[name])


ARRAYS = {
    "2p/centroids": np.zeros((3, 2)),
    "2p/q": np.zeros((3, 4)),
    "2p/v": np.zeros(3),
    "2p/visits": np.zeros((3, 4), dtype=int),
}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, lambda a: a.astype("U8")) for name in ARRAYS),
        *((name, lambda a: a[np.newaxis]) for name in ARRAYS),
        *((name, lambda a: np.float64(0.0)) for name in ARRAYS),
        *((name, lambda a: a.astype(complex)) for name in ARRAYS),
        *((name, lambda a: a[:1]) for name in ("2p/q", "2p/v", "2p/visits")),
    ],
)
def test_damaged_arrays_are_refused_by_name(
    stored: Run, tmp_path: Path, name: str, change: Callable[[Any], Any]
) -> None:
    shutil.copytree(stored.path, tmp_path / "run")
    write_arrays(tmp_path / "run" / "arrays.npz", ARRAYS)
    assert Run.load(tmp_path / "run").arrays.keys() == ARRAYS.keys()
    write_arrays(tmp_path / "run" / "arrays.npz", ARRAYS | {name: change(ARRAYS[name])})
    with pytest.raises(ValueError, match=r"arrays.npz: 2p/") as caught:
        _ = Run.load(tmp_path / "run").arrays
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", TABLES)
def test_no_table_is_read_through_a_link_that_leads_out(tmp_path: Path, name: str) -> None:
    shutil.copytree(STORE, tmp_path / "store")
    run = latest(tmp_path / "store", "wbc-convergence")
    outside = tmp_path / "outside.parquet"
    shutil.copy(run.path / "personalizations.parquet", outside)
    (run.path / f"{name}.parquet").unlink(missing_ok=True)
    (run.path / f"{name}.parquet").symlink_to(outside)
    source = load_dashboards("kit.source").Source(tmp_path / "store")
    source.refresh()
    with pytest.raises(ValueError, match="a link that leads out is not followed"):
        source.table(run.path.name, name)


def test_a_run_that_only_explored_has_no_finished_part_yet(tmp_path: Path) -> None:
    shutil.copytree(STORE, tmp_path / "store")
    source = load_dashboards("kit.source").Source(tmp_path / "store")
    source.refresh()
    (entry,) = [e for e in source.entries if e.info.status == "interrupted"]
    for part in (entry.info.path / "parts").iterdir():
        part.unlink()
    failed = entry.info.path / "parts" / "exploration-x-1.failures.parquet"
    pd.DataFrame({"setup": ["2p"]}).to_parquet(failed)
    with pytest.raises(ValueError, match="has no finished part yet"):
        source.table(entry.id, "personalizations")
