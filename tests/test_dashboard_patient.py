"""The page Patient without a server: what is shown of a fit, links, hostile text."""

from __future__ import annotations

import re
import shutil

import dashboard_runs as made
import numpy as np
import pandas as pd
import panel as pn
import patient_pages
import pytest
import stores
from patient_pages import opened, words

from vitolab.dashboard import load_dashboards
from vitolab.models import circulation

learned = patient_pages.learned
fitted = patient_pages.fitted
store = patient_pages.store

charts = load_dashboards("charts.bokeh")
histories = load_dashboards("charts.histories")
fits = load_dashboards("pages.patient.fits")
source = load_dashboards("kit.source")


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
    caption = words(view.cohort.caption.object)
    assert re.search(r"\d+ % of the fits solved \(95 % over the patients: \d+ to \d+\)", caption)
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
