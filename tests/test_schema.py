"""What earlier versions stored can be read, listed and shown, gone on with and acted on.

A schema that is no longer the newest keeps its folder here, and its test.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from analytic import linear

from vitolab import cli, plots
from vitolab.agent import Vito
from vitolab.dashboard import load_dashboards
from vitolab.files import ArrayCache
from vitolab.problem import Objective, Parameter, Patient, Problem
from vitolab.store import OpenRun, Run, latest, list_runs
from vitolab.store.records import SCHEMA

FIXTURES = Path(__file__).parent / "fixtures"
STORE = FIXTURES / "schema-1" / "store"
PROBLEM = Problem(
    name="linear",
    version="1",
    parameters=tuple(Parameter(name, name, "mL", -5.0, 5.0, 0.0, 0.02) for name in "ab"),
    objectives=tuple(Objective(name, name, "mL", 0.5) for name in "uw"),
    simulate=linear,
)


def test_each_schema_has_its_files() -> None:
    kept = {path.name for path in FIXTURES.glob("schema-*")}
    assert kept == {f"schema-{number}" for number in range(1, SCHEMA + 1)}


def test_runs_of_schema_1_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    interrupted, complete = list_runs(STORE)
    assert (interrupted.status, complete.status) == ("interrupted", "complete")
    assert (interrupted.seed, complete.seed) == (1, 0)
    assert complete.parameters == {"setups": ["2p"], "n_samples": 20}
    assert interrupted.progress is not None
    assert (interrupted.progress.done, interrupted.progress.total) == (2, 2)
    cli.app(["list", "--results", str(STORE)], standalone_mode=False)
    assert "last run: interrupted (2p, repeat 1 of 1: 2 of 2), " in capsys.readouterr().out


def test_a_run_of_schema_1_is_read_and_shown() -> None:
    run = latest(STORE, "wbc-convergence")
    table = run.personalizations  # whose checksum is looked at
    assert list(table["patient"]) == ["P0", "P0", "P1", "P1"]
    assert list(table["method"]) == ["nelder-mead", "vito"] * 2
    for row in table.to_dict("records"):
        z = run.patients.set_index("patient").loc[row["patient"]]
        x = np.array([[row["x:a"], row["x:b"]]])
        y = linear(x, Patient("P", {}, {"offset": float(z["data:offset"])}))[0]
        misfits = y - z[["z:u", "z:w"]].to_numpy(float)
        assert [row["misfit:u"], row["misfit:w"]] == pytest.approx(list(misfits))
        assert row["solved"] == (np.abs(misfits) < 0.5).all()
    counts = run.traces.groupby(["patient", "method"]).size()
    assert dict(counts) == dict(table.groupby(["patient", "method"])["n_runs"].sum())
    described = run.manifest.problems["2p"]
    stored = json.loads(described.model_dump_json())
    assert stored == json.loads(json.dumps(PROBLEM.describe()))
    assert len(plots.convergence_table(table))

    source = load_dashboards("kit.source").Source(STORE)
    source.refresh()
    assert [entry.info.status for entry in source.entries] == ["interrupted", "complete"]
    for entry, n in zip(source.entries, (1, 4), strict=True):
        assert len(source.table(entry.id, "personalizations")) == n


def test_an_interrupted_run_of_schema_1_is_gone_on_with(tmp_path: Path) -> None:
    shutil.copytree(STORE, tmp_path / "store")
    parameters = {"setups": ["2p"], "n_samples": 20}
    run = OpenRun.start(tmp_path / "store", "wbc-convergence", parameters, 1, "1")
    assert run.state == "resumed"
    (part,) = (run.path / "parts").glob("*.parquet")
    assert run.has_part(part.stem)
    run.close("failed", "enough")
    assert Run.load(run.path).manifest.reason == "enough"


def test_walks_of_schema_1_are_read() -> None:
    files = list(STORE.glob("walks/*/*.npz"))
    assert files
    for path in files:
        walks = ArrayCache(STORE / "walks").load(path.parent.name, path.stem)
        assert walks is not None
        assert walks["x"].shape == walks["y"].shape == (1, 21, 2)
        moved = np.abs(np.diff(walks["x"], axis=1)).sum(axis=2)
        assert (moved <= 2.0 + 1e-9).all()  # a hundred steps of 0.02 at the most


def test_an_agent_of_schema_1_acts() -> None:
    agent = Vito.load(FIXTURES / "schema-1" / "agent", PROBLEM)
    patient = Patient("P", {"u": 1.0, "w": 1.0}, {"offset": 0.0})
    fit = agent.personalize(patient, max_runs=300, seed=0)
    assert fit.solved
    assert np.abs(linear(fit.x[np.newaxis], patient)[0] - 1.0).max() < 0.5
