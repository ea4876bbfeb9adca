"""Numbers of tables and figures against hand-made tables."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import plotted
import pytest
from plotted import STARTS, frame, rows, share

from vitolab import plots
from vitolab.intervals import wilson
from vitolab.methods import REFERENCES
from vitolab.plots import needed, paper, style, summary
from vitolab.studies.base import N_STATES

convergence = plotted.convergence
grid_run = plotted.grid_run
fitted = plotted.fitted


def test_summary_counts_success_runs_and_restarts():
    table = frame(
        rows("2p", "vito", [(True, 2), (True, 4), (False, 100)], n_samples=10, repeat=0),
        rows("2p", "vito", [(True, 30)], n_samples=10, repeat=0, n_restarts=2),
    )
    found = plots.summarize(table, ["setup"]).iloc[0]
    assert found["n"] == 4
    assert found["success"] == pytest.approx(75.0)
    assert found["runs_all"] == pytest.approx(34.0)
    assert found["runs_solved"] == pytest.approx(12.0)
    assert found["direct"] == pytest.approx(50.0)
    assert found["direct_of_solved"] == pytest.approx(100 * 2 / 3)


def test_summary_of_nothing_solved_has_no_runs_of_the_solved():
    found = plots.summarize(frame(rows("2p", "vito", [(False, 100)] * 3)), ["setup"]).iloc[0]
    assert found["success"] == 0.0
    assert np.isnan(found["runs_solved"])
    assert np.isnan(found["direct_of_solved"])


def test_summary_keeps_methods_without_samples():
    table = frame(rows("2p", "nelder-mead", share(50), start=0), rows("2p", "vito", share(50)))
    assert len(plots.summarize(table, ["setup", "n_samples", "method"])) == 2


def test_repeats_give_mean_and_deviation():
    table = frame(
        rows("2p", "vito", share(40), n_samples=10, repeat=0),
        rows("2p", "vito", share(60), n_samples=10, repeat=1),
    )
    sums = plots.summarize(table, ["setup", "n_samples", "repeat"])
    found = summary.over_repeats(sums, ["setup", "n_samples"], "success").iloc[0]
    assert found["mean"] == pytest.approx(50.0)
    assert found["deviation"] == pytest.approx(np.sqrt(200.0))


def test_one_repeat_has_no_deviation_and_the_band_of_its_patients():
    table = frame(
        rows("2p", "vito", share(40), n_samples=10, repeat=0),
        rows("2p", "vito", share(100), n_samples=100, repeat=0),
    )
    found = summary.curve(table, ["setup", "n_samples"], "success")
    assert found["deviation"].isna().all()
    wilsons = [100 * np.array(wilson(k, 10)) for k in (0.4, 1.0)]
    np.testing.assert_allclose(found[["low", "high"]], wilsons)
    assert summary.bands(table) == "one repeat (band: 95 % interval over patients)"
    ways = {"label": "", "color": "#000000", "dash": "solid", "marker": "o"}
    bands = [i for i in style.series(found, "n_samples", **ways) if isinstance(i, hv.Area)]
    assert len(bands) == 1
    np.testing.assert_allclose(bands[0].dimension_values("high"), [w[1] for w in wilsons])
    nothing = found.assign(low=np.nan, high=np.nan)
    bare = style.series(nothing, "n_samples", **ways)
    assert not [i for i in bare if isinstance(i, hv.Area)]


def test_several_repeats_keep_their_bands_of_deviations():
    table = frame(
        rows("2p", "vito", share(40), n_samples=10, repeat=0),
        rows("2p", "vito", share(60), n_samples=10, repeat=1),
    )
    found = summary.curve(table, ["setup", "n_samples"], "success")
    assert found[["low", "high"]].isna().all(axis=None)
    ways = {"label": "", "color": "#000000", "dash": "solid", "marker": "o"}
    bands = [i for i in style.series(found, "n_samples", **ways) if isinstance(i, hv.Area)]
    highs = [band.dimension_values("high")[0] for band in bands]
    assert highs == pytest.approx([50 + np.sqrt(200), 50 + np.sqrt(200) / 2])
    assert summary.bands(table) == "2 repeats (bands: 0.5 and 1 standard deviation)"


def test_not_solved_counts_as_the_whole_budget_whoever_gave_up():
    """A solver that stalls early is not cheaper than one that goes on to the end."""
    stalled = frame(rows("2p", "least-squares", [(True, 10), (False, 5)], max_runs=100))
    found = plots.summarize(stalled, ["setup"]).iloc[0]
    assert (found["runs_all"], found["runs_solved"]) == (55.0, 10.0)
    longer = frame(rows("2p", "bobyqa-cascade-stable", [(False, 400)], max_runs=100))
    assert plots.summarize(longer, ["setup"]).iloc[0]["runs_all"] == 400.0


def test_the_budget_of_earlier_runs_is_what_others_made_before_they_were_stopped():
    table = frame(
        rows("2p", "vito", [(False, 100)], stop_reason="budget"),
        rows("2p", "nelder-mead", [(False, 30)], stop_reason="stalled"),
        rows("2p", "bobyqa-cascade-stable", [(False, 900)], stop_reason="budget"),
        rows("6p", "nelder-mead", [(False, 30)], stop_reason="stalled"),
    )
    assert summary.charged_runs(table).tolist() == [100.0, 100.0, 900.0, 30.0]
    without = table.drop(columns="stop_reason")
    assert summary.charged_runs(without).tolist() == [100.0, 30.0, 900.0, 30.0]


def test_the_best_start_is_one_start():
    """The start with fewest runs solved nobody by luck: it is not the best."""
    table = frame(
        rows("2p", "vito", share(90, 10), n_samples=10, repeat=0),
        rows("2p", "nelder-mead", [(True, 2)] * 2 + [(False, 4)] * 8, start=0),
        rows("2p", "nelder-mead", [(True, 60)] * 8 + [(False, 100)] * 2, start=1),
        rows("2p", "nelder-mead", [(True, 50)] * 8 + [(False, 100)] * 2, start=2),
    )
    assert summary.best_start(table[table["method"] == "nelder-mead"])["start"].unique() == [2]
    row = plots.convergence_table(table).set_index("method").loc["nelder-mead"]
    assert (row["best start, success [%]"], row["best start, runs, all"]) == ("80.0", "60.0")
    beside = plots.reference_table(table).iloc[0]
    assert beside["nelder-mead, runs, mean / best start"].endswith(" / 60.0")
    assert beside["fewer runs than best start, factor"] == pytest.approx(60.0 / 19.0, abs=0.005)


def test_a_share_of_patients_stands_with_wilsons_interval():
    table = frame(rows("2p", "vito", share(80), n_samples=10, repeat=0))
    row = plots.convergence_table(table).iloc[0]
    low, high = 100 * np.array(wilson(0.8, 10))
    assert row["success, 95 %"] == f"{low:.1f} to {high:.1f}"
    assert plots.solvable_table(table).iloc[0]["of all, 95 %"] == row["success, 95 %"]


def test_tables_of_a_single_patient_have_no_interval_of_runs():
    row = plots.convergence_table(
        frame(rows("2p", "vito", [(True, 3)], n_samples=10, repeat=0))
    ).iloc[0]
    assert row["success, 95 %"] == "20.7 to 100.0"
    assert row["runs, all, 95 %"] == ""


@pytest.mark.parametrize(("best", "first"), [("highest", (90.0, 100.0)), ("lowest", (0.0, 10.0))])
def test_deciles_are_tenths_of_the_results_best_first(best: str, first: tuple[float, float]):
    values = np.random.default_rng(0).permutation(np.arange(101.0))
    bands = summary.deciles(values, best=best)
    assert bands.shape == (10, 2)
    assert bands[0] == pytest.approx(first)
    np.testing.assert_allclose(np.diff(bands, axis=1), 10.0)


def test_error_of_a_start_is_that_of_its_worst_function(grid_run: tuple[pd.DataFrame, ...]):
    errors = plots.start_errors(*grid_run, "base, free")
    assert errors.loc[4, "error"] == pytest.approx(5.0)
    assert errors.loc[4, "success"] == pytest.approx(50.0)
    others = errors.drop(index=4)
    np.testing.assert_allclose(others["error"], 0.05)
    np.testing.assert_allclose(others["success"], 100.0)


def test_error_of_an_unknown_setup_is_refused(grid_run: tuple[pd.DataFrame, ...]):
    with pytest.raises(ValueError, match="no personalisations of setup 'else'"):
        plots.start_errors(*grid_run, "else")


def test_grid_table_counts_pairs_and_starts(grid_run: tuple[pd.DataFrame, ...]):
    found = plots.grid_table(*grid_run).set_index("setup")
    base = found.loc["base, free"]
    assert base["success [%]"] == pytest.approx(94.4)  # 17 of 18
    assert base["starts that solve every function [%]"] == pytest.approx(88.9)  # 8 of 9
    assert base["runs, all"] == 20.0
    assert base["runs, solved"] == pytest.approx(19.4)  # (9 × 10 + 8 × 30) / 17
    assert base["largest error in x"] == 5.0
    assert "majority" in base["paper"]
    assert found.loc["extended, free, restart", "paper"] == "solved from every start"


def test_map_puts_each_start_where_it_is(grid_run: tuple[pd.DataFrame, ...]):
    overlay = plots.grid_error_map(*grid_run, STARTS, "base, free")
    image = overlay.get(0)
    for start, (x1, x2) in enumerate(STARTS):
        expected = 5.0 if start == 4 else 0.05
        assert image[x1, x2] == pytest.approx(expected)


def test_samples_for_a_target_are_interpolated_on_the_logarithm():
    sizes = np.array([10.0, 1000.0])
    assert needed.first_reaching(sizes, np.array([70.0, 90.0])) == pytest.approx(100.0)
    assert needed.first_reaching(sizes, np.array([80.0, 90.0])) == 10.0
    assert np.isnan(needed.first_reaching(sizes, np.array([70.0, 79.9])))
    falling = needed.first_reaching(np.array([1.0, 10.0, 100.0]), np.array([0.0, 80.0, 50.0]))
    assert falling == pytest.approx(10.0)


def test_plateau_begins_within_two_points_of_the_best():
    sizes = np.array([1.0, 10.0, 100.0, 1000.0])
    assert needed.plateau(sizes, np.array([50.0, 93.9, 94.0, 96.0])) == 100.0


def test_samples_needed_in_words(convergence: pd.DataFrame):
    found = plots.samples_needed(convergence).set_index("setup")
    # 2p: 65 % at 100 and 100 % at 1,000: 80 % at 100 · 10^(15/35)
    assert found.loc["2p", "samples for 80 %"] == f"{100 * 10 ** (15 / 35):,.0f}"
    assert found.loc["6p", "samples for 80 %"] == "not reached up to 1,000"
    assert found.loc["2p", "plateau from"] == "≥ 1,000"
    assert found.loc["6p", "paper: plateau from"] == "20,000"
    two = plots.samples_needed(convergence[convergence["n_samples"] != 100])
    assert set(two["plateau from"]) == {"not decided by 2 sizes"}
    easy = plots.samples_needed(frame(rows("2p", "vito", share(90), n_samples=10, repeat=0)))
    assert easy.loc[0, "samples for 80 %"] == "≤ 10"


def test_convergence_table_gives_every_method_and_the_best_start(convergence: pd.DataFrame):
    found = plots.convergence_table(convergence).set_index(
        ["setup", "method", "samples per patient"]
    )
    assert len(found) == 2 * (2 * 3 + len(REFERENCES))
    vito = found.loc[("2p", "vito", "100")]
    assert vito["success [%]"] == 65.0  # 60 and 70
    assert vito["runs, all"] == pytest.approx(0.65 * 10 + 0.35 * 100)
    assert vito["runs, solved"] == 10.0
    assert found.loc[("2p", "vito", "1,000"), "paper"] == "3.0 runs"
    assert vito["paper"] == ""
    simplex = found.loc[("2p", "nelder-mead", "")]
    assert simplex["success [%]"] == 65.0  # mean of 50, 60, 70, 80
    assert simplex["best start, success [%]"] == "80.0"
    assert simplex["best start, runs, all"] == f"{0.8 * 20 + 0.2 * 100:.1f}"
    assert simplex["paper"] == "22.6 runs, best start"
    assert simplex["solved without restart [% of solved]"] == ""
    assert set(found["patients"]) == {"synthetic"}


def test_reference_table_compares_with_the_best_start(convergence: pd.DataFrame):
    found = plots.reference_table(convergence).set_index("setup").loc["6p"]
    # Vito with 1,000 samples: 70 % in 10 runs, the rest in 100
    assert found["Vito, runs"] == 37.0
    assert found["fewer runs than best start, factor"] == pytest.approx(36.0 / 37.0, abs=0.005)
    said = found["more success than mean / best start, points"]
    assert said.startswith("+5.0 / ")  # 70 against a mean of 65
    assert found["paper: points"] == "up to +11"
    silent = plots.reference_table(convergence, reference="least-squares", claims=False)
    assert not [name for name in silent if "paper" in name]


def test_weighting_table_compares_both_simplex_methods():
    table = frame(
        rows("2p", "nelder-mead", share(90, 20), start=0),
        rows("2p", "nelder-mead-unweighted", share(80, 40), start=0),
    )
    found = plots.weighting_table(table).iloc[0]
    assert found["more success, points"] == 10.0
    assert found["faster [%]"] == pytest.approx(100 * (1 - 28 / 52), abs=0.05)


def test_scouting_prefers_success_then_fewer_runs():
    table = frame(
        *(
            rows("2p", "vito", share(percent, runs), n_states=n, n_samples=10, repeat=0)
            for n, percent, runs in ((20, 80, 5), (60, 90, 9), (100, 90, 7))
        )
    )
    found = plots.scouting_table(table).iloc[0]
    assert found["scouted n_S"] == 100
    assert found["success [%]"] == 90.0
    assert found["paper's n_S"] == 70
    assert found["tested nearest to it"] == 60


def test_numbers_of_states_are_those_that_the_studies_use():
    assert paper.N_STATES == N_STATES


def test_fit_table_tells_what_is_met(fitted: dict[str, Any]):
    tables_of = {name: fitted[name] for name in ("personalizations", "patients", "problems")}
    found = plots.fit_table(**tables_of).set_index(["setup", "objective"])
    esv = found.loc[("6p", "End-systolic LV volume")]
    assert (esv["measured"], esv["model"], esv["misfit"]) == (110.0, 135.0, 25.0)
    assert not esv["met"]
    assert found["met"].sum() == len(found) - 2
