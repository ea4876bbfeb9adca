"""Figure and table of agents beside each other: every number is found again."""

from __future__ import annotations

import holoviews as hv
import numpy as np
import pandas as pd
import pytest

from vitolab import plots
from vitolab.identifiability import Sensitivity
from vitolab.models import circulation
from vitolab.plots import style


@pytest.fixture(scope="module")
def personalizations() -> pd.DataFrame:
    """Three patients, of whom C never is solved; two agents of two sizes, one reference."""
    solved = {
        ("vito", 10): {"A": 20},
        ("vito", 100): {"A": 4, "B": 8},
        ("vito-continuous", 10): {"A": 2, "B": 4},
        ("vito-continuous", 100): {"A": 1, "B": 1},
        ("least-squares-multistart", None): {"A": 10, "B": 20},
    }
    rows = [
        {
            "setup": "2p",
            "patient": patient,
            "method": method,
            "n_samples": size,
            "repeat": None if size is None else 0,
            "start": 0 if size is None else None,
            "solved": patient in runs,
            "n_runs": runs.get(patient, 50),
            "n_restarts": 0,
        }
        for (method, size), runs in solved.items()
        for patient in "ABC"
    ]
    nullable = dict.fromkeys(("n_samples", "repeat", "start"), "Int64")
    return pd.DataFrame(rows).astype(nullable)


def test_table_tells_the_solvable_and_how_many_times_more_runs_least_squares_makes(
    personalizations,
):
    table = plots.agent_table(personalizations).set_index(["method", "samples per patient"])
    row = table.loc[("vito-continuous", "100")]
    assert row["success of all [%]"] == 66.7
    assert row["success of the solvable [%]"] == 100.0
    assert row["runs, solved"] == 1.0
    assert row["runs, all"] == 17.3
    assert row["runs of least-squares-multistart, times"] == 15.0
    assert table.loc[("vito", "10"), "success of the solvable [%]"] == 50.0
    assert row["solved by both"] == 2
    lucky = table.loc[("vito", "10")]  # solved the easy patient alone: compared on that one
    assert (lucky["solved by both"], lucky["runs of least-squares-multistart, times"]) == (1, 0.5)
    own = table.loc[("least-squares-multistart", "")]
    assert (own["runs of least-squares-multistart, times"], own["solvable"]) == (1.0, 2)
    assert set(table["patients"]) == {"3, synthetic"}


def test_table_tells_agents_before_references_and_stands_without_them(personalizations):
    table = plots.agent_table(personalizations)
    agents = ["vito"] * 2 + ["vito-continuous"] * 2
    assert table["method"].tolist() == [*agents, "least-squares-multistart"]
    alone = plots.agent_table(personalizations[personalizations["n_samples"].notna()])
    assert alone["runs of least-squares-multistart, times"].isna().all()
    assert alone["success of the solvable [%]"].tolist() == [50.0, 100.0, 100.0, 100.0]


def test_curves_hold_the_numbers_and_references_are_level(personalizations):
    figure = plots.agent_curves(personalizations)
    success, runs_all, runs_solved = list(figure)
    curves = {c.label: c for c in runs_solved.traverse(lambda c: c, [hv.Curve])}
    continuous = curves["vito, continuous actions\n(2 forward runs per sample)"]
    assert continuous.dimension_values("value").tolist() == [3.0, 1.0]
    level = curves["least-squares-multistart"].dimension_values("value")
    assert np.array_equal(level, [15.0, 15.0])
    shares = {c.label: c for c in success.traverse(lambda c: c, [hv.Curve])}
    assert shares["vito: the paper's agent"].dimension_values("value") == pytest.approx(
        [100 / 3, 200 / 3]
    )
    lines = runs_all.traverse(lambda c: c, [lambda c: type(c) is hv.Curve])
    assert len(lines) == 3


@pytest.fixture(scope="module")
def many(personalizations) -> pd.DataFrame:
    """The same with twelve parameters, where nobody but least squares solves anybody."""
    worse = personalizations.assign(setup="12p")
    worse["solved"] &= worse["method"] == "least-squares-multistart"
    return pd.concat([worse, personalizations])


def test_runs_are_shown_against_the_number_of_parameters(many):
    """Agents with their largest training; setups stand in the order of their numbers."""
    problems = {setup: circulation.problem(setup) for setup in ("2p", "12p")}
    success, runs_all, _ = list(plots.scaling_curves(many, problems))
    curves = {c.label: c for c in success.traverse(lambda c: c, [hv.Curve])}
    assert curves["vito, continuous actions"].dimension_values("n_parameters").tolist() == [2, 12]
    shares = curves["vito, continuous actions"].dimension_values("value")
    assert shares == pytest.approx([200 / 3, 0.0])
    runs = {c.label: c for c in runs_all.traverse(lambda c: c, [hv.Curve])}
    taken = runs["vito: the paper's agent"].dimension_values("value")
    assert taken == pytest.approx([62 / 3, 62 / 3])
    table = plots.agent_table(many)
    assert table["setup"].drop_duplicates().tolist() == ["2p", "12p"]


def test_the_number_of_parameters_is_compared_at_the_same_training(many):
    """More samples of one setup do not count; without a common size there is no comparison."""
    problems = {setup: circulation.problem(setup) for setup in ("2p", "12p")}
    more = many[(many["setup"] == "12p") & (many["n_samples"] == 100)]
    more = more.assign(n_samples=1000, n_runs=1, solved=True)
    _, runs_all, _ = list(plots.scaling_curves(pd.concat([many, more]), problems))
    runs = {c.label: c for c in runs_all.traverse(lambda c: c, [hv.Curve])}
    taken = runs["vito: the paper's agent"].dimension_values("value")
    assert taken == pytest.approx([62 / 3, 62 / 3])
    with pytest.raises(ValueError, match="share no size of training"):
        plots.scaling_curves(pd.concat([more, many[many["setup"] == "2p"]]), problems)


def test_references_have_a_line_where_there_is_one_size(personalizations):
    one = personalizations[
        personalizations["n_samples"].isin([100]) | personalizations["start"].eq(0)
    ]
    success, *_ = list(plots.agent_curves(one))
    lines = {c.label: c for c in success.traverse(lambda c: c, [hv.Curve])}
    ends = lines["least-squares-multistart"].dimension_values("n_samples")
    assert ends[0] < 100 < ends[1]


@pytest.mark.parametrize("values", [[30.0, 40.0], [2.5, 4.0], [1.0], [7.0, 7000.0]])
def test_a_logarithmic_axis_has_a_number_at_either_end(values):
    options = style.logarithmic(values)
    ticks = [tick for tick, _ in options["yticks"]]
    low, high = options["ylim"]
    assert len(ticks) >= 1
    assert low <= min(*values, ticks[0])
    assert high >= max(values)


def test_singular_values_stand_from_the_largest_and_zeros_on_the_lower_end():
    found = Sensitivity(
        parameters=("a", "b", "c"),
        objectives=("y",),
        x=np.zeros(3),
        jacobian=np.zeros((1, 3)),
        singular_values=np.array([9.0, 3.0, 0.0]),
        directions=np.eye(3),
    )
    figure = plots.singular_values({"3p": found})
    (curve,) = figure.traverse(lambda c: c, [hv.Curve])
    assert curve.dimension_values("value").tolist() == [9.0, 3.0]
    (zero,) = figure.traverse(lambda c: c, [hv.Scatter])[-1:]
    assert zero.dimension_values("value").tolist() == [1.0]


def test_curves_are_drawn_where_an_agent_solves_nobody(personalizations, tmp_path):
    rows = personalizations.assign(solved=False)
    path = plots.save(plots.agent_curves(rows), tmp_path / "curves.png")
    assert path.stat().st_size > 10_000
