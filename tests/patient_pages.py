"""Fits of three patients, stored, and the page that shows them."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from vitolab.agent import Vito
from vitolab.dashboard import load_dashboards
from vitolab.exploration import explore
from vitolab.files import checksum
from vitolab.models import circulation
from vitolab.reference import NelderMead
from vitolab.store import OpenRun, assemble
from vitolab.store.tables import fit_row, patient_table, table, trace_table

selection = load_dashboards("kit.selection")
source = load_dashboards("kit.source")
worker = load_dashboards("kit.worker")
page = load_dashboards("pages.patient.page")


@pytest.fixture(scope="module")
def learned():
    """Problem, patients, an agent that left the first of them out."""
    problem = circulation.problem("2p")
    patients = circulation.cohort().first(6)
    walks = explore(problem, patients, n_episodes=3, n_steps=100, seed=0)
    return problem, patients, Vito.learn(problem, walks.without(patients[0].name), 40, 0)


@pytest.fixture(scope="module")
def fitted(learned):
    """Fits of three patients by Vito and by a reference method from two starts."""
    problem, patients, vito = learned
    rows = []
    for patient in patients[:3]:
        start = problem.default[None]
        fit = vito.personalize_from(patient, start, max_runs=40, seed=1)[0]
        key = {"method": "vito", "n_states": 40, "n_samples": 300, "repeat": 0, "start": None}
        rows.append((patient, key, fit))
        for k in range(2):
            fit = NelderMead(problem).personalize(patient, max_runs=20, seed=k)
            key = {"method": "nelder-mead", "repeat": None, "start": k}
            rows.append((patient, key | {"n_states": None, "n_samples": None}, fit))
    return rows


@pytest.fixture(scope="module")
def store(tmp_path_factory, learned, fitted):
    """A stored run; only the first start of the reference method is traced."""
    problem, patients, vito = learned
    root = tmp_path_factory.mktemp("results")
    run = OpenRun.start(root, "wbc-convergence", {"setups": ["2p"]}, 0, "1", again=True)
    rows, traces = [], []
    for patient, key, fit in fitted:
        label = {"setup": "2p", "patient": patient.name, "seed": 0} | key
        rows.append(label | {"n_states_used": None} | fit_row(problem, fit))
        if key["start"] != 1:
            traces.append(trace_table(problem, fit, label))
    run.write_part("part", table(rows), pd.concat(traces))
    arrays = {
        "2p/centroids": vito.states.centroids,
        "2p/q": vito.policy.q,
        "2p/v": vito.policy.v,
        "2p/visits": vito.mdp.visits,
    }
    known = patient_table({"2p": problem}, patients[:3])
    assemble(run.path, problems={"2p": problem}, patients=known, arrays=arrays)
    run.close("complete")
    return root


def opened(root, **values):
    """The page, its selection and its worker, after all work is done."""
    found = source.Source(root)
    found.refresh()
    chosen, working = selection.Selection(page="patient", **values), worker.Worker()
    view = page.PatientView(chosen, found, working)
    view.panel()
    working.wait()
    return view, chosen, working


def replace_table(run, name, table):
    """Change a table of a run, and what its manifest says of it."""
    file = run / f"{name}.parquet"
    table.to_parquet(file)
    record = json.loads((run / "run.json").read_text())
    record["files"][file.name] = {"size": file.stat().st_size, "sha256": checksum(file)}
    (run / "run.json").write_text(json.dumps(record))


def words(markup: str) -> str:
    """Text of HTML."""
    return re.sub(r"<[^>]*>", " ", markup)
