"""Figures and tables of cohorts whose patients teach each other: every number is found again."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from vitolab import plots
from vitolab.intervals import wilson
from vitolab.plots import continuing, orders, style

N = 24
#: Forward runs by position from 0, of each method in each order.
RUNS = {
    ("vito-continuous", 0): [10, *[2] * 23],
    ("vito-continuous", 1): [20, *[1] * 23],
    ("gp-emulator", 0): [10, *[4] * 23],
    ("gp-emulator", 1): [10, *[4] * 23],
    ("least-squares-multistart", 0): [30] * 24,
    ("least-squares-multistart", 1): [20] * 24,
}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Two orders, the second backwards; least squares does not solve the patients P00 to P05."""
    table = [
        {
            "setup": setup,
            "patient": f"P{position if repeat == 0 else N - 1 - position:02d}",
            "method": method,
            "repeat": repeat,
            "position": position + 1,
            "n_runs": n_runs,
        }
        for setup in ("6p", "2p")
        for (method, repeat), runs in RUNS.items()
        for position, n_runs in enumerate(runs)
    ]
    frame = pd.DataFrame(table).astype({"repeat": "Int64"})
    unsolved = (frame["method"] == "least-squares-multistart") & (frame["patient"] < "P06")
    return frame.assign(solved=~unsolved, stop_reason="solved")


def curves(panel: Any) -> dict[str, np.ndarray]:
    """Lines of a panel by their labels."""
    found = panel.traverse(lambda curve: curve, [hv.Curve])
    return {curve.label: curve.dimension_values(1) for curve in found if curve.label}  # no bands


def test_curves_sum_up_the_runs_over_the_mean_of_the_orders(rows: pd.DataFrame) -> None:
    figure = plots.cumulative_curves(rows)
    panels = list(figure)
    assert [len(curves(panel)) for panel in panels] == [3, 3]
    cold = curves(panels[0])["least-squares-multistart"]
    assert cold == pytest.approx(25.0 * np.arange(1, N + 1))
    first = next(iter(panels[0].traverse(lambda area: area, [hv.Area])))
    assert first.dimension_values(1)[-1] == 20 + 23
    assert first.dimension_values(2)[-1] == 10 + 2 * 23


def test_positions_are_grouped_and_named(rows: pd.DataFrame) -> None:
    (panel, _) = plots.position_curves(rows)
    vito, *_ = (v for k, v in curves(panel).items() if "continuous" in k)
    assert vito == pytest.approx([15.0, 1.5, 1.5, 1.5, 1.5])
    ticks = hv.Store.lookup_options("matplotlib", panel, "plot").kwargs["xticks"]
    assert [name for _, name in ticks] == ["1", "2–5", "6–10", "11–20", "21–24"]
    (few, _) = plots.position_curves(rows[rows["position"] <= 6])
    ticks = hv.Store.lookup_options("matplotlib", few, "plot").kwargs["xticks"]
    assert [name for _, name in ticks] == ["1", "2–5", "6"]


def test_whom_nobody_solves_does_not_blur_what_was_learned(rows: pd.DataFrame) -> None:
    """Who takes all runs wherever it comes is left out, but not whom a single method solves."""
    never = rows["patient"] == "P03"
    hard = rows.assign(n_runs=rows["n_runs"].where(~never, 300), solved=rows["solved"] & ~never)
    table = orders.position_table(hard)
    assert table["setup"].tolist() == ["2p"] * 3 + ["6p"] * 3
    vito = table[table["method"] == "vito-continuous"].iloc[0]
    assert (vito["1"], vito["11–20"], vito["21–24"]) == (15.0, 1.5, pytest.approx(11 / 7, abs=0.01))
    cold = table[table["method"] == "least-squares-multistart"].iloc[0]
    assert (cold["1"], cold["11–20"]) == (25.0, 25.0)
    known = plots.continuing_table(hard).set_index(["setup", "method"])
    assert known.loc[("6p", "gp-emulator"), "per solvable patient"] == pytest.approx(
        (2 * (10 + 4 * 23) - 8) / 46, abs=0.01
    )


def test_methods_differ_by_more_than_their_colours(rows: pd.DataFrame) -> None:
    for figure in (plots.cumulative_curves(rows), plots.position_curves(rows)):
        for panel in figure:
            dots = panel.traverse(lambda scatter: scatter, [hv.Scatter])
            markers = [
                hv.Store.lookup_options("matplotlib", each, "style").kwargs["marker"]
                for each in dots
            ]
            assert len(set(markers)) == len(markers) == 3


def test_all_methods_that_the_study_compares_have_markers_of_their_own() -> None:
    from vitolab.studies import find_study

    names = find_study("from-nothing").profiles["paper"]["methods"]
    assert len({continuing._marker(name) for name in names}) == len(names)


def test_the_legend_stands_beside_the_last_panel_of_the_first_row(rows: pd.DataFrame) -> None:
    figure = plots.cumulative_curves(rows)
    shown = [
        hv.Store.lookup_options("matplotlib", panel, "plot").kwargs["show_legend"]
        for panel in figure
    ]
    assert shown == [False, True]
    for backend in ("matplotlib", "bokeh"):
        assert hv.render(figure, backend=backend) is not None


def test_the_table_tells_success_with_its_interval_and_runs_at_both_ends(
    rows: pd.DataFrame,
) -> None:
    table = plots.continuing_table(rows)
    assert table["setup"].tolist() == ["2p"] * 3 + ["6p"] * 3
    by = table[table["setup"] == "6p"].set_index("method")
    vito, cold = by.loc["vito-continuous"], by.loc["least-squares-multistart"]
    assert vito["runs, whole cohort"] == (56 + 43) / 2
    assert (vito["lowest order"], vito["highest order"]) == (43, 56)
    assert vito["per patient, first 10"] == pytest.approx((28 + 29) / 20)
    assert vito["per patient, last 10"] == 1.5
    assert cold["solved [%]"] == 75.0
    # the same patients failed in both orders: as many trials as patients, a binomial count
    known = 100 * binom.ppf([0.025, 0.975], N, 0.75) / N
    assert (cold["95 % from"], cold["to"]) == pytest.approx(tuple(known), abs=0.05)
    assert (vito["95 % from"], vito["to"]) == tuple(np.round(100 * np.array(wilson(1.0, N)), 1))
    assert cold["patients"] == "24, synthetic"


def test_the_best_of_the_others_is_compared_patient_by_patient(rows: pd.DataFrame) -> None:
    row = plots.paired_table(rows).set_index("setup").loc["6p"]
    assert row["best other method"] == "gp-emulator"
    assert (row["solved more often by vito-continuous"], row["less often"]) == (0, 0)
    assert row["p (sign test)"] == 1.0
    assert row["difference"] == pytest.approx((99 - 2 * (10 + 4 * 23)) / 48, abs=0.01)
    assert row["95 % from"] < row["difference"] < row["to"]
    cold = plots.paired_table(rows[rows["method"] != "gp-emulator"]).set_index("setup").loc["6p"]
    assert cold["best other method"] == "least-squares-multistart"
    assert (cold["solved more often by vito-continuous"], cold["less often"]) == (6, 0)
    assert cold["p (sign test)"] == pytest.approx(2 * 0.5**6, rel=0.05)


def test_success_decides_who_is_best_before_runs_do(rows: pd.DataFrame) -> None:
    cheap = rows.assign(
        n_runs=rows["n_runs"].where(rows["method"] != "least-squares-multistart", 1)
    )
    assert set(plots.paired_table(cheap)["best other method"]) == {"gp-emulator"}


def test_without_another_method_there_is_nothing_to_compare(rows: pd.DataFrame) -> None:
    assert plots.paired_table(rows[rows["method"] == "vito-continuous"]).empty
    assert plots.paired_table(rows[rows["method"] != "vito-continuous"]).empty


def test_who_was_given_up_is_counted_beside_what_the_rule_costs(rows: pd.DataFrame) -> None:
    without = rows[rows["method"] == "vito-continuous"]
    first = without["position"] == 1
    ends = without.assign(
        solved=~first,
        n_runs=without["n_runs"].where(~first, 3),
        stop_reason=np.where(first, "unreachable", "solved"),
    )
    row = plots.giving_up_table(without, ends).set_index("setup").loc["6p"]
    assert (row["given up"], row["of these solved without the rule"]) == (2, 2)
    assert row["fewer runs [%]"] == pytest.approx(100 * (1 - (99 - 24) / 99), abs=0.05)


def test_a_run_without_positions_is_refused(rows: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="the run stored no positions"):
        plots.cumulative_curves(rows.drop(columns="position"))


def test_figures_are_saved(rows: pd.DataFrame, tmp_path) -> None:
    for draw in (plots.cumulative_curves, plots.position_curves):
        assert style.save(draw(rows), tmp_path / f"{draw.__name__}.png").stat().st_size > 10_000
