"""Figures and tables: numbers against hand-made tables, and drawing in both backends."""

from __future__ import annotations

import io
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import holoviews as hv
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from bokeh.core.validation import check_integrity

from vitolab import plots
from vitolab.methods import REFERENCES
from vitolab.models import circulation, rosenbrock
from vitolab.plots import paper, summary, tables
from vitolab.plots.decisions import action_choice, visits_map
from vitolab.plots.learning import axis_label
from vitolab.plots.style import SERIES_COLORS, lighter
from vitolab.states import StateSpace
from vitolab.studies.base import N_STATES

METHODS = ("vito", "vito-deterministic", *REFERENCES)
NULLABLE = ("n_states", "n_samples", "repeat", "start")


def rows(
    setup: str,
    method: str,
    outcomes: list[tuple[bool, int]],
    *,
    n_states: int | None = None,
    n_samples: int | None = None,
    repeat: int | None = None,
    start: int | None = None,
    n_restarts: int = 0,
    **extra: Any,
) -> list[dict[str, Any]]:
    """Rows of the personalizations table: one patient per (solved, runs)."""
    return [
        {
            "setup": setup,
            "patient": f"P{i}",
            "method": method,
            "n_states": n_states,
            "n_samples": n_samples,
            "repeat": repeat,
            "start": start,
            "seed": 0,
            "solved": solved,
            "n_runs": runs,
            "n_restarts": n_restarts,
            **extra,
        }
        for i, (solved, runs) in enumerate(outcomes)
    ]


def frame(*parts: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(list(itertools.chain(*parts))).astype(dict.fromkeys(NULLABLE, "Int64"))


def share(percent: int, runs: int = 10) -> list[tuple[bool, int]]:
    """Outcomes of ten patients of which some are solved; the others take 100 runs."""
    return [(10 * i < percent, runs if 10 * i < percent else 100) for i in range(10)]


@pytest.fixture
def convergence() -> pd.DataFrame:
    """Two setups, three sizes, two repeats, four starts of each reference."""
    parts = []
    for setup, harder in (("2p", 0), ("6p", 30)):
        for method, size, repeat in itertools.product(METHODS[:2], (10, 100, 1000), (0, 1)):
            percent = {10: 40, 100: 60, 1000: 100}[size] - harder + 10 * repeat * (size == 100)
            key = {"n_states": 70, "n_samples": size, "repeat": repeat}
            parts.append(rows(setup, method, share(percent), **key))
        for method, start in itertools.product(REFERENCES, range(4)):
            parts.append(rows(setup, method, share(50 + 10 * start, 20), start=start))
    return frame(*parts)


STARTS = rosenbrock.grid(3)


@pytest.fixture
def grid_run() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two functions from nine starts, base and extended; one failure far away, one start off."""
    optima = {"P0": (1.0, 1.0), "P1": (-2.0, 4.0)}
    patients = pd.DataFrame(
        [
            {"setup": setup, "patient": name, "truth:x1": x1, "truth:x2": x2}
            for setup in ("base, free", "extended, free, restart")
            for name, (x1, x2) in optima.items()
        ]
    )
    table = []
    for setup, start in itertools.product(("base, free", "extended, free, restart"), range(9)):
        failed = setup == "base, free" and start == 4
        for row in rows(
            setup,
            "vito",
            [(True, 10), (not failed, 30)],
            n_states=100,
            n_samples=1000,
            repeat=0,
            start=start,
        ):
            x1, x2 = optima[row["patient"]]
            off = (3.0, 4.0) if failed and row["patient"] == "P1" else (0.03, 0.04)
            table.append(row | {"last:x1": x1 + off[0], "last:x2": x2 - off[1]})
    return frame(table), patients


# --- numbers -----------------------------------------------------------------------------


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
    one = summary.over_repeats(sums[sums["repeat"] == 0], ["setup"], "success").iloc[0]
    assert one["deviation"] == 0.0


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
    assert tables.first_reaching(sizes, np.array([70.0, 90.0])) == pytest.approx(100.0)
    assert tables.first_reaching(sizes, np.array([80.0, 90.0])) == 10.0
    assert np.isnan(tables.first_reaching(sizes, np.array([70.0, 79.9])))
    falling = tables.first_reaching(np.array([1.0, 10.0, 100.0]), np.array([0.0, 80.0, 50.0]))
    assert falling == pytest.approx(10.0)


def test_plateau_begins_within_two_points_of_the_best():
    sizes = np.array([1.0, 10.0, 100.0, 1000.0])
    assert tables.plateau(sizes, np.array([50.0, 93.9, 94.0, 96.0])) == 100.0


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


# --- what a figure shows -----------------------------------------------------------------


def test_every_method_has_its_own_colour():
    assert set(METHODS) <= set(plots.METHOD_COLORS)
    assert len(set(plots.METHOD_COLORS.values())) == len(plots.METHOD_COLORS)
    assert len(set(SERIES_COLORS)) == len(SERIES_COLORS)


def test_lighter_mixes_with_white():
    assert lighter("#204060", 0.0) == "#204060"
    assert lighter("#204060", 1.0) == "#FFFFFF"
    assert lighter("#000000", 0.2) == "#333333"


def test_labels_carry_units():
    labels = [axis_label(p) for p in circulation.PARAMETERS + circulation.OBJECTIVES]
    assert all(label.endswith("]") for label in labels)
    assert axis_label(rosenbrock.PARAMETERS[0]) == "x₁"


def axis_labels(figure: Any) -> set[str]:
    """All axis labels of a figure, as drawn."""
    drawn = hv.renderer("matplotlib").get_plot(figure).state
    labels = {text for ax in drawn.axes for text in (ax.get_xlabel(), ax.get_ylabel())}
    plt.close(drawn)
    return labels - {""}


def title_of(figure: Any) -> str:
    return str(hv.Store.lookup_options("matplotlib", figure, "plot").kwargs["title"])


def test_axes_of_the_circulation_figures_name_their_units(
    convergence: pd.DataFrame, fitted: dict[str, Any]
):
    assert axis_labels(plots.fit_curves(**fitted)) == {
        "time [ms]",
        "LV volume [mL]",
        "aortic pressure [mmHg]",
    }
    assert axis_labels(plots.pressure_volume_loops(fitted["arrays"], fitted["problems"])) == {
        "LV volume [mL]",
        "LV pressure [mmHg]",
    }
    assert axis_labels(plots.restart_curves(convergence)) == {
        "training samples per patient",
        "share of all patients [%]",
    }


def test_titles_say_that_patients_are_synthetic(convergence: pd.DataFrame, fitted: dict[str, Any]):
    for figure in (
        plots.convergence_curves(convergence),
        plots.policy_curves(convergence),
        plots.restart_curves(convergence),
        plots.scouting_curves(convergence),
        plots.fit_curves(**fitted),
        plots.pressure_volume_loops(fitted["arrays"], fitted["problems"]),
    ):
        assert "synthetic" in title_of(figure)
    own = plots.convergence_curves(convergence, patients="patients of one file")
    assert title_of(own) == "10 patients of one file, leave-one-out, 2 repeats, 4 random starts"


def test_title_of_a_layout_survives_a_single_panel():
    curve = hv.Curve([(0, 0), (1, 1)]).opts(title="own", backend="matplotlib")
    assert title_of(plots.layout([curve], columns=2, title="above")) == "own, above"


def test_bands_tell_which_objectives_are_met(fitted: dict[str, Any]):
    figure = plots.fit_curves(**fitted)
    volumes = next(iter(figure))
    bands = {
        text.data[2]: (hv.Store.lookup_options("bokeh", box, "style").kwargs["color"], box)
        for box, text in itertools.pairwise(volumes)
        if isinstance(box, hv.Rectangles)
    }
    assert bands["EDV"][0] != bands["ESV"][0]  # 5 mL off, and 25 mL off, of 20 mL
    _, low, _, high = bands["EDV"][1].array()[0]
    assert (low, high) == (160.0, 200.0)


def test_arrows_point_where_the_action_goes():
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    steps = np.array([[10, 0], [0, -10], [0, 0], [-500, 0]])
    overlay = plots.policy_map(x, steps)
    shafts = np.concatenate([e.array() for e in overlay if isinstance(e, hv.Segments)])
    assert len(shafts) == 3  # nothing to do at the third point
    moved = shafts[:, 2:] - shafts[:, :2]
    np.testing.assert_allclose(0.5 * (shafts[:, 2:] + shafts[:, :2]), x[[0, 1, 3]])
    np.testing.assert_array_equal(np.sign(moved), np.sign(steps[[0, 1, 3]]))


def test_cells_of_the_state_space_are_those_of_the_states():
    states = StateSpace(
        np.array([[0.0, 0.0], [-2, 0], [2, 0], [0, -2], [0, 2], [5, 5]]), np.ones(2)
    )
    values = np.array([0.0, -1, -2, -3, -4, -5])
    overlay = plots.state_space(states, rosenbrock.OBJECTIVES, values=values, limits=(6.0, 6.0))
    cells = overlay.get(0)
    for c, value in (((0.9, -0.9), 0.0), ((1.5, 0.0), -2.0), ((5.0, 5.5), -5.0)):
        assert cells[c] == value


def test_paths_break_at_restarts():
    trace = trace_rows(["start", "step", "restart", "step", "step"])
    overlay = plots.personalization_paths({"vito": trace}, rosenbrock.problem())
    legs = [path for e in overlay if isinstance(e, hv.Path) for path in e.split(datatype="array")]
    assert sorted({len(leg) for leg in legs}) == [2, 3]  # two legs, and the jump between them
    assert "vito: 5 runs" in {e.label for e in overlay}


# --- drawing -----------------------------------------------------------------------------


def trace_rows(events: list[str]) -> pd.DataFrame:
    """Trace of one personalisation of Rosenbrock."""
    n = len(events)
    line = np.linspace(-2.0, 1.0, n)
    return pd.DataFrame(
        {
            "iteration": np.arange(n),
            "event": events,
            "x:x1": line,
            "x:x2": line**2,
            "c:t1": np.where(np.arange(n) == n - 1, 0.0, 1.0 - line),
            "c:t2": np.where(np.array(events) == "failed", np.nan, line),
        }
    )


@pytest.fixture
def fitted() -> dict[str, Any]:
    """Tables and curves of one patient in two setups."""
    time = np.linspace(0.0, 0.8, 40)
    shape = np.sin(np.pi * np.clip(time / 0.4, 0.0, 1.0)) ** 2
    arrays = {}
    for source in ("measured", "2p", "6p"):
        arrays |= {
            f"{source}/time": time,
            f"{source}/lv_volume": 180.0 - 70.0 * shape,
            f"{source}/lv_pressure": 10.0 + 110.0 * shape,
            f"{source}/aortic_pressure": 80.0 + 40.0 * shape,
        }
    z = dict(
        zip(
            (o.name for o in circulation.problem("6p").objectives),
            (180, 110, 95, 120, 80, 270),
            strict=True,
        )
    )
    problems = {setup: circulation.problem(setup) for setup in ("2p", "6p")}
    patients, personalizations = [], []
    for setup, problem in problems.items():
        names = [o.name for o in problem.objectives]
        patients.append({"setup": setup, "patient": "C01"} | {f"z:{n}": z[n] for n in names})
        misfits = {f"misfit:{n}": 25.0 if n == "lv_esv" else 5.0 for n in names}
        personalizations += rows(setup, "vito", [(False, 1)], n_samples=10, repeat=0, **misfits)
    return {
        "arrays": arrays,
        "personalizations": frame(personalizations),
        "patients": pd.DataFrame(patients),
        "problems": problems,
    }


@pytest.fixture
def figures(
    convergence: pd.DataFrame,
    grid_run: tuple[pd.DataFrame, pd.DataFrame],
    fitted: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """One of each."""
    rng = np.random.default_rng(0)
    problem = rosenbrock.problem(extended=True)
    axis = np.linspace(-5.0, 5.0, 21)
    values = 1.0 + axis[:, None] ** 2 + axis**2
    faint = plots.function_map(axis, axis, values, label="log₁₀ f", faint=True)
    states = StateSpace.learn(rng.normal(size=(200, 2)), problem.tolerance, 12, rng)
    points = rosenbrock.grid(5)
    steps = problem.actions[rng.integers(problem.n_actions, size=len(points))]
    trace = trace_rows(["start", "step", "failed", "restart", "step"])
    long = trace_rows(["start", *["step"] * 79])
    q = rng.uniform(size=problem.n_actions)
    lesson: Any = SimpleNamespace(
        manifest=SimpleNamespace(problems={"extended": problem}),
        arrays={
            "landscape/axis": axis,
            "landscape/values": values,
            "policy/x": points,
            "policy/steps": steps,
        },
        traces=trace.assign(method="vito", patient="F001", start=0),
        patients=pd.DataFrame([{"patient": "F001", "truth:x1": 1.0, "truth:x2": 1.0}]),
    )
    names = [problem.describe_action(a) for a in range(problem.n_actions)]
    yield {
        "grid errors": plots.grid_error_maps(*grid_run, STARTS),
        "grid success": plots.grid_success_map(*grid_run, STARTS, "base, free"),
        "scouting": plots.scouting_curves(convergence),
        "convergence": plots.convergence_curves(convergence),
        "policy": plots.policy_curves(convergence),
        "fit": plots.fit_curves(**fitted),
        "loops": plots.pressure_volume_loops(fitted["arrays"], fitted["problems"]),
        "function": plots.function_map(axis, axis, values, label="log₁₀ f"),
        "walks": plots.explored_walks([points[:4, :], points[6:9]], background=faint),
        "states": plots.state_space(states, problem.objectives, visited=rng.normal(size=(9, 2))),
        "values": plots.state_space(
            states, problem.objectives, values=-np.arange(float(states.n_states))
        ),
        "residuals": plots.value_convergence({"a": 0.5 ** np.arange(9), "b": np.array([1.0, 0.0])}),
        "arrows": plots.policy_map(points, steps, background=faint),
        "candidates": plots.candidates(
            rng.normal(size=(20, 2)),
            rng.normal(size=(2, 2)),
            np.array([0.7, 0.3]),
            problem.parameters,
            density=(axis, axis, values),
            truth=np.ones(2),
        ),
        "visits": visits_map(rng.integers(3, size=(12, problem.n_actions)), names),
        "choice": action_choice(q, np.where(q > 0.8, q, 0.0) / q[q > 0.8].sum(), names),
        "equal actions": action_choice(np.ones(4), np.full(4, 0.25), names[:4]),
        "path": plots.personalization_paths(
            {"vito": trace}, problem, background=faint, truth=np.ones(2)
        ),
        "history": plots.misfit_history(trace, problem),
        "long history": plots.misfit_history(long, problem),
        "overview": plots.overview(lesson, SimpleNamespace(personalizations=convergence)),
    }
    plt.close("all")


@pytest.mark.filterwarnings("error")
def test_every_figure_is_drawn_by_matplotlib(figures: dict[str, Any]):
    for name, figure in figures.items():
        drawn = hv.renderer("matplotlib").get_plot(figure).state
        drawn.savefig(io.BytesIO(), dpi=30)
        assert drawn.axes, name
        plt.close(drawn)


@pytest.mark.filterwarnings("error")
def test_every_figure_is_drawn_by_bokeh(figures: dict[str, Any], caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        for figure in figures.values():
            drawn = hv.renderer("bokeh").get_plot(figure).state
            check_integrity(drawn.references())
    assert not [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("name", ["figure.png", "figure.svg"])
def test_save_writes_a_picture(tmp_path: Path, name: str):
    path = plots.save(hv.Curve([(0, 0), (1, 1)]), tmp_path / "new" / name)
    head = path.read_bytes()[:200]
    assert head.startswith(b"\x89PNG") or b"<?xml" in head


def test_save_refuses_another_kind(tmp_path: Path):
    with pytest.raises(ValueError, match=r"figure\.pdf: expected a name that ends in"):
        plots.save(hv.Curve([(0, 0)]), tmp_path / "figure.pdf")


def test_fit_table_tells_what_is_met(fitted: dict[str, Any]):
    tables_of = {name: fitted[name] for name in ("personalizations", "patients", "problems")}
    found = plots.fit_table(**tables_of).set_index(["setup", "objective"])
    esv = found.loc[("6p", "End-systolic LV volume")]
    assert (esv["measured"], esv["model"], esv["misfit"]) == (110.0, 135.0, 25.0)
    assert not esv["met"]
    assert found["met"].sum() == len(found) - 2
