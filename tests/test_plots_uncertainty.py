"""Figures of uncertainty: what they show is what the tables hold, in both backends."""

from __future__ import annotations

import holoviews as hv
import numpy as np
import pandas as pd
import pytest

from vitolab import plots
from vitolab.models.bolus import PRESSURES


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Solutions of two methods and posteriors of three patients, and draws of the first."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "setup": "2p",
            "patient": f"P{i}",
            "method": method,
            "start": start,
            "repeat": start,
            "solved": start < 3,
            "x:a": float(start),
            "x:b": 0.5 * start + i,
        }
        for i in range(3)
        for method in ("least-squares", "bobyqa-simple")
        for start in range(4)
    ]
    for i in range(3):
        row = {"setup": "2p", "patient": f"P{i}", "method": "posterior", "solved": True}
        rows.append(row | {"level": 0.3 * i, "rank:a": 0.5, "rank:b": 1.0})
    draws = {"setup": "2p", "patient": "P0", "method": "posterior"}
    draws |= {"x:a": rng.normal(0, 1, 200), "x:b": rng.normal(1, 0.5, 200)}
    return pd.DataFrame(rows), pd.DataFrame(draws)


def drawn(figure, path) -> None:
    """Draw with Matplotlib into a file, and with Bokeh."""
    assert plots.save(figure, path / "figure.png").stat().st_size > 5000
    hv.render(figure, backend="bokeh")


def test_ranges_and_spreads_are_drawn_per_patient(tables, linear_problem, tmp_path):
    rows = tables[0]
    figure = plots.solution_ranges(rows, {"2p": linear_problem})
    drawn(figure, tmp_path)
    dots = figure.traverse(lambda e: e, [hv.Scatter])
    assert [d.label.split(" (")[0] for d in dots] == ["BOBYQA simple", "least-squares"]
    # three solutions 0, 1, 2 in a and 0, 0.5, 1 in b, domain 10
    assert np.sort(dots[0]["share"]) == pytest.approx([0.1] * 3 + [0.2] * 3)
    spread = plots.stability_spread(rows[rows["method"] != "posterior"], {"2p": linear_problem})
    drawn(spread, tmp_path)
    dots = spread.traverse(lambda e: e, [hv.Scatter])
    assert np.sort(dots[0]["share"]) == pytest.approx([0.05] * 3 + [0.1] * 3)
    assert dots[0].label == "BOBYQA simple (75 % solved)"


def test_coverage_curves_are_the_shares_of_patients(tables, linear_problem, tmp_path):
    figure = plots.coverage_curves(tables[0], {"2p": linear_problem})
    drawn(figure, tmp_path)
    right, joint, a, b = (
        e for e in figure.traverse(lambda e: e, [hv.Curve]) if type(e) is hv.Curve
    )
    assert np.array_equal(right["promised"], right["found"])
    found = dict(zip(joint["promised"].round(), joint["found"], strict=True))
    assert [found[share] for share in (0, 29, 31, 61)] == pytest.approx(
        [100 / 3, 100 / 3, 200 / 3, 100]
    )
    assert set(a["found"]) == {100.0}  # the median is in every central interval
    assert b["found"].tolist() == [0.0] * 100 + [100.0]


def test_marginals_span_the_domain_and_mark_solutions(tables, linear_problem, tmp_path):
    rows, draws = tables
    figure = plots.posterior_marginals(
        draws,
        linear_problem,
        setup="2p",
        patient="P0",
        personalizations=rows,
        truth={"a": 0.0, "b": 1.0},
    )
    drawn(figure, tmp_path)
    marks = figure.traverse(lambda e: e, [hv.Scatter])
    assert sorted(marks[0]["x"]) == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    curve = figure.traverse(lambda e: e, [hv.Curve])[0]
    assert (curve["x"].min(), curve["x"].max()) == (-5.0, 5.0)
    assert np.trapezoid(curve["density"], curve["x"]) == pytest.approx(1.0)
    assert [t.data for t in figure.traverse(lambda e: e, [hv.VLine])] == [0.0, 1.0]


def test_forecast_changes_are_differences_to_before(tmp_path):
    rows = {"method": ["m", "m"]}
    for name in PRESSURES:
        rows |= {f"before:{name}": [60.0, 60.0], f"after:{name}": [70.0, 64.0]}
        rows |= {f"model:{name}": [69.0, 70.0], f"model's change:{name}": [71.0, 65.0]}
    figure = plots.forecast_changes(pd.DataFrame(rows), method="m")
    drawn(figure, tmp_path)
    model, change = figure.traverse(lambda e: e, [hv.Scatter])[:2]
    assert model["measured"].tolist() == [10.0, 4.0]
    assert model["forecast"].tolist() == [9.0, 10.0]
    assert change["forecast"].tolist() == [11.0, 5.0]
