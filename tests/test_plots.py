"""Figures: what they show, and drawing in both backends."""

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
import plotted
import pytest
from bokeh.core.validation import check_integrity
from plotted import METHODS, STARTS

from vitolab import plots
from vitolab.models import circulation, rosenbrock
from vitolab.plots.decisions import action_choice, visits_map
from vitolab.plots.learning import axis_label
from vitolab.plots.style import SERIES_COLORS, lighter
from vitolab.states import StateSpace

convergence = plotted.convergence
grid_run = plotted.grid_run
fitted = plotted.fitted


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
    assert title_of(own) == (
        "10 patients of one file, leave-one-out, 2 repeats (bands: 0.5 and 1 standard deviation), "
        "4 random starts"
    )


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
