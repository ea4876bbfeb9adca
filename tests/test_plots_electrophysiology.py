"""Figures of electrophysiology: states, ECG, errors; drawing in both backends."""

from __future__ import annotations

import io
import itertools
import logging
from typing import Any

import drawn_hearts
import holoviews as hv
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from bokeh.core.validation import check_integrity
from drawn_hearts import elements, ventricle

from vitolab import plots
from vitolab.models.electrophysiology.leadfield import LEADS
from vitolab.plots import ecg, electrophysiology, paper, quantization
from vitolab.problem import Objective
from vitolab.states import StateSpace

ball = drawn_hearts.ball

OBJECTIVES = (
    Objective("qrs_duration", "QRS duration", "ms", 5),
    Objective("electrical_axis", "Electrical axis", "°", 10, "angle"),
)
TOLERANCE = np.array([5.0, 10.0])
SIZES = (1, 100, 3000)
NULLABLE = ("n_states", "n_samples", "repeat", "start")


def rows(method: str, misfits: list[tuple[float, float]], **key: Any) -> list[dict[str, Any]]:
    """Personalisations of one patient each; those within the tolerances took 10 runs, else 100."""
    table = []
    for i, (qrs, axis) in enumerate(misfits):
        solved = abs(qrs) < 5 and abs(axis) < 10
        row = dict.fromkeys(NULLABLE) | {"setup": "bem", "patient": f"E{i}", "method": method}
        row |= {"seed": 0, "solved": solved, "n_runs": 10 if solved else 100, "n_restarts": 0}
        table.append(row | {"misfit:qrs_duration": qrs, "misfit:electrical_axis": axis} | key)
    return table


@pytest.fixture(scope="module")
def personalizations() -> pd.DataFrame:
    """Eight patients in two setups: all methods of the studies."""
    rng = np.random.default_rng(3)

    def misfits(share: float) -> list[tuple[float, float]]:
        solved = rng.uniform(size=8) < share
        qrs = np.where(solved, rng.uniform(-4, 4, 8), rng.normal(0, 25, 8))
        axis = np.where(solved, rng.uniform(-9, 9, 8), rng.uniform(15, 170, 8))
        return list(zip(qrs, axis, strict=True))

    table = []
    for setup in ("bem", "infinite"):
        table += rows("fixed", misfits(0.0), setup=setup)
        for n, repeat in itertools.product(SIZES, (0, 1)):
            key = {"setup": setup, "n_samples": n, "repeat": repeat, "n_states": 120}
            for method in ("vito-initial", "vito", "vito-deterministic"):
                table += rows(method, misfits(0.6), **key)
        for method, start in itertools.product(
            ("bobyqa-simple", "bobyqa-cascade", "bobyqa-cascade-stable"), range(4)
        ):
            table += rows(method, misfits(0.5), setup=setup, start=start)
    return pd.DataFrame(table).astype(dict.fromkeys(NULLABLE, "Int64"))


@pytest.fixture(scope="module")
def states() -> tuple[StateSpace, np.ndarray]:
    rng = np.random.default_rng(0)
    c = rng.normal(size=(3000, 2)) * (25.0, 50.0)
    return StateSpace.learn(c, TOLERANCE, 30, rng), c


# --- states --------------------------------------------------------------------------------


def test_cells_tile_the_picture_and_hold_what_is_nearest(states: tuple[StateSpace, np.ndarray]):
    space, _ = states
    half = np.array([80.0, 150.0])
    unit = np.sqrt(TOLERANCE)
    cells = [c * unit for c in quantization.nearest_cells(space.centroids[1:] / unit, half / unit)]
    assert len(cells) == space.n_states - 1

    def area(polygon: np.ndarray) -> float:
        (x, y), (x2, y2) = polygon.T, np.roll(polygon, -1, axis=0).T
        return 0.5 * float(np.sum(x * y2 - y * x2))

    assert sum(map(area, cells)) == pytest.approx(4 * half.prod())
    for state, cell in enumerate(cells, start=1):
        if len(cell):
            inside = cell.mean(axis=0) + 0.99 * (cell - cell.mean(axis=0))
            outside_box = (np.abs(inside) >= TOLERANCE).any(axis=1)
            assert set(space.quantize(inside[outside_box])) <= {state}


def test_state_map_shows_every_cell_the_box_and_the_thresholds(
    states: tuple[StateSpace, np.ndarray],
):
    space, c = states
    figure = plots.state_map(space, OBJECTIVES, c, thresholds=(1, 2), limits=(200, 400))
    (cells,) = elements(figure, hv.Path)
    assert len(cells.split()) == space.n_states - 1
    boxes = elements(figure, hv.Rectangles)
    assert [tuple(box.array()[0]) for box in boxes] == [(-5, -10, 5, 10)] * 2
    (grid,) = elements(figure, hv.Segments)
    lines = grid.array()
    upright = lines[lines[:, 0] == lines[:, 2]]
    assert sorted(upright[:, 0]) == [-10, -5, 5, 10]
    assert sorted(np.setdiff1d(lines[:, 1], [-400])) == [-20, -10, 10, 20]
    titles = [hv.Store.lookup_options("bokeh", p, "plot").kwargs["title"] for p in figure]
    assert "30 states" in titles[0]
    assert "25 states" in titles[1]  # (2 · 2 + 1)²


def test_state_map_of_three_objectives_is_refused():
    space = StateSpace(np.zeros((7, 3)), np.ones(3))
    with pytest.raises(ValueError, match="states of 3 and 2 objectives, expected 2"):
        plots.state_map(space, OBJECTIVES)


TIME = np.arange(0.0, 250.0, 2.0)


# --- ECG -----------------------------------------------------------------------------------


def leads(height: float = 1.0) -> np.ndarray:
    """Twelve triangles, of heights in mV that tell them apart, with their peak at 100 ms."""
    shape = np.clip(1 - np.abs(TIME - 100.0) / 40.0, 0.0, None)
    return height * (0.1 * np.arange(1, 13))[:, None] * shape


def test_names_of_the_leads_are_those_of_the_model():
    assert ecg.LEADS == LEADS


def test_paper_has_a_line_each_millimetre_and_a_strong_one_each_fifth():
    small, large = elements(plots.ecg_paper(TIME, leads()), hv.Segments)
    for lines, expected in ((small, {1, 2, 3, 4}), (large, {0})):
        array = lines.array()
        upright = array[array[:, 0] == array[:, 2]]
        assert {int(x) % 5 for x in upright[:, 0]} == expected
        assert {int(y) % 5 for y in array[array[:, 1] == array[:, 3]][:, 1]} == expected
    positions = np.unique(np.concatenate([small.array()[:, 0], large.array()[:, 0]]))
    np.testing.assert_array_equal(np.diff(positions), 1.0)


def test_ten_millimetres_are_a_millivolt_and_twenty_five_a_second():
    figure = plots.ecg_paper(TIME, leads(), before=400.0, rhythm="II")
    curves = [curve.array() for curve in elements(figure, hv.Curve)]
    pulses, traces = curves[:4], curves[4:]
    for pulse in pulses:
        assert np.ptp(pulse[:, 1]) == 10.0
        high = pulse[pulse[:, 1] == pulse[:, 1].max()]
        assert np.ptp(high[:, 0]) == ecg.PULSE  # 0.2 s
    assert len(traces) == 13
    # rows are I aVR V1 V4, II aVL V2 V5, III aVF V3 V6, and II again
    order = [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, 1]
    for lead, trace in zip(order, traces, strict=True):
        peak = trace[:, 1].argmax()
        assert trace[peak, 1] - trace[0, 1] == pytest.approx(1.0 * (lead + 1))
        assert trace[peak, 0] - trace[0, 0] == pytest.approx(25.0 * 0.5)  # 400 + 100 ms
    named = [text.data[2] for text in elements(figure, hv.Text)]
    assert named == [LEADS[lead] for lead in order]


def test_rows_do_not_overlap():
    traces = [c.array() for c in elements(plots.ecg_paper(TIME, leads(4.0)), hv.Curve)][3:]
    tops = [max(trace[:, 1].max() for trace in traces[k : k + 4]) for k in (0, 4, 8)]
    bases = [traces[k][0, 1] for k in (0, 4, 8)]
    assert tops[1] < bases[0]
    assert tops[2] < bases[1]


def test_wrong_ecg_is_refused():
    with pytest.raises(ValueError, match=r"'model' has shape \(11, 125\), expected \(12, 125\)"):
        plots.ecg_paper(TIME, {"measured": leads(), "model": leads()[:11]})
    with pytest.raises(ValueError, match="rhythm is 'V9', expected one of I, II"):
        plots.ecg_paper(TIME, leads(), rhythm="V9")
    with pytest.raises(ValueError, match="takes 248 ms and 400 ms before it, expected at most 500"):
        plots.ecg_paper(TIME, leads(), column=500.0)


# --- errors --------------------------------------------------------------------------------


def test_box_is_made_of_quartiles_and_whiskers():
    values = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 30])
    box, beyond = electrophysiology.box_of(values)
    np.testing.assert_allclose(box, [0.0, 2.25, 4.5, 6.75, 8.0])
    np.testing.assert_array_equal(beyond, [30.0])


def test_boxes_show_fixed_each_size_and_the_largest_of_vito(personalizations: pd.DataFrame):
    figure = plots.initialization_boxes(personalizations, OBJECTIVES, setup="bem")
    own = personalizations[personalizations["setup"] == "bem"]
    groups = [own[own["method"] == "fixed"]]
    groups += [own[(own["method"] == "vito-initial") & (own["n_samples"] == n)] for n in SIZES]
    groups.append(own[(own["method"] == "vito") & (own["n_samples"] == 3000)])
    assert len(figure) == 2
    for element, objective in zip(figure, OBJECTIVES, strict=True):
        _, fixed, initial, full = elements(element, hv.Rectangles)  # the first is the band
        boxes = np.concatenate([fixed.array(), initial.array(), full.array()])
        expected = [
            np.quantile(np.abs(rows[f"misfit:{objective.name}"]), [0.25, 0.75]) for rows in groups
        ]
        np.testing.assert_allclose(boxes[:, [1, 3]] ** 2, expected)
        ticks = hv.Store.lookup_options("bokeh", element, "plot").kwargs["xticks"]
        assert [label for _, label in ticks] == ["fixed", "10⁰", "10²", "3,000", "Vito"]
    assert len(plots.initialization_boxes(personalizations, OBJECTIVES)) == 4


def test_table_gives_mean_and_best_start_beside_the_paper():
    within, off = (3.0, 4.0), (-7.0, 14.0)
    table = pd.DataFrame(
        rows("vito", [within, off], n_samples=10, repeat=0)
        + rows("vito", [within, within, within, off], n_samples=100, repeat=0)
        + rows("bobyqa-simple", [within, off, off, off], start=0)
        + rows("bobyqa-simple", [within, within, off, (np.nan, np.nan)], start=1)
        + rows("fixed", [off] * 4)
    ).astype(dict.fromkeys(NULLABLE, "Int64"))
    patients = pd.DataFrame(
        {
            "setup": ["bem"] * 5 + ["infinite"] * 4,
            "patient": [*(f"E{i}" for i in range(4)), "scouting", *(f"E{i}" for i in range(4))],
            "solvable": [True, True, True, False, False] + [False] * 4,
        }
    )
    found = plots.ep_table(table, patients).set_index(["method", "of"])
    vito = found.loc[("vito", "all")]
    assert vito["samples per patient"] == "100"
    assert vito["success [%]"] == 75.0
    assert vito["|QRSd| [ms]"] == "4.0 ± 2.0"  # 3, 3, 3, 7
    assert vito["|EA| [°]"] == "6.5 ± 5.0"  # 4, 4, 4, 14
    assert (vito["runs, all"], vito["runs, solved"]) == (32.5, 10.0)
    assert vito["paper: |QRSd| [ms]"] == "4.1 ± 5.6"
    assert vito["paper: success [%]"] == "67"
    mean = found.loc[("BOBYQA simple", "mean of starts")]
    assert (mean["personalisations"], mean["success [%]"]) == (8, 37.5)
    assert mean["solved per start"] == "1–2 of 4"
    assert mean["paper: solved per start"] == "13–37 of 75"
    assert mean["paper: success [%]"] == ""
    best = found.loc[("BOBYQA simple", "best start")]
    assert best["success [%]"] == 50.0
    assert best["|QRSd| [ms]"] == "4.3 ± 2.3"  # 3, 3, 7; the failed run is left out
    assert best["paper: |EA| [°]"] == "15.5 ± 18.6"
    assert set(found["solvable [%]"]) == {75.0}  # of those personalised
    assert "solvable [%]" not in plots.ep_table(table)


def test_the_papers_shares_of_success_are_those_of_its_counts():
    for method in ("bobyqa-simple", "bobyqa-cascade-stable"):
        said = paper.EP_METHODS[method]
        assert said.solved is not None
        assert said.success == round(100 * said.solved[1] / paper.EP_PATIENTS)


# --- figures that electrophysiology shares with circulation ----------------------------------


def test_runs_of_methods_not_shown_do_not_stretch_the_axis(personalizations: pd.DataFrame):
    slow = personalizations["method"] == "bobyqa-cascade-stable"
    table = personalizations.assign(n_runs=personalizations["n_runs"].mask(slow, 5000))
    figure = plots.convergence_curves(table, references=("bobyqa-simple", "bobyqa-cascade"))
    options = [hv.Store.lookup_options("bokeh", p, "plot").kwargs for p in figure]
    assert max(o["ylim"][1] for o in options) < 120
    assert [o["title"] for o in options[:3]] == ["Vito", "BOBYQA simple", "BOBYQA cascade, capped"]


def test_shared_tables_know_the_papers_electrophysiology(personalizations: pd.DataFrame):
    needed = plots.samples_needed(personalizations, target=49.0).set_index("setup")
    assert set(needed["paper: for 49 %"]) == {"≤ 100"}
    assert set(needed["paper: plateau from"]) == {"3,000"}
    scouted = plots.scouting_table(personalizations)
    assert set(scouted["paper's n_S"]) == {120}
    told = plots.convergence_table(personalizations).set_index(["method", "setup"])["paper"]
    assert told[("bobyqa-simple", "bem")] == "49 %, 20.1 runs, best start"
    compared = plots.reference_table(personalizations, reference="bobyqa-simple")
    assert set(compared["paper: points"]) == {""}
    assert len(plots.solvable_table(personalizations)) == 2


# --- drawing -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def figures(
    personalizations: pd.DataFrame,
    states: tuple[StateSpace, np.ndarray],
    ball: dict[str, np.ndarray],
) -> dict[str, Any]:
    space, c = states
    mesh = {name: ball[name] for name in ("nodes", "tets", "tau")}
    return {
        "states": plots.state_map(space, OBJECTIVES, c),
        "bullseye": plots.bullseye(**ventricle()),
        "view": plots.activation_view(**mesh, n_pixels=60),
        "ecgs": plots.ecg_paper(TIME, {"measured": leads(), "model": leads(0.9)}, rhythm="II"),
        "boxes": plots.initialization_boxes(personalizations, OBJECTIVES, setup="bem"),
    }


@pytest.mark.filterwarnings("error")
def test_every_figure_is_drawn_by_matplotlib_with_units(figures: dict[str, Any]):
    labels = {}
    for name, figure in figures.items():
        drawn = hv.renderer("matplotlib").get_plot(figure).state
        drawn.savefig(io.BytesIO(), dpi=30)
        labels[name] = {t for ax in drawn.axes for t in (ax.get_xlabel(), ax.get_ylabel())}
        plt.close(drawn)
    assert labels["states"] >= {"misfit: QRS duration [ms]", "misfit: Electrical axis [°]"}
    assert labels["view"] >= {"to the patient's left [mm]", "activation time [ms]"}
    assert "absolute misfit [°], √ scale" in labels["boxes"]


@pytest.mark.filterwarnings("error")
def test_every_figure_is_drawn_by_bokeh(figures: dict[str, Any], caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        for figure in figures.values():
            drawn = hv.renderer("bokeh").get_plot(figure).state
            check_integrity(drawn.references())
    assert not [record.getMessage() for record in caplog.records]


def test_titles_say_that_patients_are_synthetic(figures: dict[str, Any]):
    for figure in figures.values():
        title = hv.Store.lookup_options("matplotlib", figure, "plot").kwargs["title"]
        assert "synthetic" in title
