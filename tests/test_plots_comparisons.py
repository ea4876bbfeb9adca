"""Methods compared in pairs: hand-made tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from plotted import frame, rows

from vitolab import plots
from vitolab.plots.paired import comparison_table, comparisons, paired
from vitolab.studies import words


def of(table: pd.DataFrame, method: str) -> pd.DataFrame:
    return table[table["method"] == method]


@pytest.fixture
def table() -> pd.DataFrame:
    """Ten patients; Vito solves eight, least squares six of them and one other."""
    vito = [(True, 10)] * 8 + [(False, 100)] * 2
    cold = [(True, 20)] * 6 + [(False, 30)] * 2 + [(True, 20), (False, 30)]
    return frame(
        rows("2p", "vito", vito, n_samples=10, repeat=0, max_runs=100),
        rows("2p", "least-squares", cold, start=0, max_runs=100),
        rows("2p", "fixed-default", [(False, 1)] * 10, max_runs=1),
    )


def test_a_pair_counts_patients_and_charges_the_budget(table: pd.DataFrame):
    (found,) = comparisons(table)  # a single run at a start is no method to compare with
    pair = found.pair
    assert (found.method, found.other, pair.patients) == ("vito", "least-squares", 10)
    assert (pair.better, pair.worse) == (2, 1)
    # exact: of three patients who differ, two or more, or one or less, fall on either side
    assert pair.p == 1.0
    assert pair.success[0] == pytest.approx(10.0)
    # it stalled after 30 runs without success, which counts as all 100
    assert pair.runs == pytest.approx((28.0, (7 * 20 + 3 * 100) / 10))
    assert pair.difference[0] == pytest.approx(28.0 - 44.0)
    assert pair.ratio[0] == pytest.approx(44.0 / 28.0)
    assert pair.ratio[1] < pair.ratio[0] < pair.ratio[2]
    row = comparison_table([found]).iloc[0]
    assert row["runs of the other, times"] == 1.57
    assert row["times, 95 %"] == f"{pair.ratio[1]:.2f} to {pair.ratio[2]:.2f}"


def test_mcnemar_on_a_hand_table():
    """Nine patients against one: p = 2 (1 + 10) / 2^10."""
    vito = [(True, 1)] * 9 + [(False, 9)] + [(True, 1)] * 5
    other = [(False, 9)] * 9 + [(True, 1)] + [(True, 1)] * 5
    table = frame(
        rows("2p", "vito", vito, n_samples=10, repeat=0), rows("2p", "nelder-mead", other, start=0)
    )
    pair = paired(of(table, "vito"), of(table, "nelder-mead"))
    assert pair is not None
    assert (pair.better, pair.worse, pair.p) == (9, 1, pytest.approx(22 / 1024))


def test_starts_of_a_patient_are_no_further_patients(table: pd.DataFrame):
    again = [table, *(of(table, "least-squares").assign(start=k) for k in range(1, 6))]
    once, often = (comparisons(t)[0].pair for t in (table, pd.concat(again, ignore_index=True)))
    assert often == once


def test_only_starts_that_both_used_are_compared():
    table = frame(
        *(rows("base", "vito", [(k < 2, 5)] * 3, n_samples=10, start=k) for k in range(4)),
        *(rows("base", "nelder-mead", [(True, 5)] * 3, start=k) for k in range(2)),
    )
    pair = paired(of(table, "vito"), of(table, "nelder-mead"))
    assert pair is not None
    assert pair.success[0] == 0.0


def test_patients_who_are_not_shared_are_not_compared(table: pd.DataFrame):
    others = of(table, "least-squares")
    assert paired(of(table, "vito"), others.assign(patient=others["patient"] + "x")) is None


def test_sentences_tell_runs_apart_only_where_the_interval_does():
    runs = np.random.default_rng(0).integers(5, 15, 20)
    outcomes = [(True, int(n)) for n in runs]
    table = frame(
        rows("2p", "vito", outcomes, n_samples=10, repeat=0),
        rows("2p", "nelder-mead", [(True, n + 20) for _, n in outcomes], start=0),
        rows("2p", "least-squares", outcomes[::-1], start=0),
    )
    said = words.in_pairs(plots.comparisons(table)).splitlines()[0]
    assert said == (
        "2p: vito makes fewer runs than nelder-mead; as many runs, within the interval, as "
        "least-squares."
    )


def test_a_walk_within_fewer_runs_is_the_same_walk_cut_short():
    optima = pd.DataFrame(
        [{"setup": "base, restart", "patient": f"P{k}", "truth:x1": 0.0} for k in range(2)]
    )
    table = frame(
        rows(
            "base, restart",
            "vito",
            [(True, 800), (True, 4000)],
            n_samples=10,
            repeat=0,
            start=0,
            max_runs=10_000,
            **{"last:x1": 0.0},
        )
    )
    found = plots.grid_table(table, optima, limits=(1000, 10_000)).set_index("runs allowed")
    assert found["success [%]"].to_dict() == {"1,000": 50.0, "10,000": 100.0}
    assert found["runs, all"].to_dict() == {"1,000": 900.0, "10,000": 2400.0}
    assert np.isnan(found.loc["1,000", "largest error in x"])
    earlier = plots.grid_table(table.drop(columns="max_runs"), optima, limits=(1000, 10_000))
    assert earlier["success [%]"].tolist() == [100.0]
