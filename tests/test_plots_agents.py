"""Figure and table of agents beside each other: every number is found again."""

from __future__ import annotations

import holoviews as hv
import numpy as np
import pandas as pd
import pytest

from vitolab import plots
from vitolab.identifiability import Sensitivity
from vitolab.models import circulation


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
    assert table.loc[("least-squares-multistart", "")].iloc[-2] == 1.0
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
    continuous = curves["vito, continuous actions"]
    assert continuous.dimension_values("value").tolist() == [3.0, 1.0]
    level = curves["least-squares-multistart"].dimension_values("value")
    assert np.array_equal(level, [15.0, 15.0])
    shares = {c.label: c for c in success.traverse(lambda c: c, [hv.Curve])}
    assert shares["vito: the paper's agent"].dimension_values("value") == pytest.approx(
        [100 / 3, 200 / 3]
    )
    assert len(list(runs_all.traverse(lambda c: c, [hv.Curve]))) == 3


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
    assert curve.dimension_values("value").tolist() == [9.0, 3.0, 1.0]


def test_curves_are_drawn_where_an_agent_solves_nobody(personalizations, tmp_path):
    rows = personalizations.assign(solved=False)
    path = plots.save(plots.agent_curves(rows), tmp_path / "curves.png")
    assert path.stat().st_size > 10_000
