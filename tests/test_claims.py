"""The paper's claims: a verdict follows from the interval, whichever way it falls."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from vitolab.studies import STUDIES, claims, evidence

N = 48


def personalizations(method, share, runs, setup="2p", n_samples=None, starts=(None,), repeat=None):
    """Rows of a method that solves the first of the patients, each start alike."""
    rows = [
        {
            "setup": setup,
            "patient": f"C{patient:02d}",
            "method": method,
            "n_samples": n_samples,
            "repeat": 0 if n_samples else repeat,
            "start": start,
            "solved": patient < share * N,
            "n_runs": runs + patient % 3,
            "n_restarts": 0 if n_samples else None,
            "max_runs": 100,
        }
        for start in starts
        for patient in range(N)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("ends", "limit", "verdict"),
    [
        ((7.0, 9.0), 7.0, "holds"),
        ((5.0, 6.9), 7.0, "does not hold"),
        ((5.0, 9.0), 7.0, "not decided"),
        ((math.nan, math.nan), 7.0, "not decided"),
    ],
)
def test_at_least_is_judged_by_both_ends(ends, limit, verdict):
    assert evidence.above(ends, limit) == verdict


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [((-4.0, 4.0), "holds"), ((11.0, 15.0), "does not hold"), ((-2.0, 12.0), "not decided")],
)
def test_equality_is_shown_and_not_assumed(ends, verdict):
    assert evidence.equal(ends, 10.0) == verdict


def test_no_difference_is_no_proof_of_more():
    assert evidence.more((0.0, 0.0)) == "not decided"
    assert evidence.more((0.1, 3.0)) == "holds"
    assert evidence.more((-3.0, -0.1)) == "does not hold"


@pytest.mark.parametrize(
    ("runs", "verdict"), [(3.0, "holds"), (21.0, "does not hold"), (30.0, "does not hold")]
)
def test_fewer_runs_are_judged_by_the_factor_on_the_same_patients(runs, verdict):
    rows = pd.concat(
        [
            personalizations("vito", 1.0, runs, n_samples=1000),
            personalizations("nelder-mead", 1.0, 40.0, starts=(0, 1)),
        ]
    )
    found = evidence.fewer_runs("2p", "nelder-mead", 7.0, 1000)(rows)
    assert found.verdict == verdict
    assert "1,000 samples, 48 patients, 1 repeat" in found.found


def test_the_best_start_is_the_one_that_solves_most():
    rows = pd.concat(
        [
            personalizations("vito", 0.8, 10.0, n_samples=100),
            personalizations("nelder-mead", 0.2, 5.0, starts=(0,)),
            personalizations("nelder-mead", 0.9, 50.0, starts=(1,)),
        ]
    )
    found = evidence.success_beside("2p", "nelder-mead", evidence.more, best=True)(rows)
    assert found.found.startswith("81 against 92 %")
    mean = evidence.success_beside("2p", "nelder-mead", evidence.more)(rows)
    assert mean.found.startswith("81 against 56 %")
    assert mean.verdict == "holds"


def test_a_share_of_all_is_decided_by_a_single_failure_only_with_enough_of_them():
    solved = personalizations("vito", 1.0, 5.0, setup="base, free", n_samples=10)
    judge = evidence.share_of_starts("base, free", 100.0)
    assert judge(solved).verdict == "holds"
    one = solved.assign(solved=[False, *[True] * (N - 1)])
    assert judge(one).verdict == "not decided"
    half = solved.assign(solved=np.arange(N) < N // 2)
    assert judge(half).verdict == "does not hold"


def test_what_was_not_run_is_said_and_decides_nothing():
    table = claims.judged(lambda study: None)
    assert set(table["verdict"]) == {"not run"}
    rows = personalizations("vito", 1.0, 5.0, n_samples=10)
    known = claims.judged(lambda study: rows if study == "wbc-convergence" else None)
    own = known[known["study"] == "wbc-convergence"].set_index("claim")["verdict"]
    assert own["Circulation, 2p: 80 % solved with fewer than 50 samples per patient"] == "holds"
    assert own["Circulation, 6p: success at least that of the simplex"] == "not run"


def test_every_claim_names_a_study():
    assert {claim.study for claim in claims.CLAIMS} <= {study.name for study in STUDIES}
    assert len({claim.words for claim in claims.CLAIMS}) == len(claims.CLAIMS)


def test_about_a_share_is_decided_by_an_interval_that_is_narrow_enough():
    rows = personalizations("vito", 0.8, 5.0, setup="bem", n_samples=10)
    few = rows[rows["patient"].isin(["C00", "C01", "C02", "C45", "C46", "C47"])]
    assert evidence.never_solved("bem", 20.0)(few).verdict == "not decided"
    many = pd.concat([rows.assign(patient=rows["patient"] + str(k)) for k in range(9)])
    assert evidence.never_solved("bem", 20.0)(many).verdict == "holds"
    assert evidence.never_solved("bem", 60.0)(many).verdict == "does not hold"
