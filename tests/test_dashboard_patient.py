"""The page Patient without a server: sentences, what is shown of a fit, links, hostile text."""

from __future__ import annotations

import json
import re
import shutil
import threading
from dataclasses import replace

import dashboard_runs as made
import numpy as np
import pandas as pd
import panel as pn
import pytest
import stores

from vitolab import explain
from vitolab.agent import ContinuousVito, Vito
from vitolab.dashboard import load_dashboards
from vitolab.exploration import explore
from vitolab.files import checksum
from vitolab.fit import REASONS
from vitolab.mdp import Policy
from vitolab.models import circulation, electrophysiology
from vitolab.reference import NelderMead
from vitolab.states import StateSpace
from vitolab.store import OpenRun, assemble
from vitolab.store.policies import Knowledge
from vitolab.store.tables import fit_row, patient_table, table, trace_table

answers = load_dashboards("charts.answers")
charts = load_dashboards("charts.bokeh")
histories = load_dashboards("charts.histories")
fits = load_dashboards("pages.patient.fits")
pictures = load_dashboards("charts.pictures")
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


# --- what is shown ------------------------------------------------------------------------------


def test_a_fit_is_shown_run_by_run(store, fitted):
    """Parameters, misfits and outputs of the selected run are the stored ones."""
    patient, _, fit = fitted[0]
    view, chosen, working = opened(store, patient=patient.name, method="vito", step=2)
    assert view.player.end == fit.n_runs
    assert view.player.value == 3
    shown = np.array(view.screen.misfits.source.data["y0"])
    expected = np.abs(fit.trace.misfits[:, 0]) / 20.0  # tolerance of the end-diastolic volume, mL
    np.testing.assert_allclose(shown, np.maximum(expected, histories.FLOOR))
    values = view.screen.parameters[1].source.data["y0"]
    np.testing.assert_allclose(values, fit.trace.x[:, 1])
    assert f"{fit.trace.x[2, 0]:.5g} mL" in words(view.screen.run_tables.object)
    assert view.screen.misfits.cursor.location == 3
    view.player.value = 1
    working.wait()
    assert chosen.step == 0
    assert view.screen.misfits.cursor.location == 1
    assert "Run 1: the start" in words(view.screen.told.object)


def test_the_model_answers_at_the_selected_run(store, learned, fitted):
    """Curves are those of the model at the stored parameters, beside the measured ones."""
    problem, _, _ = learned
    patient, _, fit = fitted[0]
    view, *_ = opened(store, patient=patient.name, method="vito", step=1)
    curves = circulation.curves(fit.trace.x[1], patient, "2p")
    np.testing.assert_allclose(view.screen.picture.model.data["lv_volume"], curves["lv_volume"])
    np.testing.assert_allclose(view.screen.picture.model.data["time"], 1e3 * curves["time"])
    measured = circulation.measured_curves()[patient.name]
    np.testing.assert_allclose(
        view.screen.picture.measured.data["lv_volume"], measured["lv_volume"]
    )
    band = view.screen.picture.bands["lv_edv"]
    assert band.top - band.bottom == pytest.approx(2 * problem.tolerance[0])


def test_the_bars_are_in_tolerances(learned):
    """A bar of length one ends at the border of the band; the smaller ones are green."""
    problem, _, _ = learned
    bars = charts.MisfitBars(problem)
    bars.show(problem.tolerance * [0.5, -3.0])
    assert list(bars.source.data["c"]) == [0.5, -3.0]
    assert list(bars.source.data["color"]) == [charts.GREEN, charts.ORANGE]
    bars.show([np.nan, 1.0])
    assert "did not answer" in bars.source.data["words"][0]


def test_a_fit_without_stored_runs_shows_its_result(store, fitted):
    """The page says that the runs are not stored, and shows what was found."""
    patient, _, fit = fitted[2]
    view, *_ = opened(store, patient=patient.name, method="nelder-mead", start=1)
    assert "not stored" in words(view.outcome.object)
    assert "Parameters of the result" in words(view.screen.run_tables.object)
    assert not view.screen.runs.visible  # a result is no walk of one run
    assert not view.screen.misfits.pane.visible
    view._set(start=0)
    view.worker.wait()
    assert "Parameters of run 1" in words(view.screen.run_tables.object)
    assert view.screen.runs.visible
    assert view.screen.misfits.pane.visible
    view._set(start=1)
    view.worker.wait()
    assert not view.player.visible
    assert len(view.screen.misfits.source.data["run"]) == 1
    assert f"{fit.x[0]:.5g} mL" in words(view.screen.run_tables.object)
    assert "(without its runs)" in " ".join(view.fit.options)


def test_forward_runs_that_are_lost_are_not_called_unstored(tmp_path, store):
    """A file that the manifest names and that is gone is damage, and the result is still shown."""
    shutil.copytree(store, tmp_path / "copy")
    (run,) = (tmp_path / "copy" / "wbc-convergence").glob("2*")
    (run / "traces.parquet").unlink()
    view, *_ = opened(tmp_path / "copy", method="nelder-mead")
    assert view.content.visible
    told = words(view.outcome.object)
    assert "cannot be read" in told
    assert "traces.parquet: the file is missing" in told
    assert "not stored" not in told
    assert "not stored" not in words(view.screen.told.object)


def test_a_run_whose_folder_was_moved_is_said_to_be_gone(tmp_path, store):
    shutil.copytree(store, tmp_path / "copy")
    found = source.Source(tmp_path / "copy")
    found.refresh()
    (run,) = (tmp_path / "copy" / "wbc-convergence").glob("2*")
    run.rename(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="the folder is gone"):
        fits.load(found, run.name)


def test_all_solutions_of_a_patient_stand_below_the_charts(tmp_path):
    """Three starts ten steps apart: their range as a share of the domain; one fit has none."""
    made.uncertainty(tmp_path)
    view, chosen, working = opened(tmp_path, patient="C03", method="vito-continuous")
    problem, who = circulation.problem("2p"), view.patient.value
    found = fits.solutions(view._stored, "2p", who, "vito-continuous").set_index("parameter")
    for p in problem.parameters:
        row = found.loc[p.label]
        assert (row["solved fits"], row["from"]) == (3, f"{p.default:.5g}")
        share = 100 * 10 * p.step / (p.upper - p.lower)
        assert float(row["range / domain [%]"]) == pytest.approx(share, abs=0.05)
    assert f"Solutions found for {who}: what the fits by vito-continuous" in words(
        view.solutions.object
    )
    chosen.method = "posterior"
    working.wait()
    assert view.solutions.object == ""


def test_the_list_of_all_patients_is_linked(store, fitted):
    """Solved, runs and worst misfit are means over the fits; a click selects the patient."""
    view, chosen, working = opened(store, method="nelder-mead")
    shown = pd.DataFrame(view.cohort.list.shown).set_index("patient")
    own = [
        fit for patient, key, fit in fitted if patient.name == "C01" and key["start"] is not None
    ]
    assert shown.loc["C01", "fits"] == 2
    assert shown.loc["C01", "runs"] == np.mean([fit.n_runs for fit in own])
    assert shown.loc["C01", "solved"] == 100 * np.mean([fit.solved for fit in own])
    view.cohort.list.chosen = ["2"]
    working.wait()
    assert chosen.patient == list(shown.index)[2]
    assert chosen.patient in words(view.outcome.object)
    view.cohort.source.selected.indices = [0]
    working.wait()
    assert chosen.patient == "C01"
    assert view.cohort.list.chosen == ["0"]
    view.after.clicks += 1
    working.wait()
    assert chosen.patient == list(shown.index)[1]


def test_what_a_run_lacks_falls_back(store):
    """An address may ask for anything."""
    view, *_ = opened(store, setup="9p", patient="Nobody", method="magic", step=10**6, start=77)
    assert view.content.visible
    assert view.patient.value == "C01"
    assert view.player.value == view.player.end
    lacks = "setup 9p, patient Nobody, method magic, start 77, forward run 1000001"
    assert f"Not in this run: {lacks}." in view.outcome.object


def test_a_run_that_the_store_lacks_is_told(store):
    """No other run stands in its place; a chosen one takes it."""
    view, chosen, working = opened(store, runs=["nothing"])
    assert "Not in this store: nothing. Choose another" in words(view.newest.object)
    assert view.choice.widget.value not in [entry.id for entry in view.source.entries]
    assert not view.content.visible
    chosen.runs = []
    working.wait()
    assert view.content.visible


def test_a_patient_that_cannot_be_shown_keeps_no_other_from_being_chosen(tmp_path, store):
    """The first lacks a measurement: it is said, and the widgets stay."""
    shutil.copytree(store, tmp_path / "copy")
    run = next((tmp_path / "copy" / "wbc-convergence").glob("2*"))
    known = pd.read_parquet(run / "patients.parquet")
    first, second = sorted(known["patient"].unique())[:2]
    known.loc[known["patient"] == first, "z:lv_edv"] = np.nan
    replace_table(run, "patients", known)
    view, _, working = opened(tmp_path / "copy")
    assert f"the run holds no 'lv_edv' of {first}" in words(view.message.object).replace(
        "&#x27;", "'"
    )
    assert not view.content.visible
    assert view.widgets.visible
    view.patient.value = second
    working.wait()
    assert view.content.visible
    assert view._film.patient.name == second
    assert view.message.object == ""


def test_a_run_within_which_something_was_chosen_is_kept(tmp_path, store):
    shutil.copytree(store, tmp_path / "results")
    view, chosen, working = opened(tmp_path / "results")
    run = view._stored.id
    assert chosen.runs == []
    view.player.value = 2
    working.wait()
    assert chosen.runs == [run]
    first = next((tmp_path / "results" / "wbc-convergence").glob("2*"))
    shutil.copytree(first, first.with_name("20991231T000000Z-later"))
    view.source.refresh(older_than=0)
    view.refresh()
    working.wait()
    assert view._stored.id == run
    assert "Forward run 2 of" in view.count.object


def test_a_run_that_comes_back_is_shown_again(tmp_path, store):
    shutil.copytree(store, tmp_path / "results")
    view, _, working = opened(tmp_path / "results")
    assert view.content.visible
    study = tmp_path / "results" / "wbc-convergence"
    for there, seen in ((False, False), (True, True)):
        study.rename(tmp_path / "away") if not there else (tmp_path / "away").rename(study)
        view.source.refresh(older_than=0)
        view.refresh()
        working.wait()
        assert view.content.visible == seen


def test_curves_of_one_patient_never_stand_under_the_name_of_another(store, monkeypatch):
    """The model takes its time: until it answers there is no curve."""
    view, _, working = opened(store)
    assert len(view.screen.picture.model.data["time"]) > 0
    answer, go_on = answers.simulate, threading.Event()
    monkeypatch.setattr(answers, "simulate", lambda *given: go_on.wait(10) and answer(*given))
    view._turn(1)
    while working.is_busy("patient-film") or not working.is_busy("patient-answer"):
        working.poll()
    assert len(view.screen.picture.model.data["time"]) == 0
    go_on.set()
    working.wait()
    assert len(view.screen.picture.model.data["time"]) > 0


def test_another_run_is_shown_from_its_beginning(tmp_path, store):
    """What was chosen within the run before is none of it."""
    shutil.copytree(store, tmp_path / "two")
    (first,) = (tmp_path / "two" / "wbc-convergence").glob("2*")
    shutil.copytree(first, first.with_name("20200101T000000Z-earlier"))
    view, chosen, working = opened(tmp_path / "two", patient="C03", method="nelder-mead", step=2)
    assert (view.choice.widget.value, view._film.patient.name) == ("-", "C03")
    assert "The newest run: wbc-convergence" in view.newest.object
    view.choice.widget.value = "20200101T000000Z-earlier"
    working.wait()
    assert view._stored.id == "20200101T000000Z-earlier"
    assert view.newest.object == ""
    assert chosen.query() == "page=patient&runs=20200101T000000Z-earlier"
    assert view.patient.value == "C01"
    assert "Not in this run" not in view.outcome.object


def test_a_run_that_was_left_before_it_was_read_does_not_come_back(tmp_path, store):
    """There and back again at once: the first stays."""
    shutil.copytree(store, tmp_path / "two")
    (first,) = (tmp_path / "two" / "wbc-convergence").glob("2*")
    shutil.copytree(first, first.with_name("20200101T000000Z-earlier"))
    view, chosen, working = opened(tmp_path / "two", runs=[first.name])
    chosen.runs = ["20200101T000000Z-earlier"]
    chosen.runs = [first.name]
    working.wait()
    assert view._stored.id == first.name
    assert view.content.visible
    chosen.runs = ["20200101T000000Z-earlier"]
    chosen.patient = "C03"
    working.wait()
    assert (view._stored.id, view.patient.value) == ("20200101T000000Z-earlier", "C03")


def test_a_step_is_cheap(store):
    """The film does not ask for the fit again."""
    view, chosen, working = opened(store, method="vito")
    film = view._film
    chosen.step = 1
    working.wait()
    assert view._film is film
    chosen.patient = "C03"
    working.wait()
    assert view._film is not film


def test_hidden_pages_wait(store):
    """A change while another page is shown is taken up when this one is."""
    view, chosen, working = opened(store, method="vito")
    chosen.page = "runs"
    chosen.patient = "C03"
    working.wait()
    assert view.patient.value == "C01"
    chosen.page = "patient"
    view.refresh()
    working.wait()
    assert view.patient.value == "C03"


@pytest.mark.parametrize("payload", stores.PAYLOADS)
def test_hostile_names_are_text(tmp_path, payload):
    """Names in a store do not become markup, in any part of the page."""
    stores.hostile_study(tmp_path, [payload])
    view, *_ = opened(tmp_path)
    assert view.content.visible, view.message.object
    assert payload in view.patient.options.values()
    panes = view.content.select(lambda part: isinstance(part, pn.pane.HTML))
    markup = "".join(pane.object for pane in [view.message, *panes])
    for tag in re.findall(r"<\s*/?\s*(\w+)", markup):
        assert tag in {"div", "span", "h2", "h3", "ul", "li", "p", "b", "strong", "pre", "code",
                       "table", "caption", "thead", "tbody", "tr", "th", "td"}  # fmt: skip
    assert not re.search(r"<[^>]*\son\w+\s*=", markup)


def test_an_empty_store_says_what_to_do(tmp_path):
    """There is a command to copy."""
    view, *_ = opened(tmp_path / "none")
    assert "vitolab run" in words(view.message.object)
    assert not view.content.visible


def test_a_mesh_outside_the_store_is_not_opened(learned):
    """The data of a stored patient cannot make the page read a file."""
    _, patients, _ = learned
    hearts = electrophysiology.problem()
    evil = replace(patients[0], data={"anatomy": "/etc/passwd"})
    assert not answers.is_safe(hearts, evil)
    assert answers.is_safe(hearts, replace(evil, data={"anatomy": "normal"}))


# --- sentences ----------------------------------------------------------------------------------


def test_each_decision_is_a_sentence(learned, fitted):
    """Actions are named as the problem names them; the last run says it solved."""
    problem, _, vito = learned
    _, key, fit = next(row for row in fitted if row[1]["method"] == "vito" and row[2].solved)
    label = {"setup": "2p", "patient": "C01", "seed": 0} | key
    trace = trace_table(problem, fit, label)
    known = Knowledge(vito.states, vito.policy, vito.mdp.visits)
    told = explain.sentences(trace, problem, known)
    assert told[0].startswith("Run 1: the start")
    assert told[-1].endswith("solved.")
    for k, action in enumerate(fit.trace.action):
        if action >= 0:
            named = problem.describe_action(int(action)).replace("-", "−")
            assert told[k].startswith(f"Run {k + 1}: {named}, because in state")
            state = int(vito.states.quantize(fit.trace.misfits[k - 1][None])[0])
            assert f"state {state} " in told[k]
    assert explain.state_words(trace).endswith("0 (success)")
    assert "discarded" not in " ".join(told)
    # a trace of an earlier version tells no reasons: those of a stored policy stand in
    old = trace[[name for name in trace if not name.startswith("why:")]]
    again = explain.sentences(old, problem, known)
    for one, other in zip(told, again, strict=True):
        assert one.partition(", no action")[0].partition(" (")[0][:40] == other[:40]
    unexplained = explain.sentences(old, problem, None)
    assert not any("because in state" in words for words in unexplained)


def test_reasons_are_of_the_agent_that_acted_not_of_the_stored_policy(learned, fitted):
    """An agent that left another patient out has other states and values."""
    problem, _, vito = learned
    _, key, fit = next(row for row in fitted if row[1]["method"] == "vito")
    trace = trace_table(problem, fit, {"setup": "2p", "patient": "C01", "seed": 0} | key)
    other = Knowledge(
        StateSpace(vito.states.centroids[:3], problem.tolerance),
        Policy(-vito.policy.q[:3], vito.policy.v[:3]),
        vito.mdp.visits[:3],
    )
    told = explain.sentences(trace, problem, other)
    assert told == explain.sentences(trace, problem, None)
    for k, action in enumerate(fit.trace.action):
        if action >= 0:
            state = fit.trace.state[k - 1]
            why = dict(zip(REASONS, fit.trace.reasons[k], strict=True))
            assert why["q"] == vito.policy.q[state, action]
            assert why["q_best"] == vito.policy.v[state] == vito.policy.q[state].max()
            assert why["chance"] == vito.policy.probabilities[state, action] > 0
            assert why["seen"] == vito.mdp.visits[state, action]
            assert f"{abs(why['q']):.2f}" in told[k]


def test_a_run_of_an_earlier_version_says_whose_reasons_are_told(tmp_path, store):
    shutil.copytree(store, tmp_path / "copy")
    run = next((tmp_path / "copy" / "wbc-convergence").glob("2*"))
    assert not opened(store, method="vito")[0]._film.explained
    traces = pd.read_parquet(run / "traces.parquet")
    replace_table(run, "traces", traces[[n for n in traces if not n.startswith("why:")]])
    view, *_ = opened(tmp_path / "copy", method="vito")
    assert view._film.explained
    assert "of an earlier version" in words(view.outcome.object)


def test_a_reason_tells_the_best_and_the_others(learned):
    """The best action is called the best, another is compared with it, a discarded one said so."""
    problem, _, _ = learned
    c = np.array([100.0, 0.0])
    states = StateSpace(np.array([[0.0, 0.0], [100.0, 0.0]]), problem.tolerance)
    q = np.full((2, problem.n_actions), -9.0)
    q[1, 0], q[1, 1] = -2.0, -2.5
    known = Knowledge(states, Policy(q, q.max(axis=1)), np.ones_like(q, dtype=int))
    names = explain.action_names(problem)
    best = explain.because(known, c, 0, names)
    assert "no action there is worth more" in best
    assert f"next best: {names[1]}" in best
    second = explain.because(known, c, 1, names)
    assert f"the best action there is {names[0]}, worth −2.00" in second
    assert "one of 2 candidates" in second
    assert "discarded" in explain.because(known, c, 5, names)
    flat = Knowledge(states, Policy(np.zeros_like(q), q[:, 0]), known.visits)
    assert "equally good" in explain.because(flat, c, 3, names)


def test_restarts_say_why(learned):
    """After a failed run, and where an action would lead back."""
    problem, _, _ = learned
    trace = pd.DataFrame(
        {
            "event": ["start", "failed", "restart", "step", "restart"],
            "action": [-1, 3, -1, 2, -1],
            "state": [4, -1, 5, 6, 7],
            "c:lv_edv": [50.0, np.nan, 50.0, 40.0, 60.0],
            "c:lv_esv": [50.0, np.nan, 50.0, 40.0, 60.0],
        }
    )
    told = explain.sentences(trace, problem, None)
    assert "no answer" in told[1]
    assert "gave no answer in the run before" in told[2]
    assert "tried before" in told[4]
    assert explain.state_words(trace) == "4 → failed → ⟲ 5 → 6 → ⟲ 7"


def test_a_policy_of_another_shape_explains_nothing(learned):
    """Arrays that do not fit the problem are left alone."""
    problem, _, vito = learned
    arrays = {"2p/centroids": vito.states.centroids, "2p/v": vito.policy.v}
    arrays |= {"2p/q": vito.policy.q[:, :5], "2p/visits": vito.mdp.visits}
    assert explain.knowledge(arrays, "2p", problem) is None
    arrays["2p/q"] = vito.policy.q
    assert explain.knowledge(arrays, "2p, restart", problem) is not None
    assert explain.knowledge(arrays, "3p", problem) is None


# --- pictures -------------------------------------------------------------------------------------


def test_the_map_is_lowest_at_the_minimum():
    """log₁₀ of a Rosenbrock function over the square."""
    from vitolab.models import rosenbrock

    patient = rosenbrock.cohort(3)[1]
    known = answers.background(rosenbrock.problem(), patient)
    end = rosenbrock.MODEL.picture.limit
    axis = np.linspace(-end, end, len(known["map"]))
    row, column = np.unravel_index(np.argmin(known["map"]), known["map"].shape)
    optimum = rosenbrock.optimum(patient)
    assert (axis[column] - optimum[0]) ** 2 < 0.1
    assert abs(axis[row] - axis[column] ** 2) < 0.3


def test_the_heart_is_shown_as_the_model_has_it():
    """Mean activation times of segments, and leads cut to their column."""
    problem = electrophysiology.problem()
    patient = electrophysiology.cohort().first(1)[0]
    picture = pictures.picture(problem)
    x = problem.default
    answer = answers.simulate(problem, x, patient)
    picture.patient(patient, {})
    picture.show(answer, np.zeros(2))
    tau = electrophysiology.activation(x, patient)
    assert np.nanmin(answer["segments"]) >= 0.0
    assert np.nanmax(answer["segments"]) <= np.nanmax(tau)
    assert len(picture.leads.data["time"]) == 12
    assert picture.marks.data["right"][0] == patient.measurements["qrs_duration"] + 5.0
    picture.show({}, np.zeros(2))
    assert picture.leads.data["time"] == []


def test_every_stored_problem_finds_its_model():
    """Also where the stored one differs in its options; others have none."""
    from vitolab.models import rosenbrock

    stored = rosenbrock.problem(extended=True, border="reject")
    again = answers.current(stored)
    assert (again.version, again.border, again.multipliers) == (
        stored.version, "reject", stored.multipliers,
    )  # fmt: skip
    assert answers.current(circulation.problem("5p")).name == "circulation-5p"
    assert answers.current(stores.PROBLEM) is None
    assert pictures.picture(stores.PROBLEM) is None


def test_a_row_of_the_table_selects_its_run(store):
    """The table of all runs follows the slider and leads to a run."""
    view, _, working = opened(store, method="vito")
    rows = view.screen.table.shown
    assert [row["run"] for row in rows] == list(range(1, view.player.end + 1))
    view.screen.table.chosen = ["1"]
    working.wait()
    assert view.player.value == 1
    view.player.value = view.player.end
    working.wait()
    assert view.screen.table.chosen == [str(view.player.end)]


def test_steps_on_a_local_model_tell_what_they_expected(learned):
    """The agent without states explains itself by predicted against found misfit."""
    problem, patients, _ = learned
    walks = explore(problem, patients, n_episodes=2, n_steps=1)
    agent = ContinuousVito.learn(problem, walks.without(patients[0].name))
    fit = agent.personalize(patients[0], max_runs=30)
    label = dict.fromkeys(("setup", "patient", "method"), "-")
    label |= dict.fromkeys(("n_states", "n_samples", "repeat", "start"))
    told = explain.sentences(trace_table(problem, fit, label), problem, None)
    assert len(told) == fit.n_runs
    found = np.abs(fit.misfits / problem.tolerance).max()
    assert "it expected a worst misfit of" in told[-1]
    assert f"and found {found:.2f}" in told[-1]
    assert "optimiser" not in " ".join(told)
    (fit,) = agent.personalize_from(patients[0], problem.default[np.newaxis], max_runs=30)
    given, *steps = explain.sentences(trace_table(problem, fit, label), problem, None)
    assert "expected" not in given, "nothing is expected of a start that was given"
    assert all("it expected a worst misfit of" in step for step in steps)


@pytest.mark.parametrize("mode", ["exact", "table"])
def test_an_unchanged_model_is_known_again(mode):
    problem = electrophysiology.problem("bem", mode)
    assert answers.current(problem).version == problem.version


def test_a_page_that_was_left_while_it_loaded_is_whole_on_return(store):
    """Run, table and sentences are there; a run of another address is taken up."""
    found = source.Source(store)
    found.refresh()
    chosen, working = selection.Selection(page="patient", method="nelder-mead"), worker.Worker()
    view = page.PatientView(chosen, found, working)
    view.panel()
    chosen.page = "results"
    working.wait()
    chosen.page = "patient"
    view.refresh()
    working.wait()
    assert "Forward run 1 of" in view.count.object
    assert view.screen.told.object
    chosen.param.update(page="results", step=2)
    chosen.page = "patient"
    view.refresh()
    working.wait()
    assert "Forward run 3 of" in view.count.object


def test_forward_runs_that_lack_a_column_are_said_to(tmp_path, store, monkeypatch):
    """A store of somebody else's is told in a sentence."""
    shutil.copytree(store, tmp_path / "copy")
    run = next((tmp_path / "copy" / "wbc-convergence").glob("2*"))
    traces = pd.read_parquet(run / "traces.parquet")
    found = source.Source(tmp_path / "copy")
    found.refresh()
    stored = fits.load(found, run.name)
    name = next(name for name in traces if name.startswith("c:"))
    monkeypatch.setattr(type(stored), "traces", traces.drop(columns=name))
    chosen = fits.choose(stored, ("", "", ""), (None,) * 4, None)
    assert chosen.film is None
    assert re.fullmatch(f"the forward runs of C.* have no column '{name}'", chosen.why_not)


def test_numbers_get_a_wide_sign_and_words_keep_their_hyphens():
    told = explain.signed("End-diastolic volume: -4.2 mL, value -1, (-3), 1e-3 cm, 10-20")
    assert told == "End-diastolic volume: −4.2 mL, value −1, (−3), 1e-3 cm, 10-20"
